"""Measures of neighbours: shared and mutual neighbours, cycles, CKNNA, and second-order cosine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relcore.base.errors import SpaceError
from relcore.scores.neighbours import Neighbours, find_neighbours, jaccard_rows
from relcore.scores.sampled import FEATURE_ROWS, by_permutation, metric_of, paired_rows, public_measure
from relcore.scores.score import Score
from relcore.spaces.space import MatrixLike

# Measures from nearest neighbours: k-NN recall, cycle-kNN, CKNNA and second-order cosine similarity.
# Neighbours are searched within each space, by the cosine of the uncentred rows, and a row is not its own
# neighbour.

# Maximum number of rows for second-order similarity, which needs the cosines of all pairs of rows.
COSINE_ROWS = 2000


@public_measure
def mutual_knn(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """k-NN recall, 0 … 1: the mean share of the k nearest neighbours of a row in one space that are also
    among its k nearest in the other space. It is 1 if the neighbours are the same.

    The score is the mean of #(Nₓ(i) ∩ Nᵧ(i)) / k, where Nₓ(i) and Nᵧ(i) are the neighbours of row i in the
    two spaces (Huh et al. 2024, who call it mutual kNN). If this share is J' for a row, its Jaccard overlap
    is J = J' / (2 − J'), see `relcore.jaccard`. Chance level: rows of one space permuted; its mean is k / (n
    − 1). Cost: n d + 50 k² operations per row of d numbers, on n ≤ `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; k above n − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import mutual_knn
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(mutual_knn(X, 3 * X @ rotation), 3)
    1.0
    """

    def value(own: np.ndarray, other: np.ndarray, order: np.ndarray) -> float:
        overlap = jaccard_rows(own, other)
        return float((2 * overlap / (1 + overlap)).mean())

    return _of_lists(_mutual_neighbours(source, target, k, ids, most_rows), "knn recall", value)


@public_measure
def cycle_knn(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Cycle-kNN, 0 … 1: the share of rows i with a neighbour j in the second space such that i is a neighbour
    of j in the first space. It is 1 if all rows have such a neighbour.

    The score is the mean of [∃ j ∈ Nᵧ(i): i ∈ Nₓ(j)], where Nₓ(i) and Nᵧ(i) are the neighbours of row i in
    the two spaces (Huh et al. 2024, their code). Even for equal spaces it is below 1 if a row is a neighbour
    of no other row. Chance level: rows of one space permuted; its mean is about 1 − (1 − k / n)ᵏ. Cost: n d +
    50 k² operations per row of d numbers, on n ≤ `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; k above n − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import cycle_knn
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(cycle_knn(X, 3 * X @ rotation), 3)
    1.0
    """

    def value(own: np.ndarray, other: np.ndarray, order: np.ndarray) -> float:
        return float((own[other] == np.arange(len(own))[:, None, None]).any(axis=(1, 2)).mean())

    return _of_lists(_mutual_neighbours(source, target, k, ids, most_rows), "cycle knn", value)


@public_measure
def cknna(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """CKNNA, about 0 … 1: debiased CKA of the cosines between rows that are neighbours in both spaces. It is
    1 if neighbours and cosines are the same.

    The score is a(K, L) / √(a(K, K) a(L, L)). a(K, L) is the unbiased HSIC (Song et al. 2012, eq. 5) of the
    cosines K and L of the rows, which are set to zero unless row j is a neighbour of row i in both spaces, j
    ∈ Nₓ(i) ∩ Nᵧ(i). This is the code of Huh et al. 2024 (appendix A), without the 10⁻⁶ that it adds to the
    denominator. a is no inner product, so a score may lie a little outside 0 … 1. Chance level: rows of one
    space permuted; its mean is about 0. Cost: n d + 50 k d multiplications per row of d numbers, on n ≤
    `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; k above n − 1; so few mutual
        neighbours within a space that a(K, K) or a(L, L) is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import cknna
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(cknna(X, 3 * X @ rotation), 3)
    1.0
    """
    from scipy import sparse

    neighbours = _mutual_neighbours(source, target, k, ids, most_rows)
    n = len(neighbours.first_lists)
    X = neighbours.source.astype(np.float64)
    Y = neighbours.target.astype(np.float64)

    def align(lists: np.ndarray, others: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
        """Return n (n − 3) · HSIC of the cosines within `first` and within `second`, between each row and the
        rows that are in both of its lists."""
        rows, places = np.nonzero((lists[:, :, None] == others[:, None, :]).any(axis=2))
        columns = lists[rows, places]
        entries = (rows, columns)
        one = sparse.csr_array((np.vecdot(first[rows], first[columns]), entries), (n, n))
        two = sparse.csr_array((np.vecdot(second[rows], second[columns]), entries), (n, n))
        shared = one.T.multiply(two).sum()
        crossed = one.sum(axis=0) @ two.sum(axis=1)
        return shared + one.sum() * two.sum() / ((n - 1) * (n - 2)) - 2 * crossed / (n - 2)

    own = (
        align(neighbours.first_lists, neighbours.first_lists, X, X),
        align(neighbours.second_lists, neighbours.second_lists, Y, Y),
    )
    if min(own) <= 0:
        raise SpaceError(f"CKNNA: expected rows that are neighbours of each other, got too few with k = {k}")
    scale = np.sqrt(own[0] * own[1])

    def value(lists: np.ndarray, others: np.ndarray, order: np.ndarray) -> float:
        return float(align(lists, others, X, Y[order]) / scale)

    return _of_lists(neighbours, "cknna", value)


@public_measure
def second_order_cosine(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = COSINE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Second-order cosine similarity, −1 … 1: how similar the cosines of a row to its neighbours are in the
    two spaces. It is 1 if they are the same up to a factor.

    The score is the mean of cos(sₓ(i), sᵧ(i)), where s(i) are the cosines, in a space, of row i to its
    neighbours in either space, Nₓ(i) ∪ Nᵧ(i) (Hamilton et al. 2016, eq. 4 and after; the code of ReSi uses 1
    − cosine). If all rows have nearly the same direction, the score is near 1 for any data, as its chance
    level shows. Chance level: rows of one space permuted. Cost: n d + 50 k multiplications per row of d
    numbers, on n ≤ `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; k above n − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import second_order_cosine
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(second_order_cosine(X, 3 * X @ rotation), 3)
    1.0
    """
    neighbours = _mutual_neighbours(source, target, k, ids, most_rows)
    first = neighbours.source @ neighbours.source.T
    second = neighbours.target @ neighbours.target.T
    rows = np.arange(len(first))[:, None]

    def value(own: np.ndarray, other: np.ndarray, order: np.ndarray) -> float:
        lists = np.hstack([own, other])
        once = np.hstack([np.ones(own.shape), ~(other[:, :, None] == own[:, None, :]).any(axis=2)])
        one = first[rows, lists] * once
        two = second[order[rows], order[lists]] * once
        lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
        return float((np.vecdot(one, two) / np.maximum(lengths, np.finfo(np.float32).tiny)).mean())

    return _of_lists(neighbours, "second-order cosine", value)


def _mutual_neighbours(
    source: MatrixLike, target: MatrixLike, k: int, ids: Sequence[str] | None, most_rows: int | None
) -> Neighbours:
    X, Y = paired_rows(source, target, most_rows, ids)
    return find_neighbours(X.astype(np.float32), Y.astype(np.float32), k, "mutual", device="cpu")


def _of_lists(
    neighbours: Neighbours, metric: str, value: Callable[[np.ndarray, np.ndarray, np.ndarray], float]
) -> Score:
    """The score ``value(own, other, order)`` of the neighbour lists of both spaces, where `order` permutes
    the rows of the second space. There is no chance level if rows are repeated, because it would be too low.
    """
    n, k = neighbours.first_lists.shape

    def permuted(order: np.ndarray) -> float:
        return value(neighbours.first_lists, np.argsort(order)[neighbours.second_lists[order]], order)

    if neighbours.repeated:
        null = None
    else:
        null = by_permutation(permuted, n, 40 * n * k * k)
    score = value(neighbours.first_lists, neighbours.second_lists, np.arange(n))
    return Score(score, metric=metric, convention="mutual", k=k, n=n, null=null, note=neighbours.note)


NeighbourRecall = metric_of(mutual_knn, "rotation", "scale", uses_k=True)
CycleKNN = metric_of(cycle_knn, "rotation", "scale", uses_k=True)
CKNNA = metric_of(cknna, "rotation", "scale", uses_k=True)
SecondOrderCosine = metric_of(second_order_cosine, "rotation", "scale", uses_k=True)
