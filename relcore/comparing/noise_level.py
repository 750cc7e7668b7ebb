"""Neighbourhood agreement that the same noise everywhere would leave: what the agreement of each row is compared with.

Rows in a dense part of a space lose their neighbours to a little noise, rows far from all others keep them. So agreement
differs from class to class even if no class has moved. Adding noise to either space, as much as lowers the mean agreement
to what was measured, tells how much each row would keep then.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relcore.magnitude import brought, centred
from relcore.metrics.neighbours import jaccard_rows, neighbours_within
from relcore.similarity import mean_row, unit_rows

_CALIBRATED_ROWS = 400
_STEPS = 9  # halvings of the range of noise levels, 10⁻² … 10² of the spread of the rows
_LEVELS = (-2.0, 2.0)


def agreement_under_noise(
    vectors: tuple[np.ndarray, np.ndarray],
    represent: Callable[[np.ndarray], np.ndarray],
    own: tuple[np.ndarray, np.ndarray],
    queries: np.ndarray,
    agreement: float,
    n_draws: int,
    random_state: int = 0,
) -> np.ndarray:
    """Jaccard overlap of each query's neighbours in a space with those in the same space with noise, (n_draws, m), 0 … 1.

    Even draws add the noise to the first space, odd ones to the second; its standard deviation is the same for all rows and
    dimensions. Noise comes before the projection, so that relative spaces get that of their anchors, too.

    Parameters
    ----------
    vectors : two arrays (n, d)
    represent : (n, d) → (t, c)
        The rows among which neighbours are searched, in the representation that is compared.
    own : two arrays (m, k)
        The neighbours of the queries in each represented space, without noise.
    queries : array (m,)
        Row numbers of the represented space.
    agreement : float
        The mean overlap that the noise is to leave.
    """
    rng = np.random.default_rng(random_state)
    some = np.sort(rng.choice(len(queries), min(_CALIBRATED_ROWS, len(queries)), replace=False))
    spaces = tuple(brought(X)[0] for X in vectors)
    spreads = tuple(float(centred(X, mean_row(X)).std(dtype=np.float64)) for X in spaces)

    def noisy_overlap(side: int, level: float, which: np.ndarray) -> np.ndarray:
        moved = rng.standard_normal(spaces[side].shape, dtype=np.float32)
        moved *= level * spreads[side]
        moved += spaces[side]
        found = neighbours_within(unit_rows(represent(moved)), queries[which], own[side].shape[1])
        return jaccard_rows(own[side][which], found)

    levels = []
    for side in (0, 1):
        low, high = _LEVELS
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if noisy_overlap(side, 10.0**middle, some).mean() > agreement else (low, middle)
        levels.append(10.0 ** ((low + high) / 2))
    every = np.arange(len(queries))
    return np.stack([noisy_overlap(draw % 2, levels[draw % 2], every) for draw in range(n_draws)])
