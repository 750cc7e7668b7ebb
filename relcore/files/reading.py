"""Vector files, and folders of them, as a `LatentSpace`; and the files beside them.

- .npy: a matrix; ids from `<stem>.ids.txt` beside it, one per line
- .npz .pt .pth: `vectors`, or the only matrix, and `ids`, `labels`, `counts` if present
- .safetensors: the same, ids and labels as UTF-8 lines; of a model its token embeddings
- .parquet .arrow .feather .csv .tsv .jsonl: number columns, or one column of lists, and a text column of ids
- a folder: of `datasets.save_to_disk`, or of the shards of one table
- .bin .vec .txt, also .gz: word2vec, fastText's .vec, GloVe
- .faiss .index: a faiss index of whole vectors: Flat, IDMap (with its ids), HNSWFlat, IVFFlat
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pandas as pd

from relcore.base import access
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import FORMATS
from relcore.base.records import read_file
from relcore.base.rows import FileStamp, MappedRows
from relcore.base.text import lines_of, read_lines
from relcore.files import confined
from relcore.files.columns import NO_CHOICES, OPTIONS, TEXT_OR, Choices, Columns
from relcore.files.formats import (
    Description,
    Format,
    Regions,
    Request,
    Shape,
    check_size,
    checked_counts,
    checked_ids,
    checked_labels,
    describe_all,
    format_of,
    readable,
    suffix_of,
    usable_bytes,
)
from relcore.files.items import read_metadata
from relcore.files.on_disk import MAP_FROM, JoinedOrigin, OnDisk
from relcore.runs.store import Store
from relcore.spaces.ids import RowNumbers
from relcore.spaces.space import LatentSpace

# Folders

STATE = "state.json"
MOST_SPACES = 500
_SHARD = re.compile(r"(.*)-\d{5}-of-\d{5}(\.parquet|\.arrow|\.feather)", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d+)")
_TEXTS = (".csv", ".tsv", ".txt", ".gz", ".vec")  # beside arrays they contain metrics or ids, not vectors
_TABLES = (".parquet", ".arrow", ".feather")


def natural(path: Path) -> list[tuple[int, str, int]]:
    """A key that sorts "step-20" before "step-100"."""
    parts = _NUMBERS.split(str(path).lower())
    return [(1, "", int(part)) if part.isdecimal() else (0, part, 0) for part in parts if part]


def parts_of(folder: Path) -> list[Path]:
    """The files of a folder that is one space (`datasets.save_to_disk`, shards), in order; [] for others.

    Raises
    ------
    SpaceError
        A state.json that names no files of the folder.
    """
    if not (folder / STATE).is_file():
        tables = [path for path in _files(folder) if path.suffix.lower() in _TABLES]
        shards = [_SHARD.fullmatch(path.name) for path in tables]
        of_one = None not in shards and len({(shard[1], shard[2]) for shard in shards}) == 1
        return tables if of_one else []
    state, names = read_file(folder / STATE, "the state of a dataset"), []
    with suppress(TypeError, KeyError):
        names = [item["filename"] for item in state["_data_files"]]
    parts = {path.name: path for path in _files(folder) if path.suffix == ".arrow"}
    missing = [name for name in names if not isinstance(name, str) or name not in parts]
    if not names or missing:
        got = f"{quote(missing[:3])}, which are not there" if missing else "another list of files"
        raise SpaceError(
            f"{folder.name}/{STATE}: expected the .arrow files of datasets.save_to_disk beside it, got {got};"
            " save it again"
        )
    return [parts[name] for name in names]


def files_in(folder: Path) -> list[Path]:
    """The files of a folder: its parts if it is one space, else all files."""
    return parts_of(folder) or _files(folder)


def is_one_space(folder: Path) -> bool:
    """Whether a folder has parts that form one space; False if its state.json is damaged."""
    with suppress(SpaceError, OSError):
        return bool(parts_of(folder))
    return False


def series_of(folder: Path, is_space: Callable[[Path], bool]) -> list[Path]:
    """The spaces in a folder, in natural order: vector files, and sub-folders that hold one space each.

    `is_space` says whether a file holds vectors. Raises SpaceError for none, or more than 500.
    """
    spaces = _vector_files(folder, is_space)
    for child in folder.iterdir():
        if not child.name.startswith(".") and access.beside(folder / "x", child) and child.is_dir():
            inner = [child] if parts_of(child) else _vector_files(child, is_space)
            spaces += inner if len(inner) == 1 else []
    if not 0 < len(spaces) <= MOST_SPACES:
        raise SpaceError(
            f"{folder}: expected 1 to {MOST_SPACES} vector files, or folders that hold one each, got"
            f" {len(spaces) or 'none'}; name one of the files, or another folder"
        )
    return sorted(spaces, key=natural)


def vector_places(folder: Path) -> Iterator[Path]:
    """Vector files, and folders that are one space, without the files in these."""
    spaces: set[Path] = set()
    for pattern in ("*", "*/*", "*/*/*"):
        for path in sorted(folder.glob(pattern), key=natural):
            if path.parent in spaces or not access.may_read(path):
                continue
            if path.is_dir() and is_one_space(path):
                spaces.add(path)
            if path in spaces or (suffix_of(path) and path.is_file()):
                yield path


def read_parts(
    folder: Path,
    read: Callable[[Path, int | None], tuple[Any, dict[str, Any]]],
    limit: int | None,
    max_bytes: int,
) -> tuple[Any, dict[str, Any]]:
    """The joined vectors and columns of `read(part, limit)` of a folder's parts; mapped if all are."""
    vectors, columns, n = [], {}, 0
    for part in parts_of(folder):
        if n == limit:
            break
        rows, cells = read(part, None if limit is None else limit - n)
        got = rows.shape[1], sorted(cells)
        before = (vectors[0].shape[1], sorted(columns)) if vectors else got
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


