"""CSLS: mutual nearest neighbours of two spaces by a cosine that crowded rows do not win, without an N × N
matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.errors import SpaceError
from relcore.represent.similarity import mean_row, row_blocks, unit_rows

BLOCK_BYTES = 64 * 2**20  # one block of similarities; two are never alive at once


@dataclass(frozen=True)
class Matching:
    """For every row of the source its partner in the target, and the mutual pairs.

    Attributes
    ----------
    partner : array (n,)
        The target row with the largest CSLS.
    similarity : array (n,) float32
        That CSLS, 2 cos(x, y) − r(x) − r(y), −4 … 4; r is the mean cosine to the k nearest rows of the other
        space.
    mutual : array (m,)
        Source rows that are the best match of their own best match; their partners are distinct.
    """

    partner: np.ndarray
    similarity: np.ndarray
    mutual: np.ndarray

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Source rows and target rows of the mutual pairs, (m,) each."""
        return self.mutual, self.partner[self.mutual]

    @property
    def mean(self) -> float:
        """Mean CSLS of all rows with their partners: the objective of self-learning."""
        return float(self.similarity.mean(dtype=np.float64))


def match_csls(
    source: np.ndarray,
    target: np.ndarray,
    k: int = 10,
    *,
    keep: float = 1.0,
    rng: np.random.Generator | None = None,
) -> Matching:
    """Match unit rows (n, d) with unit rows (m, d) of one width by CSLS (Conneau et al. 2018, eq. 3).

    Two passes over the same blocks of cosines, each computed once for both directions. Peak memory: one
    block. Below `keep` = 1 every cosine takes part in the choice of partners with that probability only
    (Artetxe et al. 2018): this noise helps self-learning to leave a poor start.

    Raises
    ------
    SpaceError
        Widths that differ, k below 1.
    """
    if source.shape[1] != target.shape[1]:
        raise SpaceError(
            f"expected rows of one width, got {source.shape[1]} and {target.shape[1]}; rotate the source"
            " first"
        )
    if k < 1:
        raise SpaceError(f"k: expected 1 or more neighbours, got {k}")
    crowding_source, crowding_target = crowding(source, target, k)
    # With two more columns the product itself is half the CSLS: no pass over the block to subtract anything.
    ones = np.ones((1, 1), dtype=np.float32)
    source = np.hstack([source, np.broadcast_to(ones, (len(source), 1)), -crowding_source[:, None] / 2])
    target = np.hstack([target, -crowding_target[:, None] / 2, np.broadcast_to(ones, (len(target), 1))])
    partner = np.empty(len(source), dtype=np.int64)
    best = np.empty(len(source), dtype=np.float32)
    best_of_target = np.full(len(target), -np.inf, dtype=np.float32)
    for block, cosines in _products(source, target):
        if keep < 1:
            cosines[rng.random(cosines.shape, dtype=np.float32) >= keep] = -np.inf
        partner[block] = cosines.argmax(axis=1)
        best[block] = np.take_along_axis(cosines, partner[block, None], axis=1)[:, 0]
        np.maximum(best_of_target, cosines.max(axis=0), out=best_of_target)
    # Both sides read the same product, so that equality is exact: the row that gave a column its maximum is
    # its choice.
    chosen = np.flatnonzero((best == best_of_target[partner]) & np.isfinite(best))
    _, first = np.unique(partner[chosen], return_index=True)  # of equal rows, which tie, the first
    return Matching(partner, 2 * best, np.sort(chosen[first]))


