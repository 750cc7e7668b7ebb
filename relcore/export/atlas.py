"""A map, its rows and their neighbours as a table for Embedding Atlas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, extra
from relcore.base.rows import unit_rows
from relcore.engine.nearest import nearest_within
from relcore.represent.similarity import mean_of
from relcore.spaces.matching import distinct_names
from relcore.spaces.space import LatentSpace

if TYPE_CHECKING:
    import pyarrow as pa


NEIGHBOURS = 15


def atlas_table(
    spaces: Sequence[LatentSpace],
    rows: np.ndarray,
    maps: Sequence[np.ndarray],
    columns: pd.DataFrame,
    k: int = NEIGHBOURS,
) -> pa.Table:
    """The rows (m,) of paired spaces as an Arrow table for Embedding Atlas.

    The table has all `columns` of these rows, the coordinates x and y on the map of the first space (m, 2 or
    more), and `neighbors`. The latter has the k nearest of these rows: their `ids` (row numbers of the table,
    from 0) and their cosine `distances` after centring. Further spaces have the columns "x_NAME", "y_NAME"
    and "neighbors_NAME". If one of the `columns` has such a name, it is renamed to "NAME (column)".

    Raises
    ------
    SpaceError
        Fewer than three rows.
    """
    with extra():
        import pyarrow as pa

    if len(rows) < 3:
        raise SpaceError(f"Embedding Atlas: expected three rows or more, got {len(rows)}; choose more")
    made: dict[str, Any] = {}
    for number, (space, name) in enumerate(zip(spaces, distinct_names(spaces), strict=True)):
        of = f"_{name}" if number else ""
        made |= {f"{axis}{of}": pa.array(maps[number][:, i]) for i, axis in enumerate("xy")}
        made[f"neighbors{of}"] = _neighbours(space, rows, min(k, len(rows) - 1))
    titles = {name: f"{name} (column)" for name in columns if name in made}
    table = pa.Table.from_pandas(columns.rename(columns=titles), preserve_index=False)
    for name, column in made.items():
        table = table.append_column(name, column)
    return table


def _neighbours(space: LatentSpace, rows: np.ndarray, k: int) -> pa.StructArray:
    import pyarrow as pa

    unit = unit_rows(space.vectors[rows], mean_of(space))
    near = nearest_within(unit, np.arange(len(rows)), k)
    cosines = np.stack([np.einsum("ij,ij->i", unit, unit[near[:, place]]) for place in range(k)], axis=1)
    offsets = pa.array(np.arange(0, near.size + 1, k, dtype=np.int32))
    lists = [
        pa.ListArray.from_arrays(offsets, pa.array(values.ravel()))
        for values in (near.astype(np.int64), np.clip(1 - cosines, 0, 2).astype(np.float32))
    ]
    return pa.StructArray.from_arrays(lists, ["ids", "distances"])
