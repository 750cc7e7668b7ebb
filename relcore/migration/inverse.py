"""WhitenedInverseAdapter: from the new model through whitened relative coordinates into the old model's space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.migration.adapter import Adapter
from relcore.migration.in_place import around_the_mean
from relcore.migration.relative import decomposed
from relcore.migration.steps import Step
from relcore.spaces import SpaceError


@dataclass(eq=False)
class WhitenedInverseAdapter(Adapter):
    """The whitened inverse relative projection: y = ‖a_y‖ xW / ‖xW‖ + mean_y, the old vectors searched as they are.

    W = A_xᵀ (K_x + λI)^(−1/2) (K_y + λI)^(−1/2) A_y, as in `InverseRelativeProjection("whitened", lengths="mean")`, by
    the decompositions of both models' anchors: work grows with the number of pairs, not with its cube.

    Parameters
    ----------
    ridge : float
        λ, above 0; λ = 1 counts as much as one average anchor.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migration.inverse import WhitenedInverseAdapter
    >>> old = np.random.default_rng(0).normal(size=(60, 4))
    >>> adapter = WhitenedInverseAdapter().fit(old[:, ::-1], old)
    >>> bool(np.mean(np.sum(adapter.transform(old[:, ::-1]) * adapter.corpus(old), axis=1)) > 0.98)
    True
    """

    ridge: float = 1.0

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        if not 0 < self.ridge < np.inf:
            raise SpaceError(f"ridge: expected a number above 0, got {self.ridge}")
        ours, theirs = (decomposed(rows, center=True) for rows in (new, old))
        encoder, decoder = (one.right * (one.values / np.sqrt(one.values**2 + self.ridge)) for one in (ours, theirs))
        return around_the_mean(encoder @ (ours.left.T @ theirs.left) @ decoder.T, new, old), ()
