"""A gzip file, unpacked as it is read, and no further once it proves to be a bomb."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

from relcore.sources.rows import readable
from relcore.spaces import SpaceError

_FREE = 32 << 20  # however well so much was packed, reading it takes seconds
_MOST_TIMES = 50  # vectors as text pack to a half or a third; gzip's best, on one byte repeated, is 1,030


def open_unpacked(path: Path) -> io.BufferedReader:
    """The unpacked bytes of a .gz file.

    Raises
    ------
    SpaceError
        While reading: more than 32 MB came out, and more than 50 times the file's size.
    """
    return io.BufferedReader(_Counted(path), 1 << 17)


class _Counted(io.RawIOBase):
    def __init__(self, path: Path) -> None:
        self._path, self._packed = path, path.stat().st_size
        self._stream, self._unpacked = gzip.open(path), 0  # noqa: SIM115 - see close

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        n = self._stream.readinto(buffer)
        self._unpacked += n
        if self._unpacked > max(_FREE, _MOST_TIMES * self._packed):
            raise SpaceError(
                f"{self._path.name}: expected vectors, got {readable(self._packed)} that unpack to more than "
                f"{readable(self._unpacked)}, nearly all of it the same; where you trust the file, unpack it"
            )
        return n

    def close(self) -> None:
        self._stream.close()
        super().close()
