"""Inversion: recover rows of one space in another space through their similarities to anchors, with scores
and chance levels.

Scores are means over held-out rows, because every method reproduces its anchors, even those of unrelated
spaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd

from relcore.base.arguments import need_ids, need_kind
from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import DELTA, INVERSES, ROUTES
from relcore.base.numbers import band, counted, general, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import mean_row, unit_rows
from relcore.base.settings import check, setting
from relcore.maps.principal_axes import PrincipalAxes, ReductionSpec, principal_map
from relcore.represent.inverse import Inverse, InverseRelativeProjection, pruned_decoders, recovery_errors
from relcore.represent.strategies import shared_anchors
from relcore.represent.translation import LeastSquares, Procrustes
from relcore.runs.progress_line import long_call
from relcore.scores.cka import cosine_of_units
from relcore.scores.score import ChanceLevel, Score
from relcore.scores.score_report import long_rows
from relcore.spaces.matching import Match, distinct_names, match
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import Split

DELTAS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
OMEGAS = (1, 4, 8, 16)
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_PARTS = 4  # number of parts of the anchors, of which one is held out
_MANY = 1000  # with more anchors, one part is held out; with fewer, each part in turn
FEWEST_ANCHORS = 8  # minimum number of anchors, so that two can be held out


@dataclass(frozen=True)
class Choice:
    """The settings that `choose_numbers` found. `cosine` is the mean cosine that they reach on held-out
    anchors; it is optimistic, because it is the best of `n_tried` settings."""

    delta: float
    omega: int
    ridge: float
    cosine: float
    n_tried: int
    n_held_out: int

    def numbers(self) -> dict[str, Any]:
        """The values of δ, ω and λ, by the names of the fields of `InversionSpec`."""
        return {"delta": self.delta, "omega": self.omega, "ridge": self.ridge}


def choose_numbers(
    source: np.ndarray, target: np.ndarray, means: tuple[np.ndarray, np.ndarray], spec: InversionSpec
) -> Choice | None:
    """The settings with the best score on held-out anchors: δ and ω if the method is "pruned", otherwise λ.

    `source` (k, d_source) and `target` (k, d_target) are paired anchors. `means` are the means of all rows of
    both spaces. With fewer than `FEWEST_ANCHORS` anchors, the result is None.
    """
    k = len(source)
    if k < FEWEST_ANCHORS:
        return None
    A = unit_rows(source, means[0])
    B = unit_rows(target, means[1])
    order = np.random.default_rng([spec.random_state, k]).permutation(k)
    n_parts = _PARTS if k <= _MANY else 1
    parts = [order[part::_PARTS] for part in range(n_parts)]
    totals: dict[tuple[float, int, float], list[float]] = {}
    for held_out in parts:
        known = np.setdiff1d(order, held_out)
        for numbers, decoded in _translations_of_grid(A, B, known, held_out, spec):
            cosines = np.einsum("ij,ij->i", unit_rows(decoded), B[held_out])
            totals.setdefault(numbers, []).append(float(cosines.mean(dtype=np.float64)))
    scores = {numbers: float(np.mean(part)) for numbers, part in totals.items() if len(part) == len(parts)}
    if not scores:
        return None
    best = max(scores, key=lambda numbers: scores[numbers])
    return Choice(*best, scores[best], len(scores), len(parts[0]))


def _translations_of_grid(
    A: np.ndarray, B: np.ndarray, known: np.ndarray, held_out: np.ndarray, spec: InversionSpec
) -> Iterator[tuple[tuple[float, int, float], np.ndarray]]:
    """Yield each setting (δ, ω, λ) in the grid of the method, and the held-out anchors translated with it."""
    if spec.method == "pruned":
        relative = A[held_out] @ A[known].T
        for pruned in pruned_decoders(B[known], DELTAS, OMEGAS, spec.random_state):
            if min(map(len, pruned.kept)) > 1:
                yield (pruned.delta, pruned.omega, spec.ridge), relative @ pruned.matrix
        return
    # A Aᵀ has the left singular vectors of A, so each λ needs only products of small matrices and no inverse.
    u_x, s_x, v_x = np.linalg.svd(A[known], full_matrices=False)
    u_y, s_y, v_y = np.linalg.svd(B[known], full_matrices=False)
    inputs = A[held_out] @ v_x.T
    crossed = u_x.T @ u_y
    for ridge in RIDGES:
        if spec.method == "ridge":
            left = s_x
            right = s_y / (s_y**2 + ridge)
        else:
            left = s_x / np.sqrt(s_x**2 + ridge)
            right = s_y / np.sqrt(s_y**2 + ridge)
        yield (spec.delta, spec.omega, ridge), ((inputs * left) @ crossed * right) @ v_y


MOST_OMEGA = 64
MOST_ROWS = 20_000  # number of held-out rows that are translated; of more, a random sample is


@dataclass(frozen=True)
class InversionSpec:
    """The settings of an inversion: the parameters of `InverseRelativeProjection`, and the direction of the
    translation.

    Examples
    --------
    >>> from relcore import InversionSpec
    >>> InversionSpec(method="ridge", ridge=0.1).method
    'ridge'
    """

    route: str = setting(
        "forward",
        label="Invert",
        choices=ROUTES,
        help="Source to target, target to source, or the source through its relative space to itself.",
    )
    method: str = setting(
        "pruned",
        choices=INVERSES,
        help=(
            "Pruned (Maiorca et al. 2024): near-duplicate anchors are left out, the matrix of the others is"
            " inverted, and ω such inverses are averaged. Ridge and whitened are our additions: they keep all"
            " anchors, and λ stabilises the inverse."
        ),
    )
    omega: int = setting(
        8,
        label="Prunings ω",
        low=1,
        high=MOST_OMEGA,
        metavar="ω",
        help="Pruned: number of prunings to average, each from a different first anchor.",
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
        label="Smoothing (ridge λ)",
        option="inverse_ridge",
        low=1e-6,
        high=1e6,
        step=0.5,
        metavar="λ",
        help="Ridge and whitened: a larger λ is stabler but less accurate; 1 counts as much as one anchor.",
    )
    random_state: int = setting(
        0,
        option="pruning_state",
        low=0,
        high=2**31,
        help="Random state of the first anchor of each pruning.",
    )
    tuned: bool = setting(False, option="auto", help="Choose δ and ω, or λ, by scores on held-out anchors.")

    def __post_init__(self) -> None:
        check(self)

    def to_record(self) -> dict[str, Any]:
        """The fields as a record. `tuned` is included only if it is True, because version 0.1.0 did not have
        it."""
        return {name: value for name, value in vars(self).items() if name != "tuned" or value}

    def inverse(self) -> InverseRelativeProjection:
        method = cast(Inverse, self.method)  # `check` has seen that it is one of them
        return InverseRelativeProjection(method, self.omega, self.delta, self.ridge, self.random_state)

    @property
    def title(self) -> str:
        return f"inverse, {INVERSES[self.method].title}"

    def settings(self) -> str:
        if self.method == "pruned":
            return f"ω = {self.omega}, δ = {general(self.delta)}"
        return f"λ = {general(self.ridge)}"


def sides(pair: Match, route: str) -> tuple[LatentSpace, LatentSpace]:
    """The space whose rows are translated, and the space in which they are recovered."""
    need_one_of("route", route, ROUTES)
    spaces = {"forward": (pair.source, pair.target), "backward": (pair.target, pair.source)}
    return spaces.get(route, (pair.source, pair.source))


def side_names(pair: Match, route: str) -> tuple[str, str]:
    source, target = distinct_names((pair.source, pair.target))
    if route == "forward":
        return source, target
    if route == "backward":
        return target, source
    return source, source


@dataclass(frozen=True, eq=False, repr=False)
class Inversion(Reported):
    """Rows of one space recovered in another, with their scores.

    Attributes
    ----------
    spec : InversionSpec
        The settings with the final numbers; `choice` says how they were chosen on held-out anchors.
    n : int
        Number of held-out rows.
    rows : array (m,)
        Indices of the translated rows, ascending; they include anchors.
    scored : array (m,) of bool
        Which of the translated rows are held out.
    true, recovered : arrays (m, d)
        The true and the recovered rows, in absolute coordinates of the target.
    errors : {method: array (m,)}
        Error of each translated row: 1 − cosine between the recovered and the true row, both after
        subtracting the mean of the target, 0 … 2. The first method is the inverse.
    scores : {method: Score}
        Mean cosine of the held-out rows. The chance level comes from permuted rows.
    n_anchors, kept : int, float
        Number of anchors, and mean number of anchors that a pruning keeps.
    condition : float
        Condition number of the matrix of anchors that is inverted, averaged over prunings; inf if one of the
        matrices lacks full rank.
    rank : int
        Number of directions of the target that can be recovered.
    shape : (d_source, d_target)
        Shape of the matrix W that translates rows.
    notes : tuple of str
        Notes on what lowers the scores, with remedies.
    paired : PairedRows
        Intermediate results, shared with inversions that have other settings.
    """

    spec: InversionSpec
    n: int
    rows: np.ndarray
    scored: np.ndarray
    true: np.ndarray
    recovered: np.ndarray
    errors: dict[str, np.ndarray]
    scores: dict[str, Score]
    n_anchors: int
    kept: float
    condition: float
    rank: int
    shape: tuple[int, int]
    paired: PairedRows
    choice: Choice | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def distance(self) -> np.ndarray:
        """Relative error of each row that the inverse recovers, ‖recovered − true‖ / ‖true − mean‖, an array
        (m,)."""
        return recovery_errors(self.recovered, self.true, self.paired.means[1])["error"].to_numpy()

    @property
    def n_scored(self) -> int:
        return int(np.count_nonzero(self.scored))

    def summary(self) -> pd.DataFrame:
        """A table with one row per method. Columns: method, cosine, chance level, its 95 % band (low, high),
        number of held-out rows, number of anchors."""
        rows = []
        for method, score in self.scores.items():
            if score.null:
                null = (score.null.mean, score.null.low, score.null.high)
            else:
                null = (np.nan,) * 3
            rows.append((method, float(score), *null, score.n, self.n_anchors))
        return pd.DataFrame(rows, columns=["method", "cosine", "chance", "low", "high", "n", "anchors"])

    @property
    def about_matrix(self) -> str:
        """Sentences on the settings, the anchors that are kept, and the directions that are recovered."""
        text = f"Settings: {self.spec.settings()}"
        if self.choice:
            text += f", the best of {self.choice.n_tried} on {self.choice.n_held_out:,} held-out anchors"
        kept = "all"
        if self.spec.method == "pruned":
            kept = f"{short(self.kept, 1)} of"
        condition = "∞"
        if self.condition < float("inf"):
            condition = short(self.condition, 1)
        return (
            f"{text}. Anchors kept: {kept} {self.n_anchors:,}. Directions recovered: {self.rank:,} of"
            f" {self.shape[1]:,}. Condition number: {condition}."
        )

    def report(self, names: Sequence[str] = ("source", "target"), **figures: Any) -> Report:
        """A report with the score of each method on held-out rows."""
        source, target = names
        if source == target:
            route = f"{source}, recovered from its relative space"
        else:
            route = f"{source} → {target}"
        facts = {"source": source, "target": target, "rank": self.rank, "condition": self.condition}
        scored = counted(self.n_scored, "held-out row")
        if self.n_scored < self.n:
            scored += f" of {self.n:,}"
        caption = f"Mean cosine of recovered and true row after centring, over {scored}."
        caption += " Chance level: 95 % band of permuted rows."
        if "absolute copy" in self.scores:
            caption += " Absolute copy: the source's vectors unchanged; chance level: random rotations."
        if self.spec.method != "pruned":
            caption += f" {self.spec.title.capitalize()}: Relscope's variant of Maiorca et al. 2024."
        rows = [["method", "cosine", "chance level"]]
        for method, score in self.scores.items():
            chance = ""
            if score.null:
                chance = band(score.null.low, score.null.high)
            rows.append([method, short(float(score)), chance])
        table = Table("rows", self.summary(), rows, caption=caption)
        sentence = f"Mean cosine of recovered and true rows: {route}."
        notes = *self.notes, self.about_matrix
        return Report(sentence, [table], facts | {"kept": self.kept}, notes, figures)


@long_call
def invert(
    source: MatrixLike, target: MatrixLike, anchors: Sequence[str], spec: InversionSpec = InversionSpec()
) -> Inversion:
    """Recover rows of the source in the coordinates of the target, through their similarities to the anchors.

    Rows that are not anchors are scored. Anchors are given by id; the ids of an array are its row numbers, as
    text.

    Raises
    ------
    SpaceError
        The errors of `invert_pair`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import InversionSpec, invert
    >>> X = np.random.default_rng(0).normal(size=(300, 8))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))
    >>> inverted = invert(X, X @ rotation, [str(row) for row in range(60)], InversionSpec(method="ridge"))
    >>> inverted.n, inverted.scores["inverse, ridge"] > 0.9
    (240, True)
    """
    need_kind("spec", spec, InversionSpec)
    need_ids("anchors", anchors)
    return invert_pair(match(source, target), anchors, spec)


def invert_pair(
    pair: Match, anchors: Sequence[str], spec: InversionSpec, most_rows: int = MOST_ROWS
) -> Inversion:
    """Translate the rows of a pair through the relative space of these anchors, and score the rows that are
    not anchors.

    Raises
    ------
    SpaceError
        Fewer than two anchors; anchors that a space lacks; anchors that all lie on one line; no rows besides
        the anchors; a δ that keeps only one anchor.
    """
    return PairedRows(pair, anchors, spec.route, most_rows).invert(spec)


class PairedRows:
    """Intermediate results that inversions of a pair share if only δ, ω or λ differ. They are the rows, the
    direct maps between the spaces with their scores, and the map of the true rows.
    """

    def __init__(self, pair: Match, anchors: Sequence[str], route: str, most_rows: int = MOST_ROWS) -> None:
        self.route = route
        (self.source, self.target) = sides(pair, route)
        self.anchors = pair.source.rows(shared_anchors(anchors, pair.source, pair.target))
        self.means = (mean_row(self.source.vectors), mean_row(self.target.vectors))
        self.paired = (self.source.vectors[self.anchors], self.target.vectors[self.anchors])
        split = Split.held_out(pair.ids, self.anchors)
        held_out = split.queries(most_rows)
        self.n = len(split.test)
        self.rows = np.union1d(held_out, self.anchors)
        self.scored = np.isin(self.rows, held_out)
        self.X = self.source.vectors[self.rows]
        self.true = self.target.vectors[self.rows]
        self.X.flags.writeable = False  # read-only, so that a copy on a GPU never becomes outdated
        self.units = unit_rows(self.true, self.means[1])

    def invert(self, spec: InversionSpec) -> Inversion:
        """The inversion with the settings `spec`, which must have the same route. Raises the same errors as
        `invert_pair`."""
        spec, choice = self.with_numbers(spec)
        inverse = self.fit(spec)
        rows = inverse.transform(self.X)
        errors, score = self.scored_rows(rows)
        direct_errors, direct_scores = self.direct
        found = Inversion(
            spec=spec,
            n=self.n,
            rows=self.rows,
            scored=self.scored,
            true=self.true,
            recovered=rows,
            errors={spec.title: errors, **direct_errors},
            scores={spec.title: score, **direct_scores},
            n_anchors=len(self.anchors),
            kept=float(np.mean([len(kept) for kept in inverse.kept_])),
            condition=float(np.mean(inverse.condition_numbers_)),
            rank=inverse.rank_,
            shape=inverse.matrix_.shape,
            choice=choice,
            paired=self,
        )
        return replace(found, notes=(*_notes(found), *self.long))

    def with_numbers(self, spec: InversionSpec) -> tuple[InversionSpec, Choice | None]:
        """The settings with the numbers that held-out anchors choose if `spec` is tuned, and this choice."""
        choice = None
        if spec.tuned:
            choice = choose_numbers(*self.paired, self.means, spec)
        spec = replace(spec, tuned=False)
        if choice:
            spec = replace(spec, **choice.numbers())
        return spec, choice

    def fit(self, spec: InversionSpec) -> InverseRelativeProjection:
        """The inverse with the settings `spec`, fitted on the anchors."""
        try:
            return spec.inverse().fit(*self.paired, source_mean=self.means[0], target_mean=self.means[1])
        except SpaceError as error:  # a long row can shift the mean until all anchors have one direction
            raise SpaceError(". ".join([str(error), *self.long])) from None

    @cached_property
    def long(self) -> list[str]:
        """Notes on rows that are far longer than the others."""
        spaces = dict.fromkeys((self.source, self.target))
        return [note for space in spaces if (note := long_rows(space))]

    @cached_property
    def direct(self) -> tuple[dict[str, np.ndarray], dict[str, Score]]:
        """Errors and scores of the direct maps, which need no inverse."""
        maps = {}
        if self.route != "within":  # within one space, Procrustes is the identity
            maps["Procrustes"] = Procrustes().fit(*self.paired).transform(self.X)
        maps["least squares"] = LeastSquares().fit(*self.paired).transform(self.X)
        if self.route != "within" and self.X.shape[1] == self.true.shape[1]:
            maps["absolute copy"] = self.X
        scored = {method: self.scored_rows(rows) for method, rows in maps.items()}
        errors = {method: pair[0] for method, pair in scored.items()}
        scores = {method: pair[1] for method, pair in scored.items()}
        if (copy := scores.get("absolute copy")) is not None:
            # The chance level of the mean cosine if one space had random axes. Over all rotations R, tr(R C)
            # has mean 0 and variance |C|² / d, where C is the mean product of paired rows. Permuted rows
            # would not do, because they keep the axes.
            units = unit_rows(self.X, self.means[1])[self.scored]
            products = units.T @ self.units[self.scored] / len(units)
            null = ChanceLevel.from_moments(0.0, float(np.sum(products**2, dtype=np.float64)) / len(products))
            scores["absolute copy"] = Score(float(copy), metric=copy.metric, n=copy.n, null=null)
        return errors, scores

    def scored_rows(self, rows: np.ndarray) -> tuple[np.ndarray, Score]:
        """For each row, 1 − cosine between it and the true row; and the score of the held-out rows."""
        units = unit_rows(rows, self.means[1])
        errors = 1 - np.vecdot(units, self.units)
        return errors, cosine_of_units(units[self.scored], self.units[self.scored])

    @cached_property
    def map(self) -> tuple[np.ndarray, PrincipalAxes]:
        """The coordinates (m, 2) of the true rows by PCA, and the axes of the PCA."""
        return principal_map(self.true, ReductionSpec(fit="first"))

    def coordinates(self, rows: np.ndarray) -> list[np.ndarray]:
        """The coordinates of the true rows and those of `rows`, both in the PCA of the true rows: two arrays
        (m, 2)."""
        first, axes = self.map
        return [first, axes(rows)]


# limits: score ÷ score of a direct map; condition number
_FAR_BELOW = 0.75
_AMPLIFIES = 10
_NEARLY_ALL = 0.98  # share of the dimensions; if fewer are recovered, a note says so


def _notes(inversion: Inversion) -> list[str]:
    """Notes on lost directions, and on a pruned inverse that scores far below a direct map of the same
    rows.

    The limit of the second note was chosen on 13 pairs of texts, words and pictures with 50 to 600 anchors
    (152 cases). In each of the 29 cases with this note, the better of ridge and whitened scored 1.4 to 2.6
    times as high as pruned. The note appeared in none of the 69 cases where pruned was within 15 % of the
    better one. It appeared in all 6 cases where pruned reached less than half of the better score.
    """
    spec = inversion.spec
    notes = []
    width = inversion.shape[1]
    pruned = spec.method == "pruned"
    left_out = inversion.kept < 0.98 * inversion.n_anchors
    if inversion.rank < _NEARLY_ALL * width:
        lower = pruned and left_out
        which = "The anchors"
        if lower:
            which = "The anchors that are kept"
        or_lower = ""
        if lower:
            or_lower = ", or lower δ"
        more = ""
        if inversion.kept < width:
            more = f" Choose more anchors{or_lower}."
        spanned = f"{inversion.rank:,} of the {width:,} dimensions"
        notes.append(f"{which} span {spanned}; nothing is recovered in the other dimensions.{more}")
    direct = {
        name: inversion.scores[name] for name in ("Procrustes", "least squares") if name in inversion.scores
    }
    name = max(direct, key=lambda method: direct[method])
    own = inversion.scores[spec.title]
    if pruned and own < _FAR_BELOW * direct[name]:
        did = "leaves out none"
        if left_out:
            did = f"keeps {short(inversion.kept, 1)}"
        amplified = ""
        if inversion.condition > _AMPLIFIES:
            amplified = ", and inverting them amplifies what differs between the spaces"
        notes.append(
            f"The pruned inverse reaches {short(own)} where {name} reaches {short(direct[name])} on the same"
            f" rows. δ = {general(spec.delta)} {did} of {counted(inversion.n_anchors, 'anchor')}"
            f"{amplified}. Choose ridge or whitened, or Auto."
        )
    return notes
