import math
import re

import numpy as np
import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import encoding_key
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.small_vision import NAMES, SmallVision, held_out_rows, small_network
from relcore.runs.store import Store
from tests.lazily import Lazily

torch = Lazily("torch")

SILENT = lambda *_: None  # noqa: E731


def pictures(arrays, labels="ab", name="told"):
    """A dataset of these arrays; the labels are repeated until there are enough."""
    images = [Image.fromarray(array) for array in arrays]
    names = None if labels is None else [labels[row % len(labels)] for row in range(len(images))]
    ids = [f"p{row}" for row in range(len(images))]
    return Dataset(
        lambda start, stop: images[start:stop], ids, name=name, kind="images", labels=names, content=list
    )


@pytest.fixture(scope="module")
def digits():
    return load_dataset(DatasetSpec("digits", limit=200))


@pytest.mark.parametrize("architecture", NAMES)
@pytest.mark.parametrize(
    ("channels", "size"), [(1, (8, 8)), (1, (28, 28)), (3, (32, 20)), (3, (5, 7)), (1, (1, 64))]
)
def test_every_size_gives_vectors_of_the_chosen_width(architecture, channels, size):
    network = small_network(architecture, channels, size, 17).eval()
    images = torch.rand(3, channels, *size)
    with torch.inference_mode():
        rows = network(images)
        assert rows.shape == (3, 17)
        assert not torch.allclose(rows[0], rows[1])
        torch.testing.assert_close(
            network(images[1:2])[0], rows[1], rtol=1e-4, atol=1e-5
        )  # nobody hangs on the others


@pytest.mark.parametrize("epochs", range(1, 8))
def test_few_pictures_can_be_trained_on_for_any_number_of_epochs(epochs):
    few = load_dataset(DatasetSpec("digits", limit=50))  # one batch an epoch
    facts = SmallVision("mlp", width=4, epochs=epochs).train(few, SILENT).metadata
    assert len(facts["loss"]) == epochs


@pytest.mark.parametrize("architecture", NAMES)
def test_training_is_the_same_for_a_random_state_whatever_the_threads(digits, architecture):
    encoder = SmallVision(architecture, width=5, epochs=2)
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


def test_training_leaves_the_global_generator_alone(digits):
    before = torch.random.get_rng_state()
    SmallVision("mlp", epochs=1).train(digits, SILENT)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_curve_is_told_by_epoch_and_kept_whole(digits):
    told = []
    trained = SmallVision("mlp", width=8, epochs=6).train(digits, lambda *report: told.append(report))
    epochs = [report for report in told if "epoch" in report[2]]
    assert [(done, total) for done, total, *_ in epochs] == [(i, 6) for i in range(1, 7)]
    facts = trained.metadata
    assert [report[3]["loss"] for report in epochs] == facts["loss"]
    assert [report[3]["accuracy"] for report in epochs] == facts["held_out_accuracy"]
    for i, (_, _, message, _) in enumerate(epochs):
        found = re.fullmatch(
            r"MLP 8, state 0: epoch (\d) of 6, loss (\d?\.\d{3}), held-out accuracy (\d?\.\d{3})", message
        )
        assert int(found[1]) == i + 1
        assert float(found[2]) == pytest.approx(facts["loss"][i], abs=6e-4)
        assert float(found[3]) == pytest.approx(facts["held_out_accuracy"][i], abs=6e-4)
    assert facts["loss"][-1] < facts["loss"][0] / 2
    assert facts["accuracy"] == facts["held_out_accuracy"][-1]
    assert (facts["n_train"], facts["n_held_out"], facts["classes"]) == (
        160,
        40,
        [str(digit) for digit in range(10)],
    )


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


def test_rows_without_a_label_are_encoded_but_not_trained_on(digits):
    labels = digits.labels.copy()
    labels[::2] = ""
    half = Dataset(digits.items, digits.ids, name="digits", kind="images", labels=labels, content=list)
    encoder = SmallVision("mlp", epochs=1)
    trained = encoder.train(half, SILENT)
    assert trained.metadata["n_train"] + trained.metadata["n_held_out"] == 100
    assert "" not in trained.metadata["classes"]
    assert len(encoder.restore(trained, half)(half.items(0, 200))[""]) == 200


def test_at_most_so_many_rows_are_trained_on(digits):
    assert SmallVision("mlp", epochs=1, train_rows=50).train(digits, SILENT).metadata["n_train"] == 50


