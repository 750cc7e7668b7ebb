import numpy as np
import pytest

from relcore.spaces.space import LatentSpace, match


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def make_space():

    def make(vectors, ids=None, name="made", **columns):
        return LatentSpace(vectors, ids or [f"r{row}" for row in range(len(vectors))], name=name, **columns)

    return make


@pytest.fixture
def turned_pair(rng):
    """300 rows of five classes in 8 dimensions; the second space has them turned into 10, with noise."""
    n = 300
    d = 8
    labels = np.array([f"c{row % 5}" for row in range(n)])
    X = rng.normal(size=(n, d)) + 4 * np.eye(5, d)[np.arange(n) % 5] + 1
    turn = np.linalg.qr(rng.normal(size=(d + 2, d + 2)))[0][:d]
    Y = 2 * X @ turn + 0.3 * rng.normal(size=(n, d + 2)) - 3
    ids = [f"r{row}" for row in range(n)]
    return match(LatentSpace(X, ids, name="a", labels=labels), LatentSpace(Y, ids, name="b", labels=labels))
