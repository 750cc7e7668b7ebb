"""How the rows that are searched move the mean overlap of neighbours: what a query's own error does not contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relcore.metrics.neighbours import Neighbours, neighbours_within
from relcore.metrics.paired import Difference, difference, mean_difference
from relcore.metrics.search import nearest_directions

if TYPE_CHECKING:  # SciPy takes longer to import than all of this file's work before the first picture
    from scipy import sparse

_MANY = 20  # rows per query, above which the queries decide the error


def queries_decide(n: int, n_queries: int) -> bool:
    """Whether the queries alone decide how sure a mean overlap among n rows is: no second search is then needed."""
    return n_queries < 2 or n > _MANY * n_queries


def overlap_difference(before: Neighbours, now: Neighbours) -> Difference:
    """Mean overlap now less that before, of the same m queries among the same n rows, with its 95 % interval.

    Queries share the rows that are searched, so their overlaps depend on each other. Taken for independent they made
    intervals too narrow: with 300 rows, all of them queries, 175 of 200 contained the true difference ("mutual"). The variance
    has three parts: that of independent queries; the covariance of a row's overlap and its effect on other queries; and the
    variance of its effects, of which the products of one query with itself are left out, as the first part has them. With more
    than 20 rows per query the first part decides, and the second search is left out. Of 200 intervals for two anchor sets, 186
    to 197 now contain the true difference with 300 rows, in either convention; with 120 rows, all of them queries, 192
    ("paper") and 177 ("mutual"), as the variance is then hard to estimate.
    """
    m, n = len(before.queries), before.n
    if n - 1 - (before.convention == "mutual") < before.k or queries_decide(n, m):
        return mean_difference(before.overlap, now.overlap)
    change = now.overlap - before.overlap
    own = change - change.mean()
    effects = effects_of_rows(now) - effects_of_rows(before)
    on_others = np.asarray(effects.sum(axis=0)).ravel() / m
    on_others -= on_others.mean()
    independent = np.vdot(own, own) / (m * (m - 1))
    covariance = -2 * np.vdot(own, on_others[before.queries]) / (m - 1)
    shared = np.vdot(on_others, on_others) - effects.multiply(effects).sum() / m**2
    return difference(change.mean(), np.sqrt(max(independent + covariance + shared, independent)))


def effects_of_rows(found: Neighbours) -> sparse.csr_array:
    """The change of each query's overlap if each of the other rows were missing, (m, n).

    In a list that loses a row, the next nearest takes its place, so one search for k + 1 neighbours serves all n rows. Both
    lists have k rows, so the overlap is i / (2k − i), where they share i.
    """
    from scipy import sparse

    k, m = found.k, len(found.queries)
    lines = np.repeat(np.arange(m), k)
    own, other = _longer_lists(found)
    (own, next_own), (other, next_other) = ((lists[:, :k], lists[:, k:]) for lists in (own, other))
    twins = own[:, :, None] == other[:, None, :]
    own_shared, other_shared = twins.any(axis=2), twins.any(axis=1)
    shared = own_shared.sum(axis=1, keepdims=True)
    gains_own, gains_other = (next_own == other).any(axis=1), (next_other == own).any(axis=1)
    gains_own, gains_other, gains_both = gains_own[:, None], gains_other[:, None], next_own == next_other

    def change(now: np.ndarray) -> np.ndarray:
        return now / (2 * k - now) - shared / (2 * k - shared)

    of_both = change(shared - 1 + gains_own + gains_other + gains_both)
    moved = sparse.csr_array((m, found.n))
    for lists, in_both, gains, once in ((own, own_shared, gains_own, True), (other, other_shared, gains_other, False)):
        here = np.where(in_both, of_both * once, change(shared + gains))
        here[lists == found.queries[:, None]] = 0
        moved = moved + sparse.csr_array((here.ravel(), (lines, lists.ravel())), shape=moved.shape)
    return moved


def _longer_lists(found: Neighbours) -> tuple[np.ndarray, np.ndarray]:
    """`own` and `other` with k + 1 rows, the nearest first."""
    k, queries = found.k + 1, found.queries
    if found.convention == "mutual":
        return tuple(neighbours_within(space, queries, k, found.device) for space in (found.source, found.target))
    return tuple(nearest_directions(space[queries], found.target, k, found.device) for space in (found.target, found.source))
