"""Names of files and spaces cannot steer the terminal; a pipe gets every character."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from relcore.cli import main

NAME = "clear\x1b[2J\x9b31m\u202eab.npy"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / NAME, np.eye(4, dtype=np.float32))
    return tmp_path


def test_a_name_is_shown_without_what_would_steer_the_terminal(folder, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["available", "--data", str(folder)]) == 0
    assert "clear�[2J�31m�ab.npy" in screen.getvalue()
    assert "\n" in screen.getvalue()


def test_a_pipe_gets_the_name_as_it_is(folder, capsys):
    assert main(["available", "--data", str(folder)]) == 0
    assert NAME in capsys.readouterr().out


def test_an_error_is_one_harmless_line(folder, capsys):
    assert main(["compare", f"{NAME}\n.npy", f"{NAME}.csv"]) == 2
    told = capsys.readouterr().err
    assert not set("\x1b\x9b\u202e") & set(told)
    assert told.count("\n") == 1
