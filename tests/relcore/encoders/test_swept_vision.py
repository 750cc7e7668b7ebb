"""SweptVision: learns, comes out the same again, and says what does not fit."""

import numpy as np
import pytest

from relcore.catalog.catalog import encode
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.vision import SweptVision
from relcore.runs.store import Store


@pytest.fixture(scope="module")
def digits():
    from relcore.encoders.datasets import digits_dataset

    return digits_dataset(DatasetSpec("digits", limit=600))


def silent(*told):
    pass


@pytest.mark.parametrize("architecture", ["cnn"])
def test_it_learns_and_shows_its_space_after_every_epoch(architecture, digits):
    seen = []
    found = SweptVision(architecture, width=32, epochs=5, learning_rate=1e-2).train(
        digits, silent, seen.append
    )
    assert [rows.shape for rows in seen] == [(600, 32)] * 5
    assert found.metadata["test_accuracies"][-1] > 0.6
    assert found.metadata["losses"][-1] < found.metadata["losses"][0]
    best = found.metadata["accuracies"][found.metadata["epoch"] - 1]
    assert best == max(found.metadata["accuracies"])


def test_space_is_that_of_best_epoch_and_same_again(digits, tmp_path):
    encoder, seen = SweptVision(width=16, epochs=3), []
    epoch = encoder.train(digits, silent, seen.append).metadata["epoch"]
    (space,) = encode(digits, encoder, Store(tmp_path))
    np.testing.assert_allclose(space.vectors, seen[epoch - 1], atol=1e-5)
