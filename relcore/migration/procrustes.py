"""ProcrustesAdapter: the rotation that brings centred pairs closest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.migration.adapter import Adapter
from relcore.migration.steps import Affine, Step
from relcore.translation import Procrustes


@dataclass(eq=False)
class ProcrustesAdapter(Adapter):
    """Centred orthogonal Procrustes (Schönemann 1966) between unit rows of any two widths, with one scale.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migration.procrustes import ProcrustesAdapter
    >>> old = np.random.default_rng(0).normal(size=(60, 4))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))
    >>> adapter = ProcrustesAdapter().fit(old @ rotation, old)
    >>> bool(np.allclose(adapter.transform(old @ rotation), adapter.corpus(old), atol=1e-4))
    True
    """

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        found = Procrustes().fit(new, old)
        return (Affine.between(found.matrix_, found.source_mean_, found.target_mean_),), ()
