"""The Python face of the linked panes: what is sent, what comes back, and that it comes back once."""

import base64
import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.components.linked_scatter import PaneEvent, ids_digest, pack_rows, pack_scene, read_events, unpack_rows
from app.components.linked_scatter_colorings import NO_CATEGORY
from app.sheets import Sheet
from relcore.charts.coloring import PARTS, STEPS, Coloring, ColorScale
from relcore.charts.scene import Pane, Scene
from relcore.charts.star_look import SIZES, StarLook


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
    return pack_scene(scene, version=ids_digest(scene), **options)


def read(payload):
    """The other side's reading, written apart: header and raw arrays."""
    length = int.from_bytes(payload[:4], "little")
    header = json.loads(payload[4 : 4 + length])
    assert (4 + length) % 4 == 0
    arrays = {
        name: payload[4 + length + start : 4 + length + start + size] for name, (start, size, _) in header["arrays"].items()
    }
    assert all(start % 4 == 0 for start, _, _ in header["arrays"].values())
    return header, arrays


def digests(scene, **options):
    return {name: digest for name, (_, _, digest) in read(pack(scene, **options))[0]["arrays"].items()}


def message(serial, kind="select", rows=(), version="v", n=11):
    if kind == "click":
        return {"serial": serial, "kind": kind, "version": version, "row": rows[0]}
    return {"serial": serial, "kind": kind, "version": version, "bits": base64.b64encode(pack_rows(rows, n)).decode()}


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
    drawn = {"note": "PCA", "dimensions": 2, "old": "", "coloring": 0}
    assert header["panes"] == [{"title": f"pane {i}", **drawn} for i in range(2)]
    assert "Eleven rows." in header["alt"]


def test_what_hovers_show_is_a_file_and_only_where_it_is_found_travels():
    sheet = Sheet(b"PNG", "image/png", 8, 4, 3, np.arange(11)[::-1])
    header, arrays = read(pack(make_scene(), sheet=sheet, files={"sheet": "/media/a.png", "texts": "/media/b.txt"}))
    assert np.frombuffer(arrays["cells"], "<u4").tolist() == list(range(10, -1, -1))
    assert header["sheet"] == {"side": 8, "columns": 4, "lines": 3, "crisp": True}
    assert header["files"] == {"sheet": "/media/a.png", "texts": "/media/b.txt"}
    plain, arrays = read(pack(make_scene()))
    assert (plain["sheet"], plain["files"]) == (None, {})
    assert "cells" not in arrays
    with pytest.raises(ValueError, match="sheet: expected 11 cells, one per row, got 3"):
        pack(make_scene(), sheet=Sheet(b"PNG", "image/png", 8, 2, 2, np.arange(3)))


HOVERS = """
import numpy as np, streamlit as st
from app.components.linked_scatter import linked_scatter
from relcore.charts.coloring import PARTS, STEPS, Coloring, ColorScale
from relcore.charts.scene import Pane, Scene
n, changed = 80_000, st.session_state.get("changed")
texts = np.array([f"sentence {i:06}" for i in range(n)], dtype=object)
if changed:
    texts[changed] = "sentence ######"
linked_scatter(Scene((Pane("a", np.zeros((n, 2))),), np.arange(n), np.full(n, -1), texts=texts), key="panes")
"""


def test_one_text_changed_among_many_is_another_file_and_none_is_the_same():
    def url():
        (node,) = at.run().get("bidi_component")
        assert not at.exception
        return read(node.proto.bytes)[0]["files"]["texts"]

    at = AppTest.from_string(HOVERS)
    first = url()
    assert url() == first
    at.session_state["changed"] = 11_111  # in none of the parts from which Streamlit would name a large file
    assert url() != first


def test_digests_change_only_where_the_content_does():
    scene = make_scene()
    before = digests(scene, selected=[1])
    assert digests(make_scene(), selected=[1]) == before
    moved = make_scene(panes=(scene.panes[0], Pane("pane 1", scene.panes[1].coordinates + 1)))
    cases = {"selected": digests(scene, selected=[2]), "anchors": digests(make_scene(anchors=np.array([1])), selected=[1])}
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


def test_each_event_is_read_once_in_order():
    messages = [message(12, "click", [3]), message(11, rows=[1, 5]), message(13)]
    events, answered = read_events(messages, "v", 11, 0)
    assert [(event.kind, event.rows.tolist()) for event in events] == [("select", [1, 5]), ("click", [3]), ("clear", [])]
    assert answered == 13
    assert read_events([*messages, message(14, "click", [0])], "v", 11, answered)[0][0].row == 0
    assert read_events(messages, "v", 11, answered) == ([], 13)


def test_events_on_other_rows_are_answered_but_dropped():
    assert read_events([message(5, rows=[1], version="older", n=99)], "v", 11, 0) == ([], 5)


def test_the_look_of_the_anchors_is_heard_for_any_rows_and_kept_within_its_limits():
    sent = [{"serial": 5, "kind": "stars", "version": "older", "size": 99, "opacity": 0.5, "shown": False}]
    ((event,), answered) = read_events(sent, "v", 11, 0)
    assert (event.stars, len(event.rows), answered) == (StarLook(SIZES[1], 0.5, shown=False), 0, 5)
    header, _ = read(pack(make_scene(stars=event.stars)))
    assert header["stars"] == {"size": SIZES[1], "opacity": 0.5, "shown": False}


def test_a_solid_pane_and_the_order_of_names_travel_whole():
    solid, order = np.random.default_rng(0).normal(size=(11, 3)), np.arange(11)[::-1]
    header, arrays = read(pack(make_scene(panes=(Pane("solid", solid),), prominence=order)))
    assert header["panes"][0]["dimensions"] == 3
    np.testing.assert_array_equal(np.frombuffer(arrays["pane0"], "<f4").reshape(-1, 3), solid.astype(np.float32))
    assert np.frombuffer(arrays["prominence"], "<u4").tolist() == order.tolist()


def test_how_the_maps_look_is_heard_whatever_rows_they_show():
    turn = [0.12345678, 0, 1, 0, 1, 0, -1, 0, 0]
    messages = [{"kind": "turn", "turn": turn, "serial": 3, "version": "old"}, {"kind": "named", "named": False, "serial": 1}]
    messages += [{"kind": "hidden", "hidden": [["a"], []], "serial": 2}]
    events, answered = read_events(messages, "v", 11, 0)
    assert ([event.kind for event in events], answered) == (["named", "hidden", "turn"], 3)
    assert (events[0].named, events[1].hidden, events[2].turn) == (False, (("a",), ()), (0.1235, 0, 1, 0, 1, 0, -1, 0, 0))


def test_only_a_click_has_one_row():
    with pytest.raises(ValueError, match="expected a click, which has one row"):
        PaneEvent("select", np.array([1, 2])).row  # noqa: B018


@pytest.mark.parametrize(
    ("changes", "options", "match"),
    [
        ({"panes": (Pane("holes", np.full((11, 2), np.nan)),)}, {}, "'holes': expected finite coordinates, got 11 rows"),
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
