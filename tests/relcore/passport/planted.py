"""Rows of planted models, for the tests of checks and passports."""

import numpy as np


def model(seed, width):
    """A rotated basis whose axes a model uses unequally: a function that makes n rows of a topic."""
    rng = np.random.default_rng((seed, 1))
    basis = np.linalg.qr(rng.normal(size=(width, width)))[0] * np.geomspace(1, 0.05, width)[:, None]

    def rows(n, topic=0, state=0):
        own = np.random.default_rng((seed, topic, state))
        middle = np.random.default_rng((seed, topic)).normal(size=8) @ basis[:8]
        return (own.normal(size=(n, width)) @ basis + 2 * middle).astype(np.float32)

    return rows