def _vector_files(folder: Path, is_space: Callable[[Path], bool]) -> list[Path]:
    spaces = list(islice(filter(is_space, _files(folder)), MOST_SPACES + 1))
    # Texts and tables count only if no other file holds vectors.
    return [path for path in spaces if path.suffix.lower() not in _TEXTS] or spaces


def _files(folder: Path) -> list[Path]:
    children = (path for path in sorted(folder.iterdir(), key=natural) if not path.name.startswith("."))
    # Links that lead out of the folder are refused.
    return [path for path in children if access.beside(folder / "x", path) and path.is_file()]


# Files

FILE_OPTIONS = (*OPTIONS.values(), "ignore", "encoding", "matrix", "metadata", "ids", "invalid", "duplicates")


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
    encoding: str = "",
    matrix: str | None = None,
    invalid: Literal["error", "drop"] = "error",
    duplicates: Literal["error", "first"] = "error",
    max_bytes: int | None = None,
    map_from: int = MAP_FROM,
    store: Store | None = None,
) -> LatentSpace:
    """Load the space in a file; its suffix determines the format.

    Vectors of a large .npy, .safetensors or .arrow file of floats stay on disk, and rows are read on use;
    those of a large .parquet file are decoded once, into the store. Without ids the rows are "0", "1", … With
    RELSCOPE_CONFINED=1 (the app and the commands) files are parsed in a confined process.

    Parameters
    ----------
    path : str or Path
        A file, or a folder of `datasets.save_to_disk` or of shards; the formats are above.
    name, limit : str, int, optional
        The name, by default the file's without its suffix; the number of rows to read, from the first.
    ids : sequence of str or "rows", optional
        Ids instead of the file's; "rows": the row numbers, with the file's ids as payload.
    metadata : str or Path, optional
        A .csv, .tsv or .parquet file with ids, labels and counts. It is joined by ids if both files have
        them; otherwise by order, one row per vector, with a warning and a `note` of the space.
    id_column, label_column, count_column : str, optional
        Columns of the table, or of `metadata`; by default chosen by name or kind.
    text_column, picture_column, ignore : str, optional; sequence of str
        Columns that the app shows and that are not loaded; columns to leave out.
    encoding : str
        Encoding of a .csv or .tsv file, or of `metadata`; default UTF-8 or the likely one, named in `note`.
    matrix : str, optional
        The array or tensor to read if a file has several.
    invalid, duplicates : "error", or "drop" and "first"
        For rows that are not finite, and for repeated ids; a warning counts dropped rows.
    max_bytes : int, optional
        Limit of memory for vectors (as float32) and ids; default 8 GiB, but at most 60 % of the free memory.
    map_from, store : int; Store, optional
        File size in bytes from which vectors stay on disk; the store for their lengths, digests and decoded
        vectors, by default the environment's.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> from relcore import load_space
    >>> path = mkdtemp() + "/words.npz"
    >>> np.savez(path, vectors=np.eye(3), ids=["king", "queen", "river"])
    >>> load_space(path, limit=2).ids.tolist()
    ['king', 'queen']
    """
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise SpaceError(f"limit: expected a whole number of rows, at least 1, got {limit!r}")
    need_one_of("invalid", invalid, ("error", "drop"))
    need_one_of("duplicates", duplicates, ("error", "first"))
    roles = id_column, label_column, count_column, text_column, picture_column
    choices = Choices(*roles, tuple(ignore), encoding)
    source = _source(access.expanded(path), limit, choices, matrix, metadata, max_bytes)
    read, name = source.read(map_from, store), name or source.name
    arguments, notes = _named_rows(source, *read, ids, metadata, choices, duplicates)
    if invalid == "drop" or duplicates == "first":
        arguments = _without_bad_rows(arguments, name, invalid, duplicates, notes)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    space = LatentSpace(**arguments, name=name)
    space.note = "; ".join(notes)
    return space


