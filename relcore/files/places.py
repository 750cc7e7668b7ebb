"""Place: where vectors are stored, as ``qdrant:PATH#COLLECTION`` or ``FILE.parquet#COLUMN`` on a command
line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.names import INDEXES

SUFFIXES = {".npy": "npy", ".parquet": "parquet", ".faiss": "faiss", ".index": "faiss"}
_ADDRESSES = ("http://", "https://")
_WITH_TABLE = ("qdrant", "lancedb")


@dataclass(frozen=True)
class Place:
    """A store of vectors.

    Attributes
    ----------
    kind : str
        A name of `relcore.base.names.INDEXES`.
    where : str
        The path of a file or a folder, or the address of a server.
    table : str
        The collection or table in it; of a parquet file the column of vectors, "" for the only one.
    """

    kind: str
    where: str
    table: str = ""

    def __post_init__(self) -> None:
        if self.kind not in INDEXES:
            raise SpaceError(f"index: expected one of {quote(INDEXES)}, got {self.kind!r:.80}")
        if not isinstance(self.where, str) or not isinstance(self.table, str) or not self.where:
            raise SpaceError(f"{self.kind}: expected a path or an address, got {self.where!r:.80}")
        if self.kind in _WITH_TABLE and not self.table:
            raise SpaceError(f"{self.text}: expected the name of a collection or table, got none; add #NAME")
        if "://" in self.where and not (self.kind == "qdrant" and self.where.startswith(_ADDRESSES)):
            raise SpaceError(
                f"{self.text}: expected a path, or for qdrant an address that begins with http:// or"
                " https://, got another address; export its vectors to a file"
            )

    @property
    def text(self) -> str:
        """As it is written on a command line."""
        return f"{self.kind}:{self.where}{f'#{self.table}' * bool(self.table)}"

    @property
    def address(self) -> str:
        """The address of a server, "" for a path."""
        return self.where if self.where.startswith(_ADDRESSES) else ""

    @property
    def is_file(self) -> bool:
        """Whether it is one file, which is written whole and takes no more rows."""
        return self.kind not in _WITH_TABLE

    @property
    def path(self) -> Path:
        """The path, once it is known that whoever asks may use it; errors as in `access.allowed`."""
        return access.allowed(self.where)

    def need_access(self) -> None:
        """Raise a SpaceError where the app is shared: then no address and no folder of a database is
        opened.
        """
        if not self.is_file:
            access.need_own_machine(self.text)
        else:
            access.allowed(self.where)


def parse_place(text: str) -> Place | None:
    """The place that a user names, by its kind before a colon or by the suffix of its file; None for anything
    else.

    Examples
    --------
    >>> parse_place("qdrant:/data/q#news")
    Place(kind='qdrant', where='/data/q', table='news')
    >>> parse_place("old.parquet#embedding")
    Place(kind='parquet', where='old.parquet', table='embedding')
    """
    kind, colon, rest = text.partition(":")
    if not colon or kind not in INDEXES:
        rest = text
        kind = SUFFIXES.get(Path(text.partition("#")[0]).suffix.lower(), "")
        if not kind or "=" in text.partition("#")[2] or access.expanded(text).exists():
            kind = SUFFIXES.get(Path(text).suffix.lower(), "")
            return Place(kind, text) if kind else None
    where, _, table = rest.rpartition("#") if "#" in rest else (rest, "", "")
    return Place(kind, where, table)
