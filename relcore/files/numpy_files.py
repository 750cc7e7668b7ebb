"""NumPy's formats."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from relcore.base.errors import SpaceError
from relcore.files.formats import (
    MAPPED,
    Blocks,
    Description,
    Format,
    Regions,
    Request,
    Shape,
    describe_matrices,
    float32,
    in_blocks,
    most_unpacked,
    the_matrix,
)
from relcore.files.object_texts import object_texts

_TEXTS = ("ids", "labels", "counts")
_PACKED = ("_utf8", "_ends")
_FREE_WIDTH = 1 << 26
_WIDE = 8
_LONGEST_HEADER = 10_000  # maximum number of bytes of a .npy header


def npy_header(
    stream: IO[bytes], what: str, size: float = np.inf, objects: bool = False
) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, Fortran order and dtype of the .npy at the stream's position. The stream then stands at
    the first number. With the `size` of a file, the numbers must be complete. Pickled objects are refused
    unless `objects`, for what `object_texts` reads."""
    length = {1: 2, 2: 4, 3: 4}[np.lib.format.read_magic(stream)[0]]
    at = stream.tell()
    if int.from_bytes(stream.read(length), "little") > _LONGEST_HEADER:
        raise ValueError("a header that is too long")
    stream.seek(at)
    if length == 2:
        read = np.lib.format.read_array_header_1_0
    else:
        read = np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.hasobject and not (objects and dtype.kind == "O"):
        raise SpaceError(
            f"{what}: expected plain numbers or strings, got pickled objects, which can run code and are"
            " never loaded; save vectors with dtype=np.float32, and ids as ids=space.ids.astype(str) or with"
            " relcore.save_space"
        )
    if min(shape, default=0) < 0 or set(map(type, shape)) - {int} or dtype.itemsize == 0:
        raise ValueError(f"{dtype!s:.40} of shape {shape!s:.60}")
    if size - stream.tell() < prod(shape) * dtype.itemsize:
        raise SpaceError(
            f"{what}: expected an array of shape {shape!s:.60} of {dtype!s:.40}, as its header says, got"
            " fewer bytes: it was cut short; copy it again"
        )
    return shape, fortran, dtype


def npy_layout(stream: BinaryIO, size: int, what: str) -> tuple[tuple[int, int], np.dtype, int]:
    """Return the shape, the dtype and the position of the first number of an open .npy file. The file must be
    complete and contain real numbers in C order."""
    stream.seek(0)
    try:
        shape, fortran, dtype = npy_header(stream, what, size)
    except SpaceError:
        raise
    except Exception as error:  # parsing a Python literal can raise many kinds of errors
        raise SpaceError(
            f"{what}: expected an array written by numpy.save, got one that cannot be read ({error!s:.150});"
            " copy it again"
        ) from error
    if dtype.kind not in "fiu" or len(shape) != 2 or not shape[1] or (fortran and 1 not in shape):
        order = ""
        if fortran:
            order = " in Fortran order"
        got = f"{dtype!s:.40} of shape {shape!s:.60}{order}"
        raise SpaceError(
            f"{what}: expected rows of real numbers, one after the other, got {got}; save them as float32"
        )
    return shape, dtype, stream.tell()


def npy_rows(stream: BinaryIO, m: int, shape: tuple[int, int], dtype: np.dtype, what: str) -> np.ndarray:
    """Read the next m rows of an open .npy of shape (n, d) as float32 (m, d). Numbers too large for float32
    become infinite."""
    rows = np.empty((m, shape[1]), dtype)
    if stream.readinto(rows.data.cast("B")) < rows.nbytes:
        raise SpaceError(f"{what}: expected {shape[0]:,} rows, got the end of the file; copy it again")
    with np.errstate(over="ignore"):
        return rows.astype(np.float32, copy=False)


class Npy(Format):
    """.npy files, which hold one matrix (n, d)."""

    has_regions = True

    def describe(self, path: Path) -> Description:
        with path.open("rb") as stream:
            shape = npy_header(stream, path.name, path.stat().st_size)[0]
        if len(shape) == 2:
            return Description({"": shape}, "")
        return Description()

    def blocks(self, path: Path, request: Request) -> Blocks:
        with path.open("rb") as stream:
            shape, fortran, dtype = npy_header(stream, path.name, path.stat().st_size)
            if len(shape) != 2 or 0 in shape:
                raise SpaceError(
                    f"{path.name}: expected a matrix (n, d), got shape {shape!s:.60}; save the vectors again"
                )
            (n, d) = (request.rows(path, *shape), shape[1])
            by_columns = fortran and 1 not in shape
            whole = None
            if by_columns:
                whole = np.memmap(stream, dtype, "r", stream.tell(), shape, "F")
            # Read without a memory map, which kills the process if the file is truncated.
            for rows in in_blocks(n, d * dtype.itemsize):
                m = rows.stop - rows.start
                if by_columns:
                    block = whole[rows]
                else:
                    block = np.fromfile(stream, dtype, m * d).reshape(m, d)
                yield float32(block, path.name)
        return {}

    def regions(self, path: Path, request: Request) -> Regions | None:
        with path.open("rb") as stream:
            shape, fortran, dtype = npy_header(stream, path.name)
            at = stream.tell()
        if len(shape) != 2 or 0 in shape or fortran or not dtype.isnative or dtype.name not in MAPPED:
            return None
        if request.limit is None:
            n = shape[0]
        else:
            n = min(shape[0], request.limit)
        return Regions([(at, dtype.name, (n, shape[1]))])


