"""The line on stderr about a long call: who sees it, and what it says."""

import io
import sys
import threading
from contextlib import nullcontext

import numpy as np
import pytest

import relcore
from relcore.base.errors import SpaceError
from relcore.cli import main
from relcore.runs import progress_line
from relcore.runs.progress_line import long_call, show_step


class Stream(io.StringIO):
    """A terminal, or a pipe, that tells when a text was written."""

    def __init__(self, is_terminal=True):
        super().__init__()
        self.is_terminal = is_terminal
        self.wanted = ""
        self.came = threading.Event()

    def isatty(self):
        return self.is_terminal

    def write(self, text):
        super().write(text)
        if self.wanted and self.wanted in self.getvalue():
            self.came.set()
        return len(text)


class Notebook(Stream):
    """As the stream of a kernel, which is no terminal."""

    __module__ = "ipykernel.iostream"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(progress_line, "AFTER_SECONDS", 0.0)
    monkeypatch.setattr(progress_line, "_EVERY", 0.001)
    monkeypatch.delenv("RELSCOPE_QUIET", raising=False)


@long_call
def searched(wanted: str = "") -> str:
    show_step(1, 4, "searching")
    if wanted:
        sys.stderr.wanted = wanted
        assert sys.stderr.came.wait(30)
    return "found"


def written(monkeypatch, stream, call=searched, *arguments):
    monkeypatch.setattr(sys, "stderr", stream)
    assert call(*arguments) == "found"
    return stream.getvalue()


def test_terminal_shows_the_step_and_erases_the_line(monkeypatch):
    text = written(monkeypatch, Stream(), searched, "searched: 0 s · 25 % · searching")
    assert text.endswith("\r\x1b[2K")


def test_notebook_keeps_the_seconds_of_the_call(monkeypatch):
    text = written(monkeypatch, Notebook(is_terminal=False), searched, "25 % · searching")
    assert "\x1b" not in text
    assert text.rpartition("\r")[2].rstrip(" \n").startswith("searched: ")
    assert text.endswith("\n")
    assert "searching" not in text.rpartition("\r")[2]


def test_call_inside_another_draws_no_line(monkeypatch):
    @long_call
    def outer() -> str:
        return searched("outer: 0 s · 25 %")

    text = written(monkeypatch, Stream(), outer)
    assert "outer: 0 s · 25 %" in text
    assert "searched" not in text


def in_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(searched()))
    thread.start()
    thread.join()
    return results[0]


def in_command():
    with progress_line.without_line():
        return searched()


@pytest.mark.parametrize(
    ("stream", "call"),
    [(Stream(is_terminal=False), searched), (Stream(), in_thread), (Stream(), in_command)],
    ids=["pipe", "thread", "command"],
)
def test_no_thread_draws_a_line_that_nobody_asked_for(stream, call, monkeypatch):
    assert not starts_a_line(monkeypatch, stream, call)


def starts_a_line(monkeypatch, stream, call=searched):
    started = []
    line = progress_line._line
    monkeypatch.setattr(progress_line, "_line", lambda *given: started.append(given) or line(*given))
    written(monkeypatch, stream, call)
    return bool(started)


def test_setting_switches_the_line_off(monkeypatch):
    assert starts_a_line(monkeypatch, Stream())
    monkeypatch.setenv("RELSCOPE_QUIET", "1")
    assert not starts_a_line(monkeypatch, Stream())
    monkeypatch.setenv("RELSCOPE_QUIET", "yes")
    with pytest.raises(SpaceError, match="RELSCOPE_QUIET: expected 0 or 1"):
        searched()


def test_short_call_and_failed_call_leave_no_line(monkeypatch):
    monkeypatch.setattr(progress_line, "AFTER_SECONDS", 60.0)
    assert written(monkeypatch, Stream()) == ""

    @long_call
    def failed() -> str:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        failed()
    assert progress_line._Line.drawn is None


@pytest.mark.usefixtures("own_store")
def test_commands_draw_no_line(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 4))
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", X)
    arguments = ["link", *(str(tmp_path / name) for name in ("a.npy", "b.npy"))]
    monkeypatch.setattr(progress_line, "_line", lambda *_: pytest.fail("a command has its own bar"))
    monkeypatch.setattr(sys, "stderr", Stream())
    assert main(arguments) == 0


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("encode", (len, [])), ("compare_runs", ([],)), ("invert", (1, 2, ["a"])), ("axis", (1, 2, "a", "b"))],
)
def test_calls_of_seconds_have_a_line(monkeypatch, name, arguments):
    named = []

    def line_of(called, stream):
        named.append(called)
        return nullcontext()

    monkeypatch.setattr(progress_line, "_line", line_of)
    monkeypatch.setattr(sys, "stderr", Stream())
    with pytest.raises(SpaceError):
        getattr(relcore, name)(*arguments)
    assert named == [name]
