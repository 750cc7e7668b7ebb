import json
import os
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

import pytest
from streamlit.testing.v1 import AppTest

from app import page_settings, saving, sharing
from app.places import START
from app.saving import _TABS as TABS
from app.saving import TabState
from app.sharing import session_folder, uploads_of
from app.workspace import History, Workspace
from relcore.base import access
from tests.app.conftest import Session

MINE = "ab" * 32
THEIRS = "cd" * 32


@pytest.fixture(autouse=True)
def browser(monkeypatch):
    """``browser(key)``: close all sessions; those that begin from now on are in the browser with this key."""

    def use(key):
        monkeypatch.setattr("app.sharing.browser_key", lambda: key)
        monkeypatch.setattr("app.sharing.is_open", lambda owner: False)

    saving._sweep_once.cache_clear()
    use(MINE)
    return use


@pytest.fixture
def opened(make_workspace, monkeypatch):
    """``opened(**query)``: open the page with this query. Without one, it shows two small spaces."""
    workspace = make_workspace()
    monkeypatch.setattr("app.saving.BUNDLED", workspace.spaces)
    monkeypatch.setattr("app.saving.DEFAULT_ANCHORS", "random 20 0")
    monkeypatch.setattr("app.saving.Workspace", lambda *ends, **rest: replace(workspace, anchors=(), **rest))
    return lambda **query: Session(query=query)


def query_of(session):
    given = session.query_params.items()
    return {name: value[0] if isinstance(value, list) else value for name, value in given}


def saved_files():
    return sorted((Path(os.environ["RELSCOPE_STORE"]) / "sessions").rglob("*.json"))


def test_reloading_brings_back_steps_selection_and_place(opened):
    before = opened()
    assert not saved_files()  # nothing was done yet
    before.change("number_input", "scores.k", 7).change("selectbox", "view.map", "pca 2")
    before.change("toggle", "projection.center", False).click("history.undo").select("r3", "r4")
    after = opened(**query_of(before))
    assert after.workspace == before.workspace
    assert after.history.steps == before.history.steps
    assert after.history.redo_step == "centre first off"
    assert after.session_state["relscope.selection"] == ("r3", "r4")
    assert not after.errors
    assert "ast session" not in after.captions  # the page was only loaded again
    after.click("history.undo")
    assert after.workspace.k == 10


def test_a_new_visit_opens_the_newest_session_and_says_so(opened):
    for act in (lambda visit: visit.change("number_input", "scores.k", 9), lambda visit: visit.open("data")):
        opened().change("number_input", "scores.k", 7)
        visit = opened()
        assert visit.workspace.k == 7
        assert "Last session restored" in visit.captions
        again = opened()
        assert again.workspace.k == 7
        assert "ast session" not in again.captions  # said already
        assert "ast session" not in act(visit).captions
        for path in saved_files():
            path.unlink()


def test_no_notice_lies_over_the_story(monkeypatch):
    """Before, on a phone, it covered the choices of a step."""
    page = MagicMock()
    page.button.return_value = False
    page.session_state = {saving._STATE: SimpleNamespace(offered="", tells=True, noticed=None)}
    monkeypatch.setattr(saving, "st", page)
    monkeypatch.setattr(saving.session, "workspace", Workspace)
    for query, n_drawn in (({"step": "6"}, 0), ({}, 1)):
        page.query_params = query
        saving.draw_notice(START.title)
        assert page.container.call_count == n_drawn


def test_a_link_wins_and_the_saved_session_is_offered(opened):
    before = opened().change("number_input", "scores.k", 7)
    after = opened(k="5")
    assert after.workspace.k == 5
    assert query_of(after)["k"] == "5"
    assert "This page shows what you opened" in after.captions
    after.click("autosave.open")
    assert after.workspace == before.workspace


def test_a_duplicated_tab_overwrites_nothing(opened):
    first = opened().change("number_input", "scores.k", 7)
    copy = opened(**query_of(first)).change("number_input", "scores.k", 8)
    first.change("number_input", "scores.k", 9)
    assert query_of(first)["tab"] != query_of(copy)["tab"]
    assert opened(**query_of(copy)).workspace.k == 8
    again = opened(**query_of(first))
    assert again.workspace.k == 9
    assert again.history.steps == first.history.steps


def test_another_browser_sees_nothing_of_it(opened, browser):
    before = opened().change("number_input", "scores.k", 7)
    (path,) = saved_files()
    assert MINE not in str(path)
    assert MINE not in path.read_text()
    for folder in (path.parent, path.parent.parent):
        assert folder.stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o077 == 0
    browser(THEIRS)
    other = opened(tab=query_of(before)["tab"])
    assert other.workspace.k == 10
    assert "saved session" not in other.captions
    browser("")  # it keeps no cookies
    unknown = opened().change("number_input", "scores.k", 6)
    assert "tab" not in query_of(unknown)
    assert saved_files() == [path]


def test_uploads_stay_with_their_browser(opened, browser, monkeypatch, tmp_path, make_workspace):
    content = Path(make_workspace(80).source.name).read_bytes()
    before = opened()
    monkeypatch.setenv(access.ENVIRONMENT, "1")
    monkeypatch.setenv(access.DATA, str(tmp_path))  # where the two small spaces are
    before.open("data").upload("spaces.upload", "mine.npz", content).click("spaces.load-file")
    spec = before.workspace.spaces[-1]
    assert Path(spec.name).is_relative_to(uploads_of(MINE))
    after = opened(**query_of(before))
    assert after.workspace.spaces[-1] == spec
    after.change("selectbox", "choose.source", spec)
    assert not after.errors
    assert after.workspace.source == spec
    browser(THEIRS)
    other = opened()
    other.session_state["relscope.history"] = History(after.workspace)
    other.run()
    assert "only the session that uploaded a file opens it" in other.errors[0]


