"""One item, every pair: answers as the stitching gives them, and the figure again from its recipe."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import encoding_spec
from relcore.catalog.encoding import encode, encoding_key
from relcore.compare.scene import exportable
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.vision import SmallVision
from relcore.runs.store import Store
from relcore.stitch.stitching import Stitching, StitchSpec, share_rows
from relcore.stitch.try_it import TryIt, answers_of, item_encoder

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
