"""Spaces of noise, and how far a score lies from chance."""

import numpy as np

from relcore.scores.score import Z95
from relcore.spaces.space import LatentSpace


def unrelated(n, d, state, names="ab", labels=None):
    """Spaces (n, d) under the same ids."""
    rng = np.random.default_rng([n, d, state])
    ids = [f"r{row}" for row in range(n)]
    return [LatentSpace(rng.normal(size=(n, d)), ids, name=name, labels=labels) for name in names]


def deviations(score):
    """Standard deviations above the chance level's mean."""
    return (float(score) - score.null.mean) * Z95 / (score.null.high - score.null.mean)