def test_a_damaged_save_starts_a_new_session(opened):
    before = opened().change("number_input", "scores.k", 7)
    (path,) = saved_files()
    path.write_text(path.read_text().replace('"k":7', '"k":"seven"'))
    after = opened(**{name: value for name, value in query_of(before).items() if name != "k"})
    assert after.workspace.k == 10
    assert "The saved session cannot be restored, so this is a new one" in after.errors[0]
    assert not opened().errors  # the message appears once


def test_a_full_disk_is_told_once_and_stops_nothing(opened, monkeypatch):
    session = opened()
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(saving, "write_file", Mock(side_effect=full))
    session.change("number_input", "scores.k", 7)
    assert "cannot be saved (No space left on device)" in session.warning[0].value
    session.change("number_input", "scores.k", 8)
    assert not session.warning
    assert not session.errors


def test_what_is_saved_is_what_is_read():
    history = History(Workspace(anchors=("a", "b"), named_sets=(("s", ("a",)),), anchors_from=""))
    for k in range(1, 60):
        history.edit(f"k {k}", replace(history.present, k=k))
    history.undo()
    state = TabState(address={"k": "58"}, made=("m",), awaited=("w",), tabs={"stitch.tab": "Try it"})
    digests = {history.present.source: "1", history.present.target: ""}
    back = saving.from_bytes(saving.to_bytes(history, ("x",), state, digests))
    assert (back.history.steps, back.history.present) == (history.steps, history.present)
    assert (back.selection, back.digests) == (("x",), digests)
    assert replace(back.state, past=(), future=()) == state


def written(letter):
    folder = session_folder(letter * 64)
    saving.write_file(folder / "tab~owner.json", b"0" * 100)
    return folder


DAY = 86_400


@pytest.fixture
def clock(monkeypatch, tmp_path):
    """``clock(days)``: a start of the app with the clock this far ahead. It must not sweep the uploads of an
    app that runs on this machine."""
    now = time.time()
    monkeypatch.setattr(sharing, "all_uploads", lambda: tmp_path / "uploads")

    def start(days, jumped=0):
        monkeypatch.setattr(sharing, "_started", (now + days * DAY, time.monotonic()))
        monkeypatch.setattr(sharing.time, "time", lambda: now + (days + jumped) * DAY)
        sharing.sweep()
        return [path for path in saved_files() if path.suffix == ".json"]

    return start


def test_what_is_old_or_too_much_is_swept(monkeypatch, clock):
    root = Path(os.environ["RELSCOPE_STORE"]) / "sessions"
    for number, days in enumerate((0, 1, 2, 8)):
        folder = written(str(number))
        at = os.stat(root).st_mtime - days * DAY
        os.utime(folder, (at, at))
    assert len(clock(0)) == 4  # the first start that finds it unused keeps it
    assert len(clock(1.1)) == 3
    monkeypatch.setattr(sharing, "MOST_SAVED", 250)
    assert {path.parent for path in clock(1.1)} == {session_folder(n * 64) for n in "01"}


def test_a_clock_that_jumps_ahead_costs_no_session(clock):
    folder = written("1")
    used = folder.stat().st_mtime
    assert clock(0, jumped=8)  # after the start
    assert clock(8)  # before it
    assert clock(8.1)  # at the next start, as after a crash
    os.utime(folder, (used + 8.2 * DAY, used + 8.2 * DAY))
    assert clock(9.5)  # it was used meanwhile
    os.utime(folder, (used, used))
    assert clock(0)
    assert clock(10)  # what a wrong clock found earlier is forgotten
    assert not clock(11.5)


def values(session, kind):
    return {one.key: one.value for one in getattr(session.at, kind) if one.key}


def test_pages_keep_their_settings_also_if_not_opened(opened):
    before = opened().open("connect", "Invert")
    before.change("button_group", "invert.method", "ridge").change("button_group", "invert.tuned", False)
    before.change("select_slider", "invert.ridge", 2.4).open("connect", "Stitch")
    before.change("button_group", "stitch.methods", ["absolute", "procrustes"])
    before.open("connect", "Link").open("connect", "Stitch")
    middle = opened(**query_of(before)).change("number_input", "scores.k", 7)  # saves without opening Invert
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


def test_what_no_widget_offers_is_dropped(opened):
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


CHANGED = {"select": "three", "several": ["two", "one"], "radio": "y", "pills": ["y"]}
CHANGED |= {"text": "two\nlines", "box": True, "number": 2.5}


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


def test_a_tab_is_kept_even_if_another_page_is_opened_at_once(monkeypatch):
    heard = {}
    state = {}
    monkeypatch.setattr(page_settings.st, "session_state", state)
    monkeypatch.setattr(
        page_settings.st, "tabs", lambda names, key, on_change: heard.update({key: on_change})
    )
    page_settings.kept_tabs(("New model", "Drift"), "migrate.tab")
    state["migrate.tab"] = "Drift"
    heard["migrate.tab"]()  # a click whose run draws no tab, because the next click opens another page
    del state["migrate.tab"]  # Streamlit deletes the keys of widgets that were not drawn
    page_settings.kept_tabs(("New model", "Drift"), "migrate.tab")
    assert state["migrate.tab"] == page_settings.open_tab("migrate.tab") == "Drift"
