"""SweptVision: learns, comes out the same again, and says what does not fit."""

import numpy as np
import pytest

from relcore.catalog.catalog import encode
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.vision import SweptVision, held_out_rows, split_pictures
from relcore.runs.store import Store


@pytest.fixture(scope="module")
def digits():
    from relcore.encoders.datasets import digits_dataset

    return digits_dataset(DatasetSpec("digits", limit=600))


def silent(*told):
    pass


@pytest.mark.parametrize("architecture", ["mlp", "cnn"])
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


def test_the_space_is_that_of_the_best_epoch_and_the_same_again(digits, tmp_path):
    encoder, seen = SweptVision(width=16, epochs=3), []
    epoch = encoder.train(digits, silent, seen.append).metadata["epoch"]
    (space,) = encode(digits, encoder, Store(tmp_path))
    np.testing.assert_allclose(space.vectors, seen[epoch - 1], atol=1e-5)


def test_parts_are_disjoint_and_the_test_rows_those_of_small_vision(digits):
    parts = split_pictures(digits)
    rows = np.concatenate([parts.train, parts.validation, parts.test])
    assert np.array_equal(np.sort(rows), np.arange(600))
    assert np.array_equal(parts.test, held_out_rows(600))
    assert parts.pixels[parts.train].mean() == pytest.approx(0, abs=1e-5)
