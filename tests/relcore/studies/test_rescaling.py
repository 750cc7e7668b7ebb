"""Rescaling: what cannot see a length is flat, and a layer is rescaled alone."""

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.catalog.encoding import encode, trained_weights
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.vision import SmallVision, open_network
from relcore.runs.store import Store
from relcore.studies import networks
from relcore.studies.networks import fit_plain_mlp, injected, lost_by_layer, rescale_curve, rescaled_rows


@pytest.fixture
def rows(rng):
    classes = np.arange(300) % 3
    X = np.eye(3)[classes] * rng.uniform(1, 3, size=(300, 1)) + 0.1 * rng.normal(size=(300, 3))
    return X.astype(np.float32), classes


@pytest.fixture
def make_blobs(rng, make_space):
    """Three classes in three directions; all of one length, or of lengths that differ."""

    def make(length=None, n=240):
        classes = np.arange(n) % 3
        X = np.eye(8)[classes] * 2 + 0.5 * rng.normal(size=(n, 8))
        X = length * unit_rows(X.astype(np.float32)) if length else X
        return make_space(X, name="blobs", labels=[f"c{number}" for number in classes])

    return make


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(autouse=True)
def few_digits(monkeypatch):
    monkeypatch.setattr(networks, "dataset_of", lambda data: DatasetSpec("digits", limit=300))


def test_an_answer_by_direction_does_not_change_and_one_by_length_does(rows):
    X, classes = rows
    by_direction = rescale_curve(lambda Z: Z.argmax(axis=1), X, classes, (0.1, 1.0, 10.0))
    assert len(set(by_direction)) == 1
    by_length = lambda Z: np.where(np.linalg.norm(Z, axis=1) > 5, classes, -1)  # noqa: E731
    assert rescale_curve(by_length, X, classes, (0.1, 1.0, 10.0)) == [0, 0, 0, 1]


@pytest.mark.parametrize("activation", ["relu", "cosine"])
def test_monotone_networks_keep_their_answers_where_a_cosine_does_not(rows, activation):
    X, classes = rows
    own, at_mean, *far = rescale_curve(
        fit_plain_mlp(X, classes, activation), X, classes, (2.0, 40.0, 41.0, 43.0, 47.0)
    )
    assert min(own, at_mean) > 0.95
    assert (min(far) > 0.9) == (activation != "cosine")


def test_a_network_that_normalises_first_is_flat(make_blobs):
    values = rescaled_rows(make_blobs(), "layernorm")
    assert set(values["accuracy by length"]) == {values["as it is"]}
    assert values["as it is"] > values["chance"] + 0.3


def test_rows_of_one_length_are_unchanged_at_it(make_blobs):
    space = make_blobs(length=5)
    values = {network: rescaled_rows(space, network, 1) for network in ("relu", "cosine")}
    for value in values.values():
        assert value["mean length"] == pytest.approx(5, rel=1e-4)
        assert value["lengths"][20] == pytest.approx(5, rel=1e-4)
        assert value["accuracy by length"][20] == value["as it is"] == value["all at the mean length"]
    assert values["cosine"]["least of all"] < values["relu"]["least of all"]


def test_a_layer_is_rescaled_alone_and_only_meanwhile():
    import torch
    from torch import nn

    layers = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Linear(4, 2, bias=False))
    inputs = torch.randn(5, 3)
    with torch.inference_mode():
        before = layers(inputs)
        with injected(layers[0], 7.0):
            assert torch.allclose(layers[0](inputs).norm(dim=1), torch.full((5,), 7.0))
            assert not torch.allclose(layers(inputs), before)
        assert torch.equal(layers(inputs), before)


def test_an_open_network_encodes_as_the_encoder_does(store):
    dataset, encoder = DatasetSpec("digits", limit=300), SmallVision("vit", width=16, epochs=4)
    (space,) = encode(dataset, encoder, store)
    data = load_dataset(dataset)
    network = open_network(encoder, data, print, trained_weights(encoder, data, store))
    np.testing.assert_allclose(network.encode(data.items(0, 20)), space.vectors[:20], atol=1e-4)


def test_what_a_layer_loses_has_the_interval_of_paired_answers():
    def lost(accuracy, changed):
        run = {"test rows": 100, "own lengths": [5.0], "lengths": [5.0], "as it is": 0.9}
        return lost_by_layer(run | {"accuracy": [[accuracy]], "changed": [[changed]]})[0]

    same, one_direction, both = lost(0.9, 0.0), lost(0.86, 0.04), lost(0.9, 0.2)
    assert same.value == 0
    assert same.high == pytest.approx(1.96 * np.sqrt(1) / 100, rel=1e-3)
    assert one_direction.value == pytest.approx(0.04)
    reach = one_direction.high - one_direction.value
    assert reach == pytest.approx(1.96 * np.sqrt(5 - 0.16) / 100, rel=1e-3)
    assert both.high > reach, "answers that change both ways widen it"
