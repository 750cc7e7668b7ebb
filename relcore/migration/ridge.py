"""RidgeAdapter: a linear map with a penalty that leave-one-out errors choose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.estimator import Estimator
from relcore.migration.adapter import Adapter
from relcore.migration.in_place import around_the_mean
from relcore.migration.steps import Step
from relcore.spaces import SpaceError

PENALTIES = tuple(np.geomspace(1e-3, 1e2, 16).tolist())


@dataclass(eq=False)
class RidgeAdapter(Adapter):
    """Ridge regression with an offset, its penalty λ by the closed form of the leave-one-out error (Allen's PRESS).

    Attributes
    ----------
    penalty_ : float
        The λ of the smallest error, summed over all coordinates; rows have length 1, so λ = 1 counts as much as one pair.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migration.ridge import RidgeAdapter
    >>> new = np.random.default_rng(0).normal(size=(300, 4))
    >>> RidgeAdapter().fit(new, new @ np.diag([1, 1, 2, 2])).penalty_ < 1
    True
    """

    penalties: tuple[float, ...] = PENALTIES

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        found = LeaveOneOut(self.penalties).fit(new, old)
        self.penalty_ = found.penalty_
        return around_the_mean(found.matrix_, new, old), ()


@dataclass(eq=False)
class LeaveOneOut(Estimator):
    """Ridge between centred rows; the residual without row i is (y − ŷ)ᵢ / (1 − hᵢ), h the diagonal of the hat matrix."""

    penalties: tuple[float, ...] = PENALTIES

    def fit(self, X: np.ndarray, Y: np.ndarray) -> LeaveOneOut:
        """`matrix_` (d_x, d_y) float64 and `penalty_`, from rows X (m, d_x) and Y (m, d_y).

        Raises
        ------
        SpaceError
            No penalty, or one that is not above 0.
        """
        if not len(self.penalties) or not min(self.penalties) > 0:
            raise SpaceError(f"penalties: expected numbers above 0, got {self.penalties!r:.80}")
        X, Y = (Z - Z.mean(axis=0, dtype=np.float64) for Z in (X, Y))
        left, values, right = np.linalg.svd(X, full_matrices=False)
        onto = left.T @ Y
        errors = [_press(left, values**2 / (values**2 + one), onto, Y) for one in self.penalties]
        self.penalty_ = float(self.penalties[int(np.argmin(errors))])
        self.matrix_ = (right.T * (values / (values**2 + self.penalty_))) @ onto
        return self


def _press(left: np.ndarray, shrunk: np.ndarray, onto: np.ndarray, Y: np.ndarray) -> float:
    residual = Y - (left * shrunk) @ onto
    leverage = 1 / len(Y) + (left**2) @ shrunk
    return float(np.sum((residual / np.maximum(1 - leverage, 1e-12)[:, None]) ** 2))
