"""What the app prints for a script: each new selection of one user, and nothing of a shared app."""

from __future__ import annotations

import os
from pathlib import Path
from queue import Empty, SimpleQueue

import numpy as np
import pytest

from app.compare import selection as selection_lines
from app.compare.selection import SelectionLines
from relcore import LatentSpace, read_selection, read_selections
from relcore.files.selections import LINES, MOST_IN_A_LINE, SelectedRows, Selection
from tests.waiting import until


@pytest.fixture(autouse=True)
def own_lines(monkeypatch, tmp_path):
    """No process-wide lines of another test, and a folder for files of this one's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cached = selection_lines._lines, selection_lines._folder
    for one in cached:
        one.cache_clear()
    yield
    for one in cached:
        one.cache_clear()


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    with open(reader, encoding="ascii") as lines:
        yield writer, lines
    os.close(writer)


@pytest.fixture
def printed(monkeypatch):
    put = SimpleQueue()

    class Recorded:
        def put(self, selection, spaces):
            put.put((selection, tuple(space.name for space in spaces)))

    monkeypatch.setattr(selection_lines, "_lines", Recorded)

    def printed():
        found = []
        while True:
            try:
                found.append(put.get_nowait())
            except Empty:
                return found

    return printed


def test_each_new_selection_is_printed_once(printed, make_session):
    session = make_session()
    session.run()
    assert printed() == []
    session.select("r3", "r4").run()
    session.open("explore", "Anchors")
    session.open("explore").click("inspector.clear")
    (first, names), (cleared, _) = printed()
    assert (first.ids, cleared.ids) == (("r3", "r4"), ())
    assert names == ("first120", "second120")
    assert first.session == cleared.session != ""
    assert first.time.endswith("+00:00")


def test_a_shared_app_prints_nothing(printed, make_session, monkeypatch):
    monkeypatch.setattr(selection_lines, "shared", lambda: True)
    make_session().select("r3")
    assert printed() == []


def test_the_line_holds_the_row_numbers_of_both_spaces(pipe, monkeypatch):
    writer, lines = pipe
    os.set_inheritable(writer, True)
    monkeypatch.setenv(LINES, str(writer))
    feed = selection_lines._lines()
    assert LINES not in os.environ
    assert not os.get_inheritable(writer)
    spaces = (
        LatentSpace(np.eye(3), ["a", "b", "c"], name="first"),
        LatentSpace(np.eye(2), ["c", "a"], name="second"),
    )
    feed.put(Selection(("c", "b"), session="k", time="t"), spaces)
    (selection,) = read_selections([lines.readline()])
    assert (selection.ids, selection.session, selection.time) == (("c", "b"), "k", "t")
    assert selection.spaces == tuple(
        SelectedRows(space.name, space.digest, rows)
        for space, rows in zip(spaces, ((2, 1), (0, None)), strict=True)
    )


def test_many_rows_are_in_a_file_of_which_the_newest_are_kept(pipe):
    writer, lines = pipe
    n = MOST_IN_A_LINE + 1
    space = LatentSpace(np.ones((n, 1)), [f"row-{row}" for row in range(n)], name="many")
    feed, read = SelectionLines(writer), []
    for turn in range(selection_lines._FILES_KEPT + 1):
        feed.put(Selection(tuple(reversed(space.ids)), session=str(turn)), (space,))
        line = lines.readline()
        assert len(line) < 500
        (selection,) = read_selections([line])
        assert selection.spaces[0].rows == tuple(range(n))[::-1]
        assert selection.session == str(turn)
        read.append(line)
    kept = list(Path(selection_lines._folder()).iterdir())
    assert len(kept) == selection_lines._FILES_KEPT
    assert {read_selection(path).session for path in kept} == {"1", "2", "3", "4"}
    assert os.stat(selection_lines._folder()).st_mode & 0o77 == 0


def test_a_reader_that_has_ended_stops_nothing(capsys):
    reader, writer = os.pipe()
    os.close(reader)
    feed = SelectionLines(writer)
    space = LatentSpace(np.eye(2), ["a", "b"], name="one")
    heard = []
    for turn in (1, 2):
        feed.put(Selection(("a",)), (space,))
        until(
            lambda turn=turn: (
                heard.append(capsys.readouterr().err) or "".join(heard).count("Broken pipe") == turn
            )
        )
    os.close(writer)
