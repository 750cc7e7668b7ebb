"""Networks trained here: they learn, from the training rows only, and equal settings give equal weights."""

import numpy as np
import pytest

from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.swept_vision import SweptVision
from relcore.encoders.vision import NAMES, DistortedVision, SmallVision, held_out_rows
from relcore.encoders.vision_networks import small_network
from relcore.runs.work import silent
from tests.lazily import Lazily

torch = Lazily("torch")


@pytest.fixture(scope="module")
def digits():
    return load_dataset(DatasetSpec("digits", limit=200))


def same(first, second):
    return all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)


@pytest.mark.parametrize("architecture", NAMES)
@pytest.mark.parametrize(("channels", "size"), [(1, (8, 8)), (3, (5, 7)), (1, (1, 64))])
def test_each_picture_of_any_size_gives_a_vector_of_its_own(architecture, channels, size):
    network = small_network(architecture, channels, size, 17).eval()
    images = torch.rand(3, channels, *size)
    with torch.inference_mode():
        rows = network(images)
        alone = network(images[1:2])
    assert rows.shape == (3, 17)
    assert not torch.allclose(rows[0], rows[1])
    torch.testing.assert_close(alone[0], rows[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "architecture"), [(SmallVision, "mlp"), (DistortedVision, "vit")])
def test_training_is_same_for_random_state_whatever_threads(digits, kind, architecture):
    encoder = kind(architecture, width=5, epochs=2)
    before = torch.random.get_rng_state(), torch.get_num_threads()
    first = encoder.train(digits, silent)
    torch.set_num_threads(3)
    try:
        torch.rand(7)  # somebody else's numbers
        second = encoder.train(digits, silent)
        rows = encoder.restore(second, digits)(digits.items(0, 40))[""]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before[1])
        torch.random.set_rng_state(before[0])
    assert first.metadata == second.metadata
    assert same(first, second)
    np.testing.assert_array_equal(encoder.restore(first, digits)(digits.items(0, 40))[""], rows)
    assert rows.shape == (40, 5)
    assert not same(first, kind(architecture, width=5, epochs=2, random_state=1).train(digits, silent))


def test_held_out_rows_are_not_trained_on(digits):
    rows = held_out_rows(200)
    labels = digits.labels.copy()
    assert len(rows) == 40
    labels[rows] = np.roll(labels[rows], 1)
    other = Dataset(digits.items, digits.ids, name="digits", kind="images", labels=labels, content=list)
    first, second = (SmallVision("mlp", epochs=5).train(one, silent) for one in (digits, other))
    assert same(first, second)
    assert first.metadata["loss"] == second.metadata["loss"]
    assert first.metadata["accuracy"] > second.metadata["accuracy"] + 0.3


def test_a_swept_network_learns_and_its_space_is_that_of_the_best_epoch():
    digits = load_dataset(DatasetSpec("digits", limit=600))
    seen = []
    encoder = SweptVision("cnn", width=32, epochs=5, learning_rate=1e-2)
    trained = encoder.train(digits, silent, seen.append)
    facts = trained.metadata
    assert [rows.shape for rows in seen] == [(600, 32)] * 5
    assert facts["test_accuracies"][-1] > 0.6
    assert facts["losses"][-1] < facts["losses"][0]
    assert facts["accuracies"][facts["epoch"] - 1] == max(facts["accuracies"])
    rows = encoder.restore(trained, digits)(digits.items(0, 600))[""]
    np.testing.assert_allclose(rows, seen[facts["epoch"] - 1], atol=1e-5)
    assert same(trained, encoder.train(digits, silent))
