"""Inversion between two spaces, with chance levels, and translation of every space into every other.

Scores are means over held-out rows, because every method reproduces its anchors, even those of unrelated
spaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import DELTA, HEADS, INVERSES, ROUTES
from relcore.base.names import METHODS as ALL_METHODS
from relcore.base.numbers import band, counted, general, in_cell, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import mean_row, unit_rows
from relcore.base.settings import check, setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.recipe import ComparisonRecipe, load_pair
from relcore.catalog.task import Recipe, Task, load_all
from relcore.engine.nearest import nearest
from relcore.figures.charts import Matrices, MatrixPanel
from relcore.figures.export import Exportable, chart_exportable, histogram_exportable
from relcore.figures.scene import Pane, Scene
from relcore.maps.reduction import PrincipalAxes, ReductionSpec, principal_map
from relcore.maps.views import ViewSpec, make_view
from relcore.panes.page import scene_exportable
from relcore.represent.anchors import shared_anchors
from relcore.represent.heads import fit_heads
from relcore.represent.representations import FittedSpace, MethodSettings, fit_translation
from relcore.represent.translation import (
    InverseRelativeProjection,
    LeastSquares,
    Procrustes,
    pruned_decoders,
    recovered,
)
from relcore.runs.progress import Progress, silent
from relcore.runs.store import Store
from relcore.scores.cka import mean_cosine
from relcore.scores.comparison import long_rows
from relcore.scores.neighbours import Neighbours
from relcore.scores.score import ChanceLevel, Score
from relcore.spaces.matching import Match, agreed_labels, distinct_names, marked, match, shared_ids
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import Split

DELTAS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
OMEGAS = (1, 4, 8, 16)
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_PARTS = 4  # a quarter of the anchors is held out
_MANY = 1000  # with more anchors one quarter is held out; with fewer, each quarter in turn
FEWEST = 8  # anchors, so that two can be held out


@dataclass(frozen=True)
class Choice:
    """The chosen settings; `cosine` is their mean cosine on held-out anchors, which is optimistic because it
    is the best of `n_tried`."""

    delta: float
    omega: int
    ridge: float
    cosine: float
    n_tried: int
    n_held_out: int

    def numbers(self) -> dict[str, Any]:
        """δ, ω and λ as fields of an `InversionSpec`."""
        return {"delta": self.delta, "omega": self.omega, "ridge": self.ridge}


def choose_numbers(
    source: np.ndarray, target: np.ndarray, means: tuple[np.ndarray, np.ndarray], spec: InversionSpec
) -> Choice | None:
    """The best settings of the spec's method on held-out anchors: δ and ω for "pruned", λ for the others.

    Source (k, d_source) and target (k, d_target) are paired anchors, `means` the means of all rows. None for
    fewer than `FEWEST` anchors.
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
    scores = {numbers: float(np.mean(part)) for numbers, part in totals.items() if len(part) == len(parts)}
    if not scores:
        return None
    best = max(scores, key=scores.get)
    return Choice(*best, scores[best], len(scores), len(parts[0]))


def _tried(
    A: np.ndarray, B: np.ndarray, known: np.ndarray, held_out: np.ndarray, spec: InversionSpec
) -> Iterator:
    """Each setting (δ, ω, λ) of the method's grid, with the held-out anchors translated by its inverse."""
    if spec.method == "pruned":
        relative = A[held_out] @ A[known].T
        for pruned in pruned_decoders(B[known], DELTAS, OMEGAS, spec.random_state):
            if min(map(len, pruned.kept)) > 1:
                yield (pruned.delta, pruned.omega, spec.ridge), relative @ pruned.matrix
        return
    # A Aᵀ has the left singular vectors of A, so each λ needs only a product of small matrices, no inverse.
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


MOST_ROWS = 20_000  # held-out rows that are translated; of more, a random sample
MOST_OMEGA = 64