def crowding(source: np.ndarray, target: np.ndarray, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Mean cosine of every row to its k nearest rows of the other space, of both spaces: (n,) and (m,)
    float32.

    Exact, and no sort: maxima of groups give each row a bound that its k nearest must reach, and few others
    do.
    """
    k_rows, k_columns = min(k, len(target)), min(k, len(source))
    bound = np.full(
        (k_columns, len(target)), -np.inf, dtype=np.float32
    )  # the k largest group maxima of each column so far
    row_parts, column_parts = [], []
    for block, cosines in _products(source, target):
        reached = np.partition(_group_maxima(cosines, k_rows), -k_rows, axis=1)[:, -k_rows, None]
        rows, columns = _places(cosines >= reached)
        row_parts.append((rows + block.start, cosines[rows, columns]))
        bound = np.sort(np.concatenate([bound, _group_maxima(cosines.T, k_columns).T]), axis=0)[-k_columns:]
        rows, columns = _places(cosines >= bound[0])
        column_parts.append((columns, cosines[rows, columns]))
    return _top_means(row_parts, len(source), k_rows), _top_means(column_parts, len(target), k_columns)


def _products(source: np.ndarray, target: np.ndarray):
    """Blocks of rows with their products (b, m) in one buffer, which the next block overwrites."""
    size = max(1, min(len(source), BLOCK_BYTES // (4 * len(target))))
    buffer = np.empty((size, len(target)), dtype=np.float32)
    for block in row_blocks(len(source), size):
        yield block, np.matmul(source[block], target.T, out=buffer[: block.stop - block.start])


def _group_maxima(cosines: np.ndarray, k: int) -> np.ndarray:
    """(b, m) → (b, groups): maxima of far more groups than k, for a sharp bound; of single values where
    they are few.
    """
    size = max(1, min(50, cosines.shape[1] // (4 * k)))
    whole = cosines.shape[1] // size * size
    maxima = cosines[:, :whole].reshape(len(cosines), -1, size).max(axis=2)
    return (
        maxima
        if whole == cosines.shape[1]
        else np.hstack([maxima, cosines[:, whole:].max(axis=1, keepdims=True)])
    )


def _places(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the few that are true; a flat search, then a division, is four times as fast as
    np.nonzero.
    """
    return np.divmod(np.flatnonzero(mask), mask.shape[1])


def _top_means(parts: list[tuple[np.ndarray, np.ndarray]], n: int, k: int) -> np.ndarray:
    """Mean of the k largest values of each owner, of which each has k or more; (n,) float32."""
    owners, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-values, owners))
    first = np.searchsorted(owners[order], np.arange(n))
    return values[order][first[:, None] + np.arange(k)].mean(axis=1, dtype=np.float64).astype(np.float32)


# First pairs without seeds: rows whose similarities within their own space are alike (Artetxe et al. 2018, §
# 3.2).

MOST_ROWS = 4000  # their similarity matrix takes 64 MB
FIRST_KEEP = 0.1


