"""Array files: .npy, .npz and .safetensors. Nothing is unpickled, and no size is believed before it is checked."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import BinaryIO

import numpy as np

from relcore.sources.rows import Rows, as_float32, check_size, readable, rows_to_read
from relcore.spaces import SpaceError, quote

_BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError)


def read_npy(path: Path, *, limit: int | None = None, max_bytes: int) -> Rows:
    """The matrix of a .npy file; with a limit, only its first rows are read from a file in C order."""
    with path.open("rb") as stream:
        return Rows(_array(stream, path.stat().st_size, path, path.name, limit, max_bytes, dimensions=2))


def npy_shape(path: Path) -> tuple[int, ...]:
    """The shape that a .npy file promises, from its header alone."""
    with path.open("rb") as stream:
        return _header(stream, path.name)[0]


def read_npz(path: Path, *, limit: int | None = None, max_bytes: int) -> Rows:
    """Arrays `vectors` (or the only matrix) and, where present, `ids`, `labels` and `counts` of a .npz file.

    A zip can promise little and unpack to terabytes: sizes in its directory and in the arrays' headers must agree with
    each other and with `max_bytes` before anything beyond a header is unpacked.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {member.filename.removesuffix(".npy"): member.file_size for member in archive.infolist()}
            shapes = {}
            for name in sizes:
                with archive.open(f"{name}.npy") as stream:
                    shapes[name] = _header(stream, f"{path.name}, array {name!r}")[0]

            def array(name: str, dimensions: int) -> np.ndarray | None:
                if name not in sizes:
                    return None
                with archive.open(f"{name}.npy") as stream:
                    return _array(stream, sizes[name], path, f"{path.name}, array {name!r}", limit, max_bytes, dimensions)

            main = _the_matrix(path, shapes)
            for name in {"ids", "labels", "counts"} & shapes.keys():
                _check_length(path, name, math.prod(shapes[name]), shapes[main][0])
            ids, labels = (_texts(array(name, 1), path, name) for name in ("ids", "labels"))
            counts = array("counts", 1)
            if counts is not None and counts.dtype.kind not in "iu":
                raise SpaceError(f"{path.name}: expected counts as integers, got {counts.dtype}; save them as int64")
            return Rows(array(main, 2), ids, labels, counts)
    except SpaceError:
        raise
    except (*_BROKEN_ZIP, KeyError) as error:
        raise SpaceError(
            f"{path.name}: expected an archive written by numpy.savez, got one that cannot be read ({error})"
        ) from error


def read_safetensors(path: Path, *, limit: int | None = None, max_bytes: int) -> Rows:
    """Tensor `vectors` (or the only matrix); `ids` and `labels` as UTF-8 text, one line a row; `counts` as integers.

    The texts are uint8 tensors, or strings of the same form in the metadata. With a limit only the first rows are read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            names, metadata = set(file.keys()), file.metadata() or {}
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
            main = _the_matrix(path, shapes)
            n = rows_to_read(path, shapes[main][0], limit)
            check_size(path, n, shapes[main][1], max_bytes)

            def lines(name: str) -> list[str] | None:
                text = file.get_tensor(name).tobytes().decode() if name in names else metadata.get(name)
                if text is None:
                    return None
                found = text.split("\n")
                _check_length(path, name, len(found), shapes[main][0])
                return found[:n]

            counts = file.get_slice("counts")[:n] if "counts" in names else None
            return Rows(
                as_float32(file.get_slice(main)[:n], f"{path.name}, tensor {main!r}"), lines("ids"), lines("labels"), counts
            )
    except (SafetensorError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise SpaceError(
            f"{path.name}: expected a safetensors file of float16, float32 or float64 vectors and UTF-8 ids, got one "
            f"that cannot be read ({error}); write it again, or save the vectors as float32"
        ) from error


def safetensors_shape(path: Path) -> tuple[int, ...]:
    """The shape of the matrix in a safetensors file, from its header alone."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except SafetensorError as error:
        raise SpaceError(f"{path.name}: expected a safetensors file, got one that cannot be read ({error})") from error
    return shapes[_the_matrix(path, shapes)]


def _header(stream: BinaryIO, what: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    try:
        version = np.lib.format.read_magic(stream)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, fortran, dtype = readers[version](stream)
    except (ValueError, KeyError, SyntaxError, TypeError, TokenError) as error:  # TokenError: numpy reads old headers so
        raise SpaceError(
            f"{what}: expected an array written by numpy.save, got a header that cannot be read ({error})"
        ) from error
    if dtype.hasobject:
        raise SpaceError(
            f"{what}: expected plain numbers or strings, got pickled objects, which can run code and are never loaded; "
            "where you trust the file, save it again with dtype=np.float32 (vectors) or dtype=str (ids)"
        )
    if any(length < 0 for length in shape):
        raise SpaceError(f"{what}: expected a shape of lengths, got {shape}; the header is damaged")
    return shape, fortran, dtype


def _array(
    stream: BinaryIO, size: int, path: Path, what: str, limit: int | None, max_bytes: int, dimensions: int
) -> np.ndarray:
    """The first `limit` rows of the array in an open .npy of `size` bytes, read-only."""
    shape, fortran, dtype = _header(stream, what)
    if len(shape) != dimensions:
        raise SpaceError(f"{what}: expected {('a list (n,)', 'a matrix (n, d)')[dimensions - 1]}, got shape {shape}")
    needed, held = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if held < needed:
        raise SpaceError(
            f"{what}: the header promises shape {shape} of {dtype}, {readable(needed)}, but only {readable(held)} follow; "
            "the file was cut short, copy or download it again"
        )
    n = rows_to_read(path, shape[0], limit)
    whole = fortran and dimensions == 2  # column by column: the first rows are all over the file
    n_read = shape[0] if whole else n
    row = math.prod(shape[1:])
    check_size(path, n_read, row, max_bytes, dtype.itemsize)
    flat = np.frombuffer(stream.read(n_read * row * dtype.itemsize), dtype=dtype, count=n_read * row)
    array = flat.reshape((n_read, *shape[1:]), order="F" if fortran else "C")[:n]
    return as_float32(array, what) if dimensions == 2 else array


def _texts(array: np.ndarray | None, path: Path, name: str) -> list[str] | None:
    if array is None:
        return None
    if array.dtype.kind not in "USiu":
        raise SpaceError(f"{path.name}: expected {name} as strings or integers, got {array.dtype}; save them with dtype=str")
    return [item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item) for item in array.tolist()]


def _the_matrix(path: Path, shapes: dict[str, tuple[int, ...]]) -> str:
    if len(shapes.get("vectors", ())) == 2:
        return "vectors"
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    if len(matrices) == 1:
        return matrices[0]
    found = quote([f"{name} {shape}" for name, shape in sorted(shapes.items())]) or "nothing"
    raise SpaceError(
        f"{path.name}: expected a matrix named 'vectors', or one matrix (n, d) alone, got {found}; rename the one meant"
    )


def _check_length(path: Path, name: str, got: int, expected: int) -> None:
    if got != expected:
        raise SpaceError(
            f"{path.name}: expected {expected} {name}, one per row, got {got}; write {name} and vectors from the same rows"
        )
