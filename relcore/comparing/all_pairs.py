"""All pairs: how alike are these spaces, each with each? One number a pair, beside what chance would give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relcore.anchors.selection import shared_anchors
from relcore.comparing.best_pair import PERMUTATIONS as BEST_PERMUTATIONS
from relcore.comparing.best_pair import SAMPLED_ROWS as BEST_ROWS
from relcore.comparing.best_pair import best_by_chance
from relcore.comparing.pair_scores import METRICS, PairScores
from relcore.comparison import ProjectionSpec
from relcore.evaluation import Split
from relcore.metrics.calibration import Null, Score
from relcore.metrics.cka import OwnMoments, linear_cka, mean_cosine
from relcore.metrics.neighbours import Neighbours, neighbours_within
from relcore.progress import Context
from relcore.similarity import mean_row, unit_rows
from relcore.sources.encodings import load_encoding
from relcore.spaces import LatentSpace, SpaceError, distinct_names, match, need_one_of

MOST_KEPT_BYTES = 512 * 2**20  # relative matrices beyond this are made anew for each pair
Report = Callable[[int, int, str], None]
Measure = Callable[[LatentSpace, LatentSpace], Score]


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
    "relative cosine"       `mean_cosine` of the two relative to the same `anchors`, with its exact null, on the rows that are
                            no anchors
    "mutual knn"            `jaccard` of the absolute spaces, convention "mutual", with its permutation null; queries are all
                            rows, or `n_queries` of them at random

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
    pairs = [(i, j) for i in range(len(spaces)) for j in range(i, len(spaces))]
    settings = (metric, tuple(anchors), projection or ProjectionSpec(), k, n_queries, random_state)
    scores, reasons, best = scores_of_pairs(spaces, pairs, *settings, report=report)
    every = range(len(spaces))
    matrices = [tuple(tuple(one[min(i, j), max(i, j)] for j in every) for i in every) for one in (scores, reasons)]
    return PairScores(tuple(distinct_names(spaces)), metric, *matrices, best)


def scores_of_pairs(
    spaces: Sequence[LatentSpace],
    pairs: Sequence[tuple[int, int]],
    metric: str,
    anchors: tuple[str, ...],
    projection: ProjectionSpec,
    k: int,
    n_queries: int | None,
    random_state: int = 0,
    report: Report | None = None,
) -> tuple[dict[tuple[int, int], Score | None], dict[tuple[int, int], str], Null | None]:
    """Scores of some pairs of spaces, why a pair has none, and the chance level of the best pair of two different spaces.

    `pairs` are numbers of spaces (i, j), i ≤ j, each once. Settings and errors are those of `similarity_matrix`.
    """
    need_one_of("metric", metric, METRICS)
    if metric == "relative cosine":
        shared_anchors(anchors)
    names, spaces = distinct_names(spaces), _in_one_order(spaces)
    measure = _measure(spaces, metric, anchors, projection, k, n_queries, random_state)
    scores: dict[tuple[int, int], Score | None] = {}
    reasons: dict[tuple[int, int], str] = {}
    for done, (i, j) in enumerate(pairs):
        if report:
            report(done, len(pairs), f"{names[i]} and {names[j]}" if i < j else names[i])
        try:
            found = match(spaces[i], spaces[j])
            scores[i, j], reasons[i, j] = measure(found.source, found.target), ""
        except SpaceError as error:
            scores[i, j], reasons[i, j] = None, str(error)
    if report:
        report(len(pairs), len(pairs), "")
    best = None
    if all(space.index.equals(spaces[0].index) and not len(space.zero_rows) for space in spaces):
        forms, both_axes = _sampled_forms(spaces, metric, anchors, projection, k)
        best = best_by_chance({pair: scores[pair] for pair in pairs if pair[0] < pair[1]}, forms, both_axes=both_axes)
    return scores, reasons, best


def _sampled_forms(
    spaces: Sequence[LatentSpace], metric: str, anchors: tuple[str, ...], projection: ProjectionSpec, k: int
) -> tuple[list[np.ndarray], bool]:
    """What `best_by_chance` permutes, of a sample of the rows: relative rows, or matrices of similarities or of neighbours."""
    if metric == "relative cosine":
        rows = Split.held_out(spaces[0].ids, spaces[0].rows(anchors)).queries(BEST_ROWS)
        fitted = [projection.projection().fit(space.vectors, anchors=space.rows(anchors)) for space in spaces]
        return [unit_rows(one.transform(space.vectors[rows])) for one, space in zip(fitted, spaces, strict=True)], False
    rows = Split.held_out(spaces[0].ids).queries(BEST_ROWS)
    sampled = [space.vectors[rows] for space in spaces]
    if metric == "mutual knn":
        every = np.arange(len(rows))
        lists = [neighbours_within(unit_rows(X), every, min(k, len(rows) - 1)) for X in sampled]
        return [(found[:, :, None] == every).any(axis=1) for found in lists], True
    centred = [X - mean_row(X) for X in sampled]
    return [X @ X.T for X in centred], True


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
        fitted = projection.projection().fit(space.vectors, anchors=rows)
        return unit_rows(fitted.transform(space.vectors[Split.held_out(space.ids, rows).test]))

    def queries(space: LatentSpace) -> np.ndarray:
        return Split.held_out(space.ids, random_state=random_state).queries(n_queries)

    def lists(space: LatentSpace) -> np.ndarray:
        return neighbours_within(unit_rows(space.vectors), queries(space), k)

    def cka(a: LatentSpace, b: LatentSpace) -> Score:
        return linear_cka(a.vectors, b.vectors, debiased=metric == "debiased cka", own=(once(moments, a), once(moments, b)))

    def cosine(a: LatentSpace, b: LatentSpace) -> Score:
        shared_anchors(anchors, a, b)
        first, second = (once(relative, space, keep=keep_relative) for space in (a, b))
        return mean_cosine(first, second, of_unit_length=True)

    def knn(a: LatentSpace, b: LatentSpace) -> Score:
        own, other = once(lists, a), once(lists, b)
        return Neighbours(a.vectors, b.vectors, queries(a), own, other, "mutual", "cpu").jaccard(random_state=random_state)

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
    sampled = min(rows, BEST_ROWS)
    width = n_anchors if metric == "relative cosine" else sampled
    by_chance = BEST_PERMUTATIONS * sampled * width * len(spaces) * (2e-9 + len(spaces) * 2e-11)
    return float(steps[metric.removeprefix("debiased ")] / 5e10 + by_chance)


def similarity_job(context: Context, *, inputs: Sequence[str], **settings: Any) -> None:
    """`similarity_matrix` as a job of the Engine; `inputs` are keys of `put_space` or of encodings."""
    spaces = [load_encoding(context.store, key) for key in inputs]
    put_scores(context, similarity_matrix(spaces, **settings, report=context.report))


def put_scores(context: Context, scores: PairScores) -> None:
    """Keep scores as the result of a job; `PairScores.from_json(entry.metadata["scores"])` reads them."""
    context.put({}, {"scores": scores.to_json()})
