"""LowRankAdapter: ridge regression through few directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.migration.adapter import Adapter
from relcore.migration.in_place import around_the_mean
from relcore.migration.ridge import LeaveOneOut
from relcore.migration.steps import Step
from relcore.spaces import SpaceError


@dataclass(eq=False)
class LowRankAdapter(Adapter):
    """Reduced-rank regression (Izenman 1975): the ridge map, kept to the principal directions of the rows that it predicts.

    Parameters
    ----------
    rank : int
        Number of directions; fewer where the widths or the pairs allow fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migration.low_rank import LowRankAdapter
    >>> new = np.random.default_rng(0).normal(size=(300, 8))
    >>> adapter = LowRankAdapter(rank=2).fit(new, new)
    >>> int(np.linalg.matrix_rank(adapter.query_steps_[1].matrix))
    2
    """

    rank: int = 64

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        if self.rank < 1:
            raise SpaceError(f"rank: expected 1 or more, got {self.rank}")
        matrix = LeaveOneOut().fit(new, old).matrix_
        predicted = (new - new.mean(axis=0, dtype=np.float64)) @ matrix
        directions = np.linalg.eigh(predicted.T @ predicted)[1][:, -self.rank :]
        return around_the_mean(matrix @ directions @ directions.T, new, old), ()
