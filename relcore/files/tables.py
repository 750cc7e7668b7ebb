"""Table files (`TABLES`), read batch by batch once the role of every column is clear; see `columns`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.text import visible
from relcore.files.arrow import ARROW, ArrowTable, check_account
from relcore.files.columns import EMPTY, NO_CHOICES, Choices, Columns
from relcore.files.delimited import (
    MISSING,
    NUMBER,
    batches,
    delimited_columns,
    fault,
    line_of,
    number_in_text,
)
from relcore.files.on_disk import OnDisk
from relcore.files.parquet import check_stored, floats, holds_vectors, parquet_columns, stored
from relcore.files.rows import GrowingMatrix, Rows
from relcore.runs.digest import StoreError
from relcore.spaces.rows import MappedRows

# Vectors of large tables on disk: of an .arrow file where they lie, of a .parquet file decoded once into the
# store.


def mapped_column(table: ArrowTable, name: str, n: int, on_disk: OnDisk) -> MappedRows | None:
    """The first n vectors of a column of lists as maps, one per batch; None where they are no such floats, or
    some are missing.

    Raises
    ------
    pyarrow.ArrowException
        A damaged file.
    """
    parts, rows = [], 0
    for column in table.mapped_batches(name):
        part = _matrix(column)
        if part is None or (parts and part.shape[1] != parts[0].shape[1]):
            return None
        parts.append(part[: n - rows])
        rows += len(parts[-1])
        if rows == n:
            break
    return on_disk.rows(parts, name) if rows else None


def decoded(
    path: Path, names: tuple[str, ...], shape: tuple[int, int], blocks: Iterable[np.ndarray], on_disk: OnDisk
) -> MappedRows | None:
    """The vectors (n, d) of these columns as a map of an entry of the store, which is written from `blocks`
    the first time.

    None where the store cannot keep them. An error of the blocks is raised; then nothing is kept.
    """
    key = on_disk.decoded_key(names, shape)
    if not key or 8 * shape[0] * shape[1] > on_disk.store.limit_bytes:
        return None
    with suppress(StoreError):
        if (found := on_disk.store.mapped(key)) is None:
            on_disk.store.put_matrix(key, blocks, shape, {"rows of": path.name})
            on_disk.need_unchanged()
            found = on_disk.store.mapped(key)
        if found is not None and found.arrays["vectors"].shape == shape:
            return on_disk.copied_rows([found.arrays["vectors"].view(np.ndarray)], "decoded", names)
    return None


def _matrix(column: Any) -> np.ndarray | None:
    """The lists of an Arrow array as a matrix (m, d) in its own memory, where all have one length and
    nothing is missing.
    """
    import pyarrow as pa

    kind = column.type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not lists or not pa.types.is_floating(kind.value_type) or column.null_count or not len(column):
        return None
    values = column.flatten()
    lengths = (
        {kind.list_size}
        if pa.types.is_fixed_size_list(kind)
        else set(np.diff(column.offsets.to_numpy()).tolist())
    )
    if values.null_count or len(lengths) > 1 or lengths == {0}:
        return None
    found = values.to_numpy(zero_copy_only=True).reshape(len(column), lengths.pop())
    return found if found.flags.aligned else None


TABLES = (".parquet", ".csv", ".tsv", *ARROW)
_TYPED = (".parquet", *ARROW)
_BATCH_BYTES = 1 << 23
_BATCH_ROWS = 4096
_TEXTS = ("ids", "labels", "counts")


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
    if path.suffix.lower() in _TYPED:
        with opened_table(path) as file:
            return parquet_columns(path.name, file, choices)
    try:
        return delimited_columns(path, choices)[1]
    except OSError as error:
        raise SpaceError(
            f"{path.name}: expected a file that can be read, got {error.strerror}; change its permissions"
        ) from error


def read_delimited(
    path: Path, *, limit: int | None = None, max_bytes: int, choices: Choices = NO_CHOICES
) -> Rows:
    """A .csv or .tsv file. The first hundred rows tell the roles; what breaks them later is an error with its
    line.

    An empty cell or NA in a number column is NaN, in a label no label.
    """
    import pyarrow as pa

    header, columns = delimited_columns(path, choices)
    columns.check(path.name)
    types = {place: pa.float32() for place in columns.places("dimension")}
    types |= {place: pa.string() for place in (*_texts(columns), *columns.unsure)}
    seen = dict.fromkeys(columns.unsure, 0)

    def watched() -> Iterator[dict[int, Any]]:
        before = 0
        for batch in batches(path, header, len(columns.columns), types, _BATCH_BYTES):
            for place in seen:
                read = batch[place] if limit is None else batch[place][: limit - before]
                seen[place] += _check_text(path, columns, place, read, before)
            before += len(next(iter(batch.values())))
            yield batch

    try:
        rows = _collect(path, watched(), columns, limit, max_bytes)
    except pa.ArrowInvalid as error:
        raise fault(path, columns) or SpaceError(
            f"{path.name}: expected a table, got {error!s:.200}; mend the row"
        ) from error
    ids = columns.place("ids")
    if ids in seen and 2 * seen[ids] >= len(rows.vectors):
        reason = f"expected text, got numbers in {seen[ids]:,} of {len(rows.vectors):,} rows"
        raise SpaceError(f"{path.name}, {replace(columns.columns[ids], reason=reason).fault}")
    labels = rows.labels
    return (
        rows
        if labels is None
        else Rows(rows.vectors, rows.ids, ["" if one in MISSING else one for one in labels], rows.counts)
    )


def read_typed(
    path: Path,
    *,
    limit: int | None = None,
    max_bytes: int,
    choices: Choices = NO_CHOICES,
    on_disk: OnDisk | None = None,
) -> Rows:
    """A .parquet or .arrow file. Number columns, or one column of lists of equal length, are the vectors.

    With `on_disk` the lists of an .arrow file are mapped, and the vectors of a .parquet file are decoded once
    into the store.
    """
    with opened_table(path) as file:
        columns = parquet_columns(path.name, file, choices)
        columns.check(path.name)
        place_of = {one: place for place, one in enumerate(file.schema_arrow.names)}
        check = check_account if isinstance(file, ArrowTable) else check_stored
        width = check(path, file, columns, limit, max_bytes, on_disk is not None)
        at_once = min(_BATCH_ROWS, limit or _BATCH_ROWS, max(1, _BATCH_BYTES // (4 * width)))

        def batches_of(places: Sequence[int]) -> Iterator[dict[int, Any]]:
            names = [columns.columns[place].name for place in places]
            for batch in file.iter_batches(at_once, columns=names, use_threads=False) if names else ():
                yield {
                    place_of[one]: column
                    for one, column in zip(batch.schema.names, batch.columns, strict=True)
                }

        dimensions, texts = columns.places("dimension"), _texts(columns)
        if on_disk is not None:
            n = file.metadata.num_rows if limit is None else min(file.metadata.num_rows, limit)
            names = tuple(columns.columns[place].name for place in dimensions)
            if isinstance(file, ArrowTable):
                vectors = mapped_column(file, names[0], n, on_disk) if len(names) == 1 and n else None
            else:
                blocks = _blocks(path, batches_of(dimensions), columns, limit)
                vectors = decoded(path, names, (n, width), blocks, on_disk) if n else None
            if vectors is not None:
                found = _text_columns(batches_of(texts), columns, limit)
                return Rows(vectors, *(found.get(columns.place(role)) for role in _TEXTS))
        return _collect(path, batches_of((*dimensions, *texts)), columns, limit, max_bytes)


@contextmanager
def opened_table(path: Path) -> Iterator[Any]:
    """The file as a `ParquetFile`, or as an `ArrowTable`, which has what is used here of one."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    arrow = path.suffix.lower() in ARROW
    try:
        if arrow:
            yield ArrowTable(path)
        else:
            with parquet.ParquetFile(
                path, pre_buffer=False
            ) as file:  # else it holds every row group that was read
                yield file
    except SpaceError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        said, kind = visible(error, 200), "an Arrow table" if arrow else "a parquet file"
        raise SpaceError(
            f"{path.name}: expected {kind}, got one that cannot be read ({said}); write or copy it again"
        ) from error


