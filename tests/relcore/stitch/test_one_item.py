"""New items through a space's encoder: of a stored item the stored row, and what cannot be encoded says
so.
"""

from __future__ import annotations

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, encode, encoding_key, encoding_spec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.vision import SmallVision
from relcore.runs.store import Store
from relcore.stitch.try_it import (
    item_encoder,
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
        item_encoder(spec, store).rows([])
    with pytest.raises(SpaceError, match="got an empty one; type a sentence"):
        item_encoder(spec, store).rows(["fine", "  "])
