"""How many of the selected rows can become anchors, and the printing of selections."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import numpy as np
import streamlit as st

from app import compute, session
from app.workspace import MOST_ANCHORS
from relcore.base.access import shared
from relcore.base.writing import NotWritten, temporary_prefix, write
from relcore.files.selections import LINES, MOST_IN_A_LINE, SelectedRows, Selection, to_line
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import row_keys

LIMIT_HELP = (
    f"The app takes at most {MOST_ANCHORS:,} anchors. These are drawn at random, the same ones each time."
)
FULL_HELP = f"The app takes at most {MOST_ANCHORS:,} anchors. Remove one first."


def n_offered(n_new: int, n_present: int = 0) -> int:
    return min(n_new, max(0, MOST_ANCHORS - n_present))


def offered(chosen: Sequence[str], present: Collection[str] = ()) -> tuple[str, ...]:
    """The selected ids that are not anchors yet, in their order; a random sample of them if they are too
    many."""
    present = set(present)
    new = [identifier for identifier in chosen if identifier not in present]
    room = max(0, MOST_ANCHORS - len(present))
    if len(new) <= room:
        return tuple(new)
    drawn = np.argsort(row_keys(new, "offered anchors"), kind="stable")[:room]
    return tuple(new[row] for row in np.sort(drawn))


# `relscope app --print-selection` prints each new selection as a line of JSON, if the app is not shared.

_LAST = "relscope.selection-lines"
_FILES_KEPT = 4  # each takes some 30 MB for a million rows


class SelectionLines:
    """Selections, written to the terminal by a thread of their own, so that neither a slow reader nor a
    million ids block a page."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._waiting: SimpleQueue[tuple[Selection, tuple[LatentSpace, ...]]] = SimpleQueue()
        self._files: list[Path] = []
        Thread(target=self._write, daemon=True, name="selection-lines").start()

    def put(self, selection: Selection, spaces: tuple[LatentSpace, ...]) -> None:
        self._waiting.put((selection, spaces))

    def _write(self) -> None:
        while True:
            selection, spaces = self._waiting.get()
            rows = tuple(_selected_rows(selection.ids, space) for space in spaces)
            whole = Selection(selection.ids, rows, selection.session, selection.time)
            line = to_line(whole)
            try:
                if len(selection.ids) > MOST_IN_A_LINE:
                    line = to_line(whole, self._beside(line))
                with open(self._stream, "w", encoding="ascii", closefd=False) as out:
                    out.write(line + "\n")
            except (
                OSError,
                NotWritten,
            ) as error:  # the reader has ended, or the disk is full
                print(
                    f"relscope: a selection could not be printed ({error.strerror})",
                    file=sys.stderr,
                    flush=True,
                )

    def _beside(self, line: str) -> Path:
        self._files.append(Path(_folder(), f"{secrets.token_hex(8)}.json"))
        write(self._files[-1], line.encode("ascii"))
        while len(self._files) > _FILES_KEPT:
            self._files.pop(0).unlink(missing_ok=True)
        return self._files[-1]


@cache
def _folder() -> str:
    """The folder of selections. It is kept when the app ends, because a script may still read it."""
    return tempfile.mkdtemp(prefix=temporary_prefix())


def _selected_rows(ids: tuple[str, ...], space: LatentSpace) -> SelectedRows:
    rows = space.index.get_indexer(np.array(ids, dtype=object))
    return SelectedRows(space.name, space.digest, tuple(row if row >= 0 else None for row in rows.tolist()))


@cache
def _lines() -> SelectionLines | None:
    """The writer of selections if the command asked for one; processes started by this one have none."""
    stream = os.environ.pop(LINES, "")
    if not stream:
        return None
    os.set_inheritable(int(stream), False)
    return SelectionLines(int(stream))


def print_selection() -> None:
    """Print this session's selection if the command asked for it and the user has changed it."""
    lines, ids = _lines(), session.selection()
    if lines is None or shared():
        return
    key, last = st.session_state.setdefault(_LAST, (secrets.token_hex(4), ids))
    if ids is last or ids == last:
        return
    st.session_state[_LAST] = key, ids
    spaces = tuple(
        compute.load_space(spec) for spec in (session.workspace().source, session.workspace().target)
    )
    lines.put(
        Selection(tuple(ids), session=key, time=datetime.now(UTC).isoformat(timespec="seconds")), spaces
    )
