"""Measures of shape: Procrustes similarity and its angle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relcore.scores.sampled import (
    FEATURE_ROWS,
    about_mean,
    angular,
    metric_of,
    paired_rows,
    permuted,
    public_measure,
)
from relcore.scores.score import Score
from relcore.spaces.space import MatrixLike

# Shape measures: the distance of the rows of two spaces after the best rotation.


@public_measure
def procrustes_similarity(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Procrustes similarity, 0 … 1. It is 1 if the spaces differ only by a rotation, a factor and a shift.

    It is the nuclear norm ‖XᵀY‖_* (the sum of the singular values) of the centred rows, where each space is
    scaled so that its squares add up to 1. If s is the score, the Procrustes distance is d = √(2 − 2 s)
    (Schönemann 1966; Ding et al. 2021, who give d²). Chance level: rows of one space permuted. Cost: 50 w²
    multiplications per row of w numbers, on at most `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import procrustes_similarity
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(procrustes_similarity(X, 3 * X @ rotation), 3)
    1.0
    """
    return _shape_score(source, target, "procrustes", most_rows, ids, lambda cosine: cosine)


@public_measure
def angular_shape(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Angular shape similarity 1 − 2 θ / π, 0 … 1. It is 1 if the spaces differ only by a rotation, a factor
    and a shift.

    Here θ = arccos ‖XᵀY‖_* of the centred rows, where each space is scaled so that its squares add up to 1. θ
    satisfies the triangle inequality (Williams et al. 2021). If s is the score, θ = (1 − s) π / 2. Chance
    level: rows of one space permuted. Cost: 50 d² multiplications per row of d numbers, on at most
    `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import angular_shape
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(angular_shape(X, 3 * X @ rotation), 3)
    1.0
    """
    return _shape_score(source, target, "angular shape", most_rows, ids, angular)


def _shape_score(
    source: MatrixLike,
    target: MatrixLike,
    metric: str,
    most_rows: int | None,
    ids: Sequence[str] | None,
    of: Callable[[float], float],
) -> Score:
    X, Y = paired_rows(source, target, most_rows, ids)
    X = about_mean(X)
    Y = about_mean(Y)

    def value(order: np.ndarray | slice) -> float:
        return of(float(np.linalg.svd(X.T @ Y[order], compute_uv=False).sum()))

    return permuted(value, len(X), X.size * Y.shape[1], metric=metric)


ProcrustesSimilarity = metric_of(procrustes_similarity, "rotation", "scale", "shift")
AngularShape = metric_of(angular_shape, "rotation", "scale", "shift")
