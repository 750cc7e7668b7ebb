"""Ways for an encoder's rows to reach a head that was trained on another encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from relcore.inversion import DELTA, InverseRelativeProjection
from relcore.projection import RelativeProjection
from relcore.stitching.product import SimilarityProduct
from relcore.translation import Affine, LeastSquares, Procrustes

Rows = Callable[[np.ndarray], np.ndarray]  # (m, d) → (m, d′)


@dataclass(frozen=True)
class Method:
    """What a method needs to know of the two spaces.

    Attributes
    ----------
    title : str
    heads : str
        What its heads are trained on: "absolute" rows, which are then carried over, or a representation that encoders share.
    knows : "one" or "both"
        Whether each space is prepared without the other, or the two are needed at once.
    """

    title: str
    heads: str
    knows: Literal["one", "both"] = "one"


METHODS = {
    "absolute": Method("absolute", "absolute"),
    "relative": Method("relative", "relative"),
    "whitened": Method("relative, whitened", "whitened"),
    "product": Method("product of similarities, side by side", "product"),
    "average": Method("product of similarities, averaged", "average"),
    "irp-pruned": Method("inverse, pruned", "absolute"),
    "irp-ridge": Method("inverse, ridge", "absolute"),
    "irp-whitened": Method("inverse, whitened", "absolute"),
    "procrustes": Method("Procrustes", "absolute", "both"),
    "least-squares": Method("least squares", "absolute", "both"),
    "affine": Method("affine", "absolute", "both"),
}
_DIRECT = {"procrustes": Procrustes, "least-squares": LeastSquares, "affine": Affine}


@dataclass(frozen=True)
class MethodSettings:
    """Settings of the projections and the inverses, under the names that they have there.

    `ridge` is that of whitening, `inverse_ridge` that of the ridge inverse; the whitened inverse takes `ridge`.
    """

    center: bool = True
    ridge: float = 0.3
    omega: int = 8
    delta: float = DELTA
    inverse_ridge: float = 1.0


@dataclass(frozen=True)
class Side:
    """What is known of one space: training rows (n, d), anchors (k, d), and the training rows' mean (d,)."""

    train: np.ndarray
    anchors: np.ndarray
    mean: np.ndarray


def representation(heads: str, side: Side, settings: MethodSettings) -> Rows:
    """The function from a space's rows to what heads of this kind are trained on; it knows this space alone."""
    if heads == "absolute":
        return lambda X: X
    if heads in ("product", "average"):
        product = SimilarityProduct("side by side" if heads == "product" else "average")
        return product.fit(side.train, anchors=side.anchors).transform
    projection = RelativeProjection(center=settings.center, whiten=heads == "whitened", ridge=settings.ridge)
    return projection.fit(side.train, anchors=side.anchors).transform


def carrier(method: str, source: Side, target: Side, settings: MethodSettings, random_state: int) -> Rows | None:
    """The function from absolute rows of the source to absolute rows of the target; None where the method has none."""
    if method == "absolute":
        return (lambda X: X) if source.anchors.shape[1] == target.anchors.shape[1] else None
    if method in _DIRECT:
        return _DIRECT[method]().fit(source.anchors, target.anchors).transform
    kind = method.removeprefix("irp-")
    ridge = settings.ridge if kind == "whitened" else settings.inverse_ridge
    inverse = InverseRelativeProjection(kind, settings.omega, settings.delta, ridge, random_state)
    means = {"source_mean": source.mean, "target_mean": target.mean}
    return inverse.fit(source.anchors, target.anchors, **means).transform