class Npz(Format):
    """.npz files. The vectors are the array that the option `matrix` names. By default they are the array
    `vectors`, or the only matrix. The arrays `ids`, `labels` and `counts` are read if present.

    Texts such as ids are an array of strings, or two arrays: `ids_utf8` holds their joined bytes, and
    `ids_ends` holds the end of each text.
    """

    several_matrices = True

    def _headers(self, path: Path, archive: zipfile.ZipFile) -> dict[str, tuple[Shape, bool, np.dtype]]:
        headers = {}
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                name = member.filename.removesuffix(".npy")
                with archive.open(member) as stream:
                    what = f"{path.name}, array {name!r:.60}"
                    headers[name] = npy_header(stream, what, objects=name in ("ids", "labels"))
        return headers

    def describe(self, path: Path) -> Description:
        with zipfile.ZipFile(path) as archive:
            headers = self._headers(path, archive)
        return describe_matrices(path, {name: header[0] for name, header in headers.items()})

    def blocks(self, path: Path, request: Request) -> Blocks:
        with zipfile.ZipFile(path) as archive:
            headers = self._headers(path, archive)
            main = the_matrix(path, {name: header[0] for name, header in headers.items()}, request.matrix)
            (rows, d), fortran, dtype = headers[main]
            n = request.rows(path, rows, d)
            texts = {}
            for name in _TEXTS:
                if name in headers:
                    parts = [name]
                else:
                    parts = [f"{name}{part}" for part in _PACKED]
                if headers.keys() >= set(parts):
                    check_length(path, name, headers[parts[-1]][0], rows)
                    texts[name] = self._texts(path, archive, headers, parts, request)[:n]
            what = f"{path.name}, array {main!r:.60}"
            if fortran and 1 not in (rows, d):
                yield float32(self._read(archive, main)[:n], what)
                return texts
            with archive.open(f"{main}.npy") as stream:
                npy_header(stream, what)
                for some in in_blocks(n, d * dtype.itemsize):
                    content = stream.read((some.stop - some.start) * d * dtype.itemsize)
                    yield float32(np.frombuffer(content, dtype).reshape(-1, d), what)
                if n == rows:  # reading the last bytes of a member verifies its checksum
                    stream.read()
            return texts

    def _texts(
        self, path: Path, archive: zipfile.ZipFile, headers: Mapping, parts: Sequence[str], request: Request
    ) -> np.ndarray | list[Any]:
        shape, _, kind = headers[parts[0]]
        if kind.kind == "O":
            return self._object_texts(path, archive, parts[0], shape[0], request)
        for shape, _, kind in map(headers.get, parts):
            if kind.kind not in "USbiuf" or kind.itemsize * np.prod(shape, dtype=float) > most_unpacked(
                path, request.max_bytes
            ):
                raise SpaceError(
                    f"{path.name}: expected {parts[0]} as short strings or integers, got {kind!s:.40}; save"
                    " them with dtype=str"
                )
        cells, *ends = (self._read(archive, part) for part in parts)
        if not ends:
            if cells.dtype.kind in "fiub":
                return cells
            return cells.tolist()
        content = cells.tobytes()
        ends = [0, *ends[0].tolist()]
        if sorted(ends) != ends or ends[-1] != len(content):
            raise ValueError(f"{parts[1]} that do not fit {parts[0]}")
        return [content[start:end].decode() for start, end in pairwise(ends)]

    def _object_texts(
        self, path: Path, archive: zipfile.ZipFile, name: str, n: int, request: Request
    ) -> list[str]:
        member = archive.getinfo(f"{name}.npy")
        if member.file_size > most_unpacked(path, request.max_bytes):
            raise SpaceError(f"{path.name}: expected {name} as short strings, got {member.file_size:,} bytes")
        with archive.open(member) as stream:
            npy_header(stream, path.name, objects=True)
            try:
                return object_texts(stream, n)
            except Exception as error:  # parsing opcodes can raise many kinds of errors
                raise SpaceError(
                    f"{path.name}: expected {name} as strings, got {error!s:.150}; save them with dtype=str,"
                    f" as {name}=space.{name}.astype(str)"
                ) from error

    def _read(self, archive: zipfile.ZipFile, name: str) -> np.ndarray:
        with archive.open(f"{name}.npy") as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
            stream.read()
            return array


def packed_texts(name: str, column: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays in which an .npz file holds a column of texts. Usually this is one array of fixed width. If
    that would take far more memory, or would drop a zero byte at the end of a text, there are two arrays: the
    UTF-8 bytes of all texts, and the end of each text."""
    texts = list(map(str.encode, column))
    size = 4 * len(column) * max(map(len, column))
    content = b"".join(texts)
    if size <= max(_FREE_WIDTH, _WIDE * len(content)) and not any(text.endswith(b"\0") for text in texts):
        return {name: np.array(column, str)}
    arrays = np.frombuffer(content, np.uint8), np.cumsum(list(map(len, texts)), dtype=np.int64)
    return {f"{name}{part}": array for part, array in zip(_PACKED, arrays, strict=True)}


def check_length(path: Path, name: str, shape: tuple[int, ...], n: int) -> None:
    if shape != (n,):
        raise SpaceError(
            f"{path.name}: expected {n} {name}, one per row, got shape {shape!s:.60}; write {name} and"
            " vectors from the same rows"
        )
