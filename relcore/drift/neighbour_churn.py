"""Neighbours that change from one version to the next, by more than numeric noise can change them.

Rows that are equal, or nearly, are in no order: numeric noise decides which of them a search names. So a neighbour that is no
longer among the k nearest counts as kept if it is no farther than the k-th by `_TIE` times the length of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from relcore.magnitude import lengths
from relcore.metrics.neighbours import neighbours_within, without_itself
from relcore.metrics.search import nearest_directions
from relcore.similarity import mean_row, row_blocks, unit_rows

JITTER = 2.0**-11  # the largest relative error of rounding to float16
_TIE = 4.0  # a distance has the noise of two rows, and two versions of it are compared
_SEEDING_ROWS = 64
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class Directions:
    """The rows of one version as they are compared by cosine.

    Attributes
    ----------
    rows : array (n, d)
        Of length 1, after the mean row is subtracted where they are centred.
    blur : array (n,)
        Distances of a row that differ by less are equal, up to numeric noise.
    """

    rows: np.ndarray
    blur: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray, jitter: float, center: bool) -> Directions:
        """Of the vectors (n, d); the noise is `jitter` times the length of a row before it is centred."""
        mean = mean_row(vectors) if center else None
        before, after = lengths(vectors), lengths(vectors, mean)
        share = np.divide(before, after, out=np.full(len(vectors), np.inf), where=after > 0)
        return cls(unit_rows(vectors, mean), _TIE * jitter * share if jitter else np.zeros(len(vectors)))

    def near(self, queries: np.ndarray, k: int) -> np.ndarray:
        """The k nearest rows of each of these rows, itself left out, (m, k), nearest first."""
        return neighbours_within(self.rows, queries, k)

    def changed(self, queries: np.ndarray, before: np.ndarray, now: np.ndarray) -> np.ndarray:
        """`changed_rows` where these are the new directions, and the queries rows of them."""
        return changed_rows(before, now, self.rows[queries], self.blur[queries], self.rows)


def changed_rows(before: np.ndarray, now: np.ndarray, directions: np.ndarray, blur: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Share of each query's nearest rows `before` (m, k) that are not among its nearest `now` (m, k), (m,), 0 … 1.

    The search of now is that of the directions (m, d) among the base (n, d); what is tied with the k-th of them is kept.
    """
    found = np.empty(len(before))
    for block in row_blocks(len(before), _BLOCK):
        among = (before[block][:, :, None] == now[block][:, None, :]).any(axis=2)
        reach = _distance(directions[block], base, now[block][:, -1:]) + blur[block, None]
        found[block] = 1 - (among | (_distance(directions[block], base, before[block]) <= reach)).mean(axis=1)
    return found


def chance_churn(n: int, k: int) -> float:
    """The churn of rows that are paired at random: k of n − 1 rows are the same by chance."""
    return 1 - k / (n - 1)


@dataclass(frozen=True, eq=False)
class Across:
    """New vectors of rows as queries among the old vectors of all rows, compared by cosine as they are.

    Attributes
    ----------
    changed : array (m,)
        Share of the k nearest old rows that are others than those that the old vector finds, the own row left out.
    lost : array (m,)
        1.0 where another old row is nearer than the query's own, 0.0 elsewhere.
    reciprocal_rank : array (m,)
        1 / rank of the own row, 0 beyond k + 1.
    """

    changed: np.ndarray
    lost: np.ndarray
    reciprocal_rank: np.ndarray

    @classmethod
    def search(cls, new: Directions, old: Directions, queries: np.ndarray, before: np.ndarray) -> Across:
        """Rows `queries` of the new version among all of the old one; `before` (m, k) is what their old vectors find.

        The old rows are searched in an order of their own, so that equal rows are no advantage for the first of them.
        """
        directions, blur, base = new.rows[queries], new.blur[queries], old.rows
        order = np.random.default_rng(crc32(base[-_SEEDING_ROWS:].tobytes())).permutation(len(base))
        found = order[nearest_directions(directions, base[order], before.shape[1] + 1)]
        own = found == queries[:, None]
        rank = np.where(own.any(axis=1), 1 / (own.argmax(axis=1) + 1), 0.0)
        others = without_itself(queries, found)
        nearest, its_own = (_distance(directions, base, rows)[:, 0] for rows in (others[:, :1], queries[:, None]))
        lost = (its_own > nearest + blur).astype(float)
        return cls(changed_rows(before, others, directions, blur, base), lost, rank)


def jittered(vectors: np.ndarray, jitter: float, rng: np.random.Generator) -> np.ndarray:
    """The rows (n, d) with Gaussian noise whose length is `jitter` times that of the row, as float32."""
    found = rng.standard_normal(vectors.shape, dtype=np.float32)
    found *= (jitter / np.sqrt(vectors.shape[1]) * lengths(vectors)).astype(np.float32)[:, None]
    found += vectors
    return found


def _distance(directions: np.ndarray, base: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Euclidean distances of each direction (m, d) from its own rows (m, k) of the base: (m, k)."""
    found = np.empty(rows.shape, dtype=np.float32)
    for block in row_blocks(len(rows), _BLOCK):
        found[block] = np.linalg.norm(base[rows[block]] - directions[block][:, None, :], axis=2)
    return found
