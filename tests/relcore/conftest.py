import os
from pathlib import Path

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


@pytest.fixture
def data_folder():
    folder = os.environ.get("RELSCOPE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("RELSCOPE_DATA names no folder of development data")
    return Path(folder)
