"""load_space: a file of vectors, whatever its format, as a LatentSpace."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from relcore.base.access import expanded, regular_file
from relcore.base.errors import SpaceError, quote
from relcore.files.arrays import npy_shape, npz_shapes, the_matrix
from relcore.files.arrow import ARROW, ArrowTable
from relcore.files.columns import NO_CHOICES, OPTIONS, TEXT_OR, Choices
from relcore.files.delimited import delimited_rows, delimiter_of, is_number
from relcore.files.faiss_index import faiss_shape
from relcore.files.h5ad import h5ad_matrices, h5ad_shape, usual_matrix
from relcore.files.metadata import Metadata, read_metadata
from relcore.files.on_disk import MAP_FROM, OnDisk
from relcore.files.parquet import holds_vectors
from relcore.files.readers import READERS, WITH_COLUMNS, WITH_MAPS, WITH_MATRICES, known_suffix, suffix_of
from relcore.files.rows import (
    Rows,
    checked_counts,
    checked_ids,
    checked_labels,
    distinct,
    lines_beside,
    usable_bytes,
)
from relcore.files.series import parts_of, read_parts
from relcore.files.tables import TABLES, column_roles
from relcore.files.tensors import safetensors_shape, safetensors_shapes, torch_shape, torch_shapes
from relcore.files.word_vectors import word2vec_shape
from relcore.runs.store import Store
from relcore.spaces.rows import MappedRows
from relcore.spaces.space import LatentSpace, RowNumbers

FILE_OPTIONS = (
    *("id_column", "label_column", "count_column", "text_column", "picture_column", "ignore", "matrix"),
    *("metadata", "ids", "invalid", "duplicates"),
)


def load_space(
    path: str | Path,
    *,
    name: str | None = None,
    limit: int | None = None,
    ids: Sequence[str] | Literal["rows"] | None = None,
    metadata: str | Path | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    count_column: str | None = None,
    text_column: str | None = None,
    picture_column: str | None = None,
    ignore: Sequence[str] = (),
    matrix: str | None = None,
    invalid: Literal["error", "drop"] = "error",
    duplicates: Literal["error", "first"] = "error",
    max_bytes: int | None = None,
    map_from: int = MAP_FROM,
    store: Store | None = None,
) -> LatentSpace:
    """Load the space in a file; the suffix says the format.

    A large .npy, .safetensors or .arrow file of floating-point numbers stays on disk, and its rows are read
    when they are used; a large .parquet file is decoded once, into the store. Loading one again costs no look
    at its values.

    ============================
    ======================================================================================= .npy
    a matrix; ids from `<stem>.ids.txt` or `<stem>.sentences.txt` beside it, one per line, else
                                  "0", "1", …
    .npz                          `vectors` (or the only matrix), and `ids`, `labels`, `counts` where present
    .safetensors                  the same; ids and labels as UTF-8, one per line, in uint8 tensors or in the
    metadata; of a
                                  model its token embeddings, with a vocabulary beside it as ids
    .parquet .arrow .feather      number columns, or one column of lists, and a text column of ids
    .csv .tsv                     number columns and a text column of ids
    a folder                      of `datasets.save_to_disk`, or of the shards of one .parquet, .arrow or
    .feather table .bin .vec .txt, also .gz      word2vec, fastText's .vec, GloVe .kv
    gensim's KeyedVectors, read without unpickling .faiss .index                 a faiss index of whole
    vectors: Flat, IDMap (with its ids), HNSWFlat .pt .pth                      a tensor of torch.save, or one
    of a dict, with `ids` and `labels`, read without unpickling .h5ad                         AnnData: a
    matrix of obsm, X or a layer; ids and labels from obs ============================
    =======================================================================================

    Parameters
    ----------
    name : str, optional
        Else the file's, without its suffix.
    limit : int, optional
        Read only the first rows of the file; what follows is not read where the format allows it.
    ids : sequence of str or "rows", optional
        One per row of the file, instead of those in it; "rows": the row numbers, so that two files pair by
        row order. The ids of the file then are the payload.
    metadata : str or Path, optional
        A .csv, .tsv or .parquet file with one row per vector, which gives ids, labels and counts; see
        `relcore.files.metadata`.
    id_column, label_column, count_column : str, optional
        Columns of a table, else found by name or kind; see `relcore.files.columns`. With `metadata`, columns
        of that.
    text_column, picture_column : str, optional
        Columns of texts and pictures that the app shows; they are not loaded.
    ignore : sequence of str
        Columns of a table to leave out; with `metadata`, columns of that.
    matrix : str, optional
        The array or tensor to read where a file has several.
    invalid : "error" or "drop"
        What becomes of rows with NaN or infinite values; dropped rows are counted in a warning.
    duplicates : "error" or "first"
        What becomes of rows with an id seen before; rows left out are counted in a warning.
    max_bytes : int, optional
        The most memory that the vectors, as float32, and their ids may take; checked before they are read.
        Default: 8 GiB, or 60 % of the free memory where that is less. Vectors that stay on disk do not count.
    map_from : int
        The size of a file in bytes from which its vectors stay on disk. A smaller file is read into memory.
    store : Store, optional
        Keeps what is known of a file on disk until it changes: lengths, digests, decoded vectors. Default:
        the environment's.

    Raises
    ------
    SpaceError
        Whatever is wrong with the file or the choices, with where it is and how to mend it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> from relcore import load_space
    >>> path = Path(mkdtemp()) / "words.npz"
    >>> np.savez(path, vectors=np.eye(3), ids=["king", "queen", "river"])
    >>> space = load_space(path, limit=2)
    >>> space.name, space.ids.tolist()
    ('words', ['king', 'queen'])
    """
    path = expanded(path)
    parts = parts_of(path) if path.is_dir() else []
    folder, path = path, parts[0] if parts else path
    choices = Choices(id_column, label_column, count_column, text_column, picture_column, tuple(ignore))
    suffix = _check_choices(
        path, limit, NO_CHOICES if metadata is not None else choices, matrix, invalid, duplicates
    )
    chosen: dict[str, Any] = {} if matrix is None else {"matrix": matrix}
    if suffix in WITH_COLUMNS:
        chosen["choices"] = _only_vectors(path) if metadata is not None else choices
    max_bytes = usable_bytes() if max_bytes is None else max_bytes
    on_disk = suffix in WITH_MAPS and sum(one.stat().st_size for one in parts or [path]) >= map_from

    def read(file: Path, limit: int | None) -> Rows:
        opened = {"on_disk": OnDisk.of(file, store)} if on_disk else {}
        return READERS[suffix](file, limit=limit, max_bytes=max_bytes, **chosen, **opened)

    try:
        rows = read_parts(folder, read, limit, max_bytes) if parts else read(path, limit=limit)
    except MemoryError as error:
        raise SpaceError(
            f"{path.name}: expected vectors that fit into memory, got more; read fewer rows (limit)"
        ) from error
    except PermissionError as error:
        raise SpaceError(
            f"{path}: expected a file that can be read, got {error.strerror}; change its permissions"
        ) from error
    n = len(rows.vectors)
    if metadata is not None:
        about = read_metadata(
            regular_file(expanded(metadata)),
            n,
            of=path.name,
            limit=limit,
            max_bytes=max_bytes,
            choices=choices,
        )
        rows = _described(rows, about)
    own_ids = (
        _ids(path, suffix, rows, limit)
        if ids is None or ids == "rows"
        else _as_many(path, "ids", ids, n, limit)
    )
    found = {
        "vectors": rows.vectors,
        "ids": own_ids,
        "labels": _labels(path, suffix, rows, limit),
        "counts": (
            None
            if rows.counts is None
            else checked_counts(_as_many(path, "counts", rows.counts, n, limit), path.name)
        ),
    }
    if isinstance(ids, str) and ids == "rows":
        numbers = RowNumbers(n)
        same = own_ids == numbers or list(own_ids) == list(numbers)
        found |= {"ids": numbers, "payload": None if same else own_ids}
    name = name or (folder.name if parts else path.name[: -len(suffix)])
    return LatentSpace(**_kept(found, name, invalid, duplicates), name=name)


def _only_vectors(path: Path) -> Choices:
    """The choices that leave out the texts of a table whose ids and labels are in another file."""
    if suffix_of(path) not in TABLES:
        return NO_CHOICES
    return Choices(
        ignore=tuple(column.name for column in column_roles(path).columns if column.reason == TEXT_OR)
    )


def _described(rows: Rows, about: Metadata) -> Rows:
    """The rows with what a table tells about them, and else with what their own file does."""
    told = {
        name: found for name in ("ids", "labels", "counts") if (found := getattr(about, name)) is not None
    }
    return replace(rows, **told)


def _check_choices(
    path: Path, limit: int | None, choices: Choices, matrix: str | None, invalid: str, duplicates: str
) -> str:
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise SpaceError(f"limit: expected a whole number of rows, at least 1, got {limit!r}")
    for option, value, allowed in (
        ("invalid", invalid, ("error", "drop")),
        ("duplicates", duplicates, ("error", "first")),
    ):
        if value not in allowed:
            raise SpaceError(f"{option}: expected one of {quote(allowed)}, got {value!r}")
    regular_file(path)
    suffix = known_suffix(path)
    if choices != NO_CHOICES and suffix not in WITH_COLUMNS:
        column = next(filter(None, (getattr(choices, one) for one in OPTIONS.values())), "") or quote(
            choices.ignore
        )
        raise SpaceError(
            f"{path.name}: expected columns to be chosen only for {', '.join(WITH_COLUMNS)}, got"
            f" {column!r:.80} for {suffix}; leave them out"
        )
    if matrix is not None and suffix not in WITH_MATRICES:
        raise SpaceError(
            f"{path.name}: expected a matrix to be chosen only for {', '.join(WITH_MATRICES)}, got"
            f" {matrix!r:.80} for {suffix}; leave it out"
        )
    if path.stat().st_size == 0:
        raise SpaceError(f"{path.name}: expected vectors, got an empty file; write or download it again")
    return suffix


def _ids(path: Path, suffix: str, rows: Rows, limit: int | None) -> Sequence[str]:
    """Those in the file, else those beside it, else row numbers."""
    n = len(rows.vectors)
    if rows.ids is not None:
        return checked_ids(_as_many(path, "ids", rows.ids, n, limit), path.name)
    beside = lines_beside(path, suffix, "ids", n, limit)
    if beside is not None:
        return checked_ids(beside, f"{path.name[: -len(suffix)]}.ids.txt")
    sentences = lines_beside(path, suffix, "sentences", n, limit)
    return RowNumbers(n) if sentences is None else distinct(sentences)


def _labels(path: Path, suffix: str, rows: Rows, limit: int | None) -> list[str] | None:
    n = len(rows.vectors)
    if rows.labels is not None:
        return checked_labels(_as_many(path, "labels", rows.labels, n, limit), path.name)
    return lines_beside(path, suffix, "labels", n, limit)


def _as_many(path: Path, what: str, items: Sequence[Any], n: int, limit: int | None) -> Sequence[Any]:
    """The items of the rows read; more items than rows are right only where a limit cut the rows."""
    if len(items) == n:
        return items
    if limit == n < len(items):
        return items[:n]
    raise SpaceError(
        f"{path.name}: expected {n} {what}, one per row, got {len(items)}; write {what} and vectors from the"
        " same rows"
    )


def _kept(columns: dict[str, Any], name: str, invalid: str, duplicates: str) -> dict[str, Any]:
    """Arguments of LatentSpace, without the rows that the choices leave out."""
    keep = np.ones(len(columns["vectors"]), dtype=bool)
    if invalid == "drop":
        keep &= _finite(columns["vectors"])
        _warn(name, "NaN or infinite values", keep)
    if duplicates == "first":
        distinct = keep.copy()
        distinct[keep] = ~pd.Series(np.array(columns["ids"], dtype=object)[keep]).duplicated().to_numpy()
        _warn(name, "ids seen before", distinct, keep)
        keep = distinct
    if not keep.any():
        raise SpaceError(
            f"{name}: expected rows of numbers, got none without NaN or infinite values; look at how the file"
            " was written"
        )
    if keep.all():
        return columns
    return {key: None if column is None else _taken(column, keep) for key, column in columns.items()}


def _finite(vectors: np.ndarray | MappedRows) -> np.ndarray:
    """Which rows hold neither NaN nor infinite values, (n,) bool."""
    return (
        np.isfinite(vectors.lengths) if isinstance(vectors, MappedRows) else np.isfinite(vectors).all(axis=1)
    )


def _taken(column: np.ndarray | Sequence[str], keep: np.ndarray) -> np.ndarray:
    taken = (column if isinstance(column, np.ndarray | MappedRows) else np.array(column, dtype=object))[keep]
    taken.flags.writeable = False
    return taken


def _warn(name: str, why: str, keep: np.ndarray, of: np.ndarray | None = None) -> None:
    n = len(keep) if of is None else int(of.sum())
    left_out = n - int(keep.sum())
    if left_out:
        warnings.warn(f"{name}: left out {left_out} of {n} rows with {why}", stacklevel=4)


# What a file of vectors promises, (n, d), from its header alone.


def shape_of(path: Path) -> tuple[int | None, int | None] | None:
    """(n, d) as far as the header tells it; None for a file or folder that is no space."""
    try:
        if path.is_dir():
            return _of_parts([shape_of(part) for part in parts_of(path)])
        match suffix_of(path):
            case ".npy":
                shape = npy_shape(path)
            case ".safetensors":
                shape = safetensors_shape(path)
            case ".pt" | ".pth":
                shape = torch_shape(path)
            case ".h5ad":
                shape = h5ad_shape(path)
            case ".faiss" | ".index":
                shape = faiss_shape(path)
            case ".bin" | ".bin.gz" | ".gz":
                shape = word2vec_shape(path)
            case ".vec" | ".vec.gz" | ".txt" | ".txt.gz":
                shape = word2vec_shape(path) or (_glove_shape(path) if path.suffix != ".gz" else None)
            case ".csv" | ".tsv":
                return (None, None) if _holds_numbers(path) else None
            case ".parquet" | ".arrow" | ".feather":
                return _typed_shape(path)
            case None:
                return None
            case _:
                return None, None
    except (SpaceError, OSError):
        return None
    return shape if shape is not None and len(shape) == 2 else None


def matrices_of(path: Path) -> dict[str, tuple[int, int]]:
    """(n, d) of each matrix of a file that may have several, by the names that the option `matrix` takes;
    else {}.
    """
    try:
        match suffix_of(path):
            case ".h5ad":
                shapes = h5ad_matrices(path)
            case ".npz":
                shapes = npz_shapes(path)
            case ".safetensors":
                shapes = safetensors_shapes(path)
            case ".pt" | ".pth":
                shapes = torch_shapes(path)
            case _:
                return {}
    except (SpaceError, OSError):
        return {}
    return {name: shape for name, shape in shapes.items() if len(shape) == 2 and 0 not in shape}


def usual_of(path: Path, matrices: Mapping[str, tuple[int, int]]) -> str | None:
    """The matrix of a file that is read where none is chosen; None where one has to be."""
    if suffix_of(path) == ".h5ad":
        return usual_matrix(matrices)
    try:
        return the_matrix(path, matrices, matrices.__getitem__)
    except SpaceError:
        return None


def _glove_shape(path: Path) -> tuple[None, int] | None:
    with path.open(encoding="utf-8-sig", errors="replace") as stream:
        cells = stream.readline(1 << 20).split()
    return (None, len(cells) - 1) if len(cells) > 2 and all(map(is_number, cells[1:])) else None


def _holds_numbers(path: Path) -> bool:
    rows = list(islice(delimited_rows(path, delimiter_of(path)), 2))
    return len(rows) == 2 and sum(map(is_number, rows[1][1])) >= 2


def _typed_shape(path: Path) -> tuple[int, int | None] | None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        file = ArrowTable(path) if path.suffix.lower() in ARROW else parquet.ParquetFile(path)
        floats = sum(pa.types.is_floating(field.type) for field in file.schema_arrow)
        lists = [
            field.type for field in file.schema_arrow if holds_vectors(field.type, of=pa.types.is_floating)
        ]
        n = file.metadata.num_rows
    except pa.ArrowException:
        return None
    if len(lists) == 1:
        return n, lists[0].list_size if pa.types.is_fixed_size_list(lists[0]) else None
    return (n, floats) if floats >= 2 and not lists else None


def _of_parts(shapes: list[tuple[int | None, int | None] | None]) -> tuple[int | None, int | None] | None:
    """The shape of parts, one after the other."""
    if not shapes or None in shapes:
        return None
    lengths = [n for n, _ in shapes]
    return None if None in lengths else sum(lengths), shapes[0][1]
