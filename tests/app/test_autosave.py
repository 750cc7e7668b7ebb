from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from app import saving, sharing
from app.saving import TabState
from app.sharing import session_folder, uploads_of
from app.workspace import History, Workspace
from relcore.base import access
from tests.app.conftest import Session

MINE, THEIRS = "ab" * 32, "cd" * 32


@pytest.fixture(autouse=True)
def browser(monkeypatch):
    """``browser(key)``: the browser whose sessions begin from now on; none of the sessions before is open
    any more.
    """

    def use(key: str, is_open: bool = False) -> None:
        monkeypatch.setattr("app.sharing.browser_key", lambda: key)
        monkeypatch.setattr("app.sharing.is_open", lambda owner: is_open)

    saving._sweep_once.cache_clear()
    use(MINE)
    return use


@pytest.fixture
def opened(make_workspace, monkeypatch):
    """``opened(**query) -> Session``: the page opens, on two small spaces where nothing else is asked for."""
    workspace = make_workspace()
    monkeypatch.setattr("app.saving.BUNDLED", workspace.spaces)
    monkeypatch.setattr("app.saving.DEFAULT_ANCHORS", "random 20 0")
    monkeypatch.setattr("app.saving.Workspace", lambda *ends, **rest: replace(workspace, anchors=(), **rest))
    return lambda **query: Session(query=query)


def query_of(session: Session) -> dict[str, str]:
    return {
        name: value[0] if isinstance(value, list) else value
        for name, value in session.at.query_params.items()
    }


def saved_files() -> list[Path]:
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


def test_a_new_visit_opens_the_newest_session_and_says_so_until_the_first_action(opened):
    opened().change("number_input", "scores.k", 7)
    for act in (lambda visit: visit.change("number_input", "scores.k", 9), lambda visit: visit.open("data")):
        visit = opened()
        assert visit.workspace.k in (7, 9)
        assert "Last session restored" in visit.captions
        assert "ast session" not in act(visit).captions


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
    other.at.session_state["relscope.history"] = History(after.workspace)
    other.run()
    assert "only the session that uploaded a file opens it" in other.errors[0]


def test_a_damaged_save_starts_a_new_session(opened):
    before = opened().change("number_input", "scores.k", 7)
    (path,) = saved_files()
    path.write_text(path.read_text().replace('"k":7', '"k":"seven"'))
    after = opened(**{name: value for name, value in query_of(before).items() if name != "k"})
    assert after.workspace.k == 10
    assert "The saved session cannot be restored, so this is a new one" in after.errors[0]
    assert not opened().errors  # it is told once


def test_a_full_disk_is_told_once_and_stops_nothing(opened, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    session = opened()
    monkeypatch.setattr(saving, "write_file", full)
    session.change("number_input", "scores.k", 7)
    assert "cannot be saved (No space left on device)" in session.warning[0].value
    session.change("number_input", "scores.k", 8)
    assert not session.warning
    assert not session.errors
    monkeypatch.undo()


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


def write(folder: Path, name: str = "tab~owner.json") -> Path:
    saving.write_file(folder / name, b"0" * 100)
    return folder / name


DAY = 86_400


@pytest.fixture
def clock(monkeypatch):
    """``clock(days)``: a start of the app with the clock this far ahead."""
    now = time.time()

    def start(days: float, jumped: float = 0) -> list[Path]:
        monkeypatch.setattr(sharing, "_started", (now + days * DAY, time.monotonic()))
        monkeypatch.setattr(sharing.time, "time", lambda: now + (days + jumped) * DAY)
        sharing.sweep()
        return [path for path in saved_files() if path.suffix == ".json"]

    return start


def test_what_is_old_or_too_much_is_swept(monkeypatch, clock):
    root = Path(os.environ["RELSCOPE_STORE"]) / "sessions"
    for number, days in enumerate((0, 1, 2, 8)):
        folder = write(session_folder(f"{number}" * 64)).parent
        at = os.stat(root).st_mtime - days * DAY
        os.utime(folder, (at, at))
    assert len(clock(0)) == 4  # the first start that finds it unused keeps it
    assert len(clock(1.1)) == 3
    monkeypatch.setattr(sharing, "MOST_SAVED", 250)
    assert {path.parent for path in clock(1.1)} == {session_folder(n * 64) for n in "01"}


def test_a_clock_that_jumps_ahead_costs_no_session(clock):
    folder = write(session_folder("1" * 64)).parent
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
