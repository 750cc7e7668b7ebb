"""The chance level of a maximum: how alike is the most alike of many pairs of spaces by chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relcore.metrics.calibration import Null, Score

SAMPLED_ROWS = 400
PERMUTATIONS = 400
_AT_ONCE = 2**26  # floats of permuted matrices that are held at a time


def best_by_chance(scores: Mapping[tuple[int, int], Score], forms: Sequence[np.ndarray], *, both_axes: bool) -> Null | None:
    """What the largest of these scores would be if rows were paired at random; None for fewer than two scores.

    The rows of the second space of every pair are permuted by one and the same permutation: pairs that share a space, or
    layers of one model, go up and down together, so their maximum lies below that of as many unrelated numbers. How they go
    together is found on a sample of rows; place and width of each pair's band are those of its own chance level.

    Parameters
    ----------
    scores : (i, j) → Score with a chance level, i ≠ j
        All over the same rows.
    forms : arrays (m, w), one per space
        Of a sample of these rows: a matrix of similarities, permuted along both axes, or rows, permuted along the first.
    """
    kept = {cell: score for cell, score in scores.items() if score is not None and score.null is not None}
    if len(kept) < 2:
        return None
    (fixed, first), (moved, second) = (np.unique(side, return_inverse=True) for side in zip(*kept, strict=True))
    flat = np.stack(forms).astype(np.float32)
    drawn = _drawn(flat[fixed], flat[moved], both_axes)[:, first, second]
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    widths = np.array([score.null.high - score.null.low for score in kept.values()])
    means = np.array([score.null.mean for score in kept.values()])
    placed = means + (drawn - drawn.mean(axis=0)) * np.divide(widths, high - low, out=np.zeros_like(widths), where=high > low)
    return Null.from_draws(placed.max(axis=1))


def _drawn(fixed: np.ndarray, moved: np.ndarray, both_axes: bool) -> np.ndarray:
    """Inner products of forms (s, m, w) with permuted ones (t, m, w), all of them of length 1, (permutations, s, t)."""
    rng, (t, m, _) = np.random.default_rng(0), moved.shape
    flat, moved = _unit(fixed).reshape(len(fixed), -1), _unit(moved)
    drawn = np.empty((PERMUTATIONS, len(fixed), t))
    at_once = max(1, _AT_ONCE // moved.size)
    for start in range(0, PERMUTATIONS, at_once):
        orders = [rng.permutation(m) for _ in range(min(at_once, PERMUTATIONS - start))]
        permuted = [moved[:, order][:, :, order] if both_axes else moved[:, order] for order in orders]
        found = flat @ np.stack(permuted).reshape(len(orders) * t, -1).T
        drawn[start : start + len(orders)] = found.reshape(len(fixed), len(orders), t).transpose(1, 0, 2)
    return drawn


def _unit(forms: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(forms.reshape(len(forms), -1), axis=1)
    return forms / np.maximum(lengths, 1e-30)[:, None, None]
