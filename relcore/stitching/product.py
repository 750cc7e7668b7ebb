"""Product of similarities: several relative spaces at once, so that what one of them does not keep another may."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.magnitude import centred as moved
from relcore.magnitude import sized
from relcore.projection import RelativeProjection
from relcore.similarity import negative_distance
from relcore.spaces import need_one_of

SIMILARITIES = ("cosine", "euclidean", "l1", "linf")


@dataclass(eq=False)
class SimilarityProduct:
    """Cosine, Euclidean, L1 and L∞ relative spaces of the same anchors, together (Cannistraci et al. 2024).

    Each row of each of them is brought to mean 0 and deviation 1 over the anchors: distances then do not depend on the scale
    of the space, and all four count alike.

    Parameters
    ----------
    combine : {"side by side", "average"}
        (n, 4 k) or (n, k). The paper learns how to add them up; without training, the average is what is left.
    """

    combine: str = "side by side"

    def fit(self, X: np.ndarray, *, anchors: np.ndarray) -> SimilarityProduct:
        """Learn the mean of X (n, d), keep the anchors: row numbers (k,) or vectors (k, d). Errors as RelativeProjection's."""
        need_one_of("combine", self.combine, ("side by side", "average"))
        self.projections_ = {name: RelativeProjection(name).fit(X, anchors=anchors) for name in SIMILARITIES[:3]}
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
