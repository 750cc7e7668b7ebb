from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from app import page_settings
from app.saving import _TABS as TABS
from tests.app.test_autosave import browser, opened, query_of, saved_files  # noqa: F401


def values(session, kind):
    return {one.key: one.value for one in getattr(session.at, kind) if one.key}


@pytest.mark.usefixtures("browser")
def test_invert_keeps_tab_method_and_settings_and_a_page_that_is_not_opened_loses_none(opened):  # noqa: F811
    before = opened().open("connect", "Invert")
    before.change("button_group", "invert.method", "ridge").change("button_group", "invert.tuned", False)
    before.change("select_slider", "invert.ridge", 2.4)
    before = before.open("connect", "Stitch")
    before.change("button_group", "stitch.methods", ["absolute", "procrustes"])
    before.open("connect", "Link").open("connect", "Stitch")
    middle = opened(**query_of(before)).change(
        "number_input", "scores.k", 7
    )  # saves again, without opening Invert
    after = opened(**query_of(middle)).open("connect")
    assert not after.errors
    assert after.session_state["connect.tab"] == "Stitch"
    assert after.button_group(key="stitch.methods").value == ["absolute", "procrustes"]
    after = after.open("connect", "Invert")
    assert after.select_slider(key="invert.ridge").value == 2.4


HOSTILE = {
    "stitch.states": 7,
    "stitch.methods": ["absolute", "absolute"],
    "stitch.center": "yes",
    "stitch.ridge": 1e9,
    "stitch.head-kind": "__import__('os').system('true')",
    "stitch.strategy": {"digest": "00"},
    "stitch.show": [[]],
    "relscope.history": "gone",
    "history.undo": True,
    "stitch.example": [["digits"]],
}


@pytest.mark.usefixtures("browser")
def test_what_no_widget_offers_is_dropped(opened):  # noqa: F811
    usual = opened().change("number_input", "scores.k", 7).open("connect")
    (path,) = saved_files()
    written = json.loads(path.read_text())
    written["tab"] |= {"settings": HOSTILE, "tabs": dict.fromkeys(TABS, "no such tab")}
    path.write_text(json.dumps(written))
    after = opened(**query_of(usual)).open("connect")
    assert not after.errors
    assert after.workspace.k == 7
    for kind in ("button_group", "number_input", "toggle", "multiselect", "selectbox"):
        assert values(after, kind) == values(usual, kind)
    after.open("explore").change("number_input", "scores.k", 8)
    left = json.loads(saved_files()[0].read_text())["tab"]["settings"]
    drawn = {key for key in HOSTILE if key in after.session_state} - {"relscope.history", "history.undo"}
    assert drawn
    assert not left.keys() & drawn


def widgets():
    import streamlit as st

    from app.page_settings import remembered

    options = ["one", "two", "three"]
    remembered(st.selectbox, "a", options, key="stitch.select", format_func=str)
    remembered(st.multiselect, "b", options, default=options[:1], key="stitch.several", format_func=str)
    remembered(st.radio, "c", ["x", "y"], key="stitch.radio")
    remembered(st.pills, "d", ["x", "y"], selection_mode="multi", key="stitch.pills")
    remembered(st.text_area, "g", "", key="stitch.text")
    remembered(st.checkbox, "h", key="stitch.box")
    remembered(st.number_input, "i", 1.0, 3.0, 1.5, key="stitch.number")


CHANGED = {
    "select": "three",
    "several": ["two", "one"],
    "radio": "y",
    "pills": ["y"],
    "text": "two\nlines",
    "box": True,
    "number": 2.5,
}


def test_every_kind_of_widget_is_saved_and_restored():
    page = AppTest.from_function(widgets).run()
    assert not page.exception
    usual = {name: page.session_state[f"stitch.{name}"] for name in CHANGED}
    assert page.session_state["relscope.page-settings"].chosen == {}
    for name, value in CHANGED.items():
        page.session_state[f"stitch.{name}"] = value
    page.run()
    saved = dict(page.session_state["relscope.page-settings"].chosen)
    assert saved == {f"stitch.{name}": value for name, value in CHANGED.items()}
    later = AppTest.from_function(widgets)
    later.session_state["relscope.page-settings"] = page_settings._Settings(json.loads(json.dumps(saved)))
    for _ in range(2):
        later.run()
        assert not later.exception
        assert {name: later.session_state[f"stitch.{name}"] for name in CHANGED} == CHANGED != usual
    for name, value in usual.items():
        page.session_state[f"stitch.{name}"] = value
    assert page.run().session_state["relscope.page-settings"].chosen == {}
