"""Pruning: select anchors that are far enough from each other for a stable inverse (Maiorca et al. 2024)."""

from __future__ import annotations

import numpy as np


def first_anchors(n_anchors: int, omega: int, random_state: int = 0) -> np.ndarray:
    """The anchors (ω,) from which the prunings start, different if there are enough; a larger ω keeps the first ones."""
    rng = np.random.default_rng(random_state)
    rounds = [rng.permutation(n_anchors) for _ in range(-(-omega // n_anchors))]
    return np.concatenate(rounds)[:omega]


def farthest_order(similarity: np.ndarray, start: int, delta: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Greedy farthest-point order under 1 − |cos| from the anchor `start`, until the next one is nearer than δ.

    Takes |cosines| (k, k); gives anchors (m,) and the distance (m,) of each to those before it, 1 for the first and never
    rising. So the pruning at a larger δ is a prefix of this one.
    """
    order, distances = [int(start)], [1.0]
    nearest = similarity[start].copy()
    nearest[start] = np.inf
    for _ in range(1, len(similarity)):
        farthest = int(np.argmin(nearest))
        distance = max(1 - float(nearest[farthest]), 0.0)
        if distance < delta:
            break
        order.append(farthest)
        distances.append(distance)
        np.maximum(nearest, similarity[farthest], out=nearest)
        nearest[farthest] = np.inf
    return np.array(order), np.array(distances)
