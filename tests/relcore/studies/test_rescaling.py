"""Rescale injection: what cannot see a length is flat, what has one length is unchanged at it, and a layer is
rescaled alone.
"""

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.encoding import encode, trained_weights
from relcore.encoders.dataset import Dataset, DatasetSpec, evenly
from relcore.encoders.datasets import load_dataset
from relcore.encoders.open_networks import can_open, open_network
from relcore.encoders.small_vision import SmallVision, held_out_rows
from relcore.represent.similarity import unit_rows
from relcore.runs.store import Store
from relcore.studies import rescaling
from relcore.studies.rescaling import (
    fit_plain_mlp,
    injected,
    lost_by_layer,
    rescale_curve,
    rescale_layers,
    rescaled_layers,
    rescaled_rows,
)
from relcore.studies.study import StudySpec, study_of

SETTINGS = {"n_train": 200, "n_test": 40, "span": 8.0, "n_alphas": 3}


@pytest.fixture
def rows(rng):
    """Three classes in three directions, lengths 1 to 3."""
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
    monkeypatch.setattr(rescaling, "dataset_of", lambda data: DatasetSpec("digits", limit=300))


def small(architecture):
    return SmallVision(architecture, width=16, epochs=4)


def test_an_answer_by_direction_does_not_change_and_one_by_length_does(rows):
    X, classes = rows
    by_direction = rescale_curve(lambda Z: Z.argmax(axis=1), X, classes, (0.1, 1.0, 10.0))
    assert len(set(by_direction)) == 1
    by_length = lambda Z: np.where(np.linalg.norm(Z, axis=1) > 5, classes, -1)  # noqa: E731
    assert rescale_curve(by_length, X, classes, (0.1, 1.0, 10.0)) == [0, 0, 0, 1]


@pytest.mark.parametrize("activation", ["relu", "tanh", "cosine"])
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


def test_rows_that_were_held_out_are_the_ones_tested(make_blobs):
    space = make_blobs()
    assert rescaled_rows(space, "relu", 0, space.ids[::5], n_rows=100)["test rows"] == 20
    assert rescaled_rows(space, "relu", 0, space.ids[::5])["test rows"] == 48


def test_what_cannot_be_is_refused(rows, make_space):
    X, classes = rows
    with pytest.raises(SpaceError, match="classes: expected two or more, got 1"):
        fit_plain_mlp(X, classes * 0)
    with pytest.raises(SpaceError, match="'made': expected labels to train networks on, got none"):
        rescaled_rows(make_space(np.ones((20, 3))), "relu")
    with pytest.raises(SpaceError, match="two or more classes, each with several rows, got 1 different"):
        rescaled_rows(make_space(np.ones((20, 3)), labels=["a"] * 20), "relu")


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


def test_each_layer_at_each_length(rows):
    import torch
    from torch import nn

    X, classes = rows
    model = nn.Sequential(nn.Identity(), nn.Identity())
    by_length = lambda Z: np.where(np.linalg.norm(Z, axis=1) < 3.5, classes, -1)  # noqa: E731
    encode_rows = lambda: model(torch.from_numpy(X)).numpy()  # noqa: E731
    layers = {"first": model[0], "second": model[1]}
    own, accuracy, changed = rescale_layers(layers, encode_rows, by_length, classes, (3.0, 4.0))
    assert (own, accuracy, changed) == (1, [[1, 0], [1, 0]], [[0, 1], [0, 1]])


def test_the_last_layer_rescaled_is_the_heads_input_rescaled(store):
    values = rescaled_layers("digits", small("mlp"), SETTINGS, store, lambda *told: None)
    assert values["layers"] == ["hidden 1", "hidden 2", "output"]
    (space,) = encode(DatasetSpec("digits", limit=300), small("mlp"), store)
    held_out = held_out_rows(300)
    train, test = (
        part[evenly(space.labels[part], n)]
        for part, n in ((np.setdiff1d(np.arange(300), held_out), 200), (held_out, 40))
    )
    classes = space.labels.astype(int)
    answer = fit_plain_mlp(space.vectors[train], classes[train])
    own, *curve = rescale_curve(answer, space.vectors[test], classes[test], values["lengths"])
    # Float32 sums of another batch may turn one answer of the 40, or two.
    assert values["as it is"] == pytest.approx(own, abs=0.026)
    assert values["accuracy"][-1] == pytest.approx(curve, abs=0.051)
    assert values["own lengths"][-1] == pytest.approx(space.norms[test].mean(), rel=1e-4)


@pytest.mark.parametrize("architecture", ["mlp", "vit"])
def test_an_open_network_encodes_as_the_encoder_does(store, architecture):
    dataset = DatasetSpec("digits", limit=300)
    (space,) = encode(dataset, small(architecture), store)
    data = load_dataset(dataset)
    weights = trained_weights(small(architecture), data, store)
    network = open_network(small(architecture), data, print, weights)
    np.testing.assert_allclose(network.encode(data.items(0, 20)), space.vectors[:20], atol=1e-4)


def test_a_network_whose_layers_give_no_vectors_is_refused(store):
    assert not can_open(small("cnn"))
    with pytest.raises(SpaceError, match="expected one output of a transformer, or the small ViT or MLP"):
        rescaled_layers("digits", small("cnn"), SETTINGS, store, lambda *told: None)


def test_a_transformer_is_opened_at_its_embedding_and_layers(tmp_path):
    import transformers

    from relcore.encoders.transformers import PretrainedText

    config = transformers.BertConfig(
        vocab_size=30, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16
    )
    transformers.set_seed(0)
    transformers.BertModel(config).save_pretrained(tmp_path)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    texts = ["a b c", "d e", "f"]
    data = Dataset(lambda start, stop: texts[start:stop], ["1", "2", "3"], name="letters", kind="texts")
    network = open_network(PretrainedText(str(tmp_path)), data, lambda *told: None)
    assert list(network.layers) == ["embedding", "layer 1", "layer 2", "layer 3"]
    before = network.encode(texts)
    with injected(network.layers["layer 3"], 5.0):
        assert (np.linalg.norm(network.encode(texts), axis=1) <= 5.0001).all()
    np.testing.assert_array_equal(network.encode(texts), before)


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


def test_runs_become_charts_findings_and_a_sentence(make_blobs, store, monkeypatch):
    study, blobs = study_of("rescaled-rows"), make_blobs()
    monkeypatch.setattr(rescaling, "_labelled_space", lambda *given: (blobs, ()))
    options = StudySpec.of(study, {"networks": ["relu", "layernorm"]}).settings
    table = pd.DataFrame([one | study.measure(one, store, print).values for one in study.runs(options)])
    (chart,) = study.charts(options, table).values()
    assert [line.name for line in chart.lines] == ["ReLU", "normalised first"]
    assert len(study.findings(options, table)) == 10
    assert "ReLU" in study.conclusion(options, table)
    study = study_of("rescaled-layers")
    values = rescaled_layers("digits", small("mlp"), SETTINGS, store, lambda *told: None)
    table = pd.DataFrame([values])
    (chart,) = study.charts({}, table).values()
    assert len(chart.panels[0].marked) == 3
    assert "the layer that loses most of 3, cost" in study.conclusion({}, table)
    assert len(study.findings({}, table)) == 8