@dataclass(frozen=True)
class InversionSpec:
    """The parameters of `InverseRelativeProjection`, and the direction of the translation.

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

    __post_init__ = check

    def to_record(self) -> dict[str, Any]:
        """The fields; `tuned` only if it is on, because version 0.1.0 did not have it."""
        return {name: value for name, value in vars(self).items() if name != "tuned" or value}

    def inverse(self) -> InverseRelativeProjection:
        return InverseRelativeProjection(self.method, self.omega, self.delta, self.ridge, self.random_state)

    @property
    def title(self) -> str:
        return f"inverse, {INVERSES[self.method].title}"

    def settings(self) -> str:
        return (
            f"ω = {self.omega}, δ = {general(self.delta)}"
            if self.method == "pruned"
            else f"λ = {general(self.ridge)}"
        )


def sides(pair: Match, route: str) -> tuple[LatentSpace, LatentSpace]:
    """The space whose rows are translated, and the space in which they are recovered."""
    need_one_of("route", route, ROUTES)
    spaces = {"forward": (pair.source, pair.target), "backward": (pair.target, pair.source)}
    return spaces.get(route, (pair.source, pair.source))


def side_names(pair: Match, route: str) -> tuple[str, str]:
    source, target = distinct_names((pair.source, pair.target))
    return {"forward": (source, target), "backward": (target, source)}.get(route, (source, source))


@dataclass(frozen=True, eq=False)
class Inversion(Reported):
    """Rows of one space recovered in another, with their scores.

    Attributes
    ----------
    spec : InversionSpec
        The spec with the final numbers; `choice` tells how held-out anchors chose them.
    n : int
        Number of held-out rows.
    rows : array (m,)
        Numbers of the translated rows, ascending: held-out rows and anchors.
    scored : array (m,) of bool
        Which of them are held out.
    true, recovered : arrays (m, d)
        The true and the recovered rows in the target's absolute space.
    errors : {method: array (m,)}
        1 − cosine of recovered and true directions from the target's mean, 0 … 2; the inverse first.
    scores : {method: Score}
        Mean cosine of the held-out rows, with the chance level of permuted rows.
    n_anchors, kept : int, float
        Number of anchors, and the mean number that a pruning keeps.
    condition : float
        Condition number of the inverted anchors, averaged over prunings; inf if one lacks full rank.
    rank : int
        Number of directions of the target that can be recovered.
    shape : (d_source, d_target)
        Shape of the matrix W of the translation.
    notes : tuple of str
        Notes on what lowers or limits the scores, with remedies.
    paired : PairedRows
        Intermediate results, shared with inversions by other settings.
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
        """The relative error ‖recovered − true‖ / ‖true − mean‖ of each row by the inverse, (m,)."""
        return recovered(self.recovered, self.true, self.paired.means[1])["error"].to_numpy()

    @property
    def n_scored(self) -> int:
        return int(np.count_nonzero(self.scored))

    def summary(self) -> pd.DataFrame:
        """One row per method: method, cosine, chance, low, high (its 95 % band), number of held-out rows,
        anchors."""
        rows = []
        for method, score in self.scores.items():
            null = (score.null.mean, score.null.low, score.null.high) if score.null else (np.nan,) * 3
            rows.append((method, float(score), *null, score.n, self.n_anchors))
        return pd.DataFrame(rows, columns=["method", "cosine", "chance", "low", "high", "n", "anchors"])

    def report(self, names: Sequence[str] = ("source", "target"), **figures: Any) -> Report:
        """A report with the score of each method on held-out rows."""
        source, target = names
        route = f"{source}, recovered from its relative space" if source == target else f"{source} → {target}"
        facts = {"source": source, "target": target, "rank": self.rank, "condition": self.condition}
        scored = counted(self.n_scored, "held-out row")
        scored += f" of {self.n:,}" if self.n_scored < self.n else ""
        condition = short(self.condition, 1) if self.condition < float("inf") else "∞"
        kept = f"{short(self.kept, 1)} of" if self.spec.method == "pruned" else "all"
        caption = (
            f"Mean cosine of recovered and true row after centring, over {scored}. By chance: rows permuted"
        )
        caption += ", or for the absolute copy, one space rotated" * ("absolute copy" in self.scores)
        caption += f". Settings: {self.spec.settings()}"
        if self.choice:
            caption += f", the best of {self.choice.n_tried} on {self.choice.n_held_out:,} held-out anchors"
        caption += (
            f". Anchors kept: {kept} {self.n_anchors:,}. Directions recovered: {self.rank:,} of"
            f" {self.shape[1]:,}. Condition number: {condition}."
        )
        rows = [["method", "cosine", "chance level, 95 %"]]
        for method, score in self.scores.items():
            chance = band(score.null.low, score.null.high) if score.null else ""
            rows.append([method, short(float(score)), chance])
        table = Table("rows", self.summary(), rows, caption=caption)
        sentence = f"Mean cosine of recovered and true rows: {route}."
        return Report(sentence, [table], facts | {"kept": self.kept}, self.notes, figures)


