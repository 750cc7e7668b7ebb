"""Inversion: recover rows of one space in another space through their similarities to anchors, with scores
and chance levels.

Scores are means over held-out rows, because every method reproduces its anchors, even those of unrelated
spaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.arguments import need_ids, need_kind
from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import DELTA, INVERSES, ROUTES
from relcore.base.numbers import band, counted, general, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import lengths, mean_row, unit_rows
from relcore.base.settings import check, setting
from relcore.catalog.comparison_recipe import ComparisonRecipe, load_pair
from relcore.catalog.task import Recipe
from relcore.engine.device import NumpyDevice
from relcore.engine.engine import Engine, nearest
from relcore.figures.export import Exportable, histogram_exportable
from relcore.figures.scene import Pane, Scene
from relcore.maps.pane_maps import ViewSpec, make_view
from relcore.maps.reduction import PrincipalAxes, ReductionSpec, principal_map
from relcore.panes.channel import SCORE, SLIDE, maps_answer, sampled_places
from relcore.panes.page import scene_exportable
from relcore.represent.similarity import shared_anchors
from relcore.represent.translation import (
    InverseRelativeProjection,
    LeastSquares,
    Procrustes,
    pruned_decoders,
    pruning_orders,
    recovery_errors,
)
from relcore.represent.translation import invert as pseudo_inverse
from relcore.scores.cka import cosine_of_units
from relcore.scores.comparison import long_rows
from relcore.scores.score import ChanceLevel, Score
from relcore.spaces.space import LatentSpace, Match, MatrixLike, distinct_names, match
from relcore.spaces.split import Split

DELTAS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
OMEGAS = (1, 4, 8, 16)
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_PARTS = 4  # number of parts of the anchors, of which one is held out
_MANY = 1000  # with more anchors, one part is held out; with fewer, each part in turn
FEWEST = 8  # minimum number of anchors, so that two can be held out


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
    both spaces. With fewer than `FEWEST` anchors, the result is None.
    """
    k = len(source)
    if k < FEWEST:
        return None
    A = unit_rows(source, means[0])
    B = unit_rows(target, means[1])
    order = np.random.default_rng([spec.random_state, k]).permutation(k)
    parts = [order[part::_PARTS] for part in range(_PARTS)][: _PARTS if k <= _MANY else 1]
    totals: dict[tuple[float, int, float], list[float]] = {}
    for held_out in parts:
        known = np.setdiff1d(order, held_out)
        for numbers, decoded in _translations_of_grid(A, B, known, held_out, spec):
            cosines = np.einsum("ij,ij->i", unit_rows(decoded), B[held_out])
            totals.setdefault(numbers, []).append(float(cosines.mean(dtype=np.float64)))
    scores = {numbers: float(np.mean(part)) for numbers, part in totals.items() if len(part) == len(parts)}
    if not scores:
        return None
    best = max(scores, key=scores.get)
    return Choice(*best, scores[best], len(scores), len(parts[0]))


def _translations_of_grid(
    A: np.ndarray, B: np.ndarray, known: np.ndarray, held_out: np.ndarray, spec: InversionSpec
) -> Iterator:
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

    __post_init__ = check

    def to_record(self) -> dict[str, Any]:
        """The fields as a record. `tuned` is included only if it is True, because version 0.1.0 did not have
        it."""
        return {name: value for name, value in vars(self).items() if name != "tuned" or value}

    def inverse(self) -> InverseRelativeProjection:
        return InverseRelativeProjection(self.method, self.omega, self.delta, self.ridge, self.random_state)

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
    return {"forward": (source, target), "backward": (target, source)}.get(route, (source, source))


