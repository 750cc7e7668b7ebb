"""Measures by nearest neighbours: k-NN recall, cycle-kNN, CKNNA and second-order cosine similarity.

Each space has its own neighbours, by cosine of the rows as they are, the row itself left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relcore.base.errors import SpaceError
from relcore.scores.measures import FEATURE_ROWS, SampledMetric, by_permutation, notes_sample, paired_rows
from relcore.scores.neighbours import Neighbours, find_neighbours, jaccard_rows
from relcore.scores.score import Score
from relcore.spaces.space import MatrixLike

COSINE_ROWS = 2000  # of second-order similarity, which keeps the cosines of all pairs of rows


@notes_sample
def mutual_knn(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """k-NN recall, 0 … 1: the share of a row's k nearest neighbours in one space that are among its k nearest
    in the other; 1: the same neighbours.

    Mean of #(Nₓ(i) ∩ Nᵧ(i)) / k (Huh et al. 2024, who call it mutual kNN). It is J' of the Jaccard overlap
    J = J' / (2 − J') of each row, as `relcore.jaccard` has it. Chance level: rows of one space permuted; its
    mean is k / (n − 1). Cost per row: n d and 50 k², on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, equal rows, k above n − 1.

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

    return _score(_found(source, target, k, ids, most_rows), "knn recall", value)


@notes_sample
def cycle_knn(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Cycle-kNN, 0 … 1: the share of rows that are a neighbour in the first space of one of their neighbours
    in the second; 1: all come back to themselves.

    Mean of [∃ j ∈ Nᵧ(i): i ∈ Nₓ(j)] (Huh et al. 2024, their code). Equal spaces are below 1 where a row is
    nobody's neighbour. Chance level: rows of one space permuted; about 1 − (1 − k / n)ᵏ. Cost per row: n d
    and 50 k², on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, equal rows, k above n − 1.

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

    return _score(_found(source, target, k, ids, most_rows), "cycle knn", value)


@notes_sample
def cknna(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """CKNNA, about 0 … 1: debiased CKA of the cosines between neighbours that both spaces have; 1: the same
    neighbours at the same cosines.

    a(K, L) / √(a(K, K) a(L, L)), where a(K, L) is the unbiased HSIC (Song et al. 2012, eq. 5) of K and L with
    zeros but for pairs i, j with j ∈ Nₓ(i) ∩ Nᵧ(i); K and L are the rows' cosines (Huh et al. 2024, appendix
    A, as their code computes it, without the 10⁻⁶ it adds below the fraction). It is no inner product, so a
    score may leave 0 … 1 a little. Chance level: rows of one space permuted; its mean is about 0. Cost per
    row: n d and 50 k d, on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, equal rows, k above n − 1, or so few neighbours in
        common within one space that its own HSIC is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import cknna
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(cknna(X, 3 * X @ rotation), 3)
    1.0
    """
    found = _found(source, target, k, ids, most_rows)
    n, X, Y = len(found.own), found.source.astype(np.float64), found.target.astype(np.float64)

    def align(lists: np.ndarray, others: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
        """n (n − 3) times the HSIC of the cosines of `first` and of `second` at the entries in both lists."""
        rows, places = np.nonzero((lists[:, :, None] == others[:, None, :]).any(axis=2))
        columns = lists[rows, places]
        one, two = (np.vecdot(side[rows], side[columns]) for side in (first, second))
        crossed = np.bincount(columns, one, n) @ np.bincount(rows, two, n)
        forward, backward = rows * n + columns, columns * n + rows
        order = np.argsort(forward)
        at = np.minimum(np.searchsorted(forward[order], backward), len(forward) - 1)
        twins = forward[order[at]] == backward if len(forward) else np.zeros(0, dtype=bool)
        shared = one[twins] @ two[order[at]][twins]
        return shared + one.sum() * two.sum() / ((n - 1) * (n - 2)) - 2 * crossed / (n - 2)

    own = align(found.own, found.own, X, X), align(found.other, found.other, Y, Y)
    if min(own) <= 0:
        raise SpaceError(f"CKNNA: expected rows that are neighbours of each other, got too few with k = {k}")
    scale = np.sqrt(own[0] * own[1])

    def value(lists: np.ndarray, others: np.ndarray, order: np.ndarray) -> float:
        return float(align(lists, others, X, Y[order]) / scale)

    return _score(found, "cknna", value)


@notes_sample
def second_order_cosine(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = COSINE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Second-order cosine similarity, −1 … 1: how alike a row's cosines to its neighbours are in both spaces;
    1: the same up to a factor.

    Mean of cos(sₓ(i), sᵧ(i)) with s(i) the cosines of row i to the rows of Nₓ(i) ∪ Nᵧ(i) in that space
    (Hamilton et al. 2016, eq. 4 and after; ReSi's code takes 1 − cosine in place of cosines). Where all rows
    point in nearly one direction it is near 1 for any data, as its chance level shows. Chance level: rows of
    one space permuted. Cost per row: n d and 50 k, on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, equal rows, k above n − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import second_order_cosine
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(second_order_cosine(X, 3 * X @ rotation), 3)
    1.0
    """
    found = _found(source, target, k, ids, most_rows)
    first, second = found.source @ found.source.T, found.target @ found.target.T
    rows = np.arange(len(first))[:, None]

    def value(own: np.ndarray, other: np.ndarray, order: np.ndarray) -> float:
        lists = np.hstack([own, other])
        once = np.hstack([np.ones(own.shape), ~(other[:, :, None] == own[:, None, :]).any(axis=2)])
        one = first[rows, lists] * once
        two = second[order[rows], order[lists]] * once
        lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
        return float((np.vecdot(one, two) / np.maximum(lengths, np.finfo(np.float32).tiny)).mean())

    return _score(found, "second-order cosine", value)


def _found(
    source: MatrixLike, target: MatrixLike, k: int, ids: Sequence[str] | None, most_rows: int | None
) -> Neighbours:
    X, Y = paired_rows(source, target, most_rows, ids)
    return find_neighbours(X.astype(np.float32), Y.astype(np.float32), k, "mutual", device="cpu")


def _score(
    found: Neighbours, metric: str, value: Callable[[np.ndarray, np.ndarray, np.ndarray], float]
) -> Score:
    """Of both lists and the order of the second space's rows; without a chance level where rows occur several
    times, for which it would be too low.
    """
    n, k = found.own.shape

    def permuted(order: np.ndarray) -> float:
        return value(found.own, np.argsort(order)[found.other[order]], order)

    null = None if found.repeated else by_permutation(permuted, n, 40 * n * k * k)
    score = value(found.own, found.other, np.arange(n))
    return Score(score, metric=metric, convention="mutual", k=k, n=n, null=null, note=found.note)


class _OfNeighbours(SampledMetric):
    uses_k = True
    unchanged_by = ("rotation", "scale")


class NeighbourRecall(_OfNeighbours):
    function = staticmethod(mutual_knn)


class CycleKNN(_OfNeighbours):
    function = staticmethod(cycle_knn)


class CKNNA(_OfNeighbours):
    function = staticmethod(cknna)


class SecondOrderCosine(_OfNeighbours):
    function = staticmethod(second_order_cosine)