def invert(
    source: MatrixLike, target: MatrixLike, anchors: Sequence[str], spec: InversionSpec = InversionSpec()
) -> Inversion:
    """Recover rows of the source in the target's coordinates, through their similarities to the anchors.

    Rows that are not anchors are scored. Anchors are ids; for arrays, row numbers as texts.

    Raises
    ------
    SpaceError
        As `invert_pair`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import InversionSpec, invert
    >>> X = np.random.default_rng(0).normal(size=(300, 8))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))
    >>> inverted = invert(X, X @ rotation, [str(row) for row in range(60)], InversionSpec(method="ridge"))
    >>> inverted.n, inverted.scores["inverse, ridge, ours"] > 0.9
    (240, True)
    """
    return invert_pair(match(source, target), anchors, spec)


def invert_pair(
    pair: Match, anchors: Sequence[str], spec: InversionSpec, most_rows: int = MOST_ROWS
) -> Inversion:
    """Translate the pair's rows through the relative space of these anchors, and score those that are not
    anchors.

    Raises
    ------
    SpaceError
        Fewer than two anchors, anchors that a space lacks, all on one line, no other rows, or a δ that keeps
        only one.
    """
    return PairedRows(pair, anchors, spec.route, most_rows).invert(spec)


class PairedRows:
    """Intermediate results shared by inversions of a pair through the same anchors with any δ, ω and λ: the
    rows, the direct maps between them with their scores, and the map of the true rows.
    """

    def __init__(self, pair: Match, anchors: Sequence[str], route: str, most_rows: int = MOST_ROWS) -> None:
        self.route, (self.source, self.target) = route, sides(pair, route)
        self.anchors = pair.source.rows(shared_anchors(anchors, pair.source, pair.target))
        self.means = mean_row(self.source.vectors), mean_row(self.target.vectors)
        self.paired = self.source.vectors[self.anchors], self.target.vectors[self.anchors]
        split = Split.held_out(pair.ids, self.anchors)
        held_out = split.queries(most_rows)
        self.n, self.rows = len(split.test), np.union1d(held_out, self.anchors)
        self.scored = np.isin(self.rows, held_out)
        self.X, self.true = self.source.vectors[self.rows], self.target.vectors[self.rows]
        self.X.flags.writeable = False  # read-only, so that a copy on a GPU stays valid
        self.units = unit_rows(self.true, self.means[1])

    def invert(self, spec: InversionSpec) -> Inversion:
        """The inversion by a spec of the same route; errors as in `invert_pair`."""
        choice = choose_numbers(*self.paired, self.means, spec) if spec.tuned else None
        spec = replace(spec, tuned=False, **(choice.numbers() if choice else {}))
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

    def fit(self, spec: InversionSpec) -> InverseRelativeProjection:
        """The inverse by the numbers of a spec, fitted on the anchors."""
        try:
            return spec.inverse().fit(*self.paired, source_mean=self.means[0], target_mean=self.means[1])
        except SpaceError as error:  # a long row can move the mean so far that all anchors have one direction
            raise SpaceError(". ".join([str(error), *self.long])) from None

    @cached_property
    def long(self) -> list[str]:
        """Notes on long rows."""
        spaces = dict.fromkeys((self.source, self.target))
        return [note for space in spaces if (note := long_rows(space))]

    @cached_property
    def direct(self) -> tuple[dict[str, np.ndarray], dict[str, Score]]:
        """Errors and scores of the direct maps, which need no inverse."""
        maps = {}
        if self.route != "within":  # within a space Procrustes is trivially the identity
            maps["Procrustes"] = Procrustes().fit(*self.paired).transform(self.X)
        maps["least squares"] = LeastSquares().fit(*self.paired).transform(self.X)
        if self.route != "within" and self.X.shape[1] == self.true.shape[1]:
            maps["absolute copy"] = self.X
        scored = {method: self.scored_rows(rows) for method, rows in maps.items()}
        errors, scores = ({method: pair[part] for method, pair in scored.items()} for part in (0, 1))
        if (copy := scores.get("absolute copy")) is not None:
            null = self._by_turned_axes()
            scores["absolute copy"] = Score(float(copy), metric=copy.metric, n=copy.n, null=null)
        return errors, scores

    def _by_turned_axes(self) -> ChanceLevel:
        """The mean cosine if the axes of one space are random: over all rotations R, tr(R C) has mean 0 and
        variance |C|² / d, where C is the mean product of paired rows. Permuting rows would ignore that all
        pairs share the axes."""
        directions = unit_rows(self.X, self.means[1])[self.scored]
        products = directions.T @ self.units[self.scored] / len(directions)
        return ChanceLevel.from_moments(0.0, float(np.sum(products**2, dtype=np.float64)) / len(products))

    def scored_rows(self, rows: np.ndarray) -> tuple[np.ndarray, Score]:
        """1 − cosine of each row with the true one, and the score of the held-out rows."""
        directions = unit_rows(rows, self.means[1])
        errors = 1 - np.vecdot(directions, self.units)
        of = {"of_unit_length": True}
        return errors, mean_cosine(directions[self.scored], self.units[self.scored], **of)

    @cached_property
    def map(self) -> tuple[np.ndarray, PrincipalAxes]:
        """The coordinates (m, 2) of the true rows by PCA, and its axes."""
        return principal_map(self.true, ReductionSpec(fit="first"))

    def coordinates(self, rows: np.ndarray) -> list[np.ndarray]:
        """The coordinates of the true rows and of `rows` in the PCA of the true ones: two arrays (m, 2)."""
        first, axes = self.map
        return [first, axes(rows)]