def _texts(columns: Columns) -> tuple[int, ...]:
    return tuple(place for role in _TEXTS if (place := columns.place(role)) is not None)


def _collect(
    path: Path, found: Iterator[dict[int, Any]], columns: Columns, limit: int | None, max_bytes: int
) -> Rows:
    """Rows of the batches, each a dict from column number to Arrow array, until the limit."""
    vectors, texts = GrowingMatrix(path, max_bytes), {place: [] for place in _texts(columns)}
    for block in _blocks(path, found, columns, limit, texts):
        vectors.append(block)
    if not len(vectors):
        raise SpaceError(
            f"{path.name}: expected at least one row below the column names, got none; add the rows"
        )
    return Rows(vectors.matrix(), *(texts.get(columns.place(role)) for role in _TEXTS))


def _blocks(
    path: Path,
    found: Iterator[dict[int, Any]],
    columns: Columns,
    limit: int | None,
    texts: dict[int, list[Any]] | None = None,
) -> Iterator[np.ndarray]:
    """The vectors of each batch (m, d), until the limit; the cells of the other columns go to `texts`."""
    rows = width = 0
    for batch in found:
        block = vectors_of([batch[place] for place in columns.places("dimension")], path, rows, width)
        block = block[: None if limit is None else limit - rows]
        rows, width = rows + len(block), width or block.shape[1]
        for place, cells in (texts or {}).items():
            cells += batch[place][: len(block)].to_pylist()
        if len(block):
            yield block
        if rows == limit:
            break


