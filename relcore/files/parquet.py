"""Tables as .parquet: what the type of each column can be, and its values as numbers or texts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.files.columns import Choices, Columns, ColumnValues, assign
from relcore.files.delimited import NUMBER, number_in_text
from relcore.files.rows import check_size, readable

_ROWS_TO_LOOK_AT = 100
BYTES = "bytes that are no text"


def parquet_columns(name: str, file: Any, choices: Choices) -> Columns:
    """The roles of the columns of an open `ParquetFile`, by their types and, for text, by the first
    hundred rows.
    """
    fields = list(file.schema_arrow)
    kinds = [_kind(field.type) for field in fields]
    found = [
        ColumnValues(field.name, *kind, whole=_is_whole(field.type))
        for field, kind in zip(fields, kinds, strict=True)
    ]
    columns = assign(name, found, choices)
    texts = [
        place
        for place, column in enumerate(columns.columns)
        if found[place].note == BYTES and column.reason != "chosen"
    ]
    if texts:
        for place in _utf8(file, texts, [fields[place].name for place in texts]):
            found[place] = replace(found[place], holds="text", note="")
        columns = assign(name, found, choices)
    guessed = [
        place
        for place, column in enumerate(columns.columns)
        if found[place].holds == "text" and not column.sure
    ]
    for place, (row, cell, only) in _numbers_as_text(file, [fields[place].name for place in guessed]).items():
        place = guessed[place]
        # Whole numbers as text are fit for ids; a column of them that is left out, or a fraction, was meant
        # as numbers.
        if not cell.isdigit() or (only and columns.columns[place].role == "left out"):
            found[place] = replace(found[place], holds="mixed", note=number_in_text(cell), where=f"row {row}")
            columns = assign(name, found, choices)
    return replace(columns, n=file.metadata.num_rows, width=_width(fields, columns))


def floats(column: Any) -> np.ndarray:
    """An Arrow array of numbers, of any of their types, as float32 (m,); missing ones are NaN, too large
    ones infinite.
    """
    import pyarrow as pa

    column = stored(column)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    with np.errstate(over="ignore"):
        return column.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)


def stored(column: Any) -> Any:
    """An Arrow array without the dictionary or the extension type around it."""
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def holds_vectors(arrow_type: Any, of: Callable[[Any], bool] | None = None) -> bool:
    """Whether a column of this type holds lists of numbers, or of those for whose type `of` is true."""
    return _is_list(arrow_type) and (of or _is_number)(arrow_type.value_type)


def _kind(arrow_type: Any) -> tuple[str, str]:
    """What a column of this type holds, and a note on it."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(arrow_type, pa.BaseExtensionType):
        shape = getattr(arrow_type, "shape", None)
        if shape is not None and len(shape) > 1:
            return "mixed", f"expected a vector per row, got an array of shape {tuple(shape)}"
        return _kind(arrow_type.storage_type)
    if types.is_dictionary(arrow_type):
        return _kind(arrow_type.value_type)
    if _is_number(arrow_type):
        return "numbers", ""
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return "text", ""
    if types.is_boolean(arrow_type):
        return "flags", ""
    if holds_vectors(arrow_type):
        return "vectors", ""
    if _is_list(arrow_type) and (_is_list(arrow_type.value_type) or types.is_boolean(arrow_type.value_type)):
        return "mixed", f"expected numbers or one list of numbers per row, got {arrow_type}"
    if (
        types.is_binary(arrow_type)
        or types.is_large_binary(arrow_type)
        or types.is_fixed_size_binary(arrow_type)
    ):
        return "other", BYTES
    return "other", f"of type {arrow_type!s:.40}"


def _is_number(arrow_type: Any) -> bool:
    from pyarrow import types

    return types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_decimal(arrow_type)


def _is_whole(arrow_type: Any) -> bool:
    from pyarrow import types

    return types.is_integer(arrow_type)