@dataclass(frozen=True)
class _Source:
    """A file, or the parts of a folder, with its format and the request."""

    path: Path
    parts: list[Path]
    of: Format
    stamps: list[FileStamp]
    request: Request

    @property
    def stem(self) -> str:
        return self.path.name[: -len(suffix_of(self.path))]

    @property
    def name(self) -> str:
        return self.path.parent.name if self.parts else self.stem

    def read(self, map_from: int, store: Store | None) -> tuple[Any, dict[str, Any]]:
        """The vectors, and the other columns."""
        on_disk = self.of.has_regions and sum(stamp.size for stamp in self.stamps) >= map_from

        def part(path: Path, most: int | None) -> tuple[Any, dict[str, Any]]:
            return _read(path, self.of, replace(self.request, limit=most), on_disk, store)

        try:
            if self.parts:
                read = read_parts(self.path.parent, part, self.request.limit, self.request.max_bytes)
            else:
                read = part(self.path, self.request.limit)
        except PermissionError as error:
            raise SpaceError(
                f"{self.path}: expected a file that can be read, got {error.strerror}; change its permissions"
            ) from error
        for stamp in self.stamps:  # several reads may see different contents if the file changed meanwhile
            stamp.need_same()
        return read

    def items_for_rows(self, what: str, items: Sequence[Any], n: int) -> Sequence[Any]:
        """The items for the n rows; surplus items are cut if there is a limit, else a wrong number is an
        error."""
        if len(items) != n and not self.request.limit == n < len(items):
            raise SpaceError(
                f"{self.path.name}: expected {n} {what}, one per row, got {len(items)}; write {what} and"
                " vectors from the same rows"
            )
        return items if len(items) == n else items[:n]


