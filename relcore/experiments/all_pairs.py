"""All pairs: how alike are these spaces, each with each? One number a pair, beside what chance would give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.anchors.selection import shared_anchors
from relcore.comparison import ProjectionSpec
from relcore.metrics.calibration import Score
from relcore.metrics.cka import OwnMoments, linear_cka, mean_cosine
from relcore.metrics.neighbours import Neighbours, asked_rows, neighbours_within
from relcore.progress import Context
from relcore.similarity import unit_rows
from relcore.sources.encodings import load_encoding, put_encoding
from relcore.spaces import LatentSpace, SpaceError, distinct_names, match, need_one_of
from relcore.store import Store, digest_of

METRICS = {
    "cka": "linear CKA",
    "debiased cka": "debiased CKA",
    "relative cosine": "relative cosine",
    "mutual knn": "mutual kNN",
}
MOST_KEPT_BYTES = 512 * 2**20  # relative matrices beyond this are made anew for each pair
Report = Callable[[int, int, str], None]
Measure = Callable[[LatentSpace, LatentSpace], Score]


@dataclass(frozen=True)
class PairScores:
    """A symmetric matrix of scores.

    Attributes
    ----------
    names : s distinct names
    metric : str
        One of `METRICS`.
    scores : s × s of Score or None
        None where a pair cannot be compared.
    reasons : s × s of str
        Why not; "" where there is a score.
    """

    names: tuple[str, ...]
    metric: str
    scores: tuple[tuple[Score | None, ...], ...]
    reasons: tuple[tuple[str, ...], ...]

    @property
    def values(self) -> np.ndarray:
        """The scores as numbers, (s, s), NaN where there is none."""
        return np.array([[np.nan if score is None else float(score) for score in row] for row in self.scores])

    @property
    def title(self) -> str:
        """The metric as people write it: ``"mutual kNN, k = 10"``."""
        k = next((score.k for row in self.scores for score in row if score is not None), None)
        return METRICS[self.metric] + (f", k = {k}" if k else "")

    def take(self, order: Sequence[int]) -> PairScores:
        """The same scores with the spaces in this order."""

        def square(matrix):
            return tuple(tuple(matrix[i][j] for j in order) for i in order)

        return PairScores(tuple(self.names[i] for i in order), self.metric, square(self.scores), square(self.reasons))

    def grouped(self) -> PairScores:
        """Alike spaces side by side: the order of the leaves when 1 − score is clustered by average linkage.

        A pair without a score counts as the least alike of all.
        """
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        distance = np.maximum(1 - self.values, 0)
        farthest = np.nanmax(distance, initial=1.0)
        distance = np.where(np.isnan(distance), farthest, distance)
        np.fill_diagonal(distance, 0)
        return self.take(leaves_list(linkage(squareform(distance, checks=False), "average", optimal_ordering=True)).tolist())

    def table(self) -> pd.DataFrame:
        """One row a pair, each space with itself among them: what `figures` draw and the CSV holds.

        Columns: first, second, score, chance (the null's mean), null_low, null_high (its 95 % band), low, high (sampling
        interval, where rows were sampled), n, k, queries, reason (why there is no score).
        """
        rows = []
        for i, first in enumerate(self.names):
            for j in range(i, len(self.names)):
                score, pair = self.scores[i][j], {"first": first, "second": self.names[j]}
                rows.append(pair | (_described(score) if score is not None else {"reason": self.reasons[i][j]}))
        columns = ["first", "second", "score", "chance", "null_low", "null_high", "low", "high", "n", "k", "queries", "reason"]
        table = pd.DataFrame(rows).reindex(columns=columns)
        counts = dict.fromkeys(("n", "k", "queries"), "Int64")
        numbers = dict.fromkeys(columns[2:8], "float64")
        return table.astype(counts | numbers).fillna({"reason": ""})

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        scores = [[None if score is None else score.to_json() for score in row] for row in self.scores]
        return {"names": list(self.names), "metric": self.metric, "scores": scores, "reasons": [list(r) for r in self.reasons]}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> PairScores:
        """Back from `to_json`."""
        scores = tuple(tuple(None if one is None else Score.from_json(one) for one in row) for row in record["scores"])
        return cls(tuple(record["names"]), record["metric"], scores, tuple(map(tuple, record["reasons"])))


def _described(score: Score) -> dict[str, Any]:
    low, high = score.interval or (np.nan, np.nan)
    null = score.null
    band = {"chance": null.mean, "null_low": null.low, "null_high": null.high} if null else {}
    return {"score": float(score), **band, "low": low, "high": high, "n": score.n, "k": score.k, "queries": score.n_queries}


def similarity_matrix(
    spaces: Sequence[LatentSpace],
    metric: str = "cka",
    anchors: Sequence[str] = (),
    projection: ProjectionSpec | None = None,
    k: int = 10,
    n_queries: int | None = None,
    random_state: int = 0,
    report: Report | None = None,
) -> PairScores:
    """Score every pair of spaces on the rows that the two share, paired by id; the widths may differ.

    "cka", "debiased cka"   `linear_cka` of the absolute spaces, with its exact null
    "relative cosine"       `mean_cosine` of the two relative to the same `anchors`, with its exact null
    "mutual knn"            `jaccard` of the absolute spaces, convention "mutual", with its permutation null; of all rows, or
                            of `n_queries` of them at random

    Each number equals that of the function called for the pair. What concerns one space alone (its relative form, its neighbour
    lists, its moments) is worked out once where the space takes part with all its rows. A pair that cannot be compared
    (no shared ids, an anchor that one lacks, too few rows) has no score but a reason.

    Raises
    ------
    SpaceError
        Fewer than two spaces, an unknown metric, no anchors for "relative cosine".
    """
    if len(spaces) < 2:
        raise SpaceError(f"spaces: expected at least two to compare, got {len(spaces)}")
    need_one_of("metric", metric, METRICS)
    if metric == "relative cosine":
        shared_anchors(anchors)
    names, spaces = tuple(distinct_names(spaces)), _in_one_order(spaces)
    measure = _measure(spaces, metric, tuple(anchors), projection or ProjectionSpec(), k, n_queries, random_state)
    pairs = [(i, j) for i in range(len(spaces)) for j in range(i, len(spaces))]
    scores: dict[tuple[int, int], Score | None] = {}
    reasons: dict[tuple[int, int], str] = {}
    for done, (i, j) in enumerate(pairs):
        if report:
            report(done, len(pairs), f"{names[i]} and {names[j]}" if i < j else names[i])
        try:
            found = match(spaces[i], spaces[j])
            score, reason = measure(found.source, found.target), ""
        except SpaceError as error:
            score, reason = None, str(error)
        scores[i, j] = scores[j, i] = score
        reasons[i, j] = reasons[j, i] = reason
    if report:
        report(len(pairs), len(pairs), "")
    every = range(len(spaces))
    return PairScores(names, metric, *(tuple(tuple(one[i, j] for j in every) for i in every) for one in (scores, reasons)))


def _in_one_order(spaces: Sequence[LatentSpace]) -> list[LatentSpace]:
    """Spaces with the same ids as the first in its order too, so that each pair takes part whole."""
    ordered = [spaces[0]]
    for space in spaces[1:]:
        rows = space.index.get_indexer(spaces[0].index)
        same_ids = len(space) == len(spaces[0]) and (rows >= 0).all()
        moved = same_ids and not np.array_equal(rows, np.arange(len(space)))
        ordered.append(space.take(rows) if moved else space)
    return ordered


def _measure(
    spaces: Sequence[LatentSpace],
    metric: str,
    anchors: tuple[str, ...],
    projection: ProjectionSpec,
    k: int,
    n_queries: int | None,
    random_state: int,
) -> Measure:
    """The score of two row-aligned spaces; what was made of one of `spaces`, whole, is kept for its next pair."""
    whole, made = {id(space) for space in spaces}, {}

    def once(make: Callable[[LatentSpace], Any], space: LatentSpace, keep: bool = True) -> Any:
        if id(space) not in whole or not keep:
            return make(space)
        if id(space) not in made:
            made[id(space)] = make(space)
        return made[id(space)]

    def moments(space: LatentSpace) -> OwnMoments:
        return OwnMoments.of(space.vectors)

    def relative(space: LatentSpace) -> np.ndarray:
        rows = space.rows(anchors)
        return unit_rows(projection.projection().fit(space.vectors, anchors=rows).transform(space.vectors))

    def lists(space: LatentSpace) -> np.ndarray:
        return neighbours_within(unit_rows(space.vectors), asked_rows(len(space), n_queries, random_state), k)

    def cka(a: LatentSpace, b: LatentSpace) -> Score:
        return linear_cka(a.vectors, b.vectors, debiased=metric == "debiased cka", own=(once(moments, a), once(moments, b)))

    def cosine(a: LatentSpace, b: LatentSpace) -> Score:
        shared_anchors(anchors, a, b)
        first, second = (once(relative, space, keep=keep_relative) for space in (a, b))
        return mean_cosine(first, second, of_unit_length=True)

    def knn(a: LatentSpace, b: LatentSpace) -> Score:
        own, other = once(lists, a), once(lists, b)
        asked = asked_rows(len(a), n_queries, random_state)
        return Neighbours(a.vectors, b.vectors, asked, own, other, "mutual", "cpu").jaccard(random_state=random_state)

    keep_relative = 4 * len(anchors) * sum(map(len, spaces)) <= MOST_KEPT_BYTES
    return {"cka": cka, "debiased cka": cka, "relative cosine": cosine, "mutual knn": knn}[metric]


def estimated_seconds(spaces: Sequence[LatentSpace], metric: str, n_anchors: int = 0, n_queries: int | None = None) -> float:
    """Roughly how long `similarity_matrix` takes on two cores, from the products that it forms; within a factor of three."""
    n_pairs, rows = len(spaces) * (len(spaces) + 1) / 2, max(map(len, spaces))
    widths = np.array([space.dimension for space in spaces], dtype=float)
    asked = min(n_queries or rows, rows)
    steps = {
        "cka": rows * (np.outer(widths, widths).sum() / 2 + (widths**2).sum()),
        "relative cosine": rows * (widths.sum() * n_anchors + 2 * n_pairs * n_anchors**2),
        "mutual knn": asked * rows * (widths.sum() + 20 * len(spaces)) + n_pairs * (rows + 20 * asked) * 5e4,
    }
    return float(steps[metric.removeprefix("debiased ")] / 5e10)


def put_space(store: Store, space: LatentSpace) -> str:
    """Put a space where workers find it: the key that `similarity_job` takes."""
    key = digest_of("space", 2, space.digest, space.name)  # 2: with its counts
    if not store.has(key):
        put_encoding(store, key, space, {})
    return key


def similarity_job(context: Context, *, inputs: Sequence[str], **settings: Any) -> None:
    """`similarity_matrix` as a job of the Engine; `inputs` are keys of `put_space` or of encodings."""
    spaces = [load_encoding(context.store, key) for key in inputs]
    put_scores(context, similarity_matrix(spaces, **settings, report=context.report))


def put_scores(context: Context, scores: PairScores) -> None:
    """Keep scores as the result of a job; `PairScores.from_json(entry.metadata["scores"])` reads them."""
    context.put({}, {"scores": scores.to_json()})