def _is_list(arrow_type: Any) -> bool:
    from pyarrow import types

    lists = (
        types.is_list,
        types.is_large_list,
        types.is_fixed_size_list,
        types.is_list_view,
        types.is_large_list_view,
    )
    return any(test(arrow_type) for test in lists)


def _width(fields: list[Any], columns: Columns) -> int | None:
    import pyarrow as pa

    place = columns.place("dimension")
    if place is None:
        return None
    kind = fields[place].type
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return kind.list_size if pa.types.is_fixed_size_list(kind) else None


def _utf8(file: Any, places: list[int], names: list[str]) -> list[int]:
    """Those of the columns of bytes whose first rows are UTF-8: older writers mark no text as such."""
    import pyarrow as pa

    batch = next(iter(file.iter_batches(_ROWS_TO_LOOK_AT, columns=names, use_threads=False)), None)
    found = []
    for place, name in zip(places, names if batch is not None else (), strict=False):
        with suppress(pa.ArrowInvalid):
            cells = stored(batch.column(name)).cast(pa.large_binary()).cast(pa.large_string())
            found += [place] * (cells.null_count < len(cells))
    return found


def _numbers_as_text(file: Any, names: list[str]) -> dict[int, tuple[int, str, bool]]:
    """Columns of text whose first rows hold a number, as place among `names` → row from 1, cell, and whether
    all are numbers.

    A fraction comes before a whole number.
    """
    import pyarrow as pa
    import pyarrow.compute as compute

    batch = (
        next(iter(file.iter_batches(_ROWS_TO_LOOK_AT, columns=names, use_threads=False)), None)
        if names
        else None
    )
    found: dict[int, tuple[int, str, bool]] = {}
    for place, name in enumerate(names if batch is not None else ()):
        cells = compute.utf8_trim_whitespace(stored(batch.column(name)).cast(pa.large_string()))
        numbers = compute.match_substring_regex(cells, f"^({NUMBER})$")
        fractions = compute.and_(numbers, compute.match_substring_regex(cells, "[^0-9]"))
        row = max(compute.index(fractions, True).as_py(), 0) or compute.index(numbers, True).as_py()
        if row >= 0 and numbers[row].as_py():
            found[place] = (row + 1, cells[row].as_py(), bool(compute.all(numbers).as_py()))
    return found


def check_stored(
    path: Path, file: Any, columns: Columns, limit: int | None, max_bytes: int, on_disk: bool = False
) -> int:
    """The width of the vectors by the file's own account, once it is known that they, unless they stay on
    disk, and their texts fit.

    A few kB can unpack to a hundred million rows, and one id to a gigabyte, so the account is read before any
    of them.
    """
    facts = file.metadata
    n = facts.num_rows if limit is None else min(facts.num_rows, limit)
    places = columns.places("dimension")
    width, texts, rows = max(1, len(places)), 0, 0
    named = {
        columns.columns[place].name
        for role in ("ids", "labels")
        if (place := columns.place(role)) is not None
    }
    chunks = {facts.schema.column(number).path: number for number in range(facts.num_columns)}
    for group in (facts.row_group(number) for number in range(facts.num_row_groups)):
        if rows >= n:
            break
        if not rows and len(places) == 1 and group.num_rows:
            name = columns.columns[places[0]].name
            own = [number for one, number in chunks.items() if one == name or one.startswith(f"{name}.")]
            width = max(1, -(-sum(group.column(number).num_values for number in own) // group.num_rows))
        texts += sum(group.column(chunks[name]).total_uncompressed_size for name in named & chunks.keys())
        rows += group.num_rows
    if not on_disk:
        check_size(path, n, width, max_bytes)
    if 3 * texts > max_bytes:  # unpacked, in Arrow's form and as Python's strings
        raise SpaceError(
            f"{path.name}: ids and labels of {readable(texts)} take {readable(3 * texts)}, more than"
            f" max_bytes = {readable(max_bytes)}; read fewer rows (limit), or allow more memory (max_bytes)"
            " if you trust the file"
        )
    return width
