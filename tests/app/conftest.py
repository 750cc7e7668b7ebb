"""The whole app without a browser: sessions on two small spaces of files, and what they show and hold."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.state import SafeSessionState
from streamlit.testing.v1 import AppTest, app_test, local_script_runner

from app.workspace import History, Workspace
from relcore.catalog.catalog import SpaceSpec
from relcore.maps.pane_maps import ViewSpec
from relcore.runs.jobs import JobQueue
from relcore.runs.work import Context

MAIN = Path(__file__).parents[2] / "app" / "main.py"


def _wait(runner, timeout):
    runner._script_thread.join(timeout)
    if not runner.script_stopped():
        _refuse(runner, timeout=0)


class _Values(Mapping):
    """The values of a session by their keys. Streamlit copies all of them for each widget that asks for its
    own."""

    def __init__(self, state):
        self._state = state

    def __getitem__(self, key):
        return self._state[key]

    def __iter__(self):
        return iter(_copied_values(self._state))

    def __len__(self):
        return len(_copied_values(self._state))


# Makes AppTest faster, because it took a third of the time of these tests: runs share compiled pages and the
# stand-in for a server, a test sleeps until its run has ended, a widget looks up its own value alone, no
# metadata of packages is read, and messages get no hash, which only a browser's cache needs.
_pages = ScriptCache()
_server = MagicMock(spec=Runtime)
_refuse = local_script_runner.require_widgets_deltas
_copied_values = SafeSessionState.filtered_state.fget
app_test.MagicMock = lambda spec: _server
app_test.ScriptCache = lambda: _pages
local_script_runner.ScriptCache = lambda: _pages
local_script_runner.require_widgets_deltas = _wait
SafeSessionState.filtered_state = property(_Values)
manifest_scanner.scan_component_manifests = list
script_run_context.populate_hash_if_needed = lambda message: None
config.set_option(
    "browser.gatherUsageStats", False
)  # as in app/.streamlit; otherwise Streamlit counts each widget


@pytest.fixture(autouse=True)
def own_store(monkeypatch, tmp_path):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("RELSCOPE_SCHEDULER", raising=False)


@pytest.fixture
def ran_in_place(monkeypatch):
    """Jobs run where they are submitted, in the page's own run; the list of their titles."""
    ran = []

    def run(queue, key, function, *, title, expected=None, here=False, **kwargs):
        ran.append(title)
        function(Context(key, queue.store), **kwargs)
        return queue.job(key)

    monkeypatch.setattr(JobQueue, "submit", run)
    return ran


@pytest.fixture
def queue(one_worker, monkeypatch):
    """The pages' job queue, on the test's own store."""
    monkeypatch.setattr("app.jobs.whole_queue", lambda: one_worker)
    return one_worker


MENUS = ("toolbar.anchors", "toolbar.session", "view-choosers", "export-explore")


