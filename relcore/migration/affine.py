"""AffineAdapter: the linear map with an offset that has the smallest squared error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore import translation
from relcore.migration.adapter import Adapter
from relcore.migration.in_place import around_the_mean
from relcore.migration.steps import Step


@dataclass(eq=False)
class AffineAdapter(Adapter):
    """Least squares with an offset, of smallest norm where fewer pairs than dimensions leave a choice.

    Near as many pairs as dimensions it fits their noise; `RidgeAdapter` does not.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migration.affine import AffineAdapter
    >>> new = np.random.default_rng(0).normal(size=(300, 4))
    >>> new /= np.linalg.norm(new, axis=1, keepdims=True)
    >>> old = new @ np.diag([1, 1, 2, 2]) + 1
    >>> old /= np.linalg.norm(old, axis=1, keepdims=True)
    >>> bool(np.mean(np.sum(AffineAdapter().fit(new, old).transform(new) * old, axis=1)) > 0.98)
    True
    """

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        return around_the_mean(translation.Affine().fit(new, old).matrix_, new, old), ()
