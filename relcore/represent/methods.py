"""How an encoder's rows reach a head that was trained on another encoder; the list of methods is
`relcore.base.names.METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from relcore.base.errors import need_one_of
from relcore.base.magnitude import centred as moved
from relcore.base.magnitude import sized
from relcore.base.names import DELTA, METHODS
from relcore.base.settings import check, setting
from relcore.represent.similarity import RelativeProjection, negative_distance
from relcore.represent.translation import Affine, InverseRelativeProjection, LeastSquares, Procrustes

# Product of similarities: several relative spaces at once, so that what one of them does not keep another
# may.

SIMILARITIES = ("cosine", "euclidean", "l1", "linf")


@dataclass(eq=False)
class SimilarityProduct:
    """Cosine, Euclidean, L1 and L∞ relative spaces of the same anchors, together (Cannistraci et al. 2024).

    Each row of each of them is brought to mean 0 and deviation 1 over the anchors: distances then do not
    depend on the scale of the space, and all four count alike.

    Parameters
    ----------
    combine : {"side by side", "average"}
        (n, 4 k) or (n, k). The paper learns how to add them up; without training, the average is what is
        left.
    """

    combine: str = "side by side"

    def fit(self, X: np.ndarray, *, anchors: np.ndarray) -> SimilarityProduct:
        """Learn the mean of X (n, d), keep the anchors: row numbers (k,) or vectors (k, d). Errors as
        RelativeProjection's.
        """
        need_one_of("combine", self.combine, ("side by side", "average"))
        self.projections_ = {
            name: RelativeProjection(name).fit(X, anchors=anchors) for name in SIMILARITIES[:3]
        }
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """(n, d) → (n, 4 k) or (n, k) float32."""
        parts = {name: projection.transform(X) for name, projection in self.projections_.items()}
        centred = self.projections_["euclidean"]
        parts["linf"] = negative_distance(moved(X, centred.mean_), centred.anchors_, "chebyshev")
        parts = [_standardised(parts[name]) for name in SIMILARITIES]
        return np.concatenate(parts, axis=1) if self.combine == "side by side" else np.mean(parts, axis=0)


def _standardised(relative: np.ndarray) -> np.ndarray:
    relative, _ = sized(relative)
    spread = relative.std(axis=1, keepdims=True)
    return (relative - relative.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)


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

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Side:
    """What is known of one space: training rows (n, d), anchors (k, d), and the training rows' mean (d,)."""

    train: np.ndarray
    anchors: np.ndarray
    mean: np.ndarray


def representation(heads: str, side: Side, settings: MethodSettings) -> Rows:
    """The function from a space's rows to what heads of this kind (`names.Method.heads`) are trained on."""
    return (lambda X: X) if heads == "absolute" else METHODS[heads].load()(side, settings)


def carrier(
    method: str, source: Side, target: Side, settings: MethodSettings, random_state: int
) -> Rows | None:
    """The function from absolute rows of the source to absolute rows of the target; None where the method
    has none.
    """
    return METHODS[method].load()(source, target, settings, random_state)


def relative(side: Side, settings: MethodSettings, whiten: bool = False) -> Rows:
    projection = RelativeProjection(center=settings.center, whiten=whiten, ridge=settings.ridge)
    return projection.fit(side.train, anchors=side.anchors).transform


def product(side: Side, settings: MethodSettings, combine: str = "side by side") -> Rows:
    return SimilarityProduct(combine).fit(side.train, anchors=side.anchors).transform


def unchanged(source: Side, target: Side, settings: MethodSettings, random_state: int) -> Rows | None:
    return (lambda X: X) if source.anchors.shape[1] == target.anchors.shape[1] else None


def _inverse(kind: str, source: Side, target: Side, settings: MethodSettings, random_state: int) -> Rows:
    ridge = settings.ridge if kind == "whitened" else settings.inverse_ridge
    inverse = InverseRelativeProjection(kind, settings.omega, settings.delta, ridge, random_state)
    means = {"source_mean": source.mean, "target_mean": target.mean}
    return inverse.fit(source.anchors, target.anchors, **means).transform


def _direct(kind: type, source: Side, target: Side, settings: MethodSettings, random_state: int) -> Rows:
    return kind().fit(source.anchors, target.anchors).transform


whitened, averaged_product = partial(relative, whiten=True), partial(product, combine="average")
pruned_inverse, ridge_inverse, whitened_inverse = (
    partial(_inverse, kind) for kind in ("pruned", "ridge", "whitened")
)
procrustes, least_squares, affine = (partial(_direct, kind) for kind in (Procrustes, LeastSquares, Affine))
