"""Neighbours that change from one version to the next, and what numeric noise alone would change."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from relcore.metrics.neighbours import neighbours_within, without_itself
from relcore.metrics.search import nearest_directions
from relcore.similarity import mean_row, row_blocks, unit_rows

JITTER = 2.0**-11  # the largest relative error of rounding to float16
_SEEDING_ROWS = 64


def churn_rows(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Share of each row's k nearest that are others now, from lists (m, k) and (m, k) without repetitions; (m,), 0 … 1."""
    kept = np.empty(len(old))
    for block in row_blocks(len(old)):
        kept[block] = (old[block][:, :, None] == new[block][:, None, :]).any(axis=2).mean(axis=1)
    return 1 - kept


def chance_churn(n: int, k: int) -> float:
    """The churn of rows that are paired at random: k of n − 1 rows are the same by chance."""
    return 1 - k / (n - 1)


def own_neighbours(vectors: np.ndarray, queries: np.ndarray, k: int, center: bool) -> np.ndarray:
    """The k nearest rows of one version by cosine, the row itself left out, (m, k); `center` subtracts the mean row first."""
    return neighbours_within(unit_rows(vectors, mean_row(vectors) if center else None), queries, k)


@dataclass(frozen=True, eq=False)
class Across:
    """New vectors of rows as queries among the old vectors of all rows, compared by cosine as they are.

    Attributes
    ----------
    lists : array (m, k)
        The nearest old rows, the query's own left out.
    lost : array (m,)
        1.0 where the nearest old row is not the query's own, else 0.0.
    reciprocal_rank : array (m,)
        1 / rank of the own row, 0 beyond k + 1.
    """

    lists: np.ndarray
    lost: np.ndarray
    reciprocal_rank: np.ndarray

    @classmethod
    def search(cls, directions: np.ndarray, base: np.ndarray, queries: np.ndarray, k: int) -> Across:
        """Queries (m, d) of unit length, which are the rows `queries` of the base (n, d).

        The base is searched in an order of its own, so that equal rows are no advantage for the first of them.
        """
        order = np.random.default_rng(crc32(base[-_SEEDING_ROWS:].tobytes())).permutation(len(base))
        found = order[nearest_directions(directions, base[order], k + 1)]
        own = found == queries[:, None]
        place = np.where(own.any(axis=1), own.argmax(axis=1), -1)
        rank = np.divide(1.0, place + 1, out=np.zeros(len(queries)), where=place >= 0)
        return cls(without_itself(queries, found), (place != 0).astype(float), rank)


def jittered(vectors: np.ndarray, jitter: float, rng: np.random.Generator) -> np.ndarray:
    """The rows (n, d) with Gaussian noise whose length is `jitter` times that of the row, as float32."""
    found = rng.standard_normal(vectors.shape, dtype=np.float32)
    squares = np.vecdot(vectors, vectors, dtype=np.float64)
    found *= (jitter * np.sqrt(squares / vectors.shape[1])).astype(np.float32)[:, None]
    found += vectors
    return found
