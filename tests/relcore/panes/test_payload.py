"""What is sent to the linked panes: every number, and a digest that changes only with its content."""

import json

import numpy as np
import pytest

from relcore.charts.coloring import PARTS, STEPS, Coloring, ColorScale
from relcore.charts.scene import Pane, Scene, StarLook
from relcore.panes.payload import NO_CATEGORY, Sheet, ids_digest, joined, pack_rows, payload_of, unpack_rows


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
    """The other side's reading, written apart: header and raw arrays."""
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


def test_payload_carries_every_number():
    scene = make_scene()
    header, arrays = read(pack(scene, selected=[0, 10], settings={"tool": "box"}))
    for i, pane in enumerate(scene.panes):
        np.testing.assert_array_equal(
            np.frombuffer(arrays[f"pane{i}"], "<f4").reshape(-1, 2), pane.coordinates.astype(np.float32)
        )
    assert np.frombuffer(arrays["categories0"], "<u2").tolist()[:4] == [NO_CATEGORY, 0, 1, NO_CATEGORY]
    assert np.frombuffer(arrays["anchors"], "<u4").tolist() == [4, 2]
    assert arrays["ids"].decode().split("\x1f") == scene.ids.tolist()
    assert arrays["selected"] == bytes([0b1, 0b100])
    assert header["n"] == 11
    assert header["tool"] == "box"
    drawn = {"note": "PCA", "dimensions": 2, "quantised": False, "old": "", "coloring": 0}
    assert header["panes"] == [{"title": f"pane {i}", **drawn} for i in range(2)]
    assert "Eleven rows." in header["alt"]


def test_what_hovers_show_is_a_file_and_only_where_it_is_found_travels():
    sheet = Sheet(b"PNG", "image/png", 8, 4, 3, np.arange(11)[::-1])
    header, arrays = read(
        pack(make_scene(), sheet=sheet, files={"sheet": "/media/a.png", "texts": "/media/b.txt"})
    )
    assert np.frombuffer(arrays["cells"], "<u4").tolist() == list(range(10, -1, -1))
    assert header["sheet"] == {"side": 8, "columns": 4, "lines": 3, "crisp": True}
    assert header["files"] == {"sheet": "/media/a.png", "texts": "/media/b.txt"}
    plain, arrays = read(pack(make_scene()))
    assert (plain["sheet"], plain["files"]) == (None, {})
    assert "cells" not in arrays
    with pytest.raises(ValueError, match="sheet: expected 11 cells, one per row, got 3"):
        pack(make_scene(), sheet=Sheet(b"PNG", "image/png", 8, 2, 2, np.arange(3)))


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


def test_no_selection_is_not_an_empty_one():
    assert "selected" not in digests(make_scene())
    assert read(pack(make_scene(), selected=[]))[1]["selected"] == b"\0\0"


def test_a_legend_lists_the_classes_with_the_rows_of_none_last_and_two_colourings_go_to_their_panes():
    scene = make_scene(hidden=("a",))
    header, _ = read(pack(scene))
    (first,) = header["colorings"]
    assert (first["tokens"], first["labels"], first["hidden"]) == (["a", "b", ""], ["a", "b", "other"], ["a"])
    assert [len(colors) for colors in first["colors"]] == [2, 2]
    values = np.linspace(0, 10, 11)
    scale = ColorScale.of(values, "year")
    second = Coloring(scale.steps(values), (), scale.colors, "year", scale, values)
    header, arrays = read(pack(make_scene(second=second, second_panes=(1,))))
    assert [pane["coloring"] for pane in header["panes"]] == [0, 1]
    assert [one["side"] for one in header["colorings"]] == ["Left", "Right"]
    assert header["colorings"][1]["stepsAClass"] * PARTS == STEPS == len(header["colorings"][1]["colors"][0])
    np.testing.assert_array_equal(np.frombuffer(arrays["values1"], "<f4"), values.astype("<f4"))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 1000])
def test_rows_survive_the_bitset(n):
    rows = np.flatnonzero(np.random.default_rng(n).random(n) < 0.4)
    back = unpack_rows(pack_rows(rows[::-1], n), n)
    np.testing.assert_array_equal(back, rows)
    assert back.dtype == np.int64


def test_the_look_of_the_anchors_travels():
    header, _ = read(pack(make_scene(stars=StarLook(2.0, 0.5, shown=False))))
    assert header["stars"] == {"size": 2.0, "opacity": 0.5, "shown": False}


def test_a_solid_pane_and_the_order_of_names_travel_whole():
    solid, order = np.random.default_rng(0).normal(size=(11, 3)), np.arange(11)[::-1]
    header, arrays = read(pack(make_scene(panes=(Pane("solid", solid),), prominence=order)))
    assert header["panes"][0]["dimensions"] == 3
    np.testing.assert_array_equal(
        np.frombuffer(arrays["pane0"], "<f4").reshape(-1, 3), solid.astype(np.float32)
    )
    assert np.frombuffer(arrays["prominence"], "<u4").tolist() == order.tolist()


@pytest.mark.parametrize(
    ("changes", "options", "match"),
    [
        (
            {"panes": (Pane("holes", np.full((11, 2), np.nan)),)},
            {},
            "'holes': expected finite coordinates, got 11 rows",
        ),
        ({}, {"selected": [11]}, "selected: expected rows from 0 to 10, got 11 to 11"),
        ({}, {"selected": [-1, 3]}, "got -1 to 3"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes, options, match):
    with pytest.raises(ValueError, match=match):
        pack(make_scene(**changes), **options)


def test_a_bitset_of_another_length_is_refused():
    with pytest.raises(ValueError, match="expected a bitset of 2 bytes for 11 rows, got 1"):
        unpack_rows(b"\0", 11)


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


def test_an_array_that_is_carried_travels_and_keeps_its_address():
    scene = make_scene()
    whole = payload_of(scene, version=ids_digest(scene))
    header, arrays = read(whole.leaving({"pane0": "/there", "ids": "/here"}, ["pane0"]).to_bytes())
    assert (header["elsewhere"], header["carried"]) == ({"pane0": "/there", "ids": "/here"}, ["pane0"])
    assert arrays["pane0"] == whole.arrays["pane0"]
    assert arrays["ids"] != whole.arrays["ids"]


def test_a_separator_within_a_text_does_not_shift_the_texts_after_it():
    assert joined(np.array(["a\x1fb", "c"], dtype=object)).split(b"\x1f") == ["a␟b".encode(), b"c"]