def pairs_without_seeds(source: np.ndarray, target: np.ndarray, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Mutual pairs (m,), (m,) of unit rows (n, d_source) and (n, d_target), few of them correct, but more
    than by chance.

    How similar a row is to all others of its space does not depend on the axes, and sorted not on their order
    either. Of the similarity matrix it is the square root that is sorted: so its rows have the similarities
    themselves as products.

    Raises
    ------
    SpaceError
        More than 4,000 rows: this is for the most frequent ones.
    """
    if max(len(source), len(target)) > MOST_ROWS:
        raise SpaceError(
            f"no seeds: expected at most {MOST_ROWS:,} rows to begin with, got"
            f" {max(len(source), len(target)):,}; give seeds, or spaces with counts, so that the most"
            " frequent rows are known"
        )
    n = min(len(source), len(target))
    return match_csls(_profile(source, n), _profile(target, n), k).pairs


def _profile(X: np.ndarray, n: int) -> np.ndarray:
    """Sorted rows of the root of X Xᵀ, their values at n even places, centred and of length 1: (rows, n)."""
    left, singular_values, _ = np.linalg.svd(X, full_matrices=False)
    root = (left * singular_values) @ left.T
    root.sort(axis=1)
    if root.shape[1] > n:
        root = root[:, np.linspace(0, root.shape[1] - 1, n).round().astype(int)]
    root = unit_rows(root)
    return unit_rows(root, mean_row(root))


# Self-learning: fit a rotation to a few pairs, match more pairs with it, and repeat (Artetxe et al. 2017).

Rows = tuple[np.ndarray, np.ndarray]  # source rows and target rows, pair by pair or set beside set
SEED_WEIGHT = 5.0  # one known pair counts as much as five that were found
STALLED = 1e-3  # a gain of the mean CSLS below this is none
MOST_ROUNDS, MOST_ROUNDS_UNSEEDED = 15, 60  # without seeds the share that takes part begins at a tenth


@dataclass(frozen=True)
class Alignment:
    """The position of self-learning, in plain numbers; together with the rotation it suffices to resume.

    Attributes
    ----------
    stage, done : int
        The stage of the next round, and rounds done in it.
    keep : float
        Share of the similarities that take part in the next round.
    best : float, optional
        The largest mean CSLS so far at this stage and share; None before the first.
    """

    stage: int = 0
    done: int = 0
    keep: float = 1.0
    best: float | None = None


@dataclass(frozen=True, eq=False)
class Step:
    """One round: the rotation and the position for the next round, and the rows of its stage that this one
    matched.
    """

    place: Alignment
    rotation: np.ndarray
    rows: Rows
    matching: Matching

    @property
    def pairs(self) -> Rows:
        """Mutual pairs as rows of the whole spaces."""
        source, target = self.matching.pairs
        return self.rows[0][source], self.rows[1][target]


def rotation_between(source: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Orthogonal Procrustes of paired rows (k, d_source), (k, d_target), without shift or scale: (d_source,
    d_target).

    Fewer pairs than dimensions determine the rotation only on their span. Outside it the matrix is zero
    rather than arbitrary. Starting from 15 seeds, this saves half of the rounds.
    """
    weighted = source if weights is None else source * weights[:, None]
    left, singular_values, right = np.linalg.svd(weighted.T.astype(np.float64) @ target, full_matrices=False)
    rank = np.count_nonzero(singular_values > 1e-6 * singular_values[0])
    return (left[:, :rank] @ right[:rank]).astype(np.float32)


def begin(
    source: np.ndarray, target: np.ndarray, seeds: Rows, rows: Rows, k: int = 10
) -> tuple[np.ndarray, Alignment]:
    """The first rotation: from the seeds, or without seeds from similarities within each space's `rows`."""
    if len(seeds[0]):
        return rotation_between(source[seeds[0]], target[seeds[1]]), Alignment()
    pairs = pairs_without_seeds(source[rows[0]], target[rows[1]], k)
    return rotation_between(source[rows[0][pairs[0]]], target[rows[1][pairs[1]]]), Alignment(keep=FIRST_KEEP)


def learned_rotation(
    source: np.ndarray, target: np.ndarray, seeds: Rows, k: int = 10, random_state: int = 0
) -> np.ndarray:
    """The whole of self-learning, with or without seeds, over all rows at once; the last rotation
    (d_source, d_target).
    """
    every = np.arange(len(source)), np.arange(len(target))
    rotation, place = begin(source, target, seeds, every, k)
    for step in self_learn(
        source, target, rotation, seeds, [every], k=k, random_state=random_state, place=place
    ):
        rotation = step.rotation
    return rotation


def self_learn(
    source: np.ndarray,
    target: np.ndarray,
    rotation: np.ndarray,
    seeds: Rows,
    stages: Sequence[Rows],
    *,
    k: int = 10,
    random_state: int = 0,
    place: Alignment = Alignment(),
) -> Iterator[Step]:
    """Rounds over each stage's rows of unit rows (n, d_source), (m, d_target), until the mean CSLS stops
    rising.

    Match by CSLS, keep the mutual pairs, add the seeds with their weight, rotate again. Where the place's
    `keep` is below 1 the choice is made among a random share of the similarities, which doubles whenever a
    round gains nothing. To resume, give the `rotation` and the `place` of the last finished step: the result
    is the same as without the interruption.
    """
    most_rounds = MOST_ROUNDS if len(seeds[0]) else MOST_ROUNDS_UNSEEDED
    while place.stage < len(stages):
        rows = stages[place.stage]
        X, Y = source[rows[0]], target[rows[1]]
        stage = place.stage
        while place.stage == stage:
            rng = np.random.default_rng((random_state, stage, place.done + 1)) if place.keep < 1 else None
            matching = match_csls(unit_rows(X @ rotation), Y, k, keep=place.keep, rng=rng)
            rotation = _with_seeds(
                source, target, (rows[0][matching.pairs[0]], rows[1][matching.pairs[1]]), seeds
            )
            place = _next_place(place, matching.mean, most_rounds)
            yield Step(place, rotation, rows, matching)


def _next_place(place: Alignment, mean: float, most_rounds: int) -> Alignment:
    stalled = place.best is not None and mean - place.best < STALLED
    if (stalled and place.keep >= 1) or place.done + 1 == most_rounds:
        keep = min(1.0, 2 * place.keep) if stalled else place.keep
        return Alignment(place.stage + 1, 0, keep)
    if stalled:
        return Alignment(place.stage, place.done + 1, min(1.0, 2 * place.keep))
    best = mean if place.best is None else max(mean, place.best)
    return Alignment(place.stage, place.done + 1, place.keep, best)


def _with_seeds(source: np.ndarray, target: np.ndarray, pairs: Rows, seeds: Rows) -> np.ndarray:
    rows = [np.concatenate(both) for both in zip(pairs, seeds, strict=True)]
    weights = np.ones(len(rows[0]), dtype=np.float32)
    weights[len(pairs[0]) :] = SEED_WEIGHT
    return rotation_between(source[rows[0]], target[rows[1]], weights)
