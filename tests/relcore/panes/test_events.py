"""What comes back from the linked panes: each event once, in its order, and only for the rows that it is
about.
"""

import base64

from relcore.panes.payload import pack_rows, read_events


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


def test_how_the_maps_look_is_heard_whatever_rows_they_show():
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
