"""Selections exported from the app: rows by id, with the spaces in which they were selected.

A session file holds one under ``panes: selection``. `relscope app --print-selection` prints one line of JSON
for each new selection; if it has many rows, the line names a file with the selection. msgspec reads all three
forms, because its strict reader reads a million ids in a fraction of a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.access import allowed, regular_file
from relcore.base.errors import SpaceError, quote
from relcore.files.items import open_table
from relcore.spaces.space import LatentSpace

LINES = "RELSCOPE_SELECTION_LINES"  # the file descriptor to which the app's server prints them
MOST_IN_A_LINE = 10_000  # rows; more are written to a file that the line names
_MOST_BYTES = 1 << 30
_EXPECTED = "expected a session file of the app, or a line of `relscope app --print-selection`"


@dataclass(frozen=True)
class SelectedRows:
    """The selected rows in one space.

    Attributes
    ----------
    name, digest : str
        Name and digest of the space; the digest is "" if a session file lacks it.
    rows : tuple of int or None
        Row numbers from 0, one per id, None if the space lacks the id; empty in a session file.
    """

    name: str
    digest: str = ""
    rows: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Selection:
    """Rows that were selected in the app.

    Attributes
    ----------
    ids : tuple of str
        Empty if the user cleared the selection.
    spaces : tuple of SelectedRows
        Source and target.
    session : str
        Key of the browser tab until it is reloaded; "" in a session file.
    time : str
        Time of the selection in UTC, as in 2026-11-22T13:05:09+00:00; "" in a session file.
    """

    ids: tuple[str, ...]
    spaces: tuple[SelectedRows, ...] = ()
    session: str = ""
    time: str = ""

    def rows_in(self, space: LatentSpace) -> np.ndarray:
        """Row numbers (m,) of the ids in the space.

        Raises
        ------
        SpaceError
            The rows were selected in other spaces, or the space lacks some of the ids.
        """
        digests = [known.digest for known in self.spaces if known.digest]
        if digests and space.digest not in digests:
            of = " and ".join(f"{known.name!r} ({known.digest[:8]}…)" for known in self.spaces)
            raise SpaceError(
                f"selection: expected one of the spaces {of}, got {space.name!r} ({space.digest[:8]}…); load"
                " the file that was open in the app"
            )
        return space.rows(self.ids)


@dataclass(frozen=True)
class _Line:
    """The content of a line or of the file that it names: `ids`, or the path of the `file` with them."""

    n: int
    spaces: tuple[SelectedRows, ...]
    ids: tuple[str, ...] | None = None
    file: str = ""
    session: str = ""
    time: str = ""


@dataclass(frozen=True)
class _Session:
    spaces: tuple[SelectedRows, ...]
    source: int
    target: int


@dataclass(frozen=True)
class _Panes:
    selection: tuple[str, ...] | None  # None: too large to be saved


@dataclass(frozen=True)
class _SessionFile:
    session: _Session
    panes: _Panes = _Panes(())


def to_line(selection: Selection, file: Path | None = None) -> str:
    """The selection as a line of ASCII JSON without line break; with `file`, its path replaces ids and
    rows."""
    spaces = [
        {"name": space.name, "digest": space.digest} | ({} if file else {"rows": space.rows})
        for space in selection.spaces
    ]
    where = {"file": str(file)} if file else {"ids": selection.ids}
    head = {"session": selection.session, "time": selection.time, "n": len(selection.ids)}
    return json.dumps(head | where | {"spaces": spaces}, separators=(",", ":"))


def from_session_file(content: bytes) -> tuple[str, ...] | None:
    """The ids under ``panes: selection`` of a session file; () for versions that did not save them, None if
    they were too many.

    Raises
    ------
    SpaceError
        Not a session file.
    """
    return _decoded(_SessionFile, content, "session file").panes.selection


def read_selection(path: str | Path) -> Selection:
    """The selection in a session file, in a table that Explore downloads (.csv, .parquet), or in the file
    that a line of `relscope app --print-selection` names.

    Raises
    ------
    SpaceError
        No such file, another kind of file, a table without a column "id", or a session file without its
        selection.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "1.json")
    ...     _ = path.write_text('{"n": 2, "ids": ["king", "queen"], "spaces": []}')
    ...     read_selection(path).ids
    ('king', 'queen')
    """
    path, where = regular_file(allowed(path)), f"{str(path)!r:.200}"
    if path.suffix.lower() in (".csv", ".parquet"):
        table = open_table([path])
        if "id" not in table.columns:
            raise SpaceError(f'{where}: expected a table with a column "id", got {quote(table.columns)}')
        return Selection(tuple(map(str, table.read("id", 0, len(table)))))
    if path.stat().st_size > _MOST_BYTES:
        raise SpaceError(
            f"{where}: {_EXPECTED} of at most {_MOST_BYTES >> 20:,} MB, got {path.stat().st_size >> 20:,} MB"
        )
    content = path.read_bytes()
    plain = _decoded(Any, content, where)
    if not (isinstance(plain, dict) and isinstance(plain.get("session"), dict)):
        return _held(_decoded(_Line, content, where), where)
    saved = _decoded(_SessionFile, content, where)
    if saved.panes.selection is None:
        raise SpaceError(
            f"{where}: expected a session file with its selection, got one whose selection was too large for"
            " it; run `relscope app --print-selection`, and select the rows again"
        )
    spaces, ends = saved.session.spaces, (saved.session.source, saved.session.target)
    if not all(0 <= end < len(spaces) for end in ends):
        raise SpaceError(
            f"{where}: {_EXPECTED}, got one whose source or target is none of its spaces; save it again"
        )
    return Selection(saved.panes.selection, tuple(spaces[end] for end in ends))


def read_selections(lines: Iterable[str]) -> Iterator[Selection]:
    """The selections in lines of `relscope app --print-selection`, each yielded as soon as its line arrives.

    Parameters
    ----------
    lines : iterable of str
        Usually ``sys.stdin``; empty lines are skipped.

    Raises
    ------
    SpaceError
        An invalid line, or one whose file was removed after later selections.

    Examples
    --------
    >>> line = '{"n": 1, "ids": ["king"], "spaces": [{"name": "words", "digest": "5f3a", "rows": [7]}]}'
    >>> [(selection.ids, selection.spaces[0].rows) for selection in read_selections([line])]
    [(('king',), (7,))]
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"line {number}"
            read = _decoded(_Line, line.encode(errors="replace"), where)
            yield read_selection(read.file) if read.file else _held(read, where)


def _held(line: _Line, where: str) -> Selection:
    if line.ids is None:
        raise SpaceError(f"{where}: {_EXPECTED}, got one without ids")
    n = len(line.ids)
    if line.n != n or any(len(space.rows) not in (0, n) for space in line.spaces):
        raise SpaceError(
            f"{where}: {_EXPECTED}, got one with different numbers of ids and rows; was it cut off?"
        )
    return Selection(line.ids, line.spaces, line.session, line.time)


def _decoded(kind: type, content: bytes, where: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SpaceError(f"{where}: {_EXPECTED}, got something else ({error!s:.200})") from None
