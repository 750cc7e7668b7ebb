"""Cross-lingual retrieval: find the translation of each row in another space, only by parallel anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.names import METHODS, STITCHED
from relcore.base.numbers import band, short
from relcore.base.rows import mean_row, unit_rows
from relcore.base.settings import check, setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import SpacesRecipe
from relcore.figures.charts import Matrices, MatrixPanel
from relcore.figures.export import Exportable, chart_exportable
from relcore.represent.translation import FittedSpace, MethodSettings, fit_translation, representation
from relcore.scores.neighbours import find_neighbours
from relcore.scores.score import ChanceLevel, Score
from relcore.spaces.matching import Match, match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split

METRICS = {"first": "found first", "mrr": "MRR", "jaccard": "Jaccard"}
_PERMUTATIONS = 50


@dataclass(frozen=True)
class RetrievalSpec:
    """The settings of a retrieval. `n_anchors` known pairs are drawn at random as anchors; all other rows are
    queries."""

    methods: tuple[str, ...] = setting(STITCHED, choices=METHODS, distinct=True)
    n_anchors: int = setting(300, low=2)
    k: int = setting(10, low=1)
    settings: MethodSettings = MethodSettings()
    random_state: int = setting(0, low=0)

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, eq=False)
class RetrievalResult:
    """The scores and the neighbours of the queries.

    Attributes
    ----------
    ids : array (m,)
        Ids of the queries in the first space.
    scores : method → metric → Score
        If the widths differ, methods that need equal widths are missing.
    found : method → array (m, k)
        For each query, the indices of its nearest candidates in the second space, nearest first.
    """

    spec: RetrievalSpec
    names: tuple[str, str]
    ids: np.ndarray
    scores: dict[str, dict[str, Score]]
    found: dict[str, np.ndarray]

    def table(self) -> pd.DataFrame:
        """A table with one row per method and metric."""
        rows = [
            (METHODS[method].title, METRICS[metric], float(score), null.mean, null.low, null.high)
            for method, by_metric in self.scores.items()
            for metric, score in by_metric.items()
            if (null := score.null)
        ]
        table = pd.DataFrame(rows, columns=["method", "metric", "score", "chance", "null_low", "null_high"])
        return table.assign(k=self.spec.k, pairs=len(self.ids), anchors=self.spec.n_anchors)

    def wide(self) -> pd.DataFrame:
        columns: dict[str, list] = {"method": [*(METHODS[name].title for name in self.scores), "chance"]}
        for metric, title in METRICS.items():
            scores = [by_metric[metric] for by_metric in self.scores.values()]
            columns[title] = [*scores, np.mean([score.null.mean for score in scores])]
        return pd.DataFrame(columns)


def pair_up(first: LatentSpace, second: LatentSpace, pairs: Sequence[tuple[str, str]] = ()) -> Match:
    """The match of two spaces: by equal ids, or by a list of pairs (id in the first space, id in the second
    space).

    Rows that are zero in one of the spaces are left out and counted. If an id has several partners, the first
    one is used.

    Raises
    ------
    SpaceError
        No row remains; the spaces have none of the ids in the list.
    """
    if not pairs:
        return match(first, second)
    known = pd.DataFrame(list(pairs))
    known = known[known[0].isin(first.index) & known[1].isin(second.index)]
    partners, used = {}, set()
    for left, right in known.itertuples(index=False):
        if left not in partners and right not in used:
            partners[left] = right
            used.add(right)
    if not partners:
        raise SpaceError(
            f"list of pairs: expected ids of {first.name!r} in the first column and of {second.name!r} in the"
            f" second, got none of {len(pairs):,}, first {quote(pairs[0])}; swap the columns, or choose the"
            " spaces that the list was written for"
        )
    rows = second.vectors[second.rows(list(partners.values()))]
    return match(first.take(first.rows(list(partners))), LatentSpace(rows, list(partners), name=second.name))


def retrieve(pair: Match, spec: RetrievalSpec) -> RetrievalResult:
    """The retrieval scores by method. Queries are all rows except anchors; they are searched among the same
    rows of the second space.

    Translated rows are compared by cosine after the mean of the second space is subtracted; absolute rows are
    not centred. Neighbours and Jaccard follow the "paper" convention of `scores.neighbours`.

    Raises
    ------
    SpaceError
        Too few pairs for this number of anchors and neighbours.
    """
    n = len(pair)
    if n < spec.n_anchors + spec.k + 1:
        raise SpaceError(
            f"expected more than n_anchors + k = {spec.n_anchors + spec.k} pairs, so that some are queries,"
            f" got {n}; lower the number of anchors, or take a longer list"
        )
    anchors = np.sort(np.random.default_rng(spec.random_state).permutation(n)[: spec.n_anchors])
    rest = Split.held_out(pair.ids, anchors, spec.random_state).test
    sides = [FittedSpace(X, X[anchors], mean_row(X)) for X in (pair.source.vectors, pair.target.vectors)]
    scores, found = {}, {}
    for method in spec.methods:
        rows = _comparable(method, sides, rest, spec)
        if rows is None:
            continue
        near = find_neighbours(*rows, spec.k)
        first = float((near.second_lists[:, 0] == near.queries).mean())
        # This is exact: the number of fixed points of a random permutation has mean 1 and variance 1.
        null = ChanceLevel.from_moments(1 / len(rest), 1 / len(rest) ** 2)
        scores[method] = {
            "first": Score(first, metric="first", n=len(rest), k=1, null=null),
            "mrr": near.mrr(_PERMUTATIONS, spec.random_state),
            "jaccard": near.jaccard(_PERMUTATIONS, spec.random_state),
        }
        found[method] = near.second_lists
    return RetrievalResult(spec, (pair.source.name, pair.target.name), pair.ids[rest], scores, found)


def _comparable(
    method: str, sides: list[FittedSpace], rest: np.ndarray, spec: RetrievalSpec
) -> list[np.ndarray] | None:
    """The queries and the candidates in shared coordinates. None if the method has no shared coordinates."""
    rows, heads = [side.train[rest] for side in sides], METHODS[method].heads
    if heads != "absolute":
        return [representation(heads, side, spec.settings)(X) for side, X in zip(sides, rows, strict=True)]
    carry = fit_translation(method, *sides, spec.settings, spec.random_state)
    if carry is None or method == "absolute":
        return carry and rows
    return [unit_rows(carry(rows[0]), sides[1].mean), unit_rows(rows[1], sides[1].mean)]


Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class CrossLingual(SpacesRecipe, figure="cross-lingual"):
    """A figure of retrieval scores by method. If the spaces have different ids, `pairs` of ids are needed."""

    spaces: tuple[SpaceSpec, SpaceSpec]
    retrieval: RetrievalSpec
    pairs: Pairs = ()

    def draw(self, result: RetrievalResult | None = None) -> Exportable:
        if result is None:
            pair = pair_up(*self.loaded(), self.pairs)
            result = retrieve(pair, self.retrieval)
        k, n = result.spec.k, len(result.ids)
        lines = [[by_metric[metric] for metric in METRICS] for by_metric in result.scores.values()]
        rows = tuple(METHODS[method].title for method in result.scores)
        columns = ("found first", f"MRR, k = {k}", f"Jaccard, k = {k}")
        texts, hover = (tuple(tuple(map(of, line)) for line in lines) for of in (_text, _hover))
        panel = MatrixPanel("", rows, columns, np.array(lines, dtype=float), texts, hover)
        best = max(result.scores, key=lambda method: result.scores[method]["mrr"])
        alt = (
            f"Heat map of retrieval from {result.names[0]} to {result.names[1]}, {n} queries through"
            f" {result.spec.n_anchors} known pairs; best by MRR {METHODS[best].title},"
            f" {short(result.scores[best]['mrr'], 2)}."
        )
        data = Matrices((panel,), (0, 1), "score", alt)
        return chart_exportable(data, self.to_json(), "relscope-cross-lingual", result.wide, result.table)


def _text(score: Score) -> str:
    return f"{short(score, 2)}\nchance {short(score.null.mean, 2)}"


def _hover(score: Score) -> str:
    ends = band(max(0, score.null.low), score.null.high)
    neighbours = f", k = {score.k}" if score.metric != "first" else ""
    return f"{short(score)}\nchance {short(score.null.mean)} ({ends})\nn = {score.n:,}{neighbours}"
