"""What features are to explain: pairs of neighbours that only one of two spaces has, or a number of each row.

A response is a list of terms. Each term belongs to a query, and a feature has it or not. So the effect of a
feature is a sum of terms, and an explained term can be taken out before the next feature is sought.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from relcore.explain.families import Features

_ROUNDING = 1e-9
FEWEST_QUERIES = 8  # minimum number of queries that have a feature


@dataclass(frozen=True, eq=False)
class Response:
    """The terms of m queries, and which features they have.

    Attributes
    ----------
    weights : array (t,)
        The terms. The effect of a feature is the mean, over the queries that have it, of the sum of their
        terms that have it.
    sizes : array (t,)
        How much of a query's neighbours a term is, over both spaces; 0 for terms of rows.
    queries : array (t,)
        The place of each term's query, 0 … m − 1.
    others : array (t,)
        The other row of each term, by its number; for terms of rows, the query's own number.
    having : sparse matrix (t, f)
        Which terms have which feature.
    members : sparse matrix (m, f)
        Which queries have which feature.
    of_rows : sparse matrix (n, p)
        Which of all rows have which feature, families as a whole excluded.
    places : array (m,)
        The number of a small region of the spaces in which each query lies. Errors within a region may be
        correlated.
    """

    weights: np.ndarray
    sizes: np.ndarray
    queries: np.ndarray
    others: np.ndarray
    having: sparse.csc_matrix
    members: sparse.csc_matrix
    of_rows: sparse.csc_matrix
    places: np.ndarray

    @property
    def n_queries(self) -> int:
        return self.members.shape[0]

    def of_part(self, part: np.ndarray) -> Response:
        """The response of some queries (m,) bool."""
        inside = part[self.queries]
        renumbered = np.cumsum(part) - 1
        return Response(
            self.weights[inside],
            self.sizes[inside],
            renumbered[self.queries[inside]],
            self.others[inside],
            self.having.tocsr()[inside].tocsc(),
            self.members.tocsr()[part].tocsc(),
            self.of_rows,
            self.places[part],
        )

    def whole(self) -> np.ndarray:
        """All terms (t,), which are left before any feature explains some."""
        return np.ones(len(self.weights), dtype=bool)

    def without(self, left: np.ndarray, number: int) -> np.ndarray:
        """The terms (t,) that are left if a feature explains some. A family as a whole explains the pairs
        that share it. Any other feature explains all pairs with a row that has it: where its rows are
        gathered, other rows lose them as neighbours."""
        if number >= self.of_rows.shape[1]:
            return left & ~self.having_feature(number)
        rows = column_of(self.of_rows, number)
        return left & ~self.members_of(number)[self.queries] & ~rows[self.others]

    def having_feature(self, number: int) -> np.ndarray:
        """Which terms (t,) have a feature."""
        return column_of(self.having, number)

    def members_of(self, number: int) -> np.ndarray:
        """Which queries (m,) have a feature."""
        return column_of(self.members, number)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of the values (t,) of the terms of each query, (m,)."""
        return np.bincount(self.queries, values, minlength=self.n_queries)

    def by_surplus(self, left: np.ndarray) -> sparse.csr_matrix | None:
        """The part of each feature's sum that comes from a surplus alone, (m, f). A query has a surplus if
        more neighbours are left in one space than in the other. The part is this surplus times the share of
        neighbours with the feature, among all that are left of the feature's queries. None if no query has a
        surplus, and for terms of rows."""
        surplus = self.sums(np.where(left, self.weights, 0))
        if not self.sizes.any() or np.abs(surplus).max() < _ROUNDING:
            return None
        sizes = np.where(left, self.sizes, 0)
        of_feature = self.having.T @ sizes
        of_queries = self.members.T @ self.sums(sizes)
        shares = of_feature / np.maximum(of_queries, _ROUNDING)
        return diagonal(surplus) @ self.members.tocsr() @ diagonal(shares)

    def rows_of(self, number: int, left: np.ndarray) -> np.ndarray:
        """For each query (m,), the sum of its terms that have a feature and are left, less what the surplus
        of terms gives it."""
        sums = self.sums(np.where(self.having_feature(number) & left, self.weights, 0))
        surplus = self.by_surplus(left)
        if surplus is None:
            return sums
        return sums - surplus[:, [number]].toarray().ravel()


def diagonal(values: np.ndarray) -> sparse.csr_matrix:
    places = np.arange(len(values))
    return sparse.csr_matrix((values, (places, places)))


def column_of(matrix: sparse.csc_matrix, number: int) -> np.ndarray:
    """A column of a matrix of 0 and 1, as an array of bool."""
    column = np.zeros(matrix.shape[0], dtype=bool)
    column[matrix.indices[matrix.indptr[number] : matrix.indptr[number + 1]]] = True
    return column


def common_shares(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """For each row (m,), the share of common neighbours in two lists (m, k) of distinct rows."""
    return (first[:, :, None] == second[:, None, :]).any(axis=2).mean(axis=1)


def of_neighbours(
    queries: np.ndarray,
    lists: tuple[np.ndarray, np.ndarray],
    features: Features,
    places: np.ndarray,
    members: sparse.csc_matrix | None = None,
) -> Response:
    """The pairs of neighbours: 1/k for a pair that only the first space has, −1/k for one of the second, 0
    for one of both. The effect of a feature is the share of a row's k neighbours that have it, too, in the
    first space less in the second.

    Parameters
    ----------
    lists : two arrays (m, k)
        The neighbours of the queries in the two spaces.
    """
    first, second = lists
    m, k = first.shape
    in_both = (first[:, :, None] == second[:, None, :]).any(axis=2)
    only_second = ~(second[:, :, None] == first[:, None, :]).any(axis=2)
    n_second = np.count_nonzero(only_second)
    # A term for each neighbour in the first space, then one for each that only the second space has.
    at = np.concatenate([np.repeat(np.arange(m), k), np.nonzero(only_second)[0]])
    others = np.concatenate([first.ravel(), second[only_second]])
    weights = np.concatenate([np.where(in_both, 0, 1 / k).ravel(), np.full(n_second, -1 / k)])
    sizes = np.concatenate([np.where(in_both, 2 / k, 1 / k).ravel(), np.full(n_second, 1 / k)])
    having = features.shared(queries[at], others)
    if members is None:
        members = features.of_rows(queries)
    return Response(weights, sizes, at, others, having, members, features.members.tocsc(), places)


def of_numbers(queries: np.ndarray, numbers: np.ndarray, features: Features, places: np.ndarray) -> Response:
    """A number of each query (m,), such as its share of changed neighbours. The effect of a feature is the
    mean number of its queries less that of all."""
    members = features.of_rows(queries)
    at = np.arange(len(queries))
    sizes = np.zeros(len(queries))
    rows = features.members.tocsc()
    return Response(numbers - numbers.mean(), sizes, at, queries, members, members, rows, places)


def shares(queries: np.ndarray, near: np.ndarray, features: Features, number: int) -> np.ndarray:
    """For each query (m,), the share of its k neighbours (m, k) that have a feature in common with it."""
    m, k = near.shape
    shared = features.shared(np.repeat(queries, k), near.ravel())
    return column_of(shared, number).reshape(m, k).mean(axis=1)
