"""Read a vector file or a folder of such files as a `LatentSpace`, with ids and labels from files beside it.
Write a space to a file.

- .npy: a matrix; the ids are the lines of `<stem>.ids.txt` beside it
- .npz .pt .pth: the array `vectors` or the only matrix, with `ids`, `labels` and `counts` if present
- .safetensors: the same, with ids and labels as UTF-8 lines; for a model, its token embeddings
- .parquet .arrow .feather .csv .tsv .jsonl: columns of numbers or one column of lists, and a column of ids
- a folder: written by `datasets.save_to_disk`, or with the shards of one table
- .bin .vec .txt, also as .gz: vectors of word2vec, fastText (.vec) and GloVe
- .faiss .index: a faiss index of whole vectors (Flat, IDMap with its ids, HNSWFlat, IVFFlat)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pandas as pd

from relcore.base import access
from relcore.base.errors import SpaceError, need_one_of
from relcore.base.mapped_rows import FileStamp, MappedRows
from relcore.base.names import FORMATS
from relcore.files import confined
from relcore.files.beside import sidecar_lines, token_ids
from relcore.files.columns import NO_CHOICES, TEXT_OR, Choices, Columns
from relcore.files.formats import (
    Description,
    Format,
    Regions,
    Request,
    Shape,
    check_size,
    checked_ids,
    checked_labels,
    describe_all,
    format_of,
    suffix_of,
    usable_bytes,
)
from relcore.files.item_rows import read_metadata
from relcore.files.on_disk import MAP_FROM, JoinedOrigin, OnDisk
from relcore.files.parts import is_one_space, parts_of, shards_of
from relcore.runs.store import Store
from relcore.spaces.ids import RowNumbers, checked_counts
from relcore.spaces.space import LatentSpace


def read_parts(
    parts: Sequence[Path],
    read: Callable[[Path, int | None], tuple[Any, dict[str, Any]]],
    limit: int | None,
    max_bytes: int,
) -> tuple[Any, dict[str, Any]]:
    """Join the vectors and columns that `read(part, limit)` returns for each part of a folder. The result is
    mapped if all parts are."""
    folder = parts[0].parent
    vectors = []
    columns = {}
    n = 0
    for part in parts:
        if n == limit:
            break
        rows, cells = read(part, None if limit is None else limit - n)
        got = rows.shape[1], sorted(cells)
        before = got
        if vectors:
            before = (vectors[0].shape[1], sorted(columns))
        if got != before:
            raise SpaceError(
                f"{folder.name}, {part.name}: expected vectors of {before[0]} numbers with columns"
                f" {before[1]} as in the files before it, got {got[0]} numbers with {got[1]}; write the"
                " parts again"
            )
        n += len(rows)
        if not isinstance(rows, MappedRows):
            check_size(folder, n, rows.shape[1], max_bytes)
        vectors.append(rows)
        for name, items in cells.items():
            columns.setdefault(name, []).extend(items)
    if all(isinstance(rows, MappedRows) for rows in vectors):
        return MappedRows.joined(vectors, JoinedOrigin(vectors)), columns
    whole = np.concatenate([np.asarray(rows) for rows in vectors])
    whole.flags.writeable = False
    return whole, columns


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read as a space. `relcore.load_space` has the same arguments and explains them."""

    ids: Sequence[str] | Literal["rows"] | None = None
    metadata: str | Path | None = None
    id_column: str | None = None
    label_column: str | None = None
    count_column: str | None = None
    text_column: str | None = None
    picture_column: str | None = None
    ignore: Sequence[str] = ()
    encoding: str = ""
    matrix: str | None = None
    invalid: Literal["error", "drop"] = "error"
    duplicates: Literal["error", "first"] = "error"
    max_bytes: int | None = None
    map_from: int = MAP_FROM
    parts: Literal["all"] | None = None

    @property
    def choices(self) -> Choices:
        """The chosen columns and the encoding of a table."""
        roles = (
            self.id_column,
            self.label_column,
            self.count_column,
            self.text_column,
            self.picture_column,
        )
        return Choices(*roles, tuple(self.ignore), self.encoding)


