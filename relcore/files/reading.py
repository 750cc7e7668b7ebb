"""load_space: a file of vectors, whatever its format, as a LatentSpace."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pandas as pd

from relcore.base.access import expanded, regular_file
from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import FORMATS
from relcore.files import confined
from relcore.files.beside import lines_beside, token_ids
from relcore.files.columns import NO_CHOICES, OPTIONS, TEXT_OR, Choices, Columns
from relcore.files.formats import Description, Regions, Request, Shape, format_of, known_suffix, suffix_of
from relcore.files.metadata import read_metadata
from relcore.files.on_disk import MAP_FROM, OnDisk
from relcore.files.rows import (
    GrowingMatrix,
    Rows,
    checked_counts,
    checked_ids,
    checked_labels,
    distinct,
    usable_bytes,
)
from relcore.files.series import parts_of, read_parts
from relcore.runs.digest import StoreError
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, MappedRows, RowNumbers

FILE_OPTIONS = (
    *("id_column", "label_column", "count_column", "text_column", "picture_column", "ignore", "matrix"),
    *("metadata", "ids", "invalid", "duplicates"),
)
_COLUMNS = ("ids", "labels", "counts")


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

    | file | read as |
    |---|---|
    | .npy | a matrix; ids from `<stem>.ids.txt` or `<stem>.sentences.txt` beside it, one per line |
    | .npz .pt .pth | `vectors`, or the only matrix, and `ids`, `labels`, `counts` where present |
    | .safetensors | the same, ids and labels as UTF-8 lines; of a model its token embeddings |
    | .parquet .arrow .feather .csv .tsv | number columns, or one column of lists, and a text column of ids |
    | a folder | of `datasets.save_to_disk`, or of the shards of one table |
    | .bin .vec .txt, also .gz | word2vec, fastText's .vec, GloVe |
    | .faiss .index | a faiss index of whole vectors: Flat, IDMap (with its ids), HNSWFlat, IVFFlat |
    | .h5ad | AnnData: a matrix of obsm, X or a layer; ids and labels from obs |

    Without ids of its own the rows of a file are "0", "1", … Where RELSCOPE_CONFINED is 1, as in the app and
    in the commands, the file is parsed in a process of its own: see `relcore.files.confined`.

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
    _check_options(path, limit, invalid, duplicates)
    suffix, of = known_suffix(path), format_of(path)
    own_choices = NO_CHOICES if metadata is not None else choices
    _check_chosen(path, suffix, own_choices, matrix)
    if metadata is not None and of.has_columns and suffix != ".h5ad":
        unnamed = [column.name for column in column_roles(path).columns if column.reason == TEXT_OR]
        own_choices = Choices(ignore=tuple(unnamed))
    max_bytes = usable_bytes() if max_bytes is None else max_bytes
    on_disk = of.has_regions and sum(one.stat().st_size for one in parts or [path]) >= map_from

    def read(file: Path, limit: int | None) -> Rows:
        request = Request(limit, max_bytes, matrix, own_choices)
        return _read(file, request, OnDisk.of(file, store) if on_disk else None)

    try:
        rows = read_parts(folder, read, limit, max_bytes) if parts else read(path, limit)
    except PermissionError as error:
        raise SpaceError(
            f"{path}: expected a file that can be read, got {error.strerror}; change its permissions"
        ) from error
    n = len(rows.vectors)
    if metadata is not None:
        table = regular_file(expanded(metadata))
        about = read_metadata(table, n, of=path.name, limit=limit, max_bytes=max_bytes, choices=choices)
        rows = dataclasses.replace(
            rows, **{name: cells for name in _COLUMNS if (cells := getattr(about, name)) is not None}
        )
    by_number = isinstance(ids, str) and ids == "rows"
    own_ids = (
        _ids(path, suffix, rows, limit) if ids is None or by_number else _as_many(path, "ids", ids, n, limit)
    )
    columns: dict[str, Any] = {
        "vectors": rows.vectors,
        "ids": own_ids,
        "labels": _labels(path, suffix, rows, limit),
        "counts": (
            None
            if rows.counts is None
            else checked_counts(_as_many(path, "counts", rows.counts, n, limit), path.name)
        ),
    }
    if by_number:
        numbers = RowNumbers(n)
        same = own_ids == numbers or list(own_ids) == list(numbers)
        columns |= {"ids": numbers, "payload": None if same else own_ids}
    name = name or (folder.name if parts else path.name[: -len(suffix)])
    return LatentSpace(**_kept(columns, name, invalid, duplicates), name=name)


def _parsed(function: str, path: Path, returns: Any, **arguments: Any) -> Any:
    return confined.run(
        f"relcore.files.formats:{function}", path, returns, format_of(path).libraries, **arguments
    )


def _read(path: Path, request: Request, on_disk: OnDisk | None) -> Rows:
    """The rows of one file; with `on_disk` they are mapped where they lie, or decoded once into the store, if
    that can be done.
    """
    asked = dataclasses.asdict(request)
    regions = _parsed("regions", path, Regions | None, request=asked) if on_disk is not None else None
    rows = None
    if regions is not None:
        vectors = (
            _mapped(path, regions, on_disk) if regions.parts else _decoded(path, regions, asked, on_disk)
        )
        rows = None if vectors is None else (vectors, regions.columns)
    if rows is None:
        matrix, blocks = GrowingMatrix(path, request.max_bytes), _blocks(path, asked)
        columns: dict[str, Any] = {}
        for block in _with_end(blocks, columns):
            matrix.append(block)
        rows = matrix.matrix(), columns
    vectors, columns = rows
    if "ids" not in columns and (tokens := columns.get("tokens")):
        ids = token_ids(path, tokens[1])
        columns = columns if ids is None else columns | {"ids": ids[: len(vectors)]}
    return Rows(vectors, *(columns.get(name) for name in _COLUMNS))


def _blocks(path: Path, request: dict[str, Any]) -> Any:
    return confined.stream("relcore.files.formats:blocks", path, format_of(path).libraries, request=request)


def _with_end(blocks: Any, columns: dict[str, Any]) -> Iterator[np.ndarray]:
    """The blocks; `columns` then holds what the generator returned."""
    columns |= (yield from blocks) or {}


def _mapped(path: Path, regions: Regions, on_disk: OnDisk) -> MappedRows | None:
    with path.open("rb") as stream:
        parts = [on_disk.map(stream, kind, at, shape) for at, kind, shape in regions.parts]
    return None if any(part is None for part in parts) else on_disk.rows(parts, *regions.region)


def _decoded(path: Path, regions: Regions, request: dict[str, Any], on_disk: OnDisk) -> MappedRows | None:
    """The vectors as a map of an entry of the store, which is written the first time; None where the store
    cannot keep them.
    """
    n, d = regions.decoded
    key = on_disk.decoded_key(regions.region, (n, d))
    if not key or 8 * n * d > on_disk.store.limit_bytes:
        return None
    with suppress(StoreError):
        if (entry := on_disk.store.mapped(key)) is None:
            blocks = _blocks(path, request | {"max_bytes": 1 << 62})
            on_disk.store.put(key, {}, {"rows of": path.name}, (blocks, (n, d)))
            on_disk.need_unchanged()
            entry = on_disk.store.mapped(key)
        if entry is not None and entry.arrays["vectors"].shape == (n, d):
            vectors = entry.arrays["vectors"].view(np.ndarray)
            return on_disk.copied_rows([vectors], "decoded", regions.region)
    return None


def _check_options(path: Path, limit: int | None, invalid: str, duplicates: str) -> None:
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise SpaceError(f"limit: expected a whole number of rows, at least 1, got {limit!r}")
    need_one_of("invalid", invalid, ("error", "drop"))
    need_one_of("duplicates", duplicates, ("error", "first"))
    regular_file(path)
    if path.stat().st_size == 0:
        known_suffix(path)
        raise SpaceError(f"{path.name}: expected vectors, got an empty file; write or download it again")


def _check_chosen(path: Path, suffix: str, choices: Choices, matrix: str | None) -> None:
    columns = [column for one in OPTIONS.values() if (column := getattr(choices, one))] + list(choices.ignore)
    for what, chosen, has in (
        ("columns", columns, "has_columns"),
        ("a matrix", [matrix] if matrix is not None else [], "several_matrices"),
    ):
        if chosen and not getattr(format_of(path), has):
            fit = [one for one, named in FORMATS.items() if getattr(named.load(), has)]
            raise SpaceError(
                f"{path.name}: expected {what} to be chosen only for {', '.join(fit)}, got"
                f" {chosen[0]!r:.80} for {suffix}; leave it out"
            )


def column_roles(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """What each column of a table would be read as, and why, by its header and first rows.

    Parameters
    ----------
    path : Path
        A .csv, .tsv, .parquet, .arrow or .feather file.
    choices : Choices
        What the user chose already; the rest is found by name or kind. A column that this leaves open has the
        role "unclear".

    Raises
    ------
    SpaceError
        No such table, names that repeat, rows of unequal length, choices that are no columns.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "t.csv"
    >>> _ = path.write_text("word,x,y,year\\nriver,1,2,old\\nsea,3,4,new\\n")
    >>> [(column.name, column.role) for column in column_roles(path).columns]
    [('word', 'ids'), ('x', 'dimension'), ('y', 'dimension'), ('year', 'left out')]
    """
    return _parsed("columns", regular_file(path), Columns, choices=dataclasses.asdict(choices))


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


def shape_of(path: Path) -> Shape | None:
    """(n, d) as far as the header tells it; None for a file or folder that is no space."""
    try:
        if not path.is_dir():
            return description_of(path).shape
        shapes = [shape_of(part) for part in parts_of(path)]
    except (SpaceError, OSError):
        return None
    if not shapes or None in shapes:
        return None
    lengths = [n for n, _ in shapes]
    return None if None in lengths else sum(lengths), shapes[0][1]


def matrices_of(path: Path) -> dict[str, Shape]:
    """(n, d) of each matrix of a file that may have several, by the names that the option `matrix` takes;
    else {}.
    """
    return {name: shape for name, shape in description_of(path).matrices.items() if name}


def usual_of(path: Path, matrices: Mapping[str, Shape]) -> str | None:
    """The matrix of a file that is read where none is chosen; None where one has to be."""
    return description_of(path).usual


def descriptions_of(paths: Sequence[Path]) -> dict[Path, Description]:
    """`description_of` several files, most of them in one process: behind a file that ends it, in another."""
    waiting = [path for path in paths if suffix_of(path) is not None and path.is_file()]
    libraries = {library for path in waiting for library in format_of(path).libraries}
    described: dict[Path, Description] = {}
    while waiting:
        rest = iter(waiting)
        with suppress(SpaceError):
            asked = {"others": waiting, "paths": [str(path.absolute()) for path in waiting]}
            for one in confined.stream(
                "relcore.files.formats:describe_all", waiting[0], sorted(libraries), **asked
            ):
                described[next(rest)] = msgspec.convert(one, Description, from_attributes=True)
        if (ended := next(rest, None)) is not None:
            described[ended] = Description()
        waiting = list(rest)
    return described


def description_of(path: Path) -> Description:
    """What the header of a file tells; nothing for one that is no space, or damaged."""
    try:
        if suffix_of(path) is None:
            return Description()
        return _parsed("describe", regular_file(path), Description)
    except (SpaceError, OSError):
        return Description()
