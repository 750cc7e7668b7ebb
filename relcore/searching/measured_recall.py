"""Recall of approximate neighbours, measured on queries whose true neighbours are known."""

from __future__ import annotations

import numpy as np

from relcore.metrics.calibration import Z95, sampling_interval
from relcore.metrics.neighbours import jaccard_rows
from relcore.metrics.recall import Recall


def recalls(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The share of the true neighbours (m, k) that is in each list (m, k), (m,), 0 … 1."""
    return (exact[:, :, None] == found[:, None, :]).any(axis=2).mean(axis=1)


def measured_recall(
    found: dict[str, np.ndarray], exact: dict[str, np.ndarray], n: int, search: str, setting: str, target: float
) -> Recall:
    """Of lists (m, k) by name for m of n queries: the mean over the lists of a query, with its 95 % interval.

    `change` is that of the mean Jaccard overlap of the lists "own" and "other" by the approximation, on the same queries.
    """
    shares = np.mean([recalls(found[name], true) for name, true in exact.items()], axis=0)
    low, high = sampling_interval(shares, n) or (float(shares.mean()),) * 2
    k = exact["own"].shape[1]
    overlaps = (jaccard_rows(lists["own"], lists["other"][:, :k]) for lists in (found, exact))
    moved = np.subtract(*overlaps)
    reach = float(Z95 * moved.std(ddof=1) / np.sqrt(len(moved)))
    change = float(moved.mean())
    return Recall(search, setting, float(shares.mean()), float(low), min(float(high), 1.0), len(shares), target, change, reach)