@dataclass(frozen=True, eq=False)
class Recovery:
    """For recovered rows, the nearest true rows.

    Attributes
    ----------
    groups : {"Best" | "Middle" | "Worst": array (m, 2)}
        Positions in the inversion's `rows`: of a held-out row, and of the true row nearest to its recovered
        row.
    first : float
        Share of the `n` held-out rows whose recovered row is nearest to their own true row, among `among`
        rows.
    labelled : (share, chance) or None
        Share of labelled rows whose recovered row is nearest to a row with their label, and its chance level;
        None if fewer than half of the rows have labels.
    """

    groups: dict[str, np.ndarray]
    first: float
    n: int
    among: int
    labelled: tuple[float, float] | None = None


def recovered_rows(pair: Match, result: Inversion, shown: int = 5, most_queries: int = 1000) -> Recovery:
    """The nearest true rows of the best, middle and worst rows of an inversion, `shown` rows each."""
    _, target = sides(pair, result.spec.route)
    mean = mean_row(target.vectors)
    scored = np.flatnonzero(result.scored)
    order = scored[np.argsort(result.errors[result.spec.title][scored], kind="stable")]
    shown = min(shown, -(-len(order) // 3))
    middle = (len(order) - shown) // 2
    groups = {
        "Best": order[:shown],
        "Middle": order[middle : middle + shown],
        "Worst": order[: -shown - 1 : -1],
    }
    queries = np.random.default_rng(0).permutation(scored)[:most_queries]
    sampled = np.concatenate([queries, *groups.values()])
    found = nearest(unit_rows(result.recovered[sampled], mean), unit_rows(result.true, mean), 1).rows[:, 0]
    first = float(np.mean(found[: len(queries)] == queries))
    parts = np.split(found[len(queries) :], len(groups))
    shown_rows = {
        name: np.column_stack([rows, part]) for (name, rows), part in zip(groups.items(), parts, strict=True)
    }
    labelled, labels = None, pair.source.labels
    if labels is not None:
        labels = labels[result.rows]
        known = labels[queries] != ""
        own, other = labels[queries][known], labels[found[: len(queries)]][known]
        if 2 * len(own) > len(queries):
            shares = pd.Series(labels).value_counts(normalize=True)
            labelled = float(np.mean(own == other)), float(shares[own].mean())
    return Recovery(shown_rows, first, len(queries), len(result.rows), labelled)


_FAR_BELOW, _AMPLIFIES = 0.75, 10  # a score relative to a direct map's; a condition number


def _notes(inversion: Inversion) -> list[str]:
    """Notes on lost directions, and on a pruned inverse that scores far below a direct map of the same
    rows.

    The limit was chosen on 13 pairs of texts, words and pictures with 50 to 600 anchors (152 cases). In each
    of the 29 cases with the second note, ridge or whitened scored 1.4 to 2.6 times as high. It appeared in
    none of 69 cases where pruned is within 15 % of them, and in all 6 cases where pruned reaches less than
    half of them.
    """
    spec, notes, width = inversion.spec, [], inversion.shape[1]
    pruned, left_out = spec.method == "pruned", inversion.kept < 0.98 * inversion.n_anchors
    if inversion.rank < width:
        why = "the anchors span no more."
        if inversion.kept < width:
            why = "fewer anchors than dimensions are kept. Choose more anchors"
            why += f"{', or lower δ' * (pruned and left_out)}."
        notes.append(f"Only {inversion.rank:,} of {width:,} directions can be recovered, because {why}")
    direct = {
        name: inversion.scores[name] for name in ("Procrustes", "least squares") if name in inversion.scores
    }
    name, own = max(direct, key=direct.get), inversion.scores[spec.title]
    if pruned and own < _FAR_BELOW * direct[name]:
        did = f"keeps {short(inversion.kept, 1)}" if left_out else "leaves out none"
        amplified = ", and inverting them amplifies what differs between the spaces"
        notes.append(
            f"The pruned inverse reaches {short(own)} where {name} reaches {short(direct[name])} on the same"
            f" rows. δ = {general(spec.delta)} {did} of {counted(inversion.n_anchors, 'anchor')}"
            f"{amplified * (inversion.condition > _AMPLIFIES)}. Choose ridge or whitened, or Auto."
        )
    return notes


METHODS = {name: method.title for name, method in ALL_METHODS.items() if method.heads == "absolute"}
METRICS = {
    "cosine": "cosine",
    "raw cosine": "cosine, not centred",
    "jaccard": "Jaccard",
    "mrr": "MRR",
    "accuracy": "accuracy",
}


_USUAL = ("absolute", "irp-pruned", "irp-ridge", "irp-whitened", "procrustes", "least-squares")


@dataclass(frozen=True)
class TranslationSpec:
    """The settings of translation and scoring. The `n_queries` queries (None: all) and their `k` neighbours
    are rows that are not anchors; `test_ids` replace the drawn test rows of the heads."""

    methods: tuple[str, ...] = setting(_USUAL, choices=METHODS, distinct=True)
    k: int = setting(10, low=1)
    n_queries: int | None = setting(300, low=1)
    head: str = setting("logistic", choices=HEADS)
    test_fraction: float = setting(0.2, above=0, below=1)
    test_ids: tuple[str, ...] = ()
    settings: MethodSettings = MethodSettings()
    random_state: int = setting(0, low=0)

    __post_init__ = check


@dataclass(frozen=True, eq=False)
class TranslationResult:
    """The scores of every ordered pair, including each space with itself.

    Attributes
    ----------
    n, n_anchors, n_test : int
        Rows that are not anchors, anchors, and test rows of the heads (0 without labels).
    scores : method → metric → array (s, s, 2)
        Score and chance level by source and target; NaN if the widths differ and the method needs them equal.
    own : s accuracies
        Accuracy of each head on its own space, without stitching; empty without labels.
    """

    spec: TranslationSpec
    names: tuple[str, ...]
    n: int
    n_anchors: int
    n_test: int
    scores: Mapping[str, Mapping[str, np.ndarray]]
    own: tuple[float, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(metric for metric in METRICS if metric != "accuracy" or self.n_test)

    def title(self, metric: str) -> str:
        return METRICS[metric] + (f", k = {self.spec.k}" if metric in ("jaccard", "mrr") else "")

    def matrix(self, method: str, metric: str) -> np.ndarray:
        """Scores (s, s) with sources as rows and targets as columns; NaN if there is none."""
        return self.scores[method][metric][..., 0]

    def chance(self, method: str, metric: str) -> float:
        """The chance level, averaged over pairs of different spaces."""
        return self._mean(method, metric, 1)

    def table(self) -> pd.DataFrame:
        """One row per pair, method and metric."""
        rows = []
        for (i, source), (j, target) in product(enumerate(self.names), repeat=2):
            for method, metric in product(self.spec.methods, self.metrics):
                n = self.n_test if metric == "accuracy" else self.n
                scores = self.scores[method][metric][i, j]
                rows.append((source, target, METHODS[method], self.title(metric), *scores, n, self.n_anchors))
        columns = ["source", "target", "method", "metric", "score", "chance", "n", "anchors"]
        return pd.DataFrame(rows, columns=columns).dropna(subset="score", ignore_index=True)

    def wide(self, metric: str) -> pd.DataFrame:
        """The scores in the layout of the paper's Table 1: a row per pair, a column per method, and the mean
        chance level."""
        scores = {METHODS[method]: self.scores[method][metric].reshape(-1, 2) for method in self.spec.methods}
        pairs = pd.DataFrame(list(product(self.names, repeat=2)), columns=["source", "target"])
        chance = pd.DataFrame({method: values[:, 1] for method, values in scores.items()}).mean(axis=1)
        columns = {method: values[:, 0] for method, values in scores.items()}
        return pairs.assign(**columns, chance=chance)

    def summary(self) -> pd.DataFrame:
        """The scores in the layout of the paper's Table 2: a row per method with the mean of each metric over
        pairs of different spaces, and the number of pairs that it can translate."""
        others, rows = ~np.eye(len(self.names), dtype=bool), []
        for method in self.spec.methods:
            row: dict[str, Any] = {"method": METHODS[method]}
            row |= {self.title(metric): self._mean(method, metric, 0) for metric in self.metrics}
            if self.n_test:
                row |= {"not stitched": float(np.mean(self.own)), "chance": self.chance(method, "accuracy")}
            able = ~np.isnan(self.matrix(method, "cosine")[others])
            rows.append(row | {"pairs": int(able.sum()), "of": able.size})
        return pd.DataFrame(rows)

    def _mean(self, method: str, metric: str, part: int) -> float:
        values = self.scores[method][metric][..., part][~np.eye(len(self.names), dtype=bool)]
        values = values[~np.isnan(values)]
        return float(values.mean()) if len(values) else float("nan")


_PERMUTATIONS = 20


@dataclass(frozen=True)
class Translation(Task[TranslationResult], kind="translate", title="Translate every pair"):
    """The task `translate_all`."""

    anchors: tuple[str, ...]
    spec: TranslationSpec = TranslationSpec()

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n, rows, width = len(spaces), max(map(len, spaces)), max(space.dimension for space in spaces)
        queries = self.spec.n_queries or rows
        each = 4e-11 * rows * width * (width + queries) + 3e-9 * len(self.anchors) * width**2 + 0.02
        heads = 2e-6 * rows * width**0.5 * n if any(space.labels is not None for space in spaces) else 0
        return n * n * len(self.spec.methods) * each + heads

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> TranslationResult:
        return translate_all(spaces, self.anchors, self.spec, report)


def translate_all(
    spaces: Sequence[LatentSpace],
    anchors: Sequence[str],
    spec: TranslationSpec = TranslationSpec(),
    report: Progress = silent,
) -> TranslationResult:
    """Translate every space into every other through the same anchors, and score the rows that are not
    anchors.

    Rows are compared after centring at the target's mean: their cosine, and their neighbours among the
    target's rows (convention "paper"); "raw cosine" is not centred, as in the paper's Table 1.

    Raises
    ------
    SpaceError
        Fewer than two spaces, no shared rows, anchors that a space lacks, too few other rows for k, labels
        that differ, or anchors that a method cannot use.
    """
    study = _Translator(spaces, anchors, spec)
    n, n_test = len(spaces), len(study.test) if study.heads else 0
    metrics = [metric for metric in METRICS if metric != "accuracy" or n_test]
    scores = {method: {metric: np.full((n, n, 2), np.nan) for metric in metrics} for method in spec.methods}
    for done, (i, j) in enumerate(product(range(n), repeat=2)):
        report(done, n * n, f"{study.names[i]} to {study.names[j]}")
        for method in spec.methods:
            for metric, values in study.score(i, j, method).items():
                scores[method][metric][i, j] = values
    report(n * n, n * n, "")
    own = tuple(
        study.accuracy(j, space.vectors[study.test]) for j, space in enumerate(study.spaces) if n_test
    )
    return TranslationResult(
        spec, tuple(study.names), len(study.rest), len(study.anchors), n_test, scores, own
    )


class _Translator:
    """The data that all pairs share: rows, anchors, heads, and the neighbours within each space."""

    def __init__(self, spaces: Sequence[LatentSpace], anchors: Sequence[str], spec: TranslationSpec) -> None:
        self.spec, self.names = spec, distinct_names(spaces)
        self.spaces = _shared(spaces)
        ids = self.spaces[0].ids
        self.anchors = self.spaces[0].rows(shared_anchors(anchors, *self.spaces))
        split = Split.held_out(ids, self.anchors, spec.random_state)
        self.rest = split.test
        if len(self.rest) <= spec.k:
            raise SpaceError(
                f"expected more than k = {spec.k} shared rows that are not anchors, got {len(self.rest)} of "
                f"{len(ids)}; choose fewer anchors"
            )
        self.queries = np.searchsorted(self.rest, split.queries(spec.n_queries))
        self.sides = [
            FittedSpace(space.vectors, space.vectors[self.anchors], mean_row(space.vectors))
            for space in self.spaces
        ]
        self.true = [unit_rows(side.train[self.rest], side.mean) for side in self.sides]
        self.near = [nearest(rows[self.queries], rows, spec.k).rows for rows in self.true]
        self.test = self.rest[:0]
        self.heads = self._fit_heads()

    def score(self, i: int, j: int, method: str) -> dict[str, tuple[float, float]]:
        spec, source, target = self.spec, self.sides[i], self.sides[j]
        carry = fit_translation(method, source, target, spec.settings, spec.random_state)
        if carry is None:
            return {}
        rows = carry(source.train[self.rest])
        units, true = unit_rows(rows, target.mean), self.true[j]
        near = nearest(units[self.queries], true, spec.k).rows
        neighbours = Neighbours(units, true, self.queries, self.near[j], near, "paper", "auto")
        scores = {
            "cosine": mean_cosine(units, true, of_unit_length=True),
            "raw cosine": mean_cosine(rows, target.train[self.rest]),
            "jaccard": neighbours.jaccard(_PERMUTATIONS, spec.random_state),
            "mrr": neighbours.mrr(_PERMUTATIONS, spec.random_state),
        }
        numbers = {metric: (float(score), score.null.mean) for metric, score in scores.items()}
        if self.heads:
            numbers["accuracy"] = self.accuracy(j, carry(source.train[self.test])), self.majority
        return numbers

    def accuracy(self, j: int, rows: np.ndarray) -> float:
        return float(np.mean(self.heads[j].probabilities(rows).argmax(axis=1) == self.targets[self.test]))

    def _fit_heads(self) -> list:
        if any(space.labels is not None and "" in space.labels for space in self.spaces):
            return []
        labels = agreed_labels(self.spaces)
        if labels is None or len(classes := np.unique(labels)) < 2:
            return []
        ids, spec = self.spaces[0].ids, self.spec
        self.targets = np.searchsorted(classes, labels)
        split = Split.draw(
            ids,
            anchors=self.anchors,
            test_fraction=spec.test_fraction,
            test_ids=sorted(set(spec.test_ids) & set(ids[self.rest])),
            labels=self.targets,
            random_state=spec.random_state,
        )
        self.test, known = split.test, self.targets[split.known]
        if len(np.setdiff1d(self.targets[self.test], known)):
            return []  # a class without training rows
        self.majority = float(np.mean(self.targets[self.test] == np.bincount(self.targets).argmax()))
        rows = [space.vectors[split.known] for space in self.spaces]
        return fit_heads(rows, [known] * len(rows), len(classes), spec.head, spec.random_state)


def _shared(spaces: Sequence[LatentSpace]) -> list[LatentSpace]:
    if len(spaces) < 2:
        raise SpaceError(f"expected two spaces or more to translate between, got {len(spaces)}")
    ids = shared_ids(spaces)
    if not len(ids):
        raise SpaceError(
            f"expected rows that all spaces share, {quote([space.name for space in spaces])} have none;"
            " encode the same items, or their translations, with each,"
            " or link two of them first (Connect, Link)"
        )
    alive = np.all([space.norms[space.rows(ids)] > 0 for space in spaces], axis=0)
    return marked([space.take(space.rows(ids[alive])) for space in spaces])


@dataclass(frozen=True, kw_only=True)
class TranslationTable(Recipe, figure="translation-table"):
    """A figure with a heat map per method, every space against every other (Table 1 of Maiorca et al.
    2024)."""

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    anchors: tuple[str, ...]
    metric: str = "cosine"
    spec: TranslationSpec = TranslationSpec()

    def draw(self, result: TranslationResult | None = None) -> Exportable:
        need_one_of("metric", self.metric, METRICS)
        if result is None:
            spaces = load_all(self.spaces, self.digests, self.figure)
            result = translate_all(spaces, self.anchors, self.spec)
        need_one_of("metric", self.metric, result.metrics)

        def table() -> pd.DataFrame:
            every = result.table()
            return every[every["metric"] == result.title(self.metric)].reset_index(drop=True)

        name, latex = f"relscope-translation-{self.metric}", lambda: result.wide(self.metric)
        return chart_exportable(_translations(result, self.metric), self.to_json(), name, latex, table)


def _translations(result: TranslationResult, metric: str) -> Matrices:
    n, title, panels = len(result.names), result.title(metric), []
    own = np.eye(n, dtype=bool)

    def hover(method: str, i: int, j: int) -> str:
        score, chance = result.scores[method][metric][i, j]
        if np.isnan(score):
            return "the widths differ"
        text = f"{title} {short(score)}\nchance {short(chance)}"
        return text + (f"\nnot stitched {short(result.own[j])}" if metric == "accuracy" else "")

    for method in result.spec.methods:
        values = result.matrix(method, metric)
        others = values[~own & ~np.isnan(values)]
        chance = in_cell(result.chance(method, metric))
        look = {
            "hover": tuple(tuple(hover(method, i, j) for j in range(n)) for i in range(n)),
            "note": f"mean {in_cell(others.mean())}, chance {chance}" if len(others) else "",
            "marked": tuple((i, i) for i in range(n)),
        }
        panels.append(MatrixPanel(METHODS[method], result.names, result.names, values, **look))
    rows = counted(result.n, "row") + " that are not anchors"
    count = counted(result.n_test, "test row") if metric == "accuracy" else rows
    notes = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    alt = (
        f"Heat maps of {title}, {n} by {counted(n, 'space')}, one per method, {count},"
        f" {counted(result.n_anchors, 'anchor')}. {notes}."
    )
    return Matrices(tuple(panels), (0.0, 1.0), title, alt, "from", "to")


COLORS = ("error", "pivots", "labels")
EDGES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7)  # fixed, so that figures can be compared
ERROR_NAMES = (
    f"error up to {general(EDGES[0])}",
    *(f"{general(low)} to {general(high)}" for low, high in pairwise(EDGES)),
    f"{general(EDGES[-1])} or more",
)
# Viridis without its ends, which are hard to see on a dark or a white page.
ERROR_COLORS = ("#414487", "#355f8d", "#2a768e", "#218e8d", "#21a585", "#3dbc74", "#70cf57", "#b0dd2f")


def inversion_scene(
    pair: Match, inversion: Inversion, color_by: str = "error", view: ViewSpec | None = None
) -> Scene:
    """A scene of original and recovered rows in the target space, both in the PCA of the originals.
    `color_by`: "pivots" and "labels" use the colours of `view`, "error" shows 1 − cosine in fixed steps.

    Raises
    ------
    SpaceError
        Colours that the pair does not have.
    """
    need_one_of("color_by", color_by, COLORS)
    coordinates = inversion.paired.coordinates(inversion.recovered)
    inverse = inversion.errors[inversion.spec.title]
    if color_by == "error":
        categories, names = np.digitize(inverse, EDGES), ERROR_NAMES
    else:
        view = (
            ViewSpec((), everything=True, color_by="labels")
            if color_by == "labels"
            else replace(view or ViewSpec(), everything=True, color_by="pivots")
        )
        drawn = make_view(pair.source, view)
        categories, names = drawn.categories[inversion.rows], drawn.category_names
    source, target = side_names(pair, inversion.spec.route)
    origin = f"through {counted(inversion.n_anchors, 'anchor')}" if source == target else f"from {source}"
    panes = (Pane(f"Original {target}", coordinates[0]), Pane(f"Recovered {origin}", coordinates[1]))
    caption = (
        f"{counted(len(inversion.rows), 'row')}, anchors among them; both panes by the PCA of the original."
        f" Recovered through {counted(inversion.n_anchors, 'anchor')}, {inversion.spec.title},"
        f" {inversion.spec.settings()}: mean cosine to the true rows"
        f" {short(inversion.scores[inversion.spec.title])} over"
        f" {counted(inversion.n_scored, 'held-out row')}. Coloured by"
        f" {'error, 1 − cosine' if color_by == 'error' else color_by.replace('pivots', 'examples')}."
    )
    colors = ERROR_COLORS if color_by == "error" else ()
    return Scene(panes, pair.ids[inversion.rows], categories, names, caption=caption, category_colors=colors)


@dataclass(frozen=True)
class RecoveredRows(Recipe, ComparisonRecipe, figure="inversion"):
    """A figure with the panes of original and recovered rows; its CSV has each row's errors."""

    inversion: InversionSpec = InversionSpec()
    color_by: str = "error"

    def draw(self, result: tuple[Inversion, Scene] | None = None) -> Exportable:
        if result is None:
            pair = load_pair(self)
            found = invert_pair(pair, self.anchors, self.inversion)
            result = found, inversion_scene(pair, found, self.color_by, self.view)
        found, scene = result
        drawn = scene_exportable(scene, self.to_json(), name="relscope-inversion")
        columns = {f"error, {method}": errors for method, errors in found.errors.items()}
        columns |= {"distance": found.distance, "held_out": found.scored}
        return replace(drawn, table=lambda: scene.table().assign(**columns))


@dataclass(frozen=True)
class RecoveryErrors(Recipe, ComparisonRecipe, figure="inversion-errors"):
    """A histogram of 1 − cosine of the held-out rows for each method."""

    inversion: InversionSpec = InversionSpec()

    def draw(self, result: Inversion | None = None) -> Exportable:
        found = result or invert_pair(load_pair(self), self.anchors, self.inversion)
        title = "1 − cosine of recovered and true row, held-out rows"
        errors = {method: errors[found.scored] for method, errors in found.errors.items()}
        drawn = histogram_exportable(errors, title, self.to_json(), name="relscope-inversion-errors")
        return replace(drawn, latex=found.summary)
