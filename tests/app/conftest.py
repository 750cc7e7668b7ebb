"""The whole app without a browser: sessions on two small spaces of files, and what they show and hold."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, local_script_runner

from app.workspace import History, Workspace
from relcore.catalog.catalog import SpaceSpec
from relcore.maps.pane_maps import ViewSpec
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Context

MAIN = Path(__file__).parents[2] / "app" / "main.py"


def _wait(runner: local_script_runner.LocalScriptRunner, timeout: float) -> None:
    runner._script_thread.join(timeout)
    if not runner.script_stopped():
        _refuse(runner, timeout=0)


# Runs share their compiled pages, as a server's sessions do, and a test sleeps until its run has ended. AppTest compiles
# every page for every run, looks a thousand times a second whether the run has ended, and reads the metadata of all
# installed packages for every session, which took a third of the time of these tests.
_pages, _refuse = ScriptCache(), local_script_runner.require_widgets_deltas
local_script_runner.ScriptCache = lambda: _pages
local_script_runner.require_widgets_deltas = _wait
manifest_scanner.scan_component_manifests = list
config.set_option("browser.gatherUsageStats", False)  # as in app/.streamlit, or each widget is counted


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


MENUS = ("toolbar.anchors", "toolbar.session", "view-choosers", "export-explore")


class Session:
    """One browser session with its menus open, driven by AppTest; attributes that it lacks are AppTest's.

    It begins at Explore, or at a place and tab, with this in its state.
    """

    def __init__(
        self,
        query: dict[str, str] | None = None,
        workspace: Workspace | None = None,
        place: tuple[str, ...] = ("explore",),
        state: dict[str, object] | None = None,
    ) -> None:
        self.at = AppTest.from_file(MAIN, default_timeout=300)
        for key, value in (dict.fromkeys(MENUS, True) | (state or {})).items():
            self.at.session_state[key] = value
        if query:
            self.at.query_params = query
        if workspace:
            self.at.session_state["relscope.history"] = History(workspace)
        self.open(*place)

    def __getattr__(self, name: str):
        return getattr(self.at, name)

    def run(self) -> Session:
        self.at.run()
        assert not self.at.exception, [error.value for error in self.at.exception]
        return self

    def open(self, place: str, tab: str = "") -> Session:
        if tab:
            self.at.session_state[f"{place}.tab"] = tab
        self.at.switch_page(f"../pages/{place}.py")
        return self.run()

    def change(self, kind: str, key: str, value) -> Session:
        getattr(self.at, kind)(key=key).set_value(value)
        return self.run()

    def click(self, key: str) -> Session:
        found = [button for button in self.at.button if button.key == key or button.label.strip() == key]
        assert len(found) == 1, (key, [(button.key, button.label) for button in self.at.button])
        assert not found[0].disabled, key
        found[0].click()
        return self.run()

    def upload(self, key: str, name: str, content: bytes) -> Session:
        self.at.file_uploader(key=key).set_value((name, content, "application/octet-stream"))
        return self.run()

    def table(self, key: str) -> dict:
        return next(table.value for table in self.at.dataframe if (table.key or "").startswith(key))

    def select_rows(self, key: str, *rows: int) -> Session:
        (key,) = (table.key for table in self.at.dataframe if (table.key or "").startswith(key))
        self.at.session_state[key] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}
        return self.run()

    def select(self, *ids: str) -> Session:
        self.at.session_state["relscope.selection"] = ids
        return self.run()

    @property
    def history(self) -> History:
        return self.at.session_state["relscope.history"]

    @property
    def workspace(self) -> Workspace:
        return self.history.present

    @property
    def can_undo(self) -> bool:
        return any(button.key == "history.undo" and not button.disabled for button in self.at.button)

    @property
    def errors(self) -> list[str]:
        return [error.value for error in self.at.error]

    @property
    def everything(self) -> str:
        kinds = ("markdown", "caption", "html", "success", "warning", "error", "info")
        return "\n".join(str(element.value) for kind in kinds for element in getattr(self.at, kind))

    @property
    def html(self) -> str:
        """Without the links to the glossary, as `captions`."""
        return re.sub(
            r'<a href="#what-.*?>(.*?)</a>', r"\1", "\n".join(block.value for block in self.at.html)
        )

    @property
    def text(self) -> str:
        """The `html` without tags."""
        return re.sub(r"<.*?>", "", self.html)

    @property
    def captions(self) -> str:
        return re.sub(r"\[(.*?)\]\(#what-.*?\)", r"\1", "\n".join(text.value for text in self.at.caption))


def save_space(path: Path, vectors: np.ndarray, prefix: str = "r", **columns: np.ndarray) -> SpaceSpec:
    ids = np.array([f"{prefix}{row}" for row in range(len(vectors))])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, vectors=vectors.astype(np.float32), ids=ids, **columns)
    return SpaceSpec("file", str(path))


@pytest.fixture
def make_workspace(tmp_path):
    """``make_workspace(n) -> Workspace``: n rows in 6 dimensions, and the same rotated with noise; 20
    anchors, 3 pivots.
    """

    def make(n: int = 120, **changes) -> Workspace:
        rng = np.random.default_rng(0)
        vectors = rng.normal(size=(n, 6))
        rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
        first = save_space(tmp_path / f"first{n}.npz", vectors)
        second = save_space(tmp_path / f"second{n}.npz", vectors @ rotation + 0.1 * rng.normal(size=(n, 6)))
        anchors = tuple(f"r{row}" for row in range(min(20, n)))
        workspace = Workspace(
            (first, second), first, second, anchors, view=ViewSpec(("r1", "r2", "r3"), n_nearest=min(30, n))
        )
        return workspace if not changes else Workspace(**{**workspace.__dict__, **changes})

    return make


@pytest.fixture
def make_session(make_workspace):
    """``make_session(n, place=…, state=…, **changes) -> Session`` on the spaces of `make_workspace`."""

    def make(n: int = 120, place=("explore",), state=None, **changes) -> Session:
        return Session(None, make_workspace(n, **changes), place, state)

    return make
