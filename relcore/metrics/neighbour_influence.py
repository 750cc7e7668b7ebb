"""What each anchor does to Jaccard and MRR, by exact deletion: neighbours are searched again, but no row is projected again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.metrics.neighbours import CONVENTIONS, jaccard_rows
from relcore.spaces import SpaceError, need_one_of

_NOTHING = 1e-12  # share of a row's squared length below which nothing is left of it


@dataclass(frozen=True, eq=False)
class NeighboursWithout:
    """Scores of q queries with all of m anchors, in the first line, and without each of them: arrays (1 + m, q), 0 … 1."""

    jaccard: np.ndarray
    mrr: np.ndarray

    def by(self, metric: str) -> np.ndarray:
        """The mean "jaccard" or "mrr" with each anchor less that without it, (m,)."""
        means = getattr(self, metric).mean(axis=1)
        return means[0] - means[1:]


class _Cosines:
    """Cosines of query rows (q, m) to rows (n, m), with all columns or without one.

    Deleting column j takes one outer product from the inner products, and one number from each squared length. The length of
    a query changes none of its ranks, so it stays out.
    """

    def __init__(self, queries: np.ndarray, rows: np.ndarray, left_out: np.ndarray | None = None) -> None:
        self.queries, self.rows, self.left_out = queries, np.ascontiguousarray(rows.T), left_out
        self.products, self.squares = queries @ rows.T, np.vecdot(rows, rows)

    def without(self, column: int | None) -> np.ndarray:
        """(q, n); −∞ for the row that is left out of a query's list."""
        found, squares = self.products.copy(), self.squares
        if column is not None:
            found -= np.outer(self.queries[:, column], self.rows[column])
            squares = squares - self.rows[column] ** 2
        some = squares > _NOTHING * self.squares
        found *= np.divide(1, np.sqrt(squares, where=some, out=np.ones_like(squares)), out=np.zeros_like(squares), where=some)
        if self.left_out is not None:
            found[np.arange(len(found)), self.left_out] = -np.inf
        return found


def neighbours_without(
    R: np.ndarray, S: np.ndarray, queries: np.ndarray, k: int = 10, convention: str = "paper"
) -> NeighboursWithout:
    """Jaccard and MRR of queries in relative spaces (n, m) and (n, m), and the same without each of the m anchors.

    They equal `metrics.neighbours.find_neighbours` on the spaces without that column, where no two rows are equally near. For
    q queries this takes m passes over q × n numbers and a search in each: choose some hundred queries.

    Parameters
    ----------
    queries : array (q,)
        Row numbers.
    convention : "paper" or "mutual"

    Raises
    ------
    SpaceError
        Shapes that differ, one anchor only, a k that the rows do not have.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> R = rng.normal(size=(200, 6))
    >>> S = R + 0.1 * rng.normal(size=R.shape)
    >>> S[:, 2] = rng.normal(size=200)  # an anchor that is not the same in both
    >>> found = neighbours_without(R, S, np.arange(50))
    >>> int(found.by("mrr").argmin()), int(found.by("jaccard").argmin())
    (2, 2)
    """
    need_one_of("convention", convention, CONVENTIONS)
    if R.shape != S.shape or R.shape[1] < 2:
        raise SpaceError(f"expected relative spaces of the same rows and of two anchors or more, got {R.shape} and {S.shape}")
    if not 1 <= k <= len(R) - (convention == "mutual"):
        raise SpaceError(f"k: expected 1 … {len(R) - (convention == 'mutual')} for {len(R)} rows, got {k}")
    R, S = (np.asarray(Z, dtype=np.float64) for Z in (R, S))
    across = _Cosines(R[queries], S)
    if convention == "paper":
        lists, retrievals = (_Cosines(S[queries], S), across), (across,)
    else:
        lists = _Cosines(R[queries], R, queries), _Cosines(S[queries], S, queries)
        retrievals = across, _Cosines(S[queries], R)
    jaccard, mrr = [], []
    for column in (None, *range(R.shape[1])):
        found = {search: search.without(column) for search in {*lists, *retrievals}}
        jaccard.append(jaccard_rows(*(_nearest(found[search], k) for search in lists)))
        mrr.append(np.mean([_reciprocal_ranks(found[search], queries, k) for search in retrievals], axis=0))
    return NeighboursWithout(np.array(jaccard), np.array(mrr))


def _nearest(cosines: np.ndarray, k: int) -> np.ndarray:
    """Numbers of the k largest of each line, in any order, (q, k)."""
    n = cosines.shape[1]
    return np.argpartition(cosines, n - k, axis=1)[:, n - k :]


def _reciprocal_ranks(cosines: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """1 / rank of each query's own row, 0 beyond k, (q,)."""
    own = cosines[np.arange(len(queries)), queries]
    rank = 1 + np.count_nonzero(cosines > own[:, None], axis=1)
    return np.where(rank <= k, 1 / rank, 0.0)
