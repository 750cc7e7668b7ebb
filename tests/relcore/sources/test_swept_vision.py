"""SweptVision: learns, comes out the same again, and says what does not fit."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.encoder import encoder_from_json, encoder_to_json
from relcore.encoders.small_vision import held_out_rows
from relcore.encoders.swept_vision import SweptVision, split_pictures
from relcore.runs.store import Store


@pytest.fixture(scope="module")
def digits():
    from relcore.encoders.digits import digits_dataset

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


def test_settings_matter_and_go_to_json_and_back(digits):
    encoder = SweptVision("cnn", 32, 3, "tanh", 0.3, "sgd", 0.1, 4, 7)
    assert encoder_from_json(encoder_to_json(encoder)) == encoder


def test_parts_are_disjoint_and_the_test_rows_those_of_small_vision(digits):
    parts = split_pictures(digits)
    rows = np.concatenate([parts.train, parts.validation, parts.test])
    assert np.array_equal(np.sort(rows), np.arange(600))
    assert np.array_equal(parts.test, held_out_rows(600))
    assert parts.pixels[parts.train].mean() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"architecture": "vit"}, "architecture: expected one of"),
        ({"dropout": 1.0}, "dropout: expected a number from 0 to below 1, got 1.0"),
        ({"learning_rate": 0}, "learning_rate: expected a number above 0, got 0"),
    ],
)
def test_wrong_settings_say_so(settings, message):
    with pytest.raises(SpaceError, match=message):
        SweptVision(**settings)


def test_pictures_without_labels_or_of_two_sizes_say_so(digits):
    from PIL import Image

    def made(labels, sizes):
        images = [Image.new("L", (size, size)) for size in sizes]
        ids = [str(row) for row in range(len(images))]
        return Dataset(lambda start, stop: images[start:stop], ids, name="made", kind="images", labels=labels)

    with pytest.raises(SpaceError, match="expected a label for each picture"):
        SweptVision().train(made(None, [8] * 10), silent)
    with pytest.raises(SpaceError, match="expected pictures of 8 × 8 pixels, got others"):
        SweptVision().train(made(["a", "b"] * 5, [8] * 9 + [9]), silent)