def read_space(
    path: str | Path,
    options: ReadOptions = ReadOptions(),
    *,
    name: str | None = None,
    limit: int | None = None,
    store: Store | None = None,
) -> LatentSpace:
    """The space in a file or a folder of shards. The suffix of the file determines its format.

    Raises a SpaceError for a file that cannot be read as a space.
    """
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise SpaceError(f"limit: expected a whole number of rows, at least 1, got {limit!r}")
    invalid = options.invalid
    duplicates = options.duplicates
    need_one_of("invalid", invalid, ("error", "drop"))
    need_one_of("duplicates", duplicates, ("error", "first"))
    if options.parts is not None:
        need_one_of("parts", options.parts, ("all",))
    choices = options.choices
    metadata = options.metadata
    path = access.expand_home(path)
    parts = _parts(path, every=options.parts == "all")
    source = _source(path, parts, limit, choices, options.matrix, metadata, options.max_bytes)
    vectors, columns = source.read(options.map_from, store)
    arguments, notes = _named_rows(source, vectors, columns, options.ids, metadata, choices, duplicates)
    if not name and source.parts:
        name = source.path.parent.name
    name = name or source.stem
    if invalid == "drop" or duplicates == "first":
        arguments = _without_bad_rows(arguments, name, invalid, duplicates, notes)
    for note in notes:
        warnings.warn(note, stacklevel=5)  # the caller of the public function
    space = LatentSpace(**arguments, name=name)
    space.note = "; ".join(notes)
    return space


@dataclass(frozen=True)
class _Source:
    """What `read_space` reads: a file or a folder of parts, its format, and which rows and columns of it."""

    path: Path
    parts: list[Path]
    of: Format
    stamps: list[FileStamp]
    request: Request

    @property
    def stem(self) -> str:
        return self.path.name[: -len(suffix_of(self.path))]

    def read(self, map_from: int, store: Store | None) -> tuple[Any, dict[str, Any]]:
        on_disk = self.of.has_regions and sum(stamp.size for stamp in self.stamps) >= map_from

        def part(path: Path, most: int | None) -> tuple[Any, dict[str, Any]]:
            rows, columns = _read(path, self.of, replace(self.request, limit=most), on_disk, store)
            if self.parts:
                columns = columns | _columns_beside(path, columns, len(rows), most)
            return rows, columns

        try:
            if self.parts:
                read = read_parts(self.parts, part, self.request.limit, self.request.max_bytes)
            else:
                read = part(self.path, self.request.limit)
        except PermissionError as error:
            raise SpaceError(
                f"{self.path}: expected a file that can be read, got {error.strerror}; change its permissions"
            ) from error
        for stamp in self.stamps:  # the file may have changed while it was read
            stamp.need_same()
        return read

    def items_for_rows(self, what: str, items: Sequence[Any], n: int) -> Sequence[Any]:
        """The items of the n rows. With a limit, surplus items are cut. Without a limit, a wrong number of
        items is an error."""
        if len(items) != n and not self.request.limit == n < len(items):
            raise SpaceError(
                f"{self.path.name}: expected {n} {what}, one per row, got {len(items)}; write {what} and"
                " vectors from the same rows"
            )
        return items if len(items) == n else items[:n]


def _parts(path: Path, every: bool) -> list[Path]:
    """The files of a folder that is one space. `every` says that all vector files of the folder are one
    space."""
    if not path.is_dir():
        if every:
            raise SpaceError(f"parts: expected a folder of shards, got the file {path.name!r}; leave it out")
        return []
    if every and not is_one_space(path):
        return shards_of(path)
    return parts_of(path)


def _columns_beside(
    path: Path, columns: Mapping[str, Any], n: int, limit: int | None
) -> dict[str, list[str]]:
    """The ids and labels in files of lines beside one part, unless its table has them."""
    found = {}
    for what in ("ids", "labels"):
        if what not in columns:
            lines = sidecar_lines(path, what, n, limit)
            if lines is not None:
                found[what] = lines
    return found


def _source(
    path: Path,
    parts: list[Path],
    limit: int | None,
    choices: Choices,
    matrix: str | None,
    metadata: str | Path | None,
    max_bytes: int | None,
) -> _Source:
    if parts:
        path = parts[0]
    of = format_of(access.regular_file(path))
    if path.stat().st_size == 0:
        raise SpaceError(f"{path.name}: expected vectors, got an empty file; write or download it again")
    for what, chosen, has in (
        ("columns", choices if metadata is None else NO_CHOICES, "has_columns"),
        ("a matrix", matrix, "several_matrices"),
    ):
        if chosen not in (None, NO_CHOICES) and not getattr(of, has):
            fit = [item for item, kind in FORMATS.loaded() if getattr(kind, has)]
            raise SpaceError(
                f"{path.name}: expected {what} to be chosen only for {', '.join(fit)}, got one for"
                f" {suffix_of(path)}; leave the choice out"
            )
    stamps = list(map(FileStamp.of, parts or [path]))
    if metadata is not None:  # only the table of metadata has columns; text beside the vectors is ignored
        columns = ()
        if of.has_columns:
            columns = column_roles(path).columns
        choices = Choices(ignore=tuple(column.name for column in columns if column.reason == TEXT_OR))
    if max_bytes is None:
        if sum(stamp.size for stamp in stamps) > 1 << 20:
            max_bytes = usable_bytes()
        else:
            max_bytes = 8 << 30
    return _Source(path, parts, of, stamps, Request(limit, max_bytes, matrix, choices))


