"""Measures of matrices of similarities: RSA, kernel CKA and the angle of CKA."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.base.arguments import need_number
from relcore.base.errors import SpaceError
from relcore.scores.cka import linear_cka
from relcore.scores.metrics import LinearCKA
from relcore.scores.passes import AlignedPair
from relcore.scores.sampled import (
    MATRIX_ROWS,
    SampledMetric,
    angular,
    matrix_agreement,
    metric_of,
    paired_rows,
    public_measure,
)
from relcore.scores.score import ChanceLevel, Score
from relcore.spaces.space import MatrixLike

# Measures from similarities of the rows within each space: RSA, kernel CKA and angular CKA.


@public_measure
def rsa(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = MATRIX_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """RSA, −1 … 1: Spearman's rank correlation between the distances of rows in the two spaces. It is 1 if
    both spaces order all pairs of rows in the same way.

    The distance of two rows is 1 − their Pearson correlation over the coordinates (Kriegeskorte et al. 2008).
    So adding a number to all coordinates of a row changes nothing, but a rotation changes the score a little.
    Chance level: rows of one space permuted; its mean is 0. Cost: n (d + 50) multiplications per row of d
    numbers, on n ≤ `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; fewer than three coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import rsa
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> round(rsa(X, 3 * X), 3)
    1.0
    """
    from scipy.stats import rankdata

    matrices = []
    for side in paired_rows(source, target, most_rows, ids):
        if side.shape[1] < 3:
            raise SpaceError(f"RSA: expected 3 or more coordinates to correlate, got {side.shape[1]}")
        rows = side - side.mean(axis=1, keepdims=True)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
        pairs = np.triu_indices(len(rows), 1)
        ranks = rankdata(1 - (rows @ rows.T)[pairs])
        matrix = np.zeros((len(rows),) * 2)
        matrix[pairs] = ranks - ranks.mean()
        if not matrix.any():
            raise SpaceError("RSA: expected rows at different distances, got a space in which all are equal")
        matrices.append(matrix + matrix.T)
    first, second = matrices
    return matrix_agreement(first, second, "rsa")


@public_measure
def kernel_cka(
    source: MatrixLike,
    target: MatrixLike,
    *,
    bandwidth: float = 0.8,
    most_rows: int | None = MATRIX_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """CKA with Gaussian (RBF) kernels, 0 … 1. It is 1 if the distances between rows are the same up to a
    factor.

    The score is ⟨HKH, HLH⟩ / (‖HKH‖ ‖HLH‖) with H = I − 1/n and K = exp(−‖xᵢ − xⱼ‖² / 2σ²); L is the same for
    the second space. σ is `bandwidth` times the median distance of two rows of the space (Kornblith et al.
    2019). With a small bandwidth, mainly near rows count. As in linear CKA, the score is biased upwards if
    there are few rows, as its chance level shows. Chance level: rows of one space permuted. Cost: n (d + 50)
    multiplications per row of d numbers, on n ≤ `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; a bandwidth of 0 or less.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import kernel_cka
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(kernel_cka(X, 3 * X @ rotation), 3)
    1.0
    """
    need_number("bandwidth", bandwidth, above=0)
    kernels = []
    for side in paired_rows(source, target, most_rows, ids):
        squares = squared_distances(side)
        kernel = np.exp(-squares / (2 * bandwidth**2 * _median(squares)))
        kernel -= kernel.mean(axis=0)
        kernels.append(kernel - kernel.mean(axis=1, keepdims=True))
    first, second = kernels
    return matrix_agreement(first, second, "kernel cka", "rbf")


def squared_distances(X: np.ndarray) -> np.ndarray:
    """The squared distances ‖xᵢ − xⱼ‖² of all pairs of rows (n, d), an array (n, n)."""
    X = X - X.mean(axis=0)
    lengths = np.vecdot(X, X)
    squares = np.maximum(lengths[:, None] + lengths - 2 * X @ X.T, 0)
    np.fill_diagonal(squares, 0)
    return squares


def _median(squares: np.ndarray) -> float:
    """The square of the median distance of two rows. If most rows are equal, only pairs of different rows
    count."""
    pairs = squares[np.triu_indices(len(squares), 1)]
    return float(np.median(pairs)) or float(np.median(pairs[pairs > 0]))


def angular_cka(source: MatrixLike, target: MatrixLike, *, ids: Sequence[str] | None = None) -> Score:
    """Linear CKA as an angle: 1 − 2 θ / π with θ = arccos CKA, 0 … 1. It is 1 if the spaces are equal up to a
    rotation, a factor and a shift.

    If s is the score, θ = (1 − s) π / 2 is a distance that satisfies the triangle inequality (Williams et al.
    2021; Lange et al. 2022). Pairs of spaces have the same order as by linear CKA. Chance level: that of
    linear CKA, from exact moments over all permutations; its mean and the ends of its band are converted to
    angles like the score. Cost: d² multiplications per row of d numbers, on all rows.

    Raises
    ------
    SpaceError
        The errors of `linear_cka`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import angular_cka
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(angular_cka(X, 3 * X @ rotation), 3)
    1.0
    """
    return _at_angle(linear_cka(source, target, ids=ids))


def _at_angle(cka: Score) -> Score:
    null = cka.null
    if null is not None:
        null = ChanceLevel(angular(null.mean), angular(null.low), angular(null.high))
    return Score(angular(cka), metric="angular cka", n=cka.n, null=null, note=cka.note)


RSA = metric_of(rsa, "scale")
KernelCKA = metric_of(kernel_cka, "rotation", "scale", "shift")


class AngularCKA(SampledMetric):
    function = staticmethod(angular_cka)
    unchanged_by = LinearCKA.unchanged_by
    reads = "sums"

    def score(self, pair: AlignedPair) -> Score:
        return _at_angle(pair.linear_cka())
