"""What is sent to the linked panes, what comes back, and the exported page."""

import base64
import gzip
import hashlib
import json
import re

import numpy as np
import pytest

from relcore.figures.export import read_recipe
from relcore.figures.scene import Pane, Scene
from relcore.panes.page import panes_page
from relcore.panes.payload import (
    EXACT,
    POSITION_STEPS,
    ids_digest,
    is_quantised,
    pack_rows,
    packed_positions,
    payload_of,
    quantise,
    read_events,
    unpack_rows,
)


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


def message(serial, kind="select", rows=(), version="v", n=11):
    if kind == "click":
        return {"serial": serial, "kind": kind, "version": version, "row": rows[0]}
    return {
        "serial": serial,
        "kind": kind,
        "version": version,
        "bits": base64.b64encode(pack_rows(rows, n)).decode(),
    }


def test_each_event_is_read_once_in_order():
    messages = [message(12, "click", [3]), message(11, rows=[1, 5]), message(13)]
    events, answered = read_events(messages, "v", 11, 0)
    assert [(event.kind, event.rows.tolist()) for event in events] == [
        ("select", [1, 5]),
        ("click", [3]),
        ("clear", []),
    ]
    assert answered == 13
    assert read_events([*messages, message(14, "click", [0])], "v", 11, answered)[0][0].row == 0
    assert read_events(messages, "v", 11, answered) == ([], 13)


def test_events_on_other_rows_are_answered_but_dropped():
    assert read_events([message(5, rows=[1], version="older", n=99)], "v", 11, 0) == ([], 5)


def test_a_moved_anchor_is_two_rows_that_exist():
    moved = [
        {"serial": s, "kind": "anchor", "version": "v", "row": 3, "to": to} for s, to in ((1, 8), (2, 11))
    ]
    events, answered = read_events([*moved, {"serial": 3, "kind": "spread", "version": "v"}], "v", 11, 0)
    assert [(event.kind, event.rows.tolist()) for event in events] == [("anchor", [3, 8]), ("spread", [])]
    assert answered == 3


def test_how_maps_look_is_heard_whatever_rows_they_show():
    turn = [0.12345678, 0, 1, 0, 1, 0, -1, 0, 0]
    messages = [
        {"kind": "turn", "turn": turn, "serial": 3, "version": "old"},
        {"kind": "named", "named": False, "serial": 1},
    ]
    messages += [{"kind": "hidden", "hidden": [["a"], []], "serial": 2}]
    events, answered = read_events(messages, "v", 11, 0)
    assert ([event.kind for event in events], answered) == (["named", "hidden", "turn"], 3)
    assert (events[0].named, events[1].hidden, events[2].turn) == (
        False,
        (("a",), ()),
        (0.1235, 0, 1, 0, 1, 0, -1, 0, 0),
    )


def test_steps_are_at_most_half_step_off_and_reach_both_ends():
    coordinates = np.random.default_rng(0).normal(size=(5000, 2)) * [3, 1e-4] + [1e3, -7]
    steps = quantise(coordinates)
    low, extent = coordinates.min(axis=0), np.ptp(coordinates, axis=0)
    assert steps.min(axis=0).tolist() == [0, 0]
    assert steps.max(axis=0).tolist() == [POSITION_STEPS, POSITION_STEPS]
    assert np.abs(steps - (coordinates - low) / extent * POSITION_STEPS).max() <= 0.5 + 1e-9


def test_many_rows_of_plane_travel_in_two_bytes_axis_and_all_others_exactly():
    many = np.random.default_rng(2).normal(size=(EXACT + 1, 3)).astype(np.float32)
    assert [is_quantised(one) for one in (many[:, :2], many[1:, :2], many)] == [True, False, False]
    assert len(packed_positions(many[:, :2])) == 4 * len(many)
    assert packed_positions(many[1:, :2]) == many[1:, :2].tobytes()
    assert packed_positions(many) == many.tobytes()


def scene_with_texts(n=50):
    rng = np.random.default_rng(0)
    panes = tuple(Pane(title, rng.normal(size=(n, 2))) for title in ("first", "second"))
    texts = np.array([f"Text é {i}" for i in range(n)], dtype=object)
    return Scene(
        panes,
        np.array([f"row {i}" for i in range(n)], dtype=object),
        np.full(n, -1),
        texts=texts,
        caption="Fifty.",
    )


def test_page_holds_every_number_and_what_hovers_show():
    scene, page = scene_with_texts(), panes_page(scene_with_texts(), "panes").decode()
    content = gzip.decompress(base64.b64decode(re.search(r'id="relscope-panes">([^<]+)<', page)[1]))
    length = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + length])

    def array(name):
        start, size, _ = header["arrays"][name]
        return content[4 + length + start : 4 + length + start + size]

    for i, pane in enumerate(scene.panes):
        np.testing.assert_array_equal(
            np.frombuffer(array(f"pane{i}"), "<f4"), pane.coordinates.astype(np.float32).ravel()
        )
    assert array("texts").decode().split("\x1f") == scene.texts.tolist()
    assert header["files"] == {"texts": "texts"}


def test_policy_names_script_that_runs_and_no_other():
    page = panes_page(scene_with_texts(), "a <title>", recipe='{"figure": "</script>"}').decode()
    (run,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(run.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'; style-src" in page
    assert "<title>a &lt;title&gt;</title>" in page
    assert read_recipe(page.encode()) == {"figure": "</script>"}
