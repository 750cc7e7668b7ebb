import numpy as np
import pytest

from relcore.spaces.space import LatentSpace


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def make_space():

    def make(vectors, ids=None, name="made", **columns):
        return LatentSpace(vectors, ids or [f"r{row}" for row in range(len(vectors))], name=name, **columns)

    return make
