"""Rows of Arrow batches as blocks, and blocks as Arrow tables: what Parquet and LanceDB have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from relcore.indexes.index import Block, Payload
from relcore.sources.parquet_table import floats, holds_vectors, stored
from relcore.sources.row_values import checked_ids
from relcore.spaces import SpaceError, quote

ID, VECTOR = "id", "vector"
_ID_NAMES = (ID, "ids", "_id", "key")


def vector_column(name: str, schema: Any, chosen: str) -> str:
    """The column of vectors: the chosen one, else the only one.

    Raises
    ------
    SpaceError
        There is none, or there are several.
    """
    found = [one.name for one in schema if holds_vectors(one.type)]
    if chosen in found:
        return chosen
    if chosen or len(found) != 1:
        expected = f"a column {chosen!r:.80} with a vector per row" if chosen else "one column with a vector per row"
        raise SpaceError(f"{name}: expected {expected}, got {quote(found) or 'none'}; choose one after #")
    return found[0]


def id_column(schema: Any) -> str:
    """The column of ids: ``id`` or a similar name, of text or whole numbers; "" where there is none."""
    import pyarrow as pa

    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    fit = {one.name for one in schema if any(kind(one.type) for kind in kinds)}
    return next((name for name in _ID_NAMES if name in fit), "")


def block_of(name: str, batch: Any, first: int, vectors: str, ids: str, width: int) -> Block:
    """A record batch as a block; rows without a column of ids are numbered from `first` on."""
    found = matrix_of(name, batch.column(vectors), first, width)
    names = [str(row) for row in range(first, first + len(found))]
    if ids:
        names = checked_ids(batch.column(ids).to_pylist(), name)
    others = [column for column in batch.schema.names if column not in (vectors, ids)]
    payload = tuple(batch.select(others).to_pylist()) if others else ()
    return Block(names, found, payload)


def matrix_of(name: str, column: Any, first: int, width: int) -> np.ndarray:
    """A column of vectors as (m, width) float32; `first` is the number of its first row, for the error.

    Raises
    ------
    SpaceError
        A row of another width.
    """
    import pyarrow.compute as compute

    column = stored(column)
    lengths = compute.fill_null(compute.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    odd = np.flatnonzero(lengths != width)
    if len(odd):
        raise SpaceError(
            f"{name}, row {first + odd[0] + 1:,}: expected a vector of {width:,} numbers, got {lengths[odd[0]]:,}; mend or "
            "remove the row"
        )
    return floats(column.flatten()).reshape(-1, width)


def table_of(name: str, block: Block, schema: Any = None) -> Any:
    """A block as an Arrow table: id, payload, vector; `schema` is that of the first block.

    Raises
    ------
    SpaceError
        A payload whose columns change their type on the way, or have the names of ours.
    """
    import pyarrow as pa

    payload = _payload_table(name, block.payload, schema)
    columns = {ID: pa.array(block.ids, pa.string())}
    columns |= {key: payload.column(key) for key in payload.schema.names}
    width = block.vectors.shape[1]
    values = pa.array(np.ascontiguousarray(block.vectors, np.float32).ravel())
    columns[VECTOR] = pa.FixedSizeListArray.from_arrays(values, width)
    return pa.table(columns)


def _payload_table(name: str, payload: Payload, schema: Any) -> Any:
    import pyarrow as pa

    keys = sorted({key for one in payload for key in one})
    if taken := {ID, VECTOR} & set(keys):
        raise SpaceError(f"{name}: expected a payload without columns {quote(sorted(taken))}, got them; rename them first")
    if schema is None:
        found = pa.Table.from_pylist([{key: one.get(key) for key in keys} for one in payload]) if keys else pa.table({})
        absent = [field.name for field in found.schema if pa.types.is_null(field.type)]  # the first block tells no type
        return found.cast(pa.schema([pa.field(f.name, pa.string() if f.name in absent else f.type) for f in found.schema]))
    fields = [field for field in schema if field.name not in (ID, VECTOR)]
    try:
        if unknown := set(keys) - {field.name for field in fields}:
            raise pa.ArrowInvalid(f"{quote(sorted(unknown))} not in the rows before")
        return pa.Table.from_pylist(list(payload), schema=pa.schema(fields)) if fields else pa.table({})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SpaceError(
            f"{name}: expected the payload of all rows in the columns of the first ones, got {error!s:.200}; write to a store "
            "that takes any payload, as qdrant"
        ) from error


def tables_of(name: str, blocks: Iterable[Block], schema: Any = None) -> Iterator[Any]:
    """A table per block, all of one schema."""
    for block in blocks:
        table = table_of(name, block, schema)
        schema = table.schema
        yield table


def regrouped(tables: Iterable[Any], size: int) -> Iterator[Any]:
    """The same rows in tables of at least `size`, but for the last."""
    import pyarrow as pa

    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(one.num_rows for one in held) >= size:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
