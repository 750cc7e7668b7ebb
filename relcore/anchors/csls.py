"""CSLS: mutual nearest neighbours of two spaces by a cosine that crowded rows do not win, without an N × N matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.similarity import row_blocks
from relcore.spaces import SpaceError

BLOCK_BYTES = 64 * 2**20  # one block of similarities; two are never alive at once


@dataclass(frozen=True)
class Matching:
    """For every row of the source its partner in the target, and the mutual pairs.

    Attributes
    ----------
    partner : array (n,)
        The target row with the largest CSLS.
    similarity : array (n,) float32
        That CSLS, 2 cos(x, y) − r(x) − r(y), −4 … 4; r is the mean cosine to the k nearest rows of the other space.
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
    source: np.ndarray, target: np.ndarray, k: int = 10, *, keep: float = 1.0, rng: np.random.Generator | None = None
) -> Matching:
    """Match unit rows (n, d) with unit rows (m, d) of one width by CSLS (Conneau et al. 2018, eq. 3).

    Two passes over the same blocks of cosines, each computed once for both directions. Peak memory: one block. Below
    `keep` = 1 every cosine takes part in the choice of partners with that probability only (Artetxe et al. 2018): this
    noise helps self-learning to leave a poor start.

    Raises
    ------
    SpaceError
        Widths that differ, k below 1.
    """
    if source.shape[1] != target.shape[1]:
        raise SpaceError(f"expected rows of one width, got {source.shape[1]} and {target.shape[1]}; rotate the source first")
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
    # Both sides read the same product, so that equality is exact: the row that gave a column its maximum is its choice.
    chosen = np.flatnonzero((best == best_of_target[partner]) & np.isfinite(best))
    _, first = np.unique(partner[chosen], return_index=True)  # of equal rows, which tie, the first
    return Matching(partner, 2 * best, np.sort(chosen[first]))


def crowding(source: np.ndarray, target: np.ndarray, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Mean cosine of every row to its k nearest rows of the other space, of both spaces: (n,) and (m,) float32.

    Exact, and no sort: maxima of groups give each row a bound that its k nearest must reach, and few others do.
    """
    k_rows, k_columns = min(k, len(target)), min(k, len(source))
    bound = np.full((k_columns, len(target)), -np.inf, dtype=np.float32)  # the k largest group maxima of each column so far
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
    """(b, m) → (b, groups): maxima of far more groups than k, for a sharp bound; of single values where they are few."""
    size = max(1, min(50, cosines.shape[1] // (4 * k)))
    whole = cosines.shape[1] // size * size
    maxima = cosines[:, :whole].reshape(len(cosines), -1, size).max(axis=2)
    return maxima if whole == cosines.shape[1] else np.hstack([maxima, cosines[:, whole:].max(axis=1, keepdims=True)])


def _places(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the few that are true; a flat search, then a division, is four times as fast as np.nonzero."""
    return np.divmod(np.flatnonzero(mask), mask.shape[1])


def _top_means(parts: list[tuple[np.ndarray, np.ndarray]], n: int, k: int) -> np.ndarray:
    """Mean of the k largest values of each owner, of which each has k or more; (n,) float32."""
    owners, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-values, owners))
    first = np.searchsorted(owners[order], np.arange(n))
    return values[order][first[:, None] + np.arange(k)].mean(axis=1, dtype=np.float64).astype(np.float32)
