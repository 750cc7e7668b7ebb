"""Relative cosine among many spaces: are their rows in the same places relative to the same anchors?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relcore.anchors.selection import shared_anchors
from relcore.comparing.all_pairs import AllPairs
from relcore.evaluation import Split
from relcore.metrics.calibration import Score
from relcore.metrics.cka import MeanCosine, mean_cosine
from relcore.similarity import unit_rows
from relcore.spaces import LatentSpace


class RelativeCosine(MeanCosine):
    """`mean_cosine` of the rows that are no anchors, each space written relative to the same anchors."""

    def held_out(self, space: LatentSpace, settings: AllPairs) -> Split:
        return Split.held_out(space.ids, space.rows(settings.anchors))

    def own(self, space: LatentSpace, settings: AllPairs) -> np.ndarray:
        return self._relative(space, self.held_out(space, settings).test, settings)

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], np.ndarray], settings: AllPairs
    ) -> Score:
        shared_anchors(settings.anchors, first, second)
        return mean_cosine(own(first), own(second), of_unit_length=True)

    def forms(self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: AllPairs) -> tuple[list[np.ndarray], bool]:
        return [self._relative(space, rows, settings) for space in spaces], False

    def products(self, spaces: Sequence[LatentSpace], settings: AllPairs) -> float:
        n_pairs, k = len(spaces) * (len(spaces) + 1) / 2, len(settings.anchors)
        return max(map(len, spaces)) * (sum(space.dimension for space in spaces) * k + 2 * n_pairs * k**2)

    def _relative(self, space: LatentSpace, rows: np.ndarray, settings: AllPairs) -> np.ndarray:
        fitted = settings.projection.projection().fit(space.vectors, anchors=space.rows(settings.anchors))
        return unit_rows(fitted.transform(space.vectors[rows]))
