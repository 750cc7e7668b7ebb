"""What is sent to the linked panes, what comes back, and the exported page."""

import base64
import gzip
import hashlib
import json
import re

import numpy as np
import pytest

from relcore.figures.colorings import Pane
from relcore.figures.export import read_recipe
from relcore.figures.scene import Scene
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
    moved = scene.panes[0], Pane("pane 1", scene.panes[1].coordinates + 1)
    cases = {
        "selected": digests(scene, selected=[2]),
        "anchors": digests(make_scene(anchors=np.array([1])), selected=[1]),
        "pane1": digests(make_scene(panes=moved), selected=[1]),
    }
    for name, after in cases.items():
        assert {other for other in before if before[other] != after[other]} == {name}


@pytest.mark.parametrize("n", [7, 1000])
def test_rows_survive_the_bitset(n):
    rows = np.flatnonzero(np.random.default_rng(n).random(n) < 0.4)
    back = unpack_rows(pack_rows(rows[::-1], n), n)
    np.testing.assert_array_equal(back, rows)
    assert back.dtype == np.int64


def message(serial, kind="select", rows=(), version="v", n=11):
    about = {"serial": serial, "kind": kind, "version": version}
    if kind == "click":
        return about | {"row": rows[0]}
    return about | {"bits": base64.b64encode(pack_rows(rows, n)).decode()}


def told(events):
    return [(event.kind, event.rows.tolist()) for event in events]


def test_each_event_is_read_once_in_order():
    messages = [message(12, "click", [3]), message(11, rows=[1, 5]), message(13)]
    events, answered = read_events(messages, "v", 11, 0)
    assert told(events) == [("select", [1, 5]), ("click", [3]), ("clear", [])]
    assert answered == 13
    assert read_events([*messages, message(14, "click", [0])], "v", 11, answered)[0][0].row == 0
    assert read_events(messages, "v", 11, answered) == ([], 13)
    # Events on other rows are answered but dropped.
    assert read_events([message(5, rows=[1], version="older", n=99)], "v", 11, 0) == ([], 5)


def test_a_moved_anchor_is_two_rows_that_exist():
    moved = {"kind": "anchor", "version": "v", "row": 3}
    messages = [moved | {"serial": 1, "to": 8}, moved | {"serial": 2, "to": 11}]
    events, answered = read_events([*messages, {"serial": 3, "kind": "spread", "version": "v"}], "v", 11, 0)
    assert (told(events), answered) == ([("anchor", [3, 8]), ("spread", [])], 3)


def test_how_maps_look_is_heard_whatever_rows_they_show():
    turn = [0.12345678, 0, 1, 0, 1, 0, -1, 0, 0]
    messages = [
        {"kind": "turn", "turn": turn, "serial": 3, "version": "old"},
        {"kind": "named", "named": False, "serial": 1},
        {"kind": "density", "density": True, "serial": 4},
        {"kind": "hidden", "hidden": [["a"], []], "serial": 2},
    ]
    (named, hidden, turned, density), answered = read_events(messages, "v", 11, 0)
    assert (named.kind, hidden.kind, turned.kind, answered) == ("named", "hidden", "turn", 4)
    assert (named.named, density.density, hidden.hidden) == (False, True, (("a",), ()))
    assert turned.turn == (0.1235, 0, 1, 0, 1, 0, -1, 0, 0)


def test_steps_are_at_most_half_step_off_and_reach_both_ends():
    coordinates = np.random.default_rng(0).normal(size=(5000, 2)) * [3, 1e-4] + [1e3, -7]
    steps = quantise(coordinates)
    low = coordinates.min(axis=0)
    extent = np.ptp(coordinates, axis=0)
    assert steps.min(axis=0).tolist() == [0, 0]
    assert steps.max(axis=0).tolist() == [POSITION_STEPS, POSITION_STEPS]
    assert np.abs(steps - (coordinates - low) / extent * POSITION_STEPS).max() <= 0.5 + 1e-9


def test_many_rows_of_plane_travel_in_two_bytes_axis_and_all_others_exactly():
    many = np.random.default_rng(2).normal(size=(EXACT + 1, 3)).astype(np.float32)
    assert [is_quantised(one) for one in (many[:, :2], many[1:, :2], many)] == [True, False, False]
    assert len(packed_positions(many[:, :2])) == 4 * len(many)
    assert packed_positions(many[1:, :2]) == many[1:, :2].tobytes()
    assert packed_positions(many) == many.tobytes()


def test_page_holds_every_number_and_what_hovers_show_and_runs_one_script():
    scene = make_scene(texts=np.array([f"Text é {i}" for i in range(11)], dtype=object))
    page = panes_page(scene, "a <title>", recipe='{"figure": "</script>"}').decode()
    content = base64.b64decode(re.search(r'id="relscope-panes">([^<]+)<', page)[1])
    header, arrays = read(gzip.decompress(content))
    for i, pane in enumerate(scene.panes):
        assert arrays[f"pane{i}"] == pane.coordinates.astype("<f4").tobytes()
    assert arrays["texts"].decode().split("\x1f") == scene.texts.tolist()
    assert header["files"] == {"texts": "texts"}
    (run,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(run.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'; style-src" in page
    assert "<title>a &lt;title&gt;</title>" in page
    assert read_recipe(page.encode()) == {"figure": "</script>"}