def _source(
    path: Path,
    limit: int | None,
    choices: Choices,
    matrix: str | None,
    metadata: str | Path | None,
    max_bytes: int | None,
) -> _Source:
    parts = parts_of(path) if path.is_dir() else []
    path = parts[0] if parts else path
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
                f" {suffix_of(path)}; leave it out"
            )
    stamps = [FileStamp.of(part) for part in parts or [path]]
    if metadata is not None:  # metadata have the chosen columns; text in the table itself is ignored
        columns = column_roles(path).columns if of.has_columns else ()
        choices = Choices(ignore=tuple(column.name for column in columns if column.reason == TEXT_OR))
    if max_bytes is None:
        max_bytes = usable_bytes() if sum(stamp.size for stamp in stamps) > 1 << 20 else 8 << 30
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
    """The arguments of a `LatentSpace` from the file, files beside it and its metadata; and notes."""
    path, limit, n = source.path, source.request.limit, len(vectors)
    by_number = isinstance(ids, str) and ids == "rows"
    if ids is not None and not by_number:
        columns["ids"] = ids
    own_ids: Sequence[str] | None = None
    if "ids" in columns:
        own_ids = checked_ids(source.items_for_rows("ids", columns["ids"], n), path.name)
    elif (lines := sidecar_lines(path, "ids", n, limit)) is not None:
        own_ids = checked_ids(lines, f"{source.stem}.ids.txt")
    notes = [f"{path.name}: {note}" for note in dict.fromkeys(columns.pop("note", ()))]
    if metadata is not None:
        table = access.regular_file(access.expanded(metadata))
        bounds = {"limit": limit, "max_bytes": source.request.max_bytes, "choices": choices}
        of_table, note = read_metadata(table, n, of=path.name, ids=own_ids, **bounds, duplicates=duplicates)
        columns |= of_table
        own_ids = of_table.get("ids", own_ids)
        notes += [note] * bool(note)
    own_ids = RowNumbers(n) if own_ids is None else own_ids
    if "labels" in columns:
        labels = checked_labels(source.items_for_rows("labels", columns["labels"], n), path.name)
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


