"""DiagonalAdapter: Procrustes, and then a factor for each coordinate of the old space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.migration.adapter import Adapter
from relcore.migration.in_place import around_the_mean
from relcore.migration.steps import Step
from relcore.translation import Procrustes


@dataclass(eq=False)
class DiagonalAdapter(Adapter):
    """Centred Procrustes with diagonal scaling of the rotated coordinates, as in Drift-Adapter (EMNLP 2025).

    Each factor is the least-squares one and at least 0: a coordinate that the new model does not have adds noise only.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migration.diagonal import DiagonalAdapter
    >>> new = np.random.default_rng(0).normal(size=(300, 4))
    >>> DiagonalAdapter().fit(new, new[:, ::-1]).factors_.round(3).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        found = Procrustes(scale=False).fit(new, old)
        rotated, wanted = (new - found.source_mean_) @ found.matrix_, old - found.target_mean_
        spread = np.vecdot(rotated.T, rotated.T)
        products = np.maximum(np.vecdot(rotated.T, wanted.T), 0)
        self.factors_ = np.divide(products, spread, out=np.zeros_like(spread), where=spread > 0)
        return around_the_mean(found.matrix_ * self.factors_, new, old), ()
