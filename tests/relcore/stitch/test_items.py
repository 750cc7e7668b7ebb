"""New items through an encoder, and the answers of every pair of encoder and head."""

from __future__ import annotations

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, encoding_spec
from relcore.catalog.encodings import encode, encoding_key
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.vision import SmallVision
from relcore.represent.heads import LogisticHead
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch import classifiers
from relcore.stitch.classifiers import Stitching
from relcore.stitch.shared_rows import share_rows
from relcore.stitch.stitching import StitchSpec
from relcore.stitch.try_it import NONE, answers_of, item_encoder, matrices_of, why_not

SENTENCES = DatasetSpec("parallel", "en")
DIGITS = DatasetSpec("digits", limit=200)
ENCODERS = [
    (SENTENCES, TfidfSvd(n_components=30)),
    (SENTENCES, PooledWords()),
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
def test_stored_item_gives_its_stored_row_alone_and_in_company(store, dataset, encoder):
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
        SpaceError, match="its dataset has changed since it was encoded; encode the current data"
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


MORE_DIGITS = DatasetSpec("digits", limit=300)
SPEC = StitchSpec(methods=("absolute", "relative"), n_anchors=40)


@pytest.fixture
def made(monkeypatch, tmp_path):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path))
    store = Store()
    digest = load_dataset(MORE_DIGITS).digest
    networks = [SmallVision("mlp", width=width, epochs=4, random_state=width) for width in (8, 12)]
    spaces = [encode(MORE_DIGITS, network, store)[0] for network in networks]
    specs = [
        encoding_spec(MORE_DIGITS, network, "", encoding_key(digest, network), space.name)
        for network, space in zip(networks, spaces, strict=True)
    ]
    return specs, Stitching(share_rows(spaces), SPEC)


def test_of_test_row_each_pair_says_what_stitching_says(made):
    specs, stitching = made
    row = int(stitching.split.test[3])
    picture = load_dataset(MORE_DIGITS).item(row)
    found = answers_of(stitching, "relative", [item_encoder(spec, Store()).rows([picture]) for spec in specs])
    stored = stitching.probabilities(
        "relative", [space.vectors[row : row + 1] for space in stitching.shared.spaces]
    )
    np.testing.assert_allclose(found.probabilities, stored[:, :, 0], atol=1e-4)
    assert found.top(0, 1, 10)[0][1] == found.probabilities[0, 1].max()
    assert [probability for _, probability in found.top(0, 1, 10)] == sorted(
        found.probabilities[0, 1].tolist(), reverse=True
    )
    table = found.table()
    assert len(table) == 2 * 2 * 10
    np.testing.assert_allclose(table.groupby(["encoder", "head"])["probability"].sum(), 1, atol=1e-5)
    assert table["stitched"].sum() == 20


@pytest.fixture
def noisy(rng):
    """Two spaces of three classes that overlap, the second of them turned."""
    labels = np.arange(600) % 3
    X = rng.normal(size=(600, 6)) + 1.2 * np.eye(3, 6)[labels]
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    ids = [f"r{row}" for row in range(600)]
    names = [f"c{label}" for label in labels]
    spaces = [LatentSpace(rows, ids, labels=names) for rows in (X, X @ turn)]
    return Stitching(share_rows(spaces), StitchSpec(("relative", "procrustes"), n_anchors=40))


@pytest.mark.parametrize("method", ["relative", "procrustes"])
def test_pair_less_sure_than_its_right_answers_says_none_of_these(noisy, method):
    spaces = noisy.shared.spaces
    test = noisy.split.test
    least = noisy.least_sure(method)
    rows = [space.vectors[test] for space in spaces]
    sure = noisy.probabilities(method, rows)
    right = sure.argmax(axis=-1) == noisy.shared.targets[test]
    for i, j in np.ndindex(2, 2):
        assert np.count_nonzero(right[i, j]) >= 20
        shares = sure[i, j][right[i, j]].max(axis=-1)
        assert np.mean(shares >= least[i, j]) == pytest.approx(0.95, abs=0.03)
    unsure = int(sure[0, 1].max(axis=-1).argmin())
    found = answers_of(noisy, method, [X[unsure : unsure + 1] for X in rows])
    assert found.answer(0, 1) == NONE
    assert found.wide().iloc[0, 2].startswith(NONE)
    ((likeliest, _),) = found.top(0, 1, 1)
    assert f" for {likeliest}" in matrices_of(found).panels[0].text(0, 1)
    assert not found.agrees(0, 1) or found.answer(0, 0) == NONE
    surest = int(sure[0, 1].max(axis=-1).argmax())
    found = answers_of(noisy, method, [X[surest : surest + 1] for X in rows])
    assert found.answer(0, 1) == found.top(0, 1)[0][0]


def test_few_items_of_all_encoders_take_one_call_of_each_head(noisy, monkeypatch):
    rows = [space.vectors[:3] for space in noisy.shared.spaces]
    monkeypatch.setattr(classifiers, "_FEW", 0)
    apart = noisy.probabilities("relative", rows)
    monkeypatch.undo()
    calls = []
    of = LogisticHead.probabilities
    monkeypatch.setattr(LogisticHead, "probabilities", lambda head, X: calls.append(len(X)) or of(head, X))
    np.testing.assert_allclose(noisy.probabilities("relative", rows), apart, atol=1e-6)
    assert calls == [6, 6]
