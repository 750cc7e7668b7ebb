"""The widget without a browser: what scripts set, what the browser reports, and what travels back."""

import base64
import json
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.figures.colorings import Pane
from relcore.figures.scene import Scene
from relcore.panes.payload import pack_rows, unpack_rows
from relcore.panes.widget import PanesWidget

IDS = np.array([f"row {i}" for i in range(12)], dtype=object)
DRAWN = np.arange(2, 12)  # two rows of the twelve are not drawn


def draw(anchors):
    if "none" in anchors:
        raise SpaceError("anchors: expected known ids")
    rng = np.random.default_rng(len(anchors))
    still = np.random.default_rng(0).normal(size=(10, 2))
    panes = Pane("absolute", still), Pane("relative", rng.normal(size=(10, 2)))
    scene = Scene(panes, IDS[DRAWN], np.arange(10) % 2, ("even", "odd"), anchors=np.arange(len(anchors)))
    return scene, DRAWN


@pytest.fixture
def widget():
    return PanesWidget(IDS, draw, anchors=["row 2", "row 3"])


def highlighted(widget):
    return DRAWN[unpack_rows(widget._array_selected, 10)].tolist()


def report(widget, serial, **event):
    if "rows" in event:
        event["bits"] = base64.b64encode(pack_rows(event.pop("rows"), 10)).decode()
    widget._events = [{"serial": serial, "version": widget._header["version"], **event}]


def test_ids_and_row_numbers_are_one_selection(widget):
    widget.selection = ["row 9", "row 4"]
    assert widget.selected_rows == (9, 4)
    assert highlighted(widget) == [4, 9]
    widget.selected_rows = np.array([5, 2])
    assert widget.selection == ("row 5", "row 2")
    assert highlighted(widget) == [2, 5]
    widget.selection = ()
    assert (widget.selected_rows, highlighted(widget)) == ((), [])


def test_brush_and_click_select_rows_and_are_answered(widget):
    seen = []
    widget.observe(lambda change: seen.append((change.new, widget.selected_rows)), "selection")
    report(widget, 7, kind="select", rows=[0, 3])
    assert seen == [(("row 2", "row 5"), (2, 5))]
    assert widget._header["answered"] == 7
    report(widget, 7, kind="select", rows=[0, 3])  # repeated, as it was not answered in time
    report(widget, 8, kind="click", row=9)
    report(widget, 9, kind="select", rows=[])
    assert [selection for selection, _ in seen[1:]] == [("row 11",), ()]
    assert widget._header["answered"] == 9


def test_anchors_draw_panes_again_and_only_what_changed_has_another_digest(widget):
    report(widget, 3, kind="hidden", hidden=[["odd"]])
    report(widget, 4, kind="named", named=True)
    widget.selection = ["row 6"]
    before = widget._header
    widget.anchors = ["row 2", "row 3", "row 4"]
    assert len(widget.scene.anchors) == 3
    arrays = widget._header["arrays"]
    changed = {name for name in arrays if before["arrays"][name][2] != arrays[name][2]}
    assert changed == {"pane1", "anchors"}
    assert widget._header["colorings"][0]["hidden"] == ["odd"]
    assert widget._header["named"] is True
    assert highlighted(widget) == [6]


def test_anchors_that_cannot_be_drawn_change_nothing(widget):
    before = widget._header
    with pytest.raises(SpaceError, match="expected known ids"):
        widget.anchors = ["none"]
    assert (widget.anchors, widget._header) == (("row 2", "row 3"), before)
    widget.selection = ["row 7"]
    assert len(widget.scene.anchors) == 2


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("selection", ["row 3", "row 99"], "selection: expected ids of the rows, got 1 unknown: 'row 99'"),
        ("selected_rows", [3, 12], "selected_rows: expected row numbers from 0 to 11, got 12"),
    ],
)
def test_what_is_no_row_is_refused_and_selection_stays(widget, name, value, match):
    widget.selection = ["row 4"]
    with pytest.raises(SpaceError, match=match):
        setattr(widget, name, value)
    assert (widget.selection, widget.selected_rows) == (("row 4",), (4,))


def test_half_surrogate_pair_is_replaced_as_no_message_can_hold_it():
    def draw_half(anchors):
        scene, rows = draw(anchors)
        panes = replace(scene.panes[0], title="\ud800"), scene.panes[1]
        ids = np.array(["\ud800", *scene.ids[1:]], dtype=object)
        return replace(scene, panes=panes, ids=ids, category_names=("\ud800 a", "b")), rows

    widget = PanesWidget(IDS, draw_half)
    assert json.dumps(widget._header, ensure_ascii=False).encode()
    assert widget._array_ids.decode().startswith("\N{REPLACEMENT CHARACTER}\x1f")
    report(widget, 1, kind="hidden", hidden=[widget._header["colorings"][0]["tokens"][:1]])
    assert widget.scene.shown.sum() == 5


class Follower:
    def header(self, anchors):
        if anchors:
            return {"panes": [1], "many": 0, "spread": 2}
        return None

    def answer(self, anchors, message):
        if message == b"nothing":
            return b""
        return message + ",".join(anchors).encode()

    def spread(self):
        return ["row 7", "row 8"]


def test_messages_of_panes_are_answered_for_anchors_that_they_show(monkeypatch):
    widget = PanesWidget(IDS, draw, anchors=["row 2", "row 3"], live=Follower())
    sent = []
    monkeypatch.setattr(widget, "send", lambda *message: sent.append(message))
    name = widget._header["live"]["name"]
    ours = {"live": name}
    for content, *buffers in ((ours, b"asked:"), (ours, b"nothing"), (ours,), ("",)):
        widget._dragged(widget, content, buffers)
    assert sent == [({"live": name}, [b"asked:row 2,row 3"])]
    report(widget, 1, kind="anchor", row=0, to=5)
    assert widget.anchors == ("row 7", "row 3")
    report(widget, 2, kind="anchor", row=5, to=1)  # where another anchor is
    assert widget.anchors == ("row 7", "row 3")
    widget._dragged(widget, {"live": name}, [b"late:"])
    assert len(sent) == 1
    report(widget, 3, kind="spread")
    assert widget.anchors == ("row 7", "row 8")
    widget.anchors = ()
    assert widget._header["live"] is None


def test_notebook_without_front_end_has_picture(widget):
    data, _ = widget._repr_mimebundle_()
    assert b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert "application/vnd.jupyter.widget-view+json" in data
