import numpy as np
import pytest

from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Dataset, DatasetSpec
from relcore.encoders.vision import NAMES, DistortedVision, SmallVision, held_out_rows, small_network
from tests.lazily import Lazily

torch = Lazily("torch")

SILENT = lambda *_: None  # noqa: E731


@pytest.fixture(scope="module")
def digits():
    return load_dataset(DatasetSpec("digits", limit=200))


@pytest.mark.parametrize("architecture", NAMES)
@pytest.mark.parametrize(("channels", "size"), [(1, (8, 8)), (3, (5, 7)), (1, (1, 64))])
def test_every_size_gives_vectors_of_chosen_width(architecture, channels, size):
    network = small_network(architecture, channels, size, 17).eval()
    images = torch.rand(3, channels, *size)
    with torch.inference_mode():
        rows = network(images)
        assert rows.shape == (3, 17)
        assert not torch.allclose(rows[0], rows[1])
        torch.testing.assert_close(
            network(images[1:2])[0], rows[1], rtol=1e-4, atol=1e-5
        )  # nobody hangs on the others


@pytest.mark.parametrize("architecture", ["mlp", "vit"])
def test_training_is_same_for_random_state_whatever_threads(digits, architecture):
    encoder = {"mlp": SmallVision, "vit": DistortedVision}[architecture](architecture, width=5, epochs=2)
    before = torch.random.get_rng_state(), torch.get_num_threads()
    first = encoder.train(digits, SILENT)
    torch.set_num_threads(3)
    try:
        torch.rand(7)  # somebody else's numbers
        second = encoder.train(digits, SILENT)
        rows = encoder.restore(second, digits)(digits.items(0, 40))[""]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before[1])
        torch.random.set_rng_state(before[0])
    assert first.metadata == second.metadata
    assert all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)
    np.testing.assert_array_equal(encoder.restore(first, digits)(digits.items(0, 40))[""], rows)
    assert rows.shape == (40, 5)
    other = SmallVision(architecture, width=5, epochs=2, random_state=1).train(digits, SILENT)
    assert not all(np.array_equal(first.arrays[name], other.arrays[name]) for name in first.arrays)


def test_held_out_rows_are_not_trained_on(digits):
    rows = held_out_rows(200)
    assert len(rows) == 40
    shuffled = digits.labels.copy()
    shuffled[rows] = np.roll(shuffled[rows], 1)
    other = Dataset(digits.items, digits.ids, name="digits", kind="images", labels=shuffled, content=list)
    encoder = SmallVision("mlp", epochs=5)
    first, second = encoder.train(digits, SILENT), encoder.train(other, SILENT)
    assert all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)
    assert first.metadata["loss"] == second.metadata["loss"]
    assert first.metadata["accuracy"] > second.metadata["accuracy"] + 0.3
