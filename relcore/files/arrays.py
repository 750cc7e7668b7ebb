"""The formats of arrays (NumPy, safetensors, torch and faiss) and of word vectors, and the pictures in a
.zip file."""

from __future__ import annotations

import gzip
import io
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count, pairwise
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import msgspec
import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.base.text import visible
from relcore.files import confined
from relcore.files.formats import (
    ARROW,
    MAPPED,
    OF_TOKENS,
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
    readable,
    the_matrix,
)

_TEXTS = ("ids", "labels", "counts")
_PACKED = ("_utf8", "_ends")
_FREE_WIDTH = 1 << 26
_WIDE = 8
_LONGEST_HEADER = 10_000  # maximum number of bytes of a .npy header


def npy_header(stream: BinaryIO, what: str, size: float = np.inf) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, Fortran order and dtype of the .npy at the stream's position. The stream then stands at
    the first number. With the `size` of a file, the numbers must be complete."""
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
    if dtype.hasobject:
        raise SpaceError(
            f"{what}: expected plain numbers or strings, got pickled objects, which can run code and are"
            " never loaded; where you trust the file, save it again with dtype=np.float32 (vectors) or"
            " dtype=str (ids)"
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
                    headers[name] = npy_header(stream, f"{path.name}, array {name!r:.60}")
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


class Safetensors(Format):
    """.safetensors files. The vectors are the tensor that the option `matrix` names. By default they are the
    first of these: `vectors`, a model's token embeddings, the only matrix.

    `ids` and `labels` are lines of UTF-8 text, in uint8 tensors or in the metadata. `counts` are integers.
    """

    libraries = ("safetensors",)
    several_matrices = has_regions = True
    _KINDS = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16"}  # noqa: RUF012

    def _open(self, path: Path) -> tuple[Any, dict[str, Shape]]:
        from safetensors import safe_open

        file = safe_open(path, framework="np")
        return file, {name: tuple(file.get_slice(name).get_shape()) for name in sorted(file.keys())}

    def describe(self, path: Path) -> Description:
        return describe_matrices(path, self._open(path)[1])

    def _parts(self, path: Path, request: Request) -> tuple[str, Any, Regions]:
        file, shapes = self._open(path)
        main = the_matrix(path, shapes, request.matrix)
        rows, d = shapes[main]
        if request.limit is None:
            n = rows
        else:
            n = min(rows, request.limit)
        metadata = file.metadata() or {}
        columns = {}
        for name in ("ids", "labels"):
            if name in shapes:
                text = file.get_tensor(name).tobytes().decode()
            else:
                text = metadata.get(name)
            if text is not None:
                lines = text.replace("\r\n", "\n").removesuffix("\r").split("\n")
                check_length(path, name, (len(lines),), rows)
                columns[name] = lines[:n]
        if "counts" in shapes:
            check_length(path, "counts", shapes["counts"], rows)
            columns["counts"] = file.get_slice("counts")[:n]
        if "ids" not in columns and OF_TOKENS.fullmatch(main):
            columns["tokens"] = [main, rows]
        with path.open("rb") as stream:  # `safe_open` has already checked this header
            length = int.from_bytes(stream.read(8), "little")
            begin = 8 + length + msgspec.json.decode(stream.read(length))[main]["data_offsets"][0]
        tensor = file.get_slice(main)
        kind = self._KINDS.get(tensor.get_dtype(), "")
        return main, tensor, Regions([(begin, kind, (n, d))], (main,), columns)

    def blocks(self, path: Path, request: Request) -> Blocks:
        main, tensor, regions = self._parts(path, request)
        begin, kind, (n, d) = regions.parts[0]
        n = request.rows(path, n, d)
        halves = None
        if kind == "bfloat16":
            halves = np.memmap(path, "<u2", "r", begin, (n, d))
        for rows in in_blocks(n, 8 * d):
            if halves is not None:  # NumPy has no bfloat16, so these numbers are read as whole numbers
                yield (halves[rows].astype(np.uint32) << 16).view(np.float32)
            else:
                yield float32(tensor[rows], f"{path.name}, tensor {main!r:.60}")
        return regions.columns

    def regions(self, path: Path, request: Request) -> Regions | None:
        regions = self._parts(path, request)[2]
        _, kind, shape = regions.parts[0]
        if kind and 0 not in shape:
            return regions
        return None


def _are_names(value: Any) -> bool:
    """Whether a value of a torch file can be ids or labels: a list of texts and whole numbers."""
    return isinstance(value, list | tuple) and {type(item) for item in value} <= {str, int}


class Torch(Format):
    """Files of torch.save. They hold a tensor (n, d), or a dict of tensors with lists `ids` and `labels`. In
    a dict, the vectors are the tensor that the option `matrix` names. By default they are `vectors`, or the
    only tensor. Only tensors and plain values are allowed.
    """

    libraries = ("torch",)
    several_matrices = True

    def _open(self, path: Path, whole: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        # With `whole`, every checksum is checked first.
        import torch

        with zipfile.ZipFile(path) as archive:
            compressed = any(member.compress_type for member in archive.infolist())
            if compressed or (whole and archive.testzip()):
                raise ValueError("an archive that is compressed or damaged")
            order = {archive.read(name) for name in archive.namelist() if name.endswith("/byteorder")}
            if order - {b"little"}:
                raise ValueError("numbers in another order of bytes")
        try:
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except Exception as error:
            if "eights" not in str(error):  # torch would advise weights_only=False, which is unsafe
                raise
            raise SpaceError(
                f"{path.name}: expected tensors, lists and texts, got other objects, which could run code;"
                ' save the tensors alone: torch.save({"vectors": tensor, "ids": ids}, "vectors.pt")'
            ) from error
        if isinstance(content, Mapping):
            items = content
        else:
            items = {"vectors": content}
        tensors = {}
        texts = {}
        for name, value in items.items():
            if isinstance(value, torch.Tensor) and value.layout == torch.strided and isinstance(name, str):
                tensors[name] = value
            elif name in ("ids", "labels") and _are_names(value):
                texts[name] = list(value)
        return tensors, texts

    def describe(self, path: Path) -> Description:
        tensors = self._open(path, whole=False)[0].items()
        return describe_matrices(path, {name: tuple(tensor.shape) for name, tensor in tensors})

    def blocks(self, path: Path, request: Request) -> Blocks:
        import torch

        tensors, texts = self._open(path, whole=True)
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        tensor = tensors[the_matrix(path, shapes, request.matrix)].detach()
        n = request.rows(path, *tensor.shape)
        if tensor.is_complex() or tensor.is_quantized or tensor.dtype == torch.bool:
            raise SpaceError(
                f"{path.name}: expected real numbers, got {tensor.dtype}; save it with tensor.float()"
            )
        for rows in in_blocks(n, 8 * tensor.shape[1]):
            yield tensor[rows].resolve_neg().float().numpy()
        return texts


class Faiss(Format):
    """Files of faiss indexes that store vectors without compression: Flat, IDMap (which also stores ids),
    HNSWFlat, IVFFlat."""

    libraries = ("faiss",)

    def describe(self, path: Path) -> Description:
        import faiss

        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        return Description({"": (index.ntotal, index.d)}, "")

    def blocks(self, path: Path, request: Request) -> Blocks:
        n = request.rows(path, *self.describe(path).shape)  # raises an error before the index fills memory
        index = open_faiss(path)
        ids = faiss_ids(path, index)
        for rows in in_blocks(n, 4 * index.d):
            yield faiss_rows(index, ids, rows)
        return {} if ids is None else {"ids": ids[:n]}


def open_faiss(path: Path) -> Any:
    """The faiss index in a file. Raises a SpaceError if it compresses the vectors."""
    import faiss

    with path.open("rb") as stream:
        index = faiss.read_index(faiss.PyCallbackIOReader(stream.read))
        if stream.read(1):
            raise ValueError("more than one index")
    inner = index
    if hasattr(index, "index"):
        inner = faiss.downcast_index(index.index)
    if isinstance(inner, faiss.IndexHNSW):
        inner = faiss.downcast_index(inner.storage)
    if not isinstance(inner, faiss.IndexFlat | faiss.IndexIVFFlat):
        raise SpaceError(
            f"{path.name}: expected an index of whole vectors (Flat, IDMap, HNSWFlat, IVFFlat), got"
            f" {type(inner).__name__}; save the vectors that the index was made of"
        )
    if inner.ntotal != index.ntotal or inner.d != index.d or index.d < 1:
        raise ValueError(f"an index of {index.ntotal} rows around one of {inner.ntotal}")
    return index


def faiss_ids(path: Path, index: Any) -> np.ndarray | None:
    """The ids (n,) of an index as int64, in ascending order for an IVF index. None if the ids are the row
    numbers."""
    import faiss

    if hasattr(index, "id_map"):
        ids = faiss.vector_to_array(index.id_map)
        if len(ids) != index.ntotal:
            raise ValueError(f"{len(ids)} ids of {index.ntotal} rows")
        return ids
    if not isinstance(index, faiss.IndexIVF):
        return None
    lists = index.invlists
    get = faiss.rev_swig_ptr
    parts = [get(lists.get_ids(item), lists.list_size(item)).copy() for item in range(index.nlist)]
    ids = np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
    if (ids[1:] == ids[:-1]).any():
        raise SpaceError(f"{path.name}: expected distinct ids, got some twice; write the index again")
    index.set_direct_map_type(faiss.DirectMap.Hashtable)
    if np.array_equal(ids, np.arange(index.ntotal)):
        return None
    return ids


def faiss_rows(index: Any, ids: np.ndarray | None, rows: slice) -> np.ndarray:
    """The vectors of the given rows. `ids` is the result of `faiss_ids`."""
    import faiss

    if isinstance(index, faiss.IndexIVF):
        return index.reconstruct_batch(np.arange(rows.start, rows.stop) if ids is None else ids[rows])
    inner = index
    if hasattr(index, "index"):
        inner = index.index
    return inner.reconstruct_n(rows.start, rows.stop - rows.start)


# Unpack the pictures of a .zip file into a folder. The confined process reads the archive and writes
# nothing.
#
# Names and sizes are checked in both processes: names must stay below the folder, and reading stops at the
# size limits, even if the archive's directory states smaller sizes.

MOST_FILES = 20_000
MOST_BYTES = 2 << 30
_MOST_OF_ONE = 64 << 20
_LONGEST_PART = 150
_MOST_PARTS = 12
_LIBRARIES = ("zipfile", "zlib", "bz2", "lzma", "encodings.cp437")


def unpack(path: Path, folder: Path, suffixes: Sequence[str]) -> None:
    """Write the files with these suffixes into an empty folder. If one folder of the archive contains all of
    them, that folder is omitted from their paths.

    Raises
    ------
    SpaceError
        The file is not a zip file, or is damaged or encrypted. It contains no file with these suffixes. It
        has more than `MOST_FILES` files, one file larger than 64 MB, or more than `MOST_BYTES` in all. A name
        leads out of the folder, occurs twice, or is also the name of a folder.
    """
    seen: set[str] = set()
    folders: set[str] = set()
    size = 0
    for name, content in confined.stream(pictures, path, _LIBRARIES, suffixes=list(suffixes)):
        place = _relative_path(name, path, suffixes)
        size = size + len(content)
        folded = place.as_posix().casefold()
        taken = folded in seen or folded in folders or not seen.isdisjoint(_above(folded))
        if taken or len(seen) >= MOST_FILES or size > MOST_BYTES:
            raise SpaceError(
                f"{path.name}: expected distinct names and sizes within limits, got {name!r:.60}; pack"
                " it again"
            )
        seen.add(folded)
        folders.update(_above(folded))
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.tobytes())
    if not seen:
        raise SpaceError(
            f"{path.name}: expected pictures ({', '.join(suffixes)}), got none; pack the folder with them"
        )


def pictures(path: Path, suffixes: Sequence[str]) -> Iterator[list[Any]]:
    """Yield the name and the bytes of each picture of an archive; runs in the confined process."""
    with zipfile.ZipFile(path) as archive:
        found = [
            (_relative_path(item.filename, path, ()), item)
            for item in archive.infolist()
            if not item.is_dir()
        ]
        found = [(place, item) for place, item in found if _is_wanted(place, suffixes)]
        folded = {place.as_posix().casefold() for place, _ in found}
        linked = any(stat.S_ISLNK(item.external_attr >> 16) for _, item in found)
        size = sum(item.file_size for _, item in found)
        hidden = any(item.flag_bits & 1 for _, item in found)
        for wrong, got in (
            (len(found) > MOST_FILES, f"{len(found):,}, and at most {MOST_FILES:,} are read"),
            (len(folded) < len(found), "two of the same name"),
            (any(not folded.isdisjoint(_above(one)) for one in folded), "a file and folder of one name"),
            (linked, "links"),
            (hidden, "encrypted ones"),
            (size > MOST_BYTES, f"{readable(size)}, and at most {readable(MOST_BYTES)} are unpacked"),
        ):
            if wrong:
                raise SpaceError(f"{path.name}: expected pictures in folders, got {got}; pack it again")
        heads = {place.parts[0] for place, _ in found}
        deep = len(heads) == 1 and all(len(place.parts) > 2 for place, _ in found)
        for place, item in found:
            with archive.open(item) as stream:
                content = stream.read(_MOST_OF_ONE + 1)
            if len(content) > _MOST_OF_ONE:
                raise SpaceError(
                    f"{path.name}: expected pictures of at most {readable(_MOST_OF_ONE)}, got a larger one,"
                    f" {item.filename!r:.80}; leave it out"
                )
            yield ["/".join(place.parts[deep:]), np.frombuffer(content, np.uint8)]


def _above(name: str) -> Iterator[str]:
    return (str(folder) for folder in PurePosixPath(name).parents[:-1])


def _is_wanted(place: PurePosixPath, suffixes: Sequence[str]) -> bool:
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in place.parts)
    return not hidden and place.suffix.lower() in suffixes


def _relative_path(name: str, path: Path, suffixes: Sequence[str]) -> PurePosixPath:
    """The relative path of a member of the archive. Raises a SpaceError if the path could lead out of the
    folder, or if a part of it is not a plain name."""
    parts = name.replace("\\", "/").split("/")
    plain = all(
        part.strip(". ") and part.isprintable() and ":" not in part and len(part.encode()) <= _LONGEST_PART
        for part in parts
    )
    place = PurePosixPath(*parts) if plain else None
    if place is None or len(parts) > _MOST_PARTS or (suffixes and not _is_wanted(place, suffixes)):
        raise SpaceError(
            f"{path.name}: expected names of files below one folder, got {name!r:.80}; pack it again"
        )
    return place


# Read word vectors of word2vec, fastText and GloVe from .bin, .vec and .txt files, plain or gzipped.

_FREE = 32 << 20  # bytes that any file may unpack to, whatever the ratio
_MOST_TIMES = 50  # maximum ratio of compression; vectors as text reach 2 to 3, a repeated byte 1,030
_HEADER = re.compile(rb"(\d{1,15})[ \t]+(\d{1,9})[ \t]*\r?\n?")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
_FASTTEXT_MODEL = b"\xba\x16\x4f\x2f"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLOCK = 1 << 20
_LONGEST_WORD = 1 << 16
_WORDS_AHEAD = 10
_LONGEST_LINE = 1 << 24
_MOST_BLANK = 100_000  # number of consecutive blank lines
_LINES_AT_ONCE = 2_000
_BYTES_AT_ONCE = 1 << 25
_COLUMNS_AT_ONCE = 20_000  # above this width, lines are parsed one by one: Arrow creates an object per column

Line = tuple[int, bytes]  # the number and the bytes of a line of text


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a .gz file. A decompression bomb raises an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._packed = path.stat().st_size

        self._stream = gzip.open(path)  # noqa: SIM115, closed with the object
        self._unpacked = 0

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


def _opened(path: Path) -> io.BufferedReader:
    if path.suffix.lower() == ".gz":
        return io.BufferedReader(_Unpacked(path), 1 << 17)
    return path.open("rb")


class _WordVectors(Format):
    libraries = ARROW

    def describe(self, path: Path) -> Description:
        with _opened(path) as stream:
            first = stream.readline(_BLOCK).removeprefix(_BYTE_ORDER_MARK)
        if header := _HEADER.fullmatch(first):
            return Description({"": (int(header[1]), int(header[2]))}, "")
        d = len(first.split()) - 1
        glove = d > 1 and path.suffix.lower() != ".gz" and all(map(_NUMBER.fullmatch, first.split()[1:]))
        if glove:
            return Description({"": (None, d)}, "")
        return Description()


class Word2VecBinary(_WordVectors):
    """A word2vec .bin file. It has a line "n d", then rows, each with a word, a space and d little-endian
    float32."""

    def blocks(self, path: Path, request: Request) -> Blocks:
        with _opened(path) as stream:
            if stream.peek(4)[:4] == _FASTTEXT_MODEL:
                raise SpaceError(
                    f"{path.name}: expected word2vec vectors, got a whole fastText model; load its .vec"
                    " file, or save the words' vectors in word2vec form"
                )
            n, d = _header(stream.readline(64), path)
            wanted = request.rows(path, n, d)
            width = 4 * d
            ids: list[str] = []
            buffer = b""
            at = 0
            ends = False
            block = np.empty((min(wanted, max(1, _BLOCK // width)), d), np.float32)
            for row in range(wanted):
                while (space := buffer.find(b" ", at)) < 0 or len(buffer) <= space + width:
                    if space < 0 and len(buffer) - at > _LONGEST_WORD:
                        raise _no_word(path, row, n, d, buffer[at:])
                    chunk = stream.read(max(_BLOCK, width))
                    if not chunk:
                        raise _cut_short(path, row, n)
                    buffer = buffer[at:] + chunk
                    at = 0
                if row == 1:  # word2vec ends each row with a line feed; gensim does not
                    ends = buffer.startswith(b"\n", at)
                if row and buffer.startswith(b"\n", at) != ends:
                    raise _no_word(path, row, n, d, buffer[at:space])
                ids.append(_word(buffer[at:space], path, row, n, d))
                place = row % len(block)
                block[place] = np.frombuffer(buffer, dtype="<f4", count=d, offset=space + 1)
                at = space + 1 + width
                if place == len(block) - 1 or row == wanted - 1:
                    yield block[: place + 1]
            if wanted == n and (buffer[at:] + stream.read(2)).strip():
                raise _trailing_data(path, n)
            # If the reading stops at a limit, only the next words can reveal that the header's d is wrong.
            ahead = buffer[at:] + stream.read(_WORDS_AHEAD * width)
            at = 0
            for row in range(wanted, min(n, wanted + _WORDS_AHEAD)):
                if (space := ahead.find(b" ", at)) < 0:
                    break
                _word(ahead[at:space], path, row, n, d)
                at = space + 1 + width
        return {"ids": ids}


class Word2VecText(_WordVectors):
    """Word vectors as text, with a word and d numbers per row. Files of word2vec and fastText begin with a
    line "n d", and files of GloVe do not.

    ASCII spaces or tabs separate fields. A word may contain such a separator (". . ." in GloVe's 840B),
    unless a number follows it: then the row would have one number too many.
    """

    def blocks(self, path: Path, request: Request) -> Blocks:
        with _opened(path) as stream:
            lines = _lines(stream, path)
            number, first = next(lines, (1, b""))
            if number == 1 and _HEADER.fullmatch(first):
                n, d = _header(first, path)
                wanted = request.rows(path, n, d)
            else:
                n = None
                wanted = request.limit
                d = len(first.split()) - 1
                if d < 1 or not all(map(_NUMBER.fullmatch, first.split()[1:])):
                    raise _no_row(
                        (number, first), path, "'n d' or a word and its numbers", "is it word2vec text?"
                    )
                lines = chain([(number, first)], lines)
            ids: list[str] = []
            while batch := _batch(lines, _LINES_AT_ONCE if wanted is None else wanted - len(ids)):
                words, block = _parse(batch, d, path)
                ids += words
                yield block
            if n is not None and len(ids) < wanted:
                raise _cut_short(path, len(ids), n)
            if n is not None and wanted == n and next(lines, None):
                raise _trailing_data(path, n)
        return {"ids": ids}


class Word2Vec(_WordVectors):
    """Word vectors in a file whose only suffix is .gz. The bytes after the first line tell whether the
    vectors are stored as binary numbers or as text."""

    def blocks(self, path: Path, request: Request) -> Blocks:
        with _opened(path) as stream:
            stream.readline(_LONGEST_LINE)
            sample = stream.read(4096)
        # Numbers as text are printable, but of a thousand binary floats some byte is a control character.
        binary = re.search(rb"[\x00-\x08\x0e-\x1f]", sample) is not None
        return (yield from (Word2VecBinary if binary else Word2VecText)().blocks(path, request))


def _header(line: bytes, path: Path) -> tuple[int, int]:
    header = _HEADER.fullmatch(line)
    if not header or int(header[2]) == 0:
        remedy = "a binary file ends in .bin, a text file in .vec or .txt"
        raise _no_row((1, line), path, "a first line 'n d' (rows and dimensions)", remedy)
    return int(header[1]), int(header[2])


def _lines(stream: BinaryIO, path: Path) -> Iterator[Line]:
    """Yield the number and the bytes of each line that is not blank."""
    n_blank = 0
    for number in count(1):
        line = stream.readline(_LONGEST_LINE + 1)
        if not line:
            return
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        n_blank = 0 if line.strip() else n_blank + 1
        if len(line) > _LONGEST_LINE or n_blank > _MOST_BLANK:
            expected = f"at most {_LONGEST_LINE:,} bytes per line and {_MOST_BLANK:,} blank lines"
            raise _no_row((number, line), path, expected, "is it word2vec text?")
        if not n_blank:
            yield number, line


def _batch(lines: Iterator[Line], most: int) -> list[Line]:
    batch = []
    size = 0
    while len(batch) < min(most, _LINES_AT_ONCE) and size <= _BYTES_AT_ONCE and (line := next(lines, None)):
        batch.append(line)
        size += len(line[1])
    return batch


def _parse(batch: list[Line], d: int, path: Path) -> tuple[list[str], np.ndarray]:
    # If no word contains a space, parse all lines at once. Otherwise parse them one by one, to find the
    # faulty line.
    words, _, numbers = zip(*(line.rstrip(b" \t\r\n").partition(b" ") for _, line in batch), strict=True)
    joined = b"\n".join(words)
    plain = b"" not in words and b"\r" not in joined and b"\0" not in joined
    block = None
    if plain:
        block = _numbers_at_once(b"\n".join(numbers), len(batch), d)
    if block is None:
        words, rows = zip(*(_parsed_line(line, d, path) for line in batch), strict=True)
        block = np.stack(rows)
        joined = b"\n".join(words)
    try:
        return joined.decode().split("\n"), block
    except UnicodeDecodeError as error:
        line = batch[joined.count(b"\n", 0, error.start)]
        raise _no_row(line, path, "UTF-8 text", "save it as UTF-8") from None


def _numbers_at_once(numbers: bytes, m: int, d: int) -> np.ndarray | None:
    import pyarrow as pa
    import pyarrow.csv as csv

    if d > _COLUMNS_AT_ONCE or b"\r" in numbers:
        return None
    names = [str(column) for column in range(d)]
    try:
        table = csv.read_csv(
            io.BytesIO(numbers),
            csv.ReadOptions(column_names=names, use_threads=False, block_size=len(numbers) + 1),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32()), null_values=[]),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows == m:
        return np.column_stack([column.to_numpy() for column in table.columns])
    return None


def _parsed_line(line: Line, d: int, path: Path) -> tuple[bytes, np.ndarray]:
    text = line[1].rstrip(b" \t\r\n")
    if b"\r" in text or b"\0" in text:
        raise _no_row(line, path, "UTF-8 text with line feeds", "save it as UTF-8 with line feeds")
    word, *numbers = text.rsplit(None, d)
    spaced = text[:1].isspace() or any(map(_NUMBER.fullmatch, word.split()[1:]))
    if len(numbers) == d and not spaced and all(map(_NUMBER.fullmatch, numbers)):
        with suppress(ValueError), np.errstate(over="ignore"):
            return word, np.array(numbers, dtype=np.float32)
    remedy = "mend or remove the line, or mend line 1, which gives the number of dimensions"
    raise _no_row(line, path, f"a word and {counted(d, 'number')}", remedy)


def _no_row(line: Line, path: Path, expected: str, remedy: str) -> SpaceError:
    got = visible(line[1].decode("utf-8", "replace").strip(), 60)
    return SpaceError(f"{path.name}, line {line[0]}: expected {expected}, got {got!r}; {remedy}")


def _word(word: bytes, path: Path, row: int, n: int, d: int) -> str:
    word = word.lstrip(b"\n")
    if word and b"\n" not in word and b"\0" not in word:
        with suppress(UnicodeDecodeError):
            return word.decode()
    raise _no_word(path, row, n, d, word)


def _no_word(path: Path, row: int, n: int, d: int, got: bytes) -> SpaceError:
    return SpaceError(
        f"{path.name}: expected a word at row {row + 1} of {n:,}, got {got[:20]!r}, which is not UTF-8 text;"
        f" is it a word2vec .bin, and has it {d:,} dimensions, as its first line says?"
    )


def _cut_short(path: Path, n_whole: int, n: int) -> SpaceError:
    fix = ""
    if n_whole:
        fix = f", or pass limit={n_whole} to take only whole rows"
    return SpaceError(
        f"{path.name}: the header promises {n:,} rows, but the file ends within row {n_whole + 1:,}; "
        f"copy or download it again{fix}"
    )


def _trailing_data(path: Path, n: int) -> SpaceError:
    return SpaceError(
        f"{path.name}: the header promises {n:,} rows, but more follow; correct the header, or pass limit={n}"
    )
