"""A large file that is written again while the app runs is loaded again, whether or not its numbers
changed.
"""

import os
from unittest.mock import patch

import numpy as np
import pytest

from app import compute
from relcore.catalog.catalog import SpaceSpec
from relcore.files.reading import load_space

X = np.random.default_rng(0).standard_normal((50, 4), dtype=np.float32)


@pytest.fixture
def specs(tmp_path):
    for name in ("a.npy", "b.npy"):
        write(tmp_path / name, X, 1)
    with patch.dict(load_space.__kwdefaults__, {"map_from": 1}):
        yield SpaceSpec("file", str(tmp_path / "a.npy")), SpaceSpec("file", str(tmp_path / "b.npy"))


def write(path, rows, second):
    np.save(path, rows)
    os.utime(path, (second, second))


@pytest.mark.parametrize("added", [0, 1], ids=["the same numbers", "other numbers"])
def test_a_pair_of_files_is_read_as_they_are_now(specs, tmp_path, added):
    before = compute.matched_pair(*specs)
    write(tmp_path / "a.npy", X + np.float32(added), 2)
    pair = compute.matched_pair(*specs)
    np.testing.assert_array_equal(pair.source.vectors, X + np.float32(added))
    np.testing.assert_array_equal(pair.target.vectors, X)
    assert (pair.source.digest == before.source.digest) is (added == 0)
