"""One item, every pair: answers as the stitching gives them, and the figure again from its recipe."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import encoding_key, encoding_spec
from relcore.catalog.encoding import encode
from relcore.compare.figures import exportable
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.small_vision import SmallVision
from relcore.runs.store import Store
from relcore.stitch.stitching import Stitching, StitchSpec, share_rows
from relcore.stitch.try_it import Answers, TryIt, answers_of, encode_items

DIGITS = DatasetSpec("digits", limit=300)
SPEC = StitchSpec(methods=("absolute", "relative"), n_anchors=40)
RELATIVE = replace(SPEC, methods=("relative",))


@pytest.fixture
def made(monkeypatch, tmp_path):
    """Specs and the fitted stitching of two networks of different widths."""
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
    found = answers_of(stitching, "relative", [encode_items(spec, [picture]) for spec in specs])
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


def test_of_widths_that_differ_absolute_has_no_answer_but_on_the_diagonal(made):
    specs, stitching = made
    found = answers_of(
        stitching, "absolute", [encode_items(spec, [load_dataset(DIGITS).item(0)]) for spec in specs]
    )
    assert [bool(found.top(i, j)) for i in range(2) for j in range(2)] == [True, False, False, True]
    assert found.agrees(0, 1) is None
    assert found.verdict() == ((), 0, 0)


def test_an_encoder_that_cannot_take_it_is_left_out_and_its_head_stays(made):
    specs, stitching = made
    rows = [None, encode_items(specs[1], [load_dataset(DIGITS).item(0)])]
    found = answers_of(stitching, "relative", rows)
    assert (found.encoders, found.heads, found.own) == (
        ("MLP 12, state 12 · digits",),
        tuple(s.name for s in specs),
        (1,),
    )
    assert found.probabilities.shape == (1, 2, 10)
    with pytest.raises(SpaceError, match="expected an encoder that takes new items, got none"):
        answers_of(stitching, "relative", [None, None])
    with pytest.raises(
        SpaceError, match="expected one that was fitted, 'absolute', 'relative', got 'procrustes'"
    ):
        answers_of(stitching, "procrustes", rows)


def test_most_stitched_pairs_and_agreement_with_the_own_head():
    probabilities = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.7, 0.3]]])
    found = Answers("relative", ("a", "b"), ("a", "b"), (0, 1), ("no", "yes"), probabilities)
    assert (found.agrees(1, 0), found.agrees(0, 1), found.agrees(0, 0)) == (True, False, True)
    assert found.verdict() == (("yes", "no"), 1, 2)  # one pair each
    probabilities[1, 0] = 0.1, 0.9
    assert found.verdict() == (("yes",), 2, 2)
    probabilities[1, 0] = 0.6, 0.4
    assert found.wide().iloc[1].tolist() == ["b", "no (.60)", "no (.70)"]


def test_the_figure_again_from_its_recipe(made):
    specs, stitching = made
    picture = load_dataset(DIGITS).item(int(stitching.split.test[0]))
    answers = answers_of(stitching, "relative", [encode_items(spec, [picture]) for spec in specs])
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
        ({"spaces": 3}, "recipe of try-it: spaces: expected a list, got 3"),
        ({"colour": 1}, "recipe of try-it: expected settings among 'spaces', 'digests', .*got 'colour'"),
    ],
)
def test_broken_recipes_say_what_is_wrong(change, message):
    recipe = TryIt.of(Image.new("L", (8, 8)), spaces=(), stitching=RELATIVE).to_json()
    with pytest.raises(SpaceError, match=message):
        exportable({**recipe, **change})