def _named_rows(
    source: _Source,
    vectors: Any,
    columns: dict[str, Any],
    ids: Sequence[str] | str | None,
    metadata: str | Path | None,
    choices: Choices,
    duplicates: str,
) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments of a `LatentSpace`, from the file, the files beside it and its metadata. Also
    return notes for the user on how they were read."""
    path = source.path
    limit = source.request.limit
    n = len(vectors)
    by_number = isinstance(ids, str) and ids == "rows"
    if ids is not None and not by_number:
        columns["ids"] = ids
    own_ids: Sequence[str] | None = None
    if "ids" in columns:
        own_ids = checked_ids(source.items_for_rows("ids", columns["ids"], n), path.name)
    elif not source.parts and (lines := sidecar_lines(path, "ids", n, limit)) is not None:
        own_ids = checked_ids(lines, f"{source.stem}.ids.txt")
    notes = [f"{path.name}: {note}" for note in dict.fromkeys(columns.pop("note", ()))]
    if metadata is not None:
        table = access.regular_file(access.expand_home(metadata))
        bounds = {"limit": limit, "max_bytes": source.request.max_bytes, "choices": choices}
        of_table, note = read_metadata(table, n, of=path.name, ids=own_ids, **bounds, duplicates=duplicates)
        columns |= of_table
        own_ids = of_table.get("ids", own_ids)
        if note:
            notes.append(note)
    if own_ids is None:
        own_ids = RowNumbers(n)
    if "labels" in columns:
        labels = checked_labels(source.items_for_rows("labels", columns["labels"], n), path.name)
    elif source.parts:
        labels = None
    else:
        labels = sidecar_lines(path, "labels", n, limit)
    if (counts := columns.get("counts")) is not None:
        counts = checked_counts(source.items_for_rows("counts", counts, n), path.name)
    arguments = {"vectors": vectors, "ids": own_ids, "labels": labels, "counts": counts}
    if by_number:
        arguments["ids"] = RowNumbers(n)
        same = own_ids == arguments["ids"] or list(own_ids) == list(arguments["ids"])
        arguments["payload"] = None if same else own_ids
    return arguments, notes


def _into_memory(path: Path, of: Format, request: Request) -> tuple[np.ndarray, dict[str, Any]]:
    """The rows of a file as a read-only array, and its columns."""
    blocks = confined.stream(of.blocks, path, of.libraries, request=request)
    n = 0
    vectors = np.empty((0, 0), np.float32)
    while True:  # a `for` loop would lose the generator's return value
        try:
            block = next(blocks)
        except StopIteration as stop:
            columns = stop.value or {}
            break
        d = vectors.shape[1] or block.shape[1]
        end = n + len(block)
        check_size(path, end, d, request.max_bytes)
        if end > len(vectors):  # resizing in place remaps memory pages and copies nothing
            vectors.resize((end * 9 // 8, d), refcheck=False)
        vectors[n:end] = block
        n = end
    if not n:
        raise SpaceError(f"{path.name}: expected rows of numbers, got none; check the program that wrote it")
    vectors.resize((n, d), refcheck=False)
    vectors.flags.writeable = False
    return vectors, columns


def _read(
    path: Path, of: Format, request: Request, on_disk: bool, store: Store | None
) -> tuple[Any, dict[str, Any]]:
    # With `on_disk`, rows are mapped if possible. Rows that must be decoded are decoded once, into the store.
    vectors = None
    columns = {}
    file = None
    if on_disk:
        file = OnDisk.of(path, store)
    regions = None
    if file:
        regions = confined.run(of.regions, path, Regions | None, of.libraries, request=request)
    if regions and (plugin := FORMATS[suffix_of(path)].plugin):  # decoded rows depend on the plugin's version
        regions = replace(regions, region=(*regions.region, plugin))
    if regions and regions.parts:
        vectors = file.mapped(regions)
        columns = regions.columns
    elif regions:
        blocks = confined.stream(of.blocks, path, of.libraries, request=replace(request, max_bytes=1 << 62))
        vectors = file.decoded(regions, blocks)
        columns = regions.columns
    if vectors is None:
        vectors, columns = _into_memory(path, of, request)
    if "ids" not in columns and (tokens := columns.get("tokens")):
        ids = token_ids(path, tokens[1])
        if ids is not None:
            columns = columns | {"ids": ids[: len(vectors)]}
    return vectors, columns


def column_roles(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """The role of each column of a table of vectors, judged by its header and first rows.

    A column that `choices` does not name gets its role by name or kind. If neither tells a role, the column
    is "unclear".

    Raises
    ------
    SpaceError
        The file is no such table, a name repeats, rows have unequal lengths, or a chosen column does not
        exist.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "t.csv"
    >>> _ = path.write_text("word,x,y,year\\nriver,1,2,old\\nsea,3,4,new\\n")
    >>> [(column.name, column.role) for column in column_roles(path).columns]
    [('word', 'ids'), ('x', 'dimension'), ('y', 'dimension'), ('year', 'left out')]
    """
    of = format_of(access.regular_file(path))
    return confined.run(of.columns, path, Columns, of.libraries, choices=choices)


def _without_bad_rows(
    columns: dict[str, Any], name: str, invalid: str, duplicates: str, notes: list[str]
) -> dict[str, Any]:
    vectors = columns["vectors"]
    keep = np.ones(len(vectors), dtype=bool)
    if invalid == "drop":
        on_disk = isinstance(vectors, MappedRows)
        if on_disk:
            keep = np.isfinite(vectors.lengths)
        else:
            keep = np.isfinite(vectors).all(axis=1)
        notes += _left_out(name, "NaN or infinite values", keep)
    if duplicates == "first":
        first = ~pd.Series(np.array(columns["ids"], dtype=object)[keep]).duplicated().to_numpy()
        notes += _left_out(name, "ids seen before", first)
        keep[keep] = first
    if not keep.any():
        raise SpaceError(
            f"{name}: expected rows of numbers, got none without NaN or infinite values; look at how the file"
            " was written"
        )
    if keep.all():
        return columns
    for what, column in columns.items():
        if column is None:
            continue
        if not isinstance(column, np.ndarray | MappedRows):
            column = np.array(column, dtype=object)
        columns[what] = column[keep]
        columns[what].flags.writeable = False
    return columns


def _left_out(name: str, why: str, keep: np.ndarray) -> list[str]:
    n = len(keep) - int(keep.sum())
    if n:
        return [f"{name}: left out {n} of {len(keep)} rows with {why}"]
    return []


def shape_of(path: Path) -> Shape | None:
    """The shape (n, d), if the header tells it. None if it does not, and for a file or folder that is not a
    space."""
    if not path.is_dir():
        return description_of(path).shape
    with suppress(SpaceError, OSError):
        shapes = [description_of(part).shape for part in parts_of(path)]
        if shapes and None not in shapes:
            lengths = [n for n, _ in shapes]
            n = None
            if None not in lengths:
                n = sum(lengths)
            return n, shapes[0][1]
    return None


def description_of(path: Path) -> Description:
    """The description of a file, read from its header. It is empty for a damaged file and for a file that is
    not a space."""
    return descriptions_of([path]).get(path, Description())


def descriptions_of(paths: Sequence[Path]) -> dict[Path, Description]:
    """The description of each of several files, by path. One process reads all of them; if a file crashes it,
    another process continues."""
    waiting = [path for path in paths if suffix_of(path) is not None and path.is_file()]
    libraries = {library for path in waiting for library in format_of(path).libraries}
    described: dict[Path, Description] = {}
    while waiting:
        names = [str(path.absolute()) for path in waiting]
        items = confined.stream(describe_all, waiting[0], sorted(libraries), waiting, paths=names)
        n_described = 0
        with suppress(SpaceError, OSError):
            for item in items:
                description = msgspec.convert(item, Description, from_attributes=True)
                described[waiting[n_described]] = description
                n_described += 1
        if n_described < len(waiting):  # the process ended at this file
            described[waiting[n_described]] = Description()
        waiting = waiting[n_described + 1 :]
    return described
