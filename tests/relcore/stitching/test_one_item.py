"""New items through a space's encoder: of a stored item the stored row, and what cannot be encoded says
so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, encoding_key, encoding_spec, key_of
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.small_vision import SmallVision
from relcore.runs.store import Store
from relcore.stitch.try_it import (
    encode_items,
    item_encoder,
    joined_encoder,
    rows_of,
    why_not,
)

SENTENCES = DatasetSpec("parallel", "en")
DIGITS = DatasetSpec("digits", limit=200)
ENCODERS = [
    (SENTENCES, TfidfSvd(n_components=30)),
    (SENTENCES, PooledWords()),
    (DIGITS, SmallVision("mlp", width=8, epochs=1)),
    (DIGITS, SmallVision("cnn", width=8, epochs=1)),
]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def encoded(dataset, encoder, store):
    """The space and its spec."""
    [space] = encode(dataset, encoder, store)
    key = encoding_key(load_dataset(dataset, store).digest, encoder)
    return space, encoding_spec(dataset, encoder, "", key, space.name)


@pytest.mark.parametrize(("dataset", "encoder"), ENCODERS, ids=lambda one: getattr(one, "title", ""))
def test_a_stored_item_gives_its_stored_row_alone_and_in_company(store, dataset, encoder):
    space, spec = encoded(dataset, encoder, store)
    items = load_dataset(dataset, store)
    ready = item_encoder(spec, store)
    for row in (0, 7, len(space) - 1):
        np.testing.assert_allclose(ready.rows([items.item(row)])[0], space.vectors[row], atol=1e-4)
    np.testing.assert_allclose(ready.rows(items.items(20, 25)), space.vectors[20:25], atol=1e-4)
    assert ready.kind == items.kind


def test_layers_of_minilm_give_their_stored_rows_alone_and_in_one_pass(store):
    from relcore.encoders.transformers import MiniLM

    dataset = DatasetSpec("parallel", "en", limit=6)
    encoder, digest = MiniLM((1, 2)), load_dataset(dataset).digest
    spaces = encode(dataset, encoder, store)
    first, second = (
        encoding_spec(dataset, encoder, output, encoding_key(digest, encoder, output), space.name)
        for output, space in zip(encoder.outputs, spaces, strict=True)
    )
    item = load_dataset(dataset).item(3)
    np.testing.assert_allclose(encode_items(second, [item], store)[0], spaces[1].vectors[3], atol=1e-4)

    joined = joined_encoder(second, [first, second])
    assert joined == MiniLM((1, 2)) == joined_encoder(first, [second])
    passes, ready = [], item_encoder(first, store, joined)

    def counted(texts):
        passes.append(texts)
        return ready.encode_batch(texts)

    both = replace(ready, encode_batch=counted)
    one, none, two = rows_of([both, None, replace(both, spec=second)], [item])
    assert passes == [[item]]
    assert none is None
    np.testing.assert_allclose(np.stack([one[0], two[0]]), [space.vectors[3] for space in spaces], atol=1e-4)


def test_only_layers_of_one_model_over_one_dataset_share_a_pass(store):
    from relcore.encoders.transformers import MiniLM, PretrainedText

    assert MiniLM((4,)).with_outputs_of(MiniLM((2, 6))) == MiniLM((2, 4, 6))
    assert PretrainedText("a", (1,)).with_outputs_of(PretrainedText("b", (2,))) is None
    assert PretrainedText("a", (1,)).with_outputs_of(PretrainedText("a", (2,), "cls")) is None
    assert PretrainedText("a", (2,)).with_outputs_of(PretrainedText("a", (-1,), "pooled")) is None
    assert MiniLM((1,)).with_outputs_of(PretrainedText("a", (2,))) is None
    assert TfidfSvd(20).with_outputs_of(TfidfSvd(30)) is None
    assert TfidfSvd(20).with_outputs_of(TfidfSvd(20)) == TfidfSvd(20)
    here = encoding_spec(DatasetSpec("parallel", "en"), MiniLM((1,)), "layer 1", "0", "here")
    there = encoding_spec(DatasetSpec("parallel", "fr"), MiniLM((2,)), "layer 2", "0", "there")
    assert joined_encoder(here, [there]) == MiniLM((1,))


def test_weights_that_the_store_has_lost_are_learnt_again_to_the_same_row(store):
    encoder = SmallVision("mlp", width=8, epochs=1)
    space, spec = encoded(DIGITS, encoder, store)
    dataset = load_dataset(DIGITS)
    store.remove(key_of("trained", dataset.digest, encoder))
    np.testing.assert_allclose(encode_items(spec, [dataset.item(5)], store)[0], space.vectors[5], atol=1e-4)


def test_a_dataset_that_has_changed_gives_no_items(store, tmp_path):
    path = tmp_path / "said.csv"
    path.write_text("text,label\nfirst one,a\nsecond one,b\nthird one,a\n")
    _, spec = encoded(DatasetSpec("file", str(path)), TfidfSvd(n_components=2, min_texts=1), store)
    assert item_encoder(spec, store).dataset.item(1) == "second one"
    path.write_text("text,label\nsecond one,b\nthird one,a\n")
    with pytest.raises(
        SpaceError, match="its dataset has changed since it was encoded; encode what is there now"
    ):
        item_encoder(spec, store)


def test_vectors_graphs_and_empty_items_are_refused(store):
    words = SpaceSpec("bundled", "word2vec-novels")
    assert why_not(words) == "came as vectors, without an encoder"
    with pytest.raises(SpaceError, match="got a space that came as vectors, without an encoder"):
        item_encoder(words, store)
    _, spec = encoded(SENTENCES, TfidfSvd(n_components=30), store)
    assert why_not(spec) == ""
    with pytest.raises(SpaceError, match="expected one item or more"):
        encode_items(spec, [], store)
    with pytest.raises(SpaceError, match="got an empty one; type a sentence"):
        encode_items(spec, ["fine", "  "], store)
