"""Networks opened and rescaled inside: the last layer's rescaling is that of the head's input, and
encodings stay the same.
"""

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.open_networks import can_open, open_network
from relcore.encoders.small_vision import SmallVision, held_out_rows
from relcore.invert.rescale import (
    LayerRescaleResult,
    LayerRescaleSpec,
    fit_plain_mlp,
    rescale_curve,
    rescale_network,
)
from relcore.runs.store import Store

DIGITS = DatasetSpec("digits", limit=300)
SPEC = LayerRescaleSpec(200, 40, 8, 3)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


def small(architecture):
    return SmallVision(architecture, width=16, epochs=4)


def test_the_last_layer_rescaled_is_the_heads_input_rescaled(store):
    found = rescale_network(DIGITS, small("mlp"), store, SPEC)
    assert found.layers == ("hidden 1", "hidden 2", "output")
    assert (found.n_train, found.n_test) == (200, 40)
    (space,) = encode(DIGITS, small("mlp"), store)
    test = np.isin(space.ids, [space.ids[row] for row in held_out_rows(300)])
    train_rows = _even(space.labels, np.flatnonzero(~test), 200)
    rows = _even(space.labels, np.flatnonzero(test), 40)
    classes = space.labels.astype(int)
    answer = fit_plain_mlp(space.vectors[train_rows], classes[train_rows], "relu", 0)
    curve = rescale_curve(answer, space.vectors[rows], classes[rows], found.alphas)["accuracy"]
    assert found.own == pytest.approx(curve[0], abs=0.026)
    np.testing.assert_allclose(
        found.accuracy[-1], curve[1:], atol=0.051
    )  # float32 sums of another batch, one item or two
    assert found.lengths[-1] == pytest.approx(space.norms[rows].mean(), rel=1e-4)


def _even(labels, rows, n):
    from relcore.encoders.dataset import evenly

    return rows[evenly(labels[rows], n)]


@pytest.mark.parametrize("architecture", ["mlp", "vit"])
def test_an_open_network_encodes_as_the_encoder_does(store, architecture):
    (space,) = encode(DIGITS, small(architecture), store)
    from relcore.invert.cross_domain import trained_weights

    data = load_dataset(DIGITS)
    network = open_network(
        small(architecture), data, print, trained_weights(small(architecture), data, store)
    )
    np.testing.assert_allclose(network.encode(data.items(0, 20)), space.vectors[:20], atol=1e-4)


def test_layers_of_the_vit_in_their_order_and_every_pass_counted(store):
    told = []
    found = rescale_network(DIGITS, small("vit"), store, SPEC, lambda *report: told.append(report[:2]))
    assert found.layers == ("layer 1", "layer 2", "final norm", "output")
    assert np.shape(found.accuracy) == (4, 3)
    assert told[-1] == (12, 13)
    assert records.unpack(LayerRescaleResult, *records.pack(found)) == found
    assert found.table()["as it is"].nunique() == 1


def test_what_cannot_be_opened_or_asked_is_refused(store):
    assert not can_open(small("cnn"))
    with pytest.raises(SpaceError, match="expected one output of a transformer, or the small ViT or MLP"):
        rescale_network(DIGITS, small("cnn"), store, SPEC)
    with pytest.raises(SpaceError, match="'everyday/en': expected labels to train a head on, got none"):
        rescale_network(DatasetSpec("parallel", "en"), small("vit"), store, SPEC)
    for settings, message in (
        ({"n_test": 1}, "n_test: expected a whole number from 2, got 1"),
        ({"span": 0.5}, "span: expected a factor above 1"),
        ({"colour": 1}, "settings: expected settings among 'n_train', .*, got 'colour'"),
    ):
        with pytest.raises(SpaceError, match=message):
            records.from_json(LayerRescaleSpec, settings)


def test_a_transformer_is_opened_at_its_embedding_and_layers(tmp_path):
    import transformers

    from relcore.encoders.dataset import Dataset
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
    encoder = PretrainedText(str(tmp_path))
    network = open_network(encoder, data, lambda *told: None)
    assert list(network.layers) == ["embedding", "layer 1", "layer 2", "layer 3"]
    from relcore.invert.rescale import injected

    before = network.encode(texts)
    with injected(network.layers["layer 3"], 5.0):
        assert (np.linalg.norm(network.encode(texts), axis=1) <= 5.0001).all()
        np.testing.assert_allclose(np.linalg.norm(network.encode(["f"]), axis=1), 5, rtol=0.5)
    np.testing.assert_array_equal(network.encode(texts), before)
