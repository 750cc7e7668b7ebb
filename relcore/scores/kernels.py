"""Measures that compare the similarities of rows within each space: RSA, kernel CKA and angular CKA."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.base.errors import SpaceError
from relcore.scores.cka import linear_cka
from relcore.scores.comparison import AlignedPair, LinearCKA
from relcore.scores.measures import MATRIX_ROWS, SampledMetric, matrix_agreement, notes_sample, paired_rows
from relcore.scores.score import ChanceLevel, Score
from relcore.scores.shapes import angular
from relcore.spaces.space import MatrixLike


@notes_sample
def rsa(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = MATRIX_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """RSA: Spearman's rank correlation of the distances between rows in either space, −1 … 1; 1: the same
    order of all pairs of rows.

    The distance of two rows is 1 − their Pearson correlation over the coordinates (Kriegeskorte et al. 2008),
    so a constant in every coordinate of a row changes nothing, but a rotation does, a little. Chance level:
    rows of one space permuted; its mean is 0. Cost per row: n (d + 50), on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, equal rows, or fewer than three coordinates.

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
    return matrix_agreement(*matrices, "rsa")


@notes_sample
def kernel_cka(
    source: MatrixLike,
    target: MatrixLike,
    *,
    bandwidth: float = 0.8,
    most_rows: int | None = MATRIX_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """CKA with Gaussian (RBF) kernels, 0 … 1; 1: the same distances between rows up to a factor.

    ⟨HKH, HLH⟩ / (‖HKH‖ ‖HLH‖) with H = I − 1/n and K = exp(−‖xᵢ − xⱼ‖² / 2σ²), σ the `bandwidth` times the
    median distance of two rows of that space (Kornblith et al. 2019). The smaller the
    bandwidth, the more it looks at near rows; like linear CKA without the debiased form it rises as n falls
    towards d, as its chance level shows. Chance level: rows of one space permuted. Cost per row: n (d + 50),
    on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, equal rows, or a bandwidth of 0 or less.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import kernel_cka
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(kernel_cka(X, 3 * X @ rotation), 3)
    1.0
    """
    if not bandwidth > 0:
        raise SpaceError(f"bandwidth: expected above 0, got {bandwidth}")
    kernels = []
    for side in paired_rows(source, target, most_rows, ids):
        squares = squared_distances(side)
        kernel = np.exp(-squares / (2 * bandwidth**2 * _median(squares)))
        kernel -= kernel.mean(axis=0)
        kernels.append(kernel - kernel.mean(axis=1, keepdims=True))
    return matrix_agreement(*kernels, "kernel cka", "rbf")


def squared_distances(X: np.ndarray) -> np.ndarray:
    """‖xᵢ − xⱼ‖² of all pairs of rows (n, d), (n, n)."""
    X = X - X.mean(axis=0)
    lengths = np.vecdot(X, X)
    squares = np.maximum(lengths[:, None] + lengths - 2 * X @ X.T, 0)
    np.fill_diagonal(squares, 0)
    return squares


def _median(squares: np.ndarray) -> float:
    """The squared median distance of two rows; of those that differ where most are equal."""
    pairs = squares[np.triu_indices(len(squares), 1)]
    return float(np.median(pairs)) or float(np.median(pairs[pairs > 0]))


def angular_cka(source: MatrixLike, target: MatrixLike, *, ids: Sequence[str] | None = None) -> Score:
    """Linear CKA as an angle, 0 … 1: 1 − 2 θ / π with θ = arccos CKA; 1: equal up to a rotation and a factor.

    θ = (1 − s) π / 2 of this score s is a distance that keeps the triangle inequality (Williams et al. 2021;
    Lange et al. 2022); the order of pairs of spaces is that of linear CKA. Chance level: that of
    linear CKA, from exact moments over all permutations, its ends and its mean at the same angle. Cost per
    row: d², on all rows.

    Raises
    ------
    SpaceError
        As `linear_cka`.

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
    null = cka.null and ChanceLevel(*(angular(end) for end in (cka.null.mean, cka.null.low, cka.null.high)))
    return Score(angular(cka), metric="angular cka", n=cka.n, null=null, note=cka.note)


class RSA(SampledMetric):
    function, unchanged_by = staticmethod(rsa), ("scale",)


class KernelCKA(SampledMetric):
    function, unchanged_by = staticmethod(kernel_cka), ("rotation", "scale", "shift")


class AngularCKA(SampledMetric):
    function, unchanged_by = staticmethod(angular_cka), LinearCKA.unchanged_by
    reads = "sums"

    def score(self, pair: AlignedPair) -> Score:
        return _at_angle(pair.linear_cka())