class Session:
    """One browser session with its menus open, at a place and tab. Its other attributes are those of
    AppTest."""

    def __init__(self, query=None, workspace=None, place=("explore",), state=None):
        self.at = AppTest.from_file(MAIN, default_timeout=300)
        for key, value in (dict.fromkeys(MENUS, True) | (state or {})).items():
            self.at.session_state[key] = value
        if query:
            self.at.query_params = query
        if workspace:
            self.at.session_state["relscope.history"] = History(workspace)
        self.open(*place) if place else self.run()

    def __getattr__(self, name):
        return getattr(self.at, name)

    def run(self):
        self.at.run()
        assert not self.at.exception, [error.value for error in self.at.exception]
        return self

    def open(self, place, tab=""):
        if tab:
            self.at.session_state[f"{place}.tab"] = tab
        self.at.switch_page(f"../pages/{place}.py")
        return self.run()

    def change(self, kind, key, value):
        """Set the widget with this key, or the only one whose key begins so."""
        keys = [one.key for one in getattr(self.at, kind)]
        (self.find(kind, key) if key not in keys else getattr(self.at, kind)(key=key)).set_value(value)
        return self.run()

    def click(self, key):
        found = [button for button in self.at.button if button.key == key or button.label.strip() == key]
        assert len(found) == 1, (key, [(button.key, button.label) for button in self.at.button])
        assert not found[0].disabled, key
        found[0].click()
        return self.run()

    def upload(self, key, name, content):
        # Opening a session closed the menu.
        if key == "session.file" and not self.at.session_state["toolbar.session"]:
            self.at.session_state["toolbar.session"] = True
            self.run()
        self.at.file_uploader(key=key).set_value((name, content, "application/octet-stream"))
        return self.run()

    def table(self, key):
        return self.find("dataframe", key).value

    def find(self, kind, start):
        (found,) = (one for one in getattr(self.at, kind) if (one.key or "").startswith(start))
        return found

    def table_with(self, column):
        return next(table.value for table in self.at.dataframe if column in table.value)

    @property
    def keys(self):
        return [button.key for button in self.at.button]

    @property
    def charts(self):
        return [json.loads(one.proto.spec) for one in self.at.main if one.type == "plotly_chart"]

    @property
    def players(self):
        """The payloads of the players of moving maps."""
        parts = self.at.main.get("bidi_component")
        return [one.proto.bytes for one in parts if b"baselineShares" in one.proto.bytes]

    def select_rows(self, key, *rows):
        self.at.session_state[self.find("dataframe", key).key] = {
            "selection": {"rows": list(rows), "columns": [], "cells": []}
        }
        return self.run()

    def select(self, *ids):
        self.at.session_state["relscope.selection"] = ids
        return self.run()

    @property
    def history(self):
        return self.at.session_state["relscope.history"]

    @property
    def workspace(self):
        return self.history.present

    @property
    def can_undo(self):
        return any(button.key == "history.undo" and not button.disabled for button in self.at.button)

    @property
    def errors(self):
        return [error.value for error in self.at.error]

    @property
    def everything(self):
        kinds = ("markdown", "caption", "html", "success", "warning", "error", "info")
        return "\n".join(str(element.value) for kind in kinds for element in getattr(self.at, kind))

    @property
    def html(self):
        """Without the links to the glossary, as `captions`."""
        return re.sub(
            r'<a href="#what-.*?>(.*?)</a>', r"\1", "\n".join(block.value for block in self.at.html)
        )

    @property
    def text(self):
        return re.sub(r"<.*?>", "", self.html)

    @property
    def captions(self):
        return re.sub(r"\[(.*?)\]\(#what-.*?\)", r"\1", "\n".join(text.value for text in self.at.caption))


def save_space(path, vectors, prefix="r", **columns):
    ids = np.array([f"{prefix}{row}" for row in range(len(vectors))])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, vectors=vectors.astype(np.float32), ids=ids, **columns)
    return SpaceSpec("file", str(path))


@pytest.fixture
def make_workspace(tmp_path):
    """``make_workspace(n)``: n rows in 6 dimensions, and the same rotated with noise; 20 anchors, 3 pivots."""

    def make(n=120, **changes):
        rng = np.random.default_rng(0)
        vectors = rng.normal(size=(n, 6))
        rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
        first = save_space(tmp_path / f"first{n}.npz", vectors)
        second = save_space(tmp_path / f"second{n}.npz", vectors @ rotation + 0.1 * rng.normal(size=(n, 6)))
        anchors = tuple(f"r{row}" for row in range(min(20, n)))
        view = ViewSpec(("r1", "r2", "r3"), n_nearest=min(30, n))
        return replace(Workspace((first, second), first, second, anchors, view=view), **changes)

    return make


@pytest.fixture
def make_session(make_workspace):

    def make(n=120, place=("explore",), state=None, **changes):
        return Session(None, make_workspace(n, **changes), place, state)

    return make


def session_of_uploads() -> tuple[Session, list[tuple[str, bytes, str]]]:
    """A session that compares two uploaded tables of 30 rows, and these files: name, content and type."""
    session = Session(place=("data",))
    rng = np.random.default_rng(0)
    uploads = []
    for name in ("a.csv", "b.csv"):
        lines = "".join(f"r{row},{','.join(map(str, rng.normal(size=4).round(3)))}\n" for row in range(30))
        uploads.append((name, f"id,d0,d1,d2,d3\n{lines}".encode(), "text/csv"))
    session.file_uploader(key="spaces.upload").set_value(uploads)
    session.run()
    session.click("spaces.load-compare")
    return session, uploads
