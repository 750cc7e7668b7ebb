"""The similarities of all pairs of a query and a row, in blocks of rows: cosines, inner products, or L2
distances, which are negated so that larger is nearer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import row_blocks

SCORES = {"cosine": "Cosine", "inner": "Inner product", "l2": "L2 distance"}
_BLOCK = 4096  # rows; with 500 queries, a block takes 8 MB


def sign_of(score: str) -> int:
    """−1 if a similarity of this kind is a negated distance, otherwise 1."""
    if score == "l2":
        return -1
    return 1


@dataclass(frozen=True, eq=False)
class Similarities:
    """The similarities of queries (q, d) and rows (n, d).

    Attributes
    ----------
    score : "cosine", "inner" or "l2"
        For cosines, all vectors have length 1.
    own : array (q,) or None
        The index of the row that is the query itself, which has no similarity; −1 for none.
    """

    queries: np.ndarray
    rows: np.ndarray
    score: str = "cosine"
    own: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.queries), len(self.rows)

    @property
    def range(self) -> tuple[float, float]:
        """Bounds of all similarities."""
        if self.score == "cosine":
            return -1.0, 1.0
        longest = [float(np.linalg.norm(part, axis=1).max()) for part in (self.queries, self.rows)]
        if self.score == "inner":
            bound = longest[0] * longest[1]
            return -bound, bound
        return -sum(longest), 0.0

    @property
    def sign(self) -> int:
        return sign_of(self.score)

    def check(self, threshold: float) -> None:
        """Raise a SpaceError for a threshold that no score of this kind can have."""
        expected = "a finite number"
        allowed = bool(np.isfinite(threshold))
        if self.score == "cosine":
            expected = "a cosine, −1 … 1"
            allowed = -1 <= threshold <= 1
        elif self.score == "l2":
            expected = "an L2 distance, 0 or more"
            allowed = allowed and threshold >= 0
        if not allowed:
            raise SpaceError(f"threshold: expected {expected}, got {threshold!r:.40}")

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Slices of the rows, and the similarities (q, b) of their rows; NaN where a row is the query."""
        for block in row_blocks(len(self.rows), _BLOCK):
            rows = self.rows[block]
            products = self.queries @ rows.T
            if self.score == "l2":
                lengths = np.einsum("qd,qd->q", self.queries, self.queries)
                squares = lengths[:, None] + np.einsum("nd,nd->n", rows, rows) - 2 * products
                products = -np.sqrt(np.maximum(squares, 0))
            if self.own is not None:
                mine = np.flatnonzero((self.own >= block.start) & (self.own < block.start + len(rows)))
                products[mine, self.own[mine] - block.start] = np.nan
            yield block, products

    def of_pairs(self, query: np.ndarray, row: np.ndarray) -> np.ndarray:
        """The similarities of single pairs, given by the indexes of queries and rows (m,)."""
        found = np.empty(len(query), np.float32)
        for block in row_blocks(len(query), _BLOCK):
            queries = self.queries[query[block]]
            rows = self.rows[row[block]]
            if self.score == "l2":
                found[block] = -np.linalg.norm(queries - rows, axis=1)
            else:
                found[block] = np.einsum("md,md->m", queries, rows)
        return found
