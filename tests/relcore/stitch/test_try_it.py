"""One item, every pair: answers as the stitching gives them, and the figure again from its recipe."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import encode, encoding_key, encoding_spec
from relcore.compare.scene import exportable
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.vision import SmallVision
from relcore.represent.heads import LogisticHead
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch import stitching
from relcore.stitch.stitching import Stitching, StitchSpec, share_rows
from relcore.stitch.try_it import NONE, TryIt, answers_of, item_encoder

DIGITS = DatasetSpec("digits", limit=300)
SPEC = StitchSpec(methods=("absolute", "relative"), n_anchors=40)
RELATIVE = replace(SPEC, methods=("relative",))


@pytest.fixture
def made(monkeypatch, tmp_path):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path))
    store, digest = Store(), load_dataset(DIGITS).digest
    networks = [SmallVision("mlp", width=width, epochs=4, random_state=width) for width in (8, 12)]
    spaces = [encode(DIGITS, network, store)[0] for network in networks]
    specs = [
        encoding_spec(DIGITS, network, "", encoding_key(digest, network), space.name)
        for network, space in zip(networks, spaces, strict=True)
    ]
    return specs, Stitching(share_rows(spaces), SPEC)


def test_of_a_test_row_each_pair_says_what_the_stitching_says(made):
    specs, stitching = made
    row = int(stitching.split.test[3])
    picture = load_dataset(DIGITS).item(row)
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


def test_the_figure_again_from_its_recipe(made):
    specs, stitching = made
    picture = load_dataset(DIGITS).item(int(stitching.split.test[0]))
    answers = answers_of(
        stitching, "relative", [item_encoder(spec, Store()).rows([picture]) for spec in specs]
    )
    digests = tuple(space.digest for space in stitching.shared.spaces)
    figure = TryIt.of(picture, spaces=tuple(specs), stitching=RELATIVE, digests=digests).draw(answers)
    again = exportable(json.loads(figure.bytes("json", full_paths=True)))
    np.testing.assert_allclose(again.table()["probability"], figure.table()["probability"], atol=1e-5)
    assert (again.table()["class"] == figure.table()["class"]).all()
    assert b"MLP 8" in figure.bytes("tex")
    changed = {**figure.recipe, "digests": ["0" * 32, digests[1]]}
    with pytest.raises(SpaceError, match="has changed: expected content 00000000"):
        exportable(changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"picture": "%%%"}, "expected a 'text', or a 'picture' as base64 of a PNG, got neither"),
        ({"picture": "aGVsbG8="}, "the recipe's picture: expected an image"),
    ],
)
def test_broken_recipes_say_what_is_wrong(change, message):
    recipe = TryIt.of(Image.new("L", (8, 8)), spaces=(), stitching=RELATIVE).to_json()
    with pytest.raises(SpaceError, match=message):
        exportable({**recipe, **change})


@pytest.fixture
def noisy(rng):
    """Two spaces of three classes that overlap, the second of them turned."""
    labels = np.arange(600) % 3
    X = rng.normal(size=(600, 6)) + 1.2 * np.eye(3, 6)[labels]
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    ids, names = [f"r{row}" for row in range(600)], [f"c{label}" for label in labels]
    spaces = [LatentSpace(rows, ids, labels=names) for rows in (X, X @ turn)]
    return Stitching(share_rows(spaces), StitchSpec(("relative", "procrustes"), n_anchors=40))


@pytest.mark.parametrize("method", ["relative", "procrustes"])
def test_a_pair_less_sure_than_its_right_answers_says_none_of_these(noisy, method):
    spaces, test = noisy.shared.spaces, noisy.split.test
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
    assert not found.agrees(0, 1) or found.answer(1, 1) == NONE
    surest = int(sure[0, 1].max(axis=-1).argmax())
    found = answers_of(noisy, method, [X[surest : surest + 1] for X in rows])
    assert found.answer(0, 1) == found.top(0, 1)[0][0]


def test_few_right_answers_reject_none(noisy, monkeypatch):
    monkeypatch.setattr(stitching, "_FEWEST_RIGHT", 10_000)
    assert not noisy.least_sure("relative").any()


@pytest.mark.parametrize("method", ["relative", "procrustes"])
def test_a_few_items_of_all_encoders_take_one_call_of_each_head(noisy, method, monkeypatch):
    rows = [space.vectors[:3] for space in noisy.shared.spaces]
    monkeypatch.setattr(stitching, "_FEW", 0)
    apart = noisy.probabilities(method, rows)
    monkeypatch.undo()
    calls, of = [], LogisticHead.probabilities
    monkeypatch.setattr(LogisticHead, "probabilities", lambda head, X: calls.append(len(X)) or of(head, X))
    np.testing.assert_allclose(noisy.probabilities(method, rows), apart, atol=1e-6)
    assert calls == [6, 6]
