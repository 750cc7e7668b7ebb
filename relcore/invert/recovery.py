"""Inversion between the two spaces of a pair: the recovered rows, compared with direct maps and the chance
level.

Scores are means over held-out rows: every method is fitted on the anchors, and would reproduce them even
between unrelated spaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import need_one_of
from relcore.base.names import DELTA, INVERSES, ROUTES
from relcore.base.numbers import general
from relcore.base.settings import check, setting
from relcore.represent.anchors import shared_anchors
from relcore.represent.similarity import mean_row, unit_rows
from relcore.represent.translation import (
    InverseRelativeProjection,
    LeastSquares,
    Procrustes,
    pruned_decoders,
    recovered,
)
from relcore.scores.cka import mean_cosine
from relcore.scores.score import Score
from relcore.spaces.space import LatentSpace, Match, distinct_names
from relcore.spaces.split import Split

DELTAS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
OMEGAS = (1, 4, 8, 16)
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_PARTS = 4  # a quarter of the anchors is held out
_MANY = 1000  # of more anchors one quarter is held out, of fewer each in turn
FEWEST = 8  # anchors, to hold out two


@dataclass(frozen=True)
class Choice:
    """What was chosen, and how.

    Attributes
    ----------
    delta, omega, ridge : float, int, float
    cosine : float
        Mean cosine of the held-out anchors with these numbers; optimistic, as the best of `n_tried`.
    n_tried, n_held_out : int
        Settings that were compared; anchors that were held out at a time.
    """

    delta: float
    omega: int
    ridge: float
    cosine: float
    n_tried: int
    n_held_out: int

    def numbers(self) -> dict[str, Any]:
        """δ, ω and λ, as fields of an `InversionSpec`."""
        return {"delta": self.delta, "omega": self.omega, "ridge": self.ridge}


def choose_numbers(
    source: np.ndarray, target: np.ndarray, means: tuple[np.ndarray, np.ndarray], spec: InversionSpec
) -> Choice | None:
    """The best numbers for the spec's method: δ and ω of "pruned", λ of the others; those of the spec for
    what is not chosen.

    Source (k, d_source) and target (k, d_target) are paired anchors, the means those of all rows. The best on
    the held-out anchors is to be fitted on all of them. None with fewer than `FEWEST` anchors.
    """
    k = len(source)
    if k < FEWEST:
        return None
    A, B = unit_rows(source, means[0]), unit_rows(target, means[1])
    order = np.random.default_rng([spec.random_state, k]).permutation(k)
    parts = [order[part::_PARTS] for part in range(_PARTS)][: _PARTS if k <= _MANY else 1]
    totals: dict[tuple[float, int, float], list[float]] = {}
    for held_out in parts:
        known = np.setdiff1d(order, held_out)
        for numbers, decoded in _tried(A, B, known, held_out, spec):
            cosines = np.einsum("ij,ij->i", unit_rows(decoded), B[held_out])
            totals.setdefault(numbers, []).append(float(cosines.mean(dtype=np.float64)))
    scores = {numbers: float(np.mean(found)) for numbers, found in totals.items() if len(found) == len(parts)}
    if not scores:
        return None
    best = max(scores, key=scores.get)
    return Choice(*best, scores[best], len(scores), len(parts[0]))


def _tried(
    A: np.ndarray, B: np.ndarray, known: np.ndarray, held_out: np.ndarray, spec: InversionSpec
) -> Iterator:
    """(δ, ω, λ) and the held-out anchors as that inverse translates them, for each setting of the method's
    grid.
    """
    if spec.method == "pruned":
        relative = A[held_out] @ A[known].T
        for pruned in pruned_decoders(B[known], DELTAS, OMEGAS, spec.random_state):
            if min(map(len, pruned.kept)) > 1:
                yield (pruned.delta, pruned.omega, spec.ridge), relative @ pruned.matrix
        return
    # With A = U S Vᵀ, A's K = A Aᵀ has the eigenvectors U: each λ costs one product of small matrices, not an
    # inverse.
    u_x, s_x, v_x = np.linalg.svd(A[known], full_matrices=False)
    u_y, s_y, v_y = np.linalg.svd(B[known], full_matrices=False)
    inputs = A[held_out] @ v_x.T
    crossed = u_x.T @ u_y
    for ridge in RIDGES:
        if spec.method == "ridge":
            left, right = s_x, s_y / (s_y**2 + ridge)
        else:
            left, right = s_x / np.sqrt(s_x**2 + ridge), s_y / np.sqrt(s_y**2 + ridge)
        yield (spec.delta, spec.omega, ridge), ((inputs * left) @ crossed * right) @ v_y


MOST_ROWS = 20_000  # held-out rows that are translated; of more a random sample
MOST_OMEGA = 64


@dataclass(frozen=True)
class InversionSpec:
    """The parameters of `InverseRelativeProjection`, and the direction."""

    route: str = setting(
        "forward",
        label="Invert",
        choices=ROUTES,
        help="From the source to the target, back, or from the source through its relative space to itself.",
    )
    method: str = setting(
        "pruned",
        choices=INVERSES,
        help=(
            "Pruned (Maiorca et al. 2024): near-duplicate anchors are left out, the rest is inverted, and ω"
            " such inverses are averaged. Ridge and whitened are our additions: they keep all anchors, and λ"
            " stabilises the inverse."
        ),
    )
    omega: int = setting(
        8,
        label="Prunings ω",
        low=1,
        high=MOST_OMEGA,
        metavar="ω",
        help="Pruned: number of prunings to average, each from another first anchor.",
    )
    delta: float = setting(
        DELTA,
        label="Distance δ",
        low=0,
        high=1,
        step=0.05,
        metavar="δ",
        help="Pruned: anchors nearer than δ, by 1 − |cos|, are left out; 0 keeps all.",
    )
    ridge: float = setting(
        1.0,
        label="Ridge λ",
        option="inverse_ridge",
        low=1e-6,
        high=1e6,
        step=0.5,
        metavar="λ",
        help="Ridge and whitened: larger is more stable, less accurate; λ = 1 counts as much as one anchor.",
    )
    random_state: int = setting(
        0,
        option="pruning_state",
        low=0,
        high=2**31,
        help="Random state of the first anchor of each pruning.",
    )
    tuned: bool = setting(False, option="auto", help="Choose δ and ω, or λ, by held-out anchors instead.")

    def __post_init__(self) -> None:
        check(self)

    def to_record(self) -> dict[str, Any]:
        """The fields; `tuned`, which version 0.1.0 had not, only where it is on."""
        return {name: value for name, value in vars(self).items() if name != "tuned" or value}

    def inverse(self) -> InverseRelativeProjection:
        return InverseRelativeProjection(self.method, self.omega, self.delta, self.ridge, self.random_state)

    @property
    def title(self) -> str:
        """What this method is called beside others: ``"inverse, pruned"``."""
        return f"inverse, {INVERSES[self.method].title}"

    def settings(self) -> str:
        """What the method depends on: ``"ω = 8, δ = .7"`` or ``"λ = 1"``."""
        return (
            f"ω = {self.omega}, δ = {general(self.delta)}"
            if self.method == "pruned"
            else f"λ = {general(self.ridge)}"
        )


def sides(pair: Match, route: str) -> tuple[LatentSpace, LatentSpace]:
    """The space that rows come from, and the one in which they are recovered."""
    need_one_of("route", route, ROUTES)
    spaces = {"forward": (pair.source, pair.target), "backward": (pair.target, pair.source)}
    return spaces.get(route, (pair.source, pair.source))


def side_names(pair: Match, route: str) -> tuple[str, str]:
    """Their names, distinct unless they are one space."""
    source, target = distinct_names((pair.source, pair.target))
    return {"forward": (source, target), "backward": (target, source)}.get(route, (source, source))


@dataclass(frozen=True, eq=False)
class Inversion:
    """Rows of one space, recovered in another.

    Attributes
    ----------
    spec : InversionSpec
        With the numbers that were used; `choice` tells how they were chosen where held-out anchors chose
        them.
    n : int
        Rows of the pair.
    rows : array (m,)
        Those that were translated, ascending: held-out rows and the anchors.
    scored : array (m,) of bool
        Which of them are held out.
    true, found : arrays (m, d)
        In the target's absolute space.
    errors : {method: array (m,)}
        1 − cosine of found and true directions from the target's mean, 0 … 2; the inverse first, then maps
        fitted on both spaces.
    distance : array (m,)
        ‖found − true‖ over the true row's length from the mean, of the inverse.
    scores : {method: Score}
        Mean cosine of the held-out rows, with the chance level: the same after permuting these rows.
    n_anchors, kept : int, float
        Anchors given, and the mean number that a pruning keeps.
    condition : float
        Of the inverted anchors, the mean over the prunings; inf if one has no full rank.
    rank : int
        Number of directions of the target that can be recovered.
    shape : (d_source, d_target)
        Of the matrix W of the translation.
    """

    spec: InversionSpec
    n: int
    rows: np.ndarray
    scored: np.ndarray
    true: np.ndarray
    found: np.ndarray
    errors: dict[str, np.ndarray]
    distance: np.ndarray
    scores: dict[str, Score]
    n_anchors: int
    kept: float
    condition: float
    rank: int
    shape: tuple[int, int]
    choice: Choice | None = None

    @property
    def held_out_errors(self) -> dict[str, np.ndarray]:
        """`errors` of the rows that are scored."""
        return {method: errors[self.scored] for method, errors in self.errors.items()}

    @property
    def n_scored(self) -> int:
        return int(np.count_nonzero(self.scored))

    def summary(self) -> pd.DataFrame:
        """One row per method: method, cosine, chance, low, high (its 95 % band), n held-out rows, anchors."""
        rows = []
        for method, score in self.scores.items():
            null = (score.null.mean, score.null.low, score.null.high) if score.null else (np.nan,) * 3
            rows.append((method, float(score), *null, score.n, self.n_anchors))
        return pd.DataFrame(rows, columns=["method", "cosine", "chance", "low", "high", "n", "anchors"])


def invert_pair(
    pair: Match, anchors: Sequence[str], spec: InversionSpec, most_rows: int = MOST_ROWS
) -> Inversion:
    """Translate the pair's rows through the relative space of these anchors, and score those that are not
    anchors.

    Means are those of all rows of each space: they need no pairs.

    Raises
    ------
    SpaceError
        Fewer than two anchors, ones that a space lacks, all on one line, no other rows, or a δ that leaves
        one.
    """
    source, target = sides(pair, spec.route)
    chosen = pair.source.rows(shared_anchors(anchors, pair.source, pair.target))
    means = mean_row(source.vectors), mean_row(target.vectors)
    paired = source.vectors[chosen], target.vectors[chosen]
    choice = choose_numbers(*paired, means, spec) if spec.tuned else None
    spec = replace(spec, tuned=False, **(choice.numbers() if choice else {}))
    inverse = spec.inverse().fit(*paired, source_mean=means[0], target_mean=means[1])
    held_out = Split.held_out(pair.ids, chosen).queries(most_rows)
    rows = np.union1d(held_out, chosen)
    scored = np.isin(rows, held_out)
    X, true = source.vectors[rows], target.vectors[rows]
    found = inverse.transform(X)
    maps = {spec.title: found, "least squares": LeastSquares().fit(*paired).transform(X)}
    if spec.route != "within":  # within a space Procrustes is trivially the identity
        maps = {spec.title: found, "Procrustes": Procrustes().fit(*paired).transform(X)} | maps
        maps |= {"absolute copy": X} if X.shape[1] == true.shape[1] else {}
    units = unit_rows(true, means[1])
    errors, scores = {}, {}
    for method, translated in maps.items():
        directions = unit_rows(translated, means[1])
        errors[method] = 1 - np.einsum("ij,ij->i", directions, units)
        scores[method] = mean_cosine(directions[scored], units[scored], of_unit_length=True)
    return Inversion(
        spec=spec,
        n=len(pair),
        rows=rows,
        scored=scored,
        true=true,
        found=found,
        errors=errors,
        distance=recovered(found, true, means[1])["error"].to_numpy(),
        scores=scores,
        n_anchors=len(chosen),
        kept=float(np.mean([len(kept) for kept in inverse.kept_])),
        condition=float(np.mean(inverse.condition_numbers_)),
        rank=inverse.rank_,
        shape=inverse.matrix_.shape,
        choice=choice,
    )
