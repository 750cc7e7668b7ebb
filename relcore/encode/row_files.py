"""Rows that arrive in batches: kept in memory, or beyond a limit written to files that are then mapped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.mapped_rows import FileStamp, MappedRows, Origin
from relcore.base.rows import as_float32, lengths
from relcore.base.writing import temporary

MOST_IN_MEMORY = 512 << 20  # bytes of all layers together


class _Written(Origin):
    """A file of rows whose lengths are known. A temporary folder stays as long as the rows are used."""

    def __init__(self, path: Path, row_lengths: np.ndarray, folder: TemporaryDirectory[str] | None) -> None:
        self.stamp = FileStamp.of(path)
        self._lengths = row_lengths
        self._folder = folder

    def known_lengths(self) -> np.ndarray:
        return self._lengths


class _File:
    """A .npy file that gets rows (m, d) at their places. It is written, not mapped, because mapped pages
    would count as memory of this process."""

    def __init__(self, path: Path, width: int, dtype: np.dtype) -> None:
        self.path = path
        self.width = width
        self.dtype = dtype
        self.stream: BinaryIO = path.open("xb")
        self.start = self._write_header(0)

    def _write_header(self, n: int) -> int:
        # NumPy leaves room in a header for more rows, so that the number can be written at the end.
        self.stream.seek(0)
        described = {"descr": self.dtype.str, "fortran_order": False, "shape": (n, self.width)}
        np.lib.format.write_array_header_1_0(self.stream, described)
        return self.stream.tell()

    def write(self, places: np.ndarray, rows: np.ndarray) -> None:
        rows = np.ascontiguousarray(rows, dtype=self.dtype)
        ends = [*np.flatnonzero(np.diff(places) != 1) + 1, len(places)]
        begin = 0
        for end in ends:  # runs of rows that follow each other in the file
            self.stream.seek(self.start + int(places[begin]) * self.width * self.dtype.itemsize)
            self.stream.write(rows[begin:end].data)
            begin = end

    def finish(self, n: int) -> None:
        if self._write_header(n) != self.start:
            raise AssertionError("the header of a .npy file has another length than before")
        self.stream.close()


class CollectedRows:
    """The rows of several layers, which arrive in batches and in any order.

    They stay in memory up to 512 MB. If there are more, or if a `folder` is given, they are written to
    ``<layer>.npy`` there, by default in a temporary folder.
    """

    def __init__(self, dtype: np.dtype, folder: Path | None = None) -> None:
        self.dtype = dtype
        self.folder = folder
        self.n = 0
        self._temporary: TemporaryDirectory[str] | None = None
        self._parts: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        self._lengths: dict[str, list[np.ndarray]] = {}
        self._order: list[np.ndarray] = []
        self._bytes = 0
        self._files: dict[str, _File] = {}

    def add(self, places: np.ndarray, rows: Mapping[str, np.ndarray]) -> None:
        """Add the rows (m, d) of each layer for the items with these numbers (m,).

        Raises
        ------
        SpaceError
            NaN or infinite numbers, or another width than before.
        """
        rows = {layer: np.asarray(each, dtype=self.dtype) for layer, each in rows.items()}
        for layer, each in rows.items():
            norms = lengths(as_float32(each))
            if not np.isfinite(norms).all():
                row = places[np.argmin(np.isfinite(norms))]
                raise SpaceError(
                    f"layer {layer!r}: expected finite numbers, got NaN or infinity for item {row}"
                )
            before = self._parts[0][1][layer].shape[1] if self._parts else each.shape[1]
            if self._files:
                before = self._files[layer].width
            if each.shape[1] != before:
                raise SpaceError(
                    f"layer {layer!r}: expected rows of one width, got {before} and {each.shape[1]}; choose a"
                    " pooling other than 'flat'"
                )
            self._lengths.setdefault(layer, []).append(norms)
            self._bytes += each.nbytes
        self.n = max(self.n, int(places.max()) + 1)
        self._order.append(places)
        self._parts.append((places, rows))
        if self.folder is not None or self._bytes > MOST_IN_MEMORY:
            self._flush()

    def _flush(self) -> None:
        if self.folder is None:
            self._temporary = temporary()
            self.folder = Path(self._temporary.name)
        for places, rows in self._parts:
            for layer, each in rows.items():
                if layer not in self._files:
                    path = self.folder / f"{file_name(layer)}.npy"
                    self._files[layer] = _File(path, each.shape[1], self.dtype)
                self._files[layer].write(places, each)
        self._parts = []

    def write_columns(self, columns: Mapping[str, Sequence[str] | np.ndarray | None]) -> None:
        """Write ids and labels beside each file, a line for each row, as `load_space` reads them."""
        assert self.folder is not None
        for layer in self._files:
            for what, texts in columns.items():
                if texts is not None:
                    path = self.folder / f"{file_name(layer)}.{what}.txt"
                    path.write_text("\n".join(map(str, texts)) + "\n", encoding="utf-8")

    def close(self) -> None:
        """Close the files, complete or not."""
        for file in self._files.values():
            file.stream.close()

    def finish(self) -> None:
        """Write what is missing in the files. Afterwards the folder may get another name."""
        for file in self._files.values():
            file.finish(self.n)

    def vectors(self, folder: Path | None = None) -> dict[str, np.ndarray | MappedRows]:
        """The rows (n, d) of each layer: arrays, or maps of the files, which now lie in `folder`."""
        order = np.concatenate(self._order)
        found: dict[str, np.ndarray | MappedRows] = {}
        for layer, norms in self._lengths.items():
            if not self._files:
                out = np.empty((self.n, self._parts[0][1][layer].shape[1]), np.float32)
                for places, rows in self._parts:
                    out[places] = as_float32(rows[layer])
                out.flags.writeable = False  # so that a space need not copy it
                found[layer] = out
                continue
            path = (folder or self._files[layer].path.parent) / self._files[layer].path.name
            of_rows = np.empty(self.n, np.float32)
            of_rows[order] = np.concatenate(norms)
            mapped = np.load(path, mmap_mode="r")
            found[layer] = MappedRows([mapped], _Written(path, of_rows, self._temporary))
        return found


def file_name(layer: str) -> str:
    """The name of a layer as that of a file."""
    return re.sub(r"[^\w.\-]", "_", layer)
