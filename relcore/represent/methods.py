"""Stitching methods (`relcore.base.names.METHODS`): maps from an encoder's rows to the input of another
encoder's head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from relcore.base.names import DELTA, METHODS
from relcore.base.rows import centred
from relcore.base.settings import check, setting
from relcore.represent.similarity import RelativeProjection, negative_distance
from relcore.represent.translation import Affine, InverseRelativeProjection, LeastSquares, Procrustes

Rows = Callable[[np.ndarray], np.ndarray]  # (m, d) → (m, d′)


@dataclass(frozen=True)
class MethodSettings:
    """Settings of the projections and the inverses; the whitened inverse takes `ridge`."""

    center: bool = setting(True, label="Centre first", help="Subtract each space's mean row first.")
    ridge: float = setting(0.3, label="Whitening ridge λ", above=0, metavar="λ", help="Of the whitening.")
    omega: int = setting(
        8, label="Prunings ω", low=1, metavar="ω", help="Number of prunings of the inverse to average."
    )
    delta: float = setting(
        DELTA, label="Distance δ", low=0, high=1, metavar="δ", help="Pruning distance of the inverse."
    )
    inverse_ridge: float = setting(
        1.0, label="Inverse ridge λ", above=0, metavar="λ", help="Ridge of the ridge inverse."
    )

    __post_init__ = check


@dataclass(frozen=True)
class FittedSpace:
    """One space: training rows (n, d), anchors (k, d), and the mean of the training rows (d,)."""

    train: np.ndarray
    anchors: np.ndarray
    mean: np.ndarray


def representation(heads: str, side: FittedSpace, settings: MethodSettings) -> Rows:
    """A function from a space's rows to the input of heads of this kind (`names.Method.heads`)."""
    return (lambda X: X) if heads == "absolute" else METHODS[heads].load()(side, settings)


def fit_translation(
    method: str, source: FittedSpace, target: FittedSpace, settings: MethodSettings, random_state: int
) -> Rows | None:
    """A function from absolute rows of the source to rows of the target, or None if the method has none."""
    return METHODS[method].load()(source, target, settings, random_state)


def relative(side: FittedSpace, settings: MethodSettings, whiten: bool = False) -> Rows:
    projection = RelativeProjection(center=settings.center, whiten=whiten, ridge=settings.ridge)
    return projection.fit(side.train, anchors=side.anchors).transform


def product(side: FittedSpace, settings: MethodSettings, average: bool = False) -> Rows:
    """A function from rows to their cosine, Euclidean, L1 and L∞ relative rows, side by side (n, 4 k) or
    averaged (n, k) (Cannistraci et al. 2024, who learn a weighted sum).

    Each relative row is standardised over the anchors, so that all four count equally.
    """
    names = ("cosine", "euclidean", "l1")
    projections = [RelativeProjection(name).fit(side.train, anchors=side.anchors) for name in names]

    def transform(X: np.ndarray) -> np.ndarray:
        parts = [projection.transform(X) for projection in projections]
        mean, anchors = projections[1].mean_, projections[1].anchors_
        parts.append(negative_distance(centred(X, mean), anchors, "chebyshev"))
        parts = list(map(_standardised, parts))
        return np.mean(parts, axis=0) if average else np.concatenate(parts, axis=1)

    return transform


def _standardised(relative: np.ndarray) -> np.ndarray:
    spread = relative.std(axis=1, keepdims=True)
    return (relative - relative.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)


def unchanged(
    source: FittedSpace, target: FittedSpace, settings: MethodSettings, random_state: int
) -> Rows | None:
    return (lambda X: X) if source.anchors.shape[1] == target.anchors.shape[1] else None


def _inverse(
    kind: str, source: FittedSpace, target: FittedSpace, settings: MethodSettings, random_state: int
) -> Rows:
    ridge = settings.ridge if kind == "whitened" else settings.inverse_ridge
    inverse = InverseRelativeProjection(kind, settings.omega, settings.delta, ridge, random_state)
    means = {"source_mean": source.mean, "target_mean": target.mean}
    return inverse.fit(source.anchors, target.anchors, **means).transform


def _direct(
    kind: type, source: FittedSpace, target: FittedSpace, settings: MethodSettings, random_state: int
) -> Rows:
    return kind().fit(source.anchors, target.anchors).transform


whitened, averaged_product = partial(relative, whiten=True), partial(product, average=True)
pruned_inverse, ridge_inverse, whitened_inverse = (
    partial(_inverse, kind) for kind in ("pruned", "ridge", "whitened")
)
procrustes, least_squares, affine = (partial(_direct, kind) for kind in (Procrustes, LeastSquares, Affine))
