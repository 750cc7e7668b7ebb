"""What is sent to the linked panes: every number, and a digest that changes only with its content."""

import json

import numpy as np
import pytest

from relcore.figures.scene import Pane, Scene
from relcore.panes.payload import ids_digest, pack_rows, payload_of, unpack_rows


def make_scene(n=11, **changes):
    rng = np.random.default_rng(0)
    parts = {
        "panes": tuple(Pane(f"pane {i}", rng.normal(size=(n, 2)), note="PCA") for i in range(2)),
        "ids": np.array([f"é {i}" for i in range(n)], dtype=object),
        "categories": np.arange(n) % 3 - 1,
        "category_names": ("a", "b"),
        "anchors": np.array([4, 2]),
        "caption": "Eleven rows.",
    }
    return Scene(**{**parts, **changes})


def pack(scene, **options):
    return payload_of(scene, version=ids_digest(scene), **options).to_bytes()


def read(payload):
    length = int.from_bytes(payload[:4], "little")
    header = json.loads(payload[4 : 4 + length])
    assert (4 + length) % 4 == 0
    arrays = {
        name: payload[4 + length + start : 4 + length + start + size]
        for name, (start, size, _) in header["arrays"].items()
    }
    assert all(start % 4 == 0 for start, _, _ in header["arrays"].values())
    return header, arrays


def digests(scene, **options):
    return {name: digest for name, (_, _, digest) in read(pack(scene, **options))[0]["arrays"].items()}


def test_digests_change_only_where_the_content_does():
    scene = make_scene()
    before = digests(scene, selected=[1])
    assert digests(make_scene(), selected=[1]) == before
    moved = make_scene(panes=(scene.panes[0], Pane("pane 1", scene.panes[1].coordinates + 1)))
    cases = {
        "selected": digests(scene, selected=[2]),
        "anchors": digests(make_scene(anchors=np.array([1])), selected=[1]),
    }
    cases["pane1"] = digests(moved, selected=[1])
    for name, after in cases.items():
        assert {other for other in before if before[other] != after[other]} == {name}


@pytest.mark.parametrize("n", [7, 1000])
def test_rows_survive_the_bitset(n):
    rows = np.flatnonzero(np.random.default_rng(n).random(n) < 0.4)
    back = unpack_rows(pack_rows(rows[::-1], n), n)
    np.testing.assert_array_equal(back, rows)
    assert back.dtype == np.int64


@pytest.mark.parametrize(
    ("changes", "options", "match"),
    [
        (
            {"panes": (Pane("holes", np.full((11, 2), np.nan)),)},
            {},
            "'holes': expected finite coordinates, got 11 rows",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes, options, match):
    with pytest.raises(ValueError, match=match):
        pack(make_scene(**changes), **options)


def test_arrays_that_are_elsewhere_do_not_travel_and_keep_size_and_digest():
    scene = make_scene()
    whole = payload_of(scene, version=ids_digest(scene))
    sent = whole.leaving({"pane0": "/there", "ids": "/here"})
    header, arrays = read(sent.to_bytes())
    assert header["elsewhere"] == {"pane0": "/there", "ids": "/here"}
    assert {name: one[1:] for name, one in header["arrays"].items()} == {
        name: one[1:] for name, one in whole.header["arrays"].items()
    }
    for name, content in whole.arrays.items():
        assert (arrays[name] == content) is (name not in header["elsewhere"])
    assert len(sent.to_bytes()) < len(whole.to_bytes())