@dataclass(frozen=True, eq=False)
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
        told = f"Settings: {self.spec.settings()}"
        if self.choice:
            told += f", the best of {self.choice.n_tried} on {self.choice.n_held_out:,} held-out anchors"
        kept = "all"
        if self.spec.method == "pruned":
            kept = f"{short(self.kept, 1)} of"
        condition = "∞"
        if self.condition < float("inf"):
            condition = short(self.condition, 1)
        return (
            f"{told}. Anchors kept: {kept} {self.n_anchors:,}. Directions recovered: {self.rank:,} of"
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
        self.means = mean_row(self.source.vectors), mean_row(self.target.vectors)
        self.paired = self.source.vectors[self.anchors], self.target.vectors[self.anchors]
        split = Split.held_out(pair.ids, self.anchors)
        held_out = split.queries(most_rows)
        self.n, self.rows = len(split.test), np.union1d(held_out, self.anchors)
        self.scored = np.isin(self.rows, held_out)
        self.X = self.source.vectors[self.rows]
        self.true = self.target.vectors[self.rows]
        self.X.flags.writeable = False  # read-only, so that a copy on a GPU never becomes outdated
        self.units = unit_rows(self.true, self.means[1])

    def invert(self, spec: InversionSpec) -> Inversion:
        """The inversion with the settings `spec`, which must have the same route. Raises the same errors as
        `invert_pair`."""
        choice = None
        if spec.tuned:
            choice = choose_numbers(*self.paired, self.means, spec)
        spec = replace(spec, tuned=False, **(choice.numbers() if choice else {}))
        inverse = self.fit(spec)
        rows = inverse.transform(self.X)
        (errors, score) = self.scored_rows(rows)
        (direct_errors, direct_scores) = self.direct
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
        errors, scores = ({method: pair[part] for method, pair in scored.items()} for part in (0, 1))
        if (copy := scores.get("absolute copy")) is not None:
            # The chance level of the mean cosine if one space had random axes. Over all rotations R, tr(R C)
            # has mean 0 and variance |C|² / d, where C is the mean product of paired rows. Permuted rows
            # would not do, because they keep the axes.
            directions = unit_rows(self.X, self.means[1])[self.scored]
            products = directions.T @ self.units[self.scored] / len(directions)
            null = ChanceLevel.from_moments(0.0, float(np.sum(products**2, dtype=np.float64)) / len(products))
            scores["absolute copy"] = Score(float(copy), metric=copy.metric, n=copy.n, null=null)
        return errors, scores

    def scored_rows(self, rows: np.ndarray) -> tuple[np.ndarray, Score]:
        """For each row, 1 − cosine between it and the true row; and the score of the held-out rows."""
        directions = unit_rows(rows, self.means[1])
        errors = 1 - np.vecdot(directions, self.units)
        return errors, cosine_of_units(directions[self.scored], self.units[self.scored])

    @cached_property
    def map(self) -> tuple[np.ndarray, PrincipalAxes]:
        """The coordinates (m, 2) of the true rows by PCA, and the axes of the PCA."""
        return principal_map(self.true, ReductionSpec(fit="first"))

    def coordinates(self, rows: np.ndarray) -> list[np.ndarray]:
        """The coordinates of the true rows and those of `rows`, both in the PCA of the true rows: two arrays
        (m, 2)."""
        first, axes = self.map
        return [first, axes(rows)]


@dataclass(frozen=True, eq=False)
class Recovery:
    """The true rows that are nearest to recovered rows.

    Attributes
    ----------
    groups : {"Best" | "Middle" | "Worst": array (m, 2)}
        Pairs of positions in `Inversion.rows`: a held-out row, and the true row that is nearest to its
        recovered row.
    first : float
        Share of the `n` held-out rows whose recovered row is nearest to the right true row, among `among`
        rows.
    labelled : (share, chance) or None
        Share of labelled rows whose recovered row is nearest to a true row with the same label, and the
        chance level of this share. None if fewer than half of the rows have labels.
    """

    groups: dict[str, np.ndarray]
    first: float
    n: int
    among: int
    labelled: tuple[float, float] | None = None


def recovered_rows(pair: Match, result: Inversion, shown: int = 5, most_queries: int = 1000) -> Recovery:
    """The true rows nearest to recovered rows, for the best, the middle and the worst rows of an inversion;
    `shown` rows in each group."""
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
    labelled = None
    labels = pair.source.labels
    if labels is not None:
        labels = labels[result.rows]
        known = labels[queries] != ""
        own = labels[queries][known]
        other = labels[found[: len(queries)]][known]
        if 2 * len(own) > len(queries):
            shares = pd.Series(labels).value_counts(normalize=True)
            labelled = float(np.mean(own == other)), float(shares[own].mean())
    return Recovery(shown_rows, first, len(queries), len(result.rows), labelled)


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
    name = max(direct, key=direct.get)
    own = inversion.scores[spec.title]
    if pruned and own < _FAR_BELOW * direct[name]:
        did = "leaves out none"
        if left_out:
            did = f"keeps {short(inversion.kept, 1)}"
        amplified = ", and inverting them amplifies what differs between the spaces"
        notes.append(
            f"The pruned inverse reaches {short(own)} where {name} reaches {short(direct[name])} on the same"
            f" rows. δ = {general(spec.delta)} {did} of {counted(inversion.n_anchors, 'anchor')}"
            f"{amplified * (inversion.condition > _AMPLIFIES)}. Choose ridge or whitened, or Auto."
        )
    return notes


COLORS = ("error", "pivots", "labels")
# The colours run from blue to red, because large errors must stand out on white and on dark pages.
_ERROR_COLORS = ("#4a5fb0", "#3f86b5", "#3fa5a3", "#79a84b", "#c9a227", "#dd8433", "#d2503f", "#a82a66")


def error_edges(errors: np.ndarray) -> tuple[float, ...]:
    """Rounded edges between at most seven classes of errors. The classes cover the 1st to the 99th
    percentile."""
    low, high = np.percentile(errors, (1, 99))
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
        first = np.floor(low / step) + 1
        last = max(np.floor(low / step) + 1, np.ceil(high / step) - 1)
        if last - first < 6:
            break
    return tuple(np.round(np.arange(first, last + 1) * step, 2).tolist())


def inversion_scene(
    pair: Match,
    inversion: Inversion,
    color_by: str = "error",
    view: ViewSpec | None = None,
    edges: Sequence[float] = (),
) -> Scene:
    """A scene of the original and the recovered rows in the target space, both in the PCA of the original
    rows. If `color_by` is "pivots" or "labels", rows have the colours of `view`. If it is "error", colours
    show 1 − cosine in steps, between `edges` (default: `error_edges` of the held-out rows).

    Raises
    ------
    SpaceError
        The pair lacks the labels or examples that `color_by` needs.
    """
    need_one_of("color_by", color_by, COLORS)
    coordinates = inversion.paired.coordinates(inversion.recovered)
    colors: tuple[str, ...] = ()
    if color_by == "error":
        errors = inversion.errors[inversion.spec.title]
        edges = edges or error_edges(errors[inversion.scored])
        first, *others = [f"< {general(edge)}" for edge in edges]
        categories = np.digitize(errors, edges)
        names = (f"error {first}", *others, f"≥ {general(edges[-1])}")
        places = np.linspace(0, len(_ERROR_COLORS) - 1, len(names)).round().astype(int)
        colors = tuple(_ERROR_COLORS[place] for place in places)
    else:
        if color_by == "labels":
            view = ViewSpec((), everything=True, color_by="labels")
        else:
            view = replace(view or ViewSpec(), everything=True, color_by="pivots")
        drawn = make_view(pair.source, view)
        categories = drawn.categories[inversion.rows]
        names = drawn.category_names
    source, target = side_names(pair, inversion.spec.route)
    if source == target:
        origin = f"through {counted(inversion.n_anchors, 'anchor')}"
    else:
        origin = f"from {source}"
    panes = (Pane(f"Original {target}", coordinates[0]), Pane(f"Recovered {origin}", coordinates[1]))
    caption = (
        f"{counted(len(inversion.rows), 'row')}, anchors among them; both panes by the PCA of the original."
        f" Recovered through {counted(inversion.n_anchors, 'anchor')}, {inversion.spec.title},"
        f" {inversion.spec.settings()}: mean cosine to the true rows"
        f" {short(inversion.scores[inversion.spec.title])} over"
        f" {counted(inversion.n_scored, 'held-out row')}. Coloured by"
        f" {'error, 1 − cosine' if color_by == 'error' else color_by.replace('pivots', 'examples')}."
    )
    return Scene(panes, pair.ids[inversion.rows], categories, names, caption=caption, category_colors=colors)


@dataclass(frozen=True)
class RecoveredRows(Recipe, ComparisonRecipe, figure="inversion"):
    """A figure with a pane of the original rows and a pane of the recovered rows. Its CSV file has the errors
    of each row."""

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
    """A figure with a histogram for each method: 1 − cosine of the held-out rows."""

    inversion: InversionSpec = InversionSpec()

    def draw(self, result: Inversion | None = None) -> Exportable:
        found = result or invert_pair(load_pair(self), self.anchors, self.inversion)
        title = "1 − cosine of recovered and true row, held-out rows"
        errors = {method: errors[found.scored] for method, errors in found.errors.items()}
        drawn = histogram_exportable(errors, title, self.to_json(), name="relscope-inversion-errors")
        return replace(drawn, latex=found.summary)


# Inversions that follow a slider: the map of the recovered rows for any δ, ω and λ, without computing the
# rows.
#
# For a unit row x, the recovered row is ‖a_y‖ x W + mean_y. So its place on the map needs only x (W P),
# where P (d, 2) are the axes of the map. The order in which anchors are pruned does not depend on δ.
# Prunings that keep the same anchors have the same inverse.

_N_NUMBERS = 6  # number of values in a request


class LiveInversion:
    """Updates the map and the mean cosine of recovered rows when settings other than the route and the random
    state change."""

    def __init__(self, rows: PairedRows, spec: InversionSpec) -> None:
        self.rows = rows
        self.spec = replace(spec, tuned=False)
        self.anchors = [unit_rows(side, mean) for side, mean in zip(rows.paired, rows.means, strict=True)]
        self.scale = float(lengths(rows.paired[1], rows.means[1]).mean(dtype=np.float64))
        self.axes = rows.map[1].axes.astype(np.float64)
        self._solved: dict[bytes, np.ndarray] = {}
        if spec.method == "pruned":
            self._matrix(self.spec)

    def coordinates(self, spec: InversionSpec) -> np.ndarray:
        """The coordinates (m, 2) float32 of the recovered rows, equal to those of `PairedRows.coordinates`.

        Raises a SpaceError as `invert_pair` does.
        """
        rows = self.rows
        of_target = self.rows.map[1]
        shift = (rows.means[1].astype(np.float64) - of_target.mean) @ self.axes
        return Engine().map_rows(
            rows.X, self.scale * self._matrix(spec), mean=rows.means[0], unit=True, shift=shift
        )

    def cosine(self, spec: InversionSpec) -> float:
        """The mean cosine of the held-out rows, equal to that in the scores of an `Inversion`."""
        return float(self.rows.scored_rows(self.rows.fit(spec).transform(self.rows.X))[1])

    def _matrix(self, spec: InversionSpec) -> np.ndarray:
        """The product W P, (d, 2) float64: W translates rows, and P are the axes of the map."""
        if spec.method != "pruned":
            return self.rows.fit(spec).matrix_ @ self.axes
        # Equal arguments for every spec, so that the orders are computed only once.
        orders = pruning_orders(self.anchors[1], MOST_OMEGA, random_state=spec.random_state)[: spec.omega]
        kept = [np.sort(order[distances >= spec.delta]) for order, distances in orders]
        if min(map(len, kept)) < 2:
            raise SpaceError(
                f"delta: expected two or more anchors after pruning, got one with {spec.delta:g}"
            )
        return np.mean([self._part(members) for members in kept], axis=0)

    def _part(self, members: np.ndarray) -> np.ndarray:
        """The matrix A_x[S]ᵀ pinv(A_y[S]ᵀ) P, (d, 2), for the kept anchors S."""
        key = members.tobytes()
        if key not in self._solved:
            A, B = (side[members].astype(np.float64) for side in self.anchors)
            # Cholesky takes at most a quarter of the time that eigenvectors take.
            wide = len(B) <= B.shape[1]
            if wide:
                products = B @ B.T
                given = B @ self.axes
            else:
                products = B.T @ B
                given = self.axes
            solved = Engine().solve_definite(products, given)
            if solved is None:
                solved = pseudo_inverse(B)[0] @ self.axes
            elif not wide:
                solved = B @ solved
            self._solved[key] = A.T @ solved
        return self._solved[key]


class SlidAnswers:
    """Answers the requests of panes whose maps follow sliders.

    Parameters
    ----------
    live : LiveInversion
    sliders : {field: values}
        The fields of the spec that sliders change, in the order of the sliders. Each has the values at the
        positions 0, 1, … of its slider, or None if the position is the value itself.
    """

    def __init__(self, live: LiveInversion, sliders: Mapping[str, Sequence[float] | None]) -> None:
        self.live = live
        self.sliders = list(sliders.items())
        self.spec = live.spec
        self._map = NumpyDevice().full_range(live.coordinates(self.spec).T, len(live.rows.X))

    def read(self, message: bytes) -> np.ndarray | None:
        """The numbers of a request, an int32 array. In order: serial number, kind, index of the slider,
        position of the slider in thousandths, −1, and number of drawn rows (0 for all). None if the message
        is no request.
        """
        if len(message) != 4 * _N_NUMBERS:
            return None
        request = np.frombuffer(message, "<i4")
        _, kind, slider, position, _, most = request
        known = kind in (SCORE, SLIDE) and 0 <= slider < len(self.sliders)
        if known and position >= 0 and 0 <= most <= self._map.shape[1]:
            return request
        return None

    def answer(self, request: np.ndarray, overtaken: Callable[[], bool] = lambda: False) -> bytes:
        """The answer as bytes. For scores, these are the serial number and the kind of the request, the mean
        cosine, and three zeros as float32. For maps, see `maps_answer`; if the settings cannot be used, the
        answer has the last map.
        """
        _, kind, slider, position, _, most = map(int, request)
        n = self._map.shape[1]
        with suppress(SpaceError):
            if kind == SLIDE:
                spec = self._spec_at(slider, position)
                self._map = NumpyDevice().full_range(self.live.coordinates(spec).T, n)
                self.spec = spec
            elif not overtaken():
                scores = np.array([self.live.cosine(self.spec), 0, 0, 0], "<f4")
                return request[:2].tobytes() + scores.tobytes()
        if kind == SCORE:
            return b""
        if 0 < most < n:
            shown = self._map[:, sampled_places(n, most)]
        else:
            shown = self._map
        return maps_answer(request, shown.shape[1], [shown.tobytes()])

    def _spec_at(self, slider: int, position: int) -> InversionSpec:
        field, values = self.sliders[slider]
        of_values = values or [position // 1000 if field == "omega" else position / 1000]
        return replace(self.spec, **{field: of_values[min(position // 1000, len(of_values) - 1)]})