def test_colour_is_seen_even_where_the_first_pictures_are_grey():
    rng = np.random.default_rng(0)
    grey = [rng.integers(100, 110, (8, 8), dtype=np.uint8) for _ in range(300)]
    colour = [np.full((8, 8, 3), (200, 0, 0) if i % 2 else (0, 0, 200), dtype=np.uint8) for i in range(300)]
    dataset = pictures([*grey, *colour])
    encoder = SmallVision("mlp", width=4, epochs=5)
    trained = encoder.train(dataset, SILENT)
    assert trained.metadata["mode"] == "RGB"
    rows = encoder.restore(trained, dataset)(dataset.items(300, 600))[""]
    assert np.linalg.norm(rows[0] - rows[1]) > 10 * np.linalg.norm(rows[0] - rows[2])


def test_mixed_sizes_are_refused_or_resized():
    small, large = np.zeros((8, 8), np.uint8), np.full((12, 10), 255, np.uint8)
    dataset = pictures([small, large] * 30)
    with pytest.raises(
        SpaceError, match="expected pictures of one size, got 8 × 8 and 10 × 12 in 'told'; set image_size=32"
    ):
        SmallVision("mlp").train(dataset, SILENT)
    encoder = SmallVision("cnn", epochs=2, image_size=16)
    trained = encoder.train(dataset, SILENT)
    assert trained.metadata["size"] == [16, 16]
    assert encoder.restore(trained, dataset)(dataset.items(0, 4))[""].shape == (4, 64)


def test_a_size_that_training_has_not_seen_is_refused_when_it_is_encoded(digits):
    encoder = SmallVision("mlp", epochs=1)
    trained = encoder.train(digits, SILENT)
    with pytest.raises(SpaceError, match="got 8 × 8 and 9 × 9"):
        encoder.restore(trained, digits)([*digits.items(0, 3), Image.new("L", (9, 9))])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "expected labels to train on, got none in 'told'; choose a label column"),
        ("a", "expected labels of two or more classes, .* got 1 different ones for 40 items"),
        (
            [str(i) for i in range(40)],
            "got 40 different ones for 40 items in 'told'; choose another label column",
        ),
    ],
)
def test_labels_that_teach_nothing(labels, message):
    with pytest.raises(SpaceError, match=message):
        SmallVision("mlp").train(pictures([np.zeros((8, 8), np.uint8)] * 40, labels), SILENT)


def test_pictures_too_large_for_small_networks():
    with pytest.raises(SpaceError, match="at most 64 × 64 pixels, got 100 × 80 in 'told'; set image_size=32"):
        SmallVision().train(pictures([np.zeros((80, 100), np.uint8)] * 20), SILENT)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"architecture": "resnet"},
            "architecture: expected one of mlp, cnn, residual, vit, got 'resnet'",
        ),
        ({"width": 1}, "width: expected a whole number from 2 to 4096, got 1"),
        ({"epochs": 0}, "epochs: expected a whole number from 1 to 1000, got 0"),
        ({"image_size": 224}, "image_size: expected a whole number from 4 to 64, got 224"),
        ({"random_state": -1}, "random_state: expected a whole number from 0"),
    ],
)
def test_settings_out_of_bounds(settings, message):
    with pytest.raises(SpaceError, match=message):
        SmallVision(**settings)


@pytest.mark.slow
def test_four_architectures_learn_the_digits_in_twelve_epochs(tmp_path, monkeypatch):
    store, spec = Store(tmp_path), DatasetSpec("digits")
    digest = load_dataset(spec).digest
    steps, step = [], torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *arguments: steps.append(1) or step(*arguments))
    spaces = {name: encode(spec, SmallVision(name), store)[0] for name in NAMES}
    for name, space in spaces.items():
        training = store.get(encoding_key(digest, SmallVision(name))).metadata["training"]
        print(f"{name}: held-out accuracy {training['accuracy']:.3f}")
        assert training["accuracy"] >= 0.93
        assert (len(space), space.dimension) == (1797, 64)
    assert len(steps) == len(NAMES) * 12 * math.ceil(
        1797 * 0.8 / 64
    )  # epochs of batches of 64, and nothing beside them
    again = [encode(spec, SmallVision(name), store)[0] for name in NAMES]
    assert len(steps) == len(NAMES) * 12 * math.ceil(1797 * 0.8 / 64)
    assert [space.digest for space in again] == [space.digest for space in spaces.values()]
