"""Names of files and spaces cannot steer the terminal; a pipe gets every character."""

import io
import sys
from argparse import Namespace

import numpy as np
import pytest

from relcore.cli import main
from relcore.commands import running

NAME = "clear\x1b[2J\x9b31m\u202eab.npy"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / NAME, np.eye(4, dtype=np.float32))
    return tmp_path


def test_name_is_shown_without_what_would_steer_terminal(folder, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["available", "--data", str(folder)]) == 0
    assert "clear�[2J�31m�ab.npy" in screen.getvalue()
    assert "\n" in screen.getvalue()


def test_an_error_is_one_harmless_line(folder, capsys):
    assert main(["compare", f"{NAME}\n.npy", f"{NAME}.csv"]) == 2
    told = capsys.readouterr().err
    assert not set("\x1b\x9b\u202e") & set(told)
    assert told.count("\n") == 1


def test_without_terminal_line_every_half_minute_says_how_far_it_is(monkeypatch, capsys):
    clock = iter([0.0, 29.9, 30.0, 45.0, 61.0])
    monkeypatch.setattr(running.time, "monotonic", clock.__next__)
    with running.Bar(Namespace(quiet=False)) as bar:
        for done in (1, 2, 3, 4):
            bar.show(done, 10, f"row {done}\x1b[2J")
    assert capsys.readouterr().err == "relscope:  20%  row 2�[2J\nrelscope:  40%  row 4�[2J\n"