def _read(
    path: Path, of: Format, request: Request, on_disk: bool, store: Store | None
) -> tuple[Any, dict[str, Any]]:
    # With `on_disk` the rows are mapped, or decoded once into the store, if possible.
    vectors, columns, file = None, {}, OnDisk.of(path, store) if on_disk else None
    regions = file and confined.run(of.regions, path, Regions | None, of.libraries, request=request)
    if regions and (plugin := FORMATS[suffix_of(path)].plugin):  # decoded rows depend on the version
        regions = replace(regions, region=(*regions.region, plugin))
    if regions and regions.parts:
        vectors, columns = file.mapped(regions), regions.columns
    elif regions:
        unbounded = replace(request, max_bytes=1 << 62)
        blocks = confined.stream(of.blocks, path, of.libraries, request=unbounded)
        vectors, columns = file.decoded(regions, blocks), regions.columns
    if vectors is None:
        blocks, n = confined.stream(of.blocks, path, of.libraries, request=request), 0
        vectors = np.empty((0, 0), np.float32)
        while True:  # a `for` loop would lose the generator's return value
            try:
                block = next(blocks)
            except StopIteration as stop:
                columns = stop.value or {}
                break
            d, end = vectors.shape[1] or block.shape[1], n + len(block)
            check_size(path, end, d, request.max_bytes)
            if end > len(vectors):  # resizing a large block remaps its pages without a copy
                vectors.resize((end * 9 // 8, d), refcheck=False)
            vectors[n:end], n = block, end
        if not n:
            raise SpaceError(
                f"{path.name}: expected rows of numbers, got none; look at how the file was written"
            )
        vectors.resize((n, d), refcheck=False)
        vectors.flags.writeable = False
    if "ids" not in columns and (tokens := columns.get("tokens")):
        ids = token_ids(path, tokens[1])
        columns = columns if ids is None else columns | {"ids": ids[: len(vectors)]}
    return vectors, columns


def column_roles(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """The role of each column of a table of vectors, by its header and first rows.

    Columns that `choices` does not name get a role by name or kind; other columns are "unclear".

    Raises
    ------
    SpaceError
        Not such a table, repeated names, rows of unequal length, or chosen columns that do not exist.

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
        keep = np.isfinite(vectors.lengths) if on_disk else np.isfinite(vectors).all(axis=1)
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
    for what, column in columns.items() if not keep.all() else ():
        if column is not None:
            arrays = isinstance(column, np.ndarray | MappedRows)
            columns[what] = (column if arrays else np.array(column, dtype=object))[keep]
            columns[what].flags.writeable = False
    return columns


def _left_out(name: str, why: str, keep: np.ndarray) -> list[str]:
    n = len(keep) - int(keep.sum())
    return [f"{name}: left out {n} of {len(keep)} rows with {why}"] if n else []


# Headers


def shape_of(path: Path) -> Shape | None:
    """The shape (n, d) if the header tells it; None for a file or folder that is not a space."""
    if not path.is_dir():
        return description_of(path).shape
    with suppress(SpaceError, OSError):
        shapes = [description_of(part).shape for part in parts_of(path)]
        if shapes and None not in shapes:
            lengths = [n for n, _ in shapes]
            return None if None in lengths else sum(lengths), shapes[0][1]
    return None


def description_of(path: Path) -> Description:
    """The description of a file from its header; an empty one for a damaged file or one that is not a
    space."""
    return descriptions_of([path]).get(path, Description())


def descriptions_of(paths: Sequence[Path]) -> dict[Path, Description]:
    """Path → description of several files, from one process, which is replaced if a file crashes it."""
    waiting = [path for path in paths if suffix_of(path) is not None and path.is_file()]
    libraries = {library for path in waiting for library in format_of(path).libraries}
    described: dict[Path, Description] = {}
    while waiting:
        rest = iter(waiting)
        with suppress(SpaceError, OSError):
            names = [str(path.absolute()) for path in waiting]
            for item in confined.stream(describe_all, waiting[0], sorted(libraries), waiting, paths=names):
                described[next(rest)] = msgspec.convert(item, Description, from_attributes=True)
        if (ended := next(rest, None)) is not None:
            described[ended] = Description()
        waiting = list(rest)
    return described


# Files beside the vectors: lists of ids and labels, the vocabulary of a model


def sidecar_lines(path: Path, what: str, n: int, limit: int | None) -> list[str] | None:
    """The n lines of `<stem>.ids.txt` or `<stem>.labels.txt` without empty ones at the end; None if no
    file."""
    sidecar = path.with_name(f"{path.name[: -len(suffix_of(path))]}.{what}.txt")
    if sidecar == path or not sidecar.is_file() or not access.beside(path, sidecar):
        return None
    size = sidecar.stat().st_size
    if 4 * size > usable_bytes():
        raise SpaceError(
            f"{sidecar.name}: expected {what} that fit into memory, got {readable(size)}; cut it"
        )
    lines = lines_of(sidecar.read_bytes(), sidecar.name, what)
    while len(lines) > n and (limit is not None or not lines[-1]):
        lines.pop()
    if len(lines) != n:
        raise SpaceError(
            f"{sidecar.name}: expected {n:,} {what}, one per row of {path.name}, got {len(lines):,}; write"
            f" {what} and vectors from the same rows"
        )
    return lines


def token_ids(path: Path, n: int) -> list[str] | None:
    """Tokens of n rows of embeddings, from tokenizer.json, vocab.json or vocab.txt beside the file, if any.

    Rows without a token, which pad the number of rows, are called "[row 30522]". Raises SpaceError for a
    vocabulary that cannot be read, or has more tokens than rows.
    """
    places = map(path.with_name, ("tokenizer.json", "vocab.json", "vocab.txt"))
    vocabulary = next((item for item in places if item.is_file() and access.beside(path, item)), None)
    if vocabulary is None:
        return None
    tokens = _numbered(vocabulary)
    if not all(type(number) is int and isinstance(token, str) for number, token in tokens.items()):
        raise SpaceError(
            f"{vocabulary.name}: expected tokens with their whole numbers, got others; copy it again"
        )
    if tokens and (min(tokens) < 0 or max(tokens) >= n):
        raise SpaceError(
            f"{vocabulary.name}: expected at most {n:,} tokens, one per row of {path.name}, got number"
            f" {max(tokens):,}; it belongs to another model: remove it, or copy the right one there"
        )
    named = (tokens.get(row, "") for row in range(n))
    return [token if token.strip(" \t\r\n") else f"[row {row}]" for row, token in enumerate(named)]


def _numbered(path: Path) -> dict[Any, Any]:
    if path.name == "vocab.txt":
        return dict(enumerate(read_lines(path, "one token per line")))
    words, added = read_file(path, "a vocabulary"), ()
    try:
        if path.name == "tokenizer.json":
            words, added = words["model"]["vocab"], words.get("added_tokens") or ()
        if isinstance(words, list):
            words = {item[0]: number for number, item in enumerate(words)}
        numbered = {number: token for token, number in words.items()}
        return numbered | {item["id"]: item["content"] for item in added}
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise SpaceError(
            f"{path.name}: expected tokens with their numbers, got another file; copy it again"
        ) from error