def _text_columns(
    found: Iterator[dict[int, Any]], columns: Columns, limit: int | None
) -> dict[int, list[Any]]:
    """The cells of the columns of ids, labels and counts, until the limit."""
    texts: dict[int, list[Any]] = {place: [] for place in _texts(columns)}
    rows = 0
    for batch in found:
        for place, cells in texts.items():
            cells += batch[place][: None if limit is None else limit - rows].to_pylist()
        rows += len(next(iter(batch.values())))
        if limit is not None and rows >= limit:
            break
    return texts


def vectors_of(columns: list[Any], path: Path, n_before: int, d: int) -> np.ndarray:
    """Arrow columns as a matrix (m, d): side by side, or the one column of lists unfolded; missing numbers
    are NaN.
    """
    import pyarrow.compute as compute

    first = stored(columns[0])
    if not holds_vectors(first.type):
        return np.column_stack([floats(column) for column in columns])
    lengths = compute.fill_null(compute.list_value_length(first), 0).to_numpy(zero_copy_only=False)
    d = d or int(lengths[0]) if len(lengths) else d
    odd = np.flatnonzero(lengths != d)
    if len(odd) or d == 0:
        row, got = (odd[0], lengths[odd[0]]) if len(odd) else (0, 0)
        raise SpaceError(
            f"{path.name}, row {n_before + row + 1}: expected a vector of {d or 'some'} numbers, got {got};"
            " mend or remove the row"
        )
    return floats(first.flatten()).reshape(-1, d)


def _check_text(path: Path, columns: Columns, place: int, cells: Any, before: int) -> int:
    """How many cells of a column are numbers; in one that is left out as text, or as empty, none may be."""
    import pyarrow.compute as compute

    column = columns.columns[place]
    numbers = (
        compute.not_equal(cells, "")
        if column.reason == EMPTY
        else compute.match_substring_regex(cells, rf"^\s*({NUMBER})\s*$")
    )
    if column.role == "left out" and (row := compute.index(numbers, True).as_py()) >= 0:
        where = f"line {line_of(path, before + row)}"
        raise SpaceError(
            f"{path.name}, {replace(column, reason=number_in_text(cells[row].as_py()), where=where).fault}"
        )
    return compute.sum(numbers).as_py() or 0
