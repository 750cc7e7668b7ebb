"""Read selections that were exported from the app: from session files, and from tables of the selected
rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from relcore.base.access import read_at_most, readable_path, regular_file
from relcore.base.errors import SpaceError, quote
from relcore.base.kinds import takes_kinds
from relcore.files.item_rows import open_table
from relcore.spaces.space import LatentSpace

_MOST_BYTES = 1 << 30
_EXPECTED = "expected a session file of the app"


@dataclass(frozen=True)
class SelectedRows:
    """The selected rows in one space.

    Attributes
    ----------
    name, digest : str
        The name and the digest of the space. The digest is "" if the file lacks it.
    """

    name: str
    digest: str = ""


@dataclass(frozen=True)
class Selection:
    """Rows that were selected in the app.

    Attributes
    ----------
    ids : tuple of str
        The ids of the selected rows. Empty if the user cleared the selection.
    spaces : tuple of SelectedRows
        The selected rows in the source and in the target. Empty if the file is a table.
    """

    ids: tuple[str, ...]
    spaces: tuple[SelectedRows, ...] = ()

    def rows_in(self, space: LatentSpace) -> np.ndarray:
        """The row numbers (m,) that the selected ids have in the space.

        Raises
        ------
        SpaceError
            The rows were selected in another space, or the space lacks some of the ids.
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
class _Session:
    spaces: tuple[SelectedRows, ...]
    source: int
    target: int


@dataclass(frozen=True)
class _Panes:
    selection: tuple[str, ...] | None  # None if the selection was too large to be saved


@dataclass(frozen=True)
class _SessionFile:
    session: _Session
    panes: _Panes = _Panes(())


def from_session_file(content: bytes) -> tuple[str, ...] | None:
    """The ids under ``panes: selection`` of a session file. () if an old version wrote the file without them;
    None if there were too many to save.

    Raises
    ------
    SpaceError
        The content is no session file.
    """
    return _decoded(content, "session file").panes.selection


@takes_kinds
def read_selection(path: str | Path) -> Selection:
    """The selection in a session file, or in a table (.csv or .parquet) that was downloaded from Explore.

    Raises
    ------
    SpaceError
        The file does not exist, is of another kind, is a table without a column "id", or is a session file
        without its selection.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "selection.csv")
    ...     _ = path.write_text("id,label\\nking,noun\\nqueen,noun\\n")
    ...     read_selection(path).ids
    ('king', 'queen')
    """
    path, where = regular_file(readable_path(path)), f"{str(path)!r:.200}"
    if path.suffix.lower() in (".csv", ".parquet"):
        table = open_table([path])
        if "id" not in table.columns:
            raise SpaceError(f'{where}: expected a table with a column "id", got {quote(table.columns)}')
        return Selection(tuple(map(str, table.read("id", 0, len(table)))))
    saved = _decoded(read_at_most(path, _MOST_BYTES, "a session file of the app"), where)
    if saved.panes.selection is None:
        raise SpaceError(
            f"{where}: expected a session file with a selection, got one without, because the selection was"
            " too large; download the table of the selected rows"
        )
    spaces = saved.session.spaces
    ends = (saved.session.source, saved.session.target)
    if not all(0 <= end < len(spaces) for end in ends):
        raise SpaceError(
            f"{where}: {_EXPECTED}, got one whose source or target is none of its spaces; save it again"
        )
    return Selection(saved.panes.selection, tuple(spaces[end] for end in ends))


def _decoded(content: bytes, where: str) -> _SessionFile:
    try:
        return msgspec.json.decode(content, type=_SessionFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SpaceError(f"{where}: {_EXPECTED}, got something else ({error!s:.200})") from None
