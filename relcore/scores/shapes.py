"""Measures of shape: how near the rows of one space come to those of the other by the best rotation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relcore.scores.measures import (
    FEATURE_ROWS,
    SampledMetric,
    about_mean,
    by_permutation,
    notes_sample,
    paired_rows,
)
from relcore.scores.score import Score
from relcore.spaces.space import MatrixLike


@notes_sample
def procrustes_similarity(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Procrustes similarity, 0 … 1; 1: the spaces differ by a rotation, a factor and a shift only.

    ‖XᵀY‖_* (the sum of the singular values) of the centred rows, each space scaled so that its squares add up
    to 1. The Procrustes distance is d = √(2 − 2 s) of this score s (Schönemann 1966; Ding et al. 2021, who
    give d²). Chance level: rows of one space permuted. Cost per row: 50 d², on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, or equal rows.

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


@notes_sample
def angular_shape(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Angular shape similarity, 0 … 1: 1 − 2 θ / π; 1: the spaces differ by a rotation, a factor and a shift.

    θ = arccos ‖XᵀY‖_* of the centred rows, each space scaled so that its squares add up to 1, is a distance
    that keeps the triangle inequality (Williams et al. 2021): θ = (1 − s) π / 2 of this score s.
    Chance level: rows of one space permuted. Cost per row: 50 d², on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, or equal rows.

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


def angular(cosine: float) -> float:
    """1 − 2 arccos(c) / π of a cosine c; rounding above 1 counts as 1."""
    return 1 - 2 * float(np.arccos(np.clip(cosine, -1, 1))) / np.pi


def _shape_score(
    source: MatrixLike,
    target: MatrixLike,
    metric: str,
    most_rows: int | None,
    ids: Sequence[str] | None,
    of: Callable[[float], float],
) -> Score:
    X, Y = (about_mean(side) for side in paired_rows(source, target, most_rows, ids))

    def value(order: np.ndarray | slice = slice(None)) -> float:
        return of(float(np.linalg.svd(X.T @ Y[order], compute_uv=False).sum()))

    return Score(value(), metric=metric, n=len(X), null=by_permutation(value, len(X), X.size * Y.shape[1]))


class ProcrustesSimilarity(SampledMetric):
    function, unchanged_by = staticmethod(procrustes_similarity), ("rotation", "scale", "shift")


class AngularShape(SampledMetric):
    function, unchanged_by = staticmethod(angular_shape), ("rotation", "scale", "shift")
