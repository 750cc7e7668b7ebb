"""Which files belong together: a table of metadata goes with the vectors that it has as many rows as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.catalog.catalog import SpaceSpec, load, numbered_spec
from relcore.catalog.row_items import described_table, table_ids
from relcore.encoders.dataset import dataset_place
from relcore.encoders.datasets import label_columns
from relcore.files.items import ItemTable, open_table
from relcore.files.metadata import SUFFIXES, holds_vectors
from relcore.files.reading import matrices_of, shape_of, usual_of
from relcore.files.tables import MISSING
from relcore.spaces.space import LatentSpace


def is_metadata(path: Path) -> bool:
    """Whether a file is a table without vectors; False for one that cannot be read."""
    try:
        return path.suffix.lower() in SUFFIXES and path.is_file() and not holds_vectors(path)
    except SpaceError:
        return False


def n_rows(spec: SpaceSpec) -> int | None:
    """The number of rows in a file, from its header where that tells it; else it is read. None where it
    cannot be.
    """
    path = Path(spec.name)
    shape = shape_of(path)
    if shape is not None and shape[0] is not None:
        return shape[0]
    matrices = matrices_of(path)
    lengths = {matrices[name][0] for name in (usual_of(path, matrices),) if name} or {
        n for n, _ in matrices.values()
    }
    if len(lengths) == 1 and not spec.option("matrix"):
        return lengths.pop()
    try:
        return len(open_table([path])) if path.suffix.lower() in SUFFIXES else len(load(spec))
    except SpaceError:  # told when it is read
        return None


def joined(specs: Sequence[SpaceSpec], *, in_order: bool = True) -> list[SpaceSpec]:
    """The spaces of these files, in their order, each with the table of metadata that belongs to it.

    A table without vectors belongs to the vectors before it that have as many rows: to one file of the same
    name, else to the last one, and to every .npy file before that one. A table that fits none of them, or has
    options of its own, is a space. Where the order means nothing, as with files that were uploaded together,
    .npy files alone come before others.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> np.save(folder / "a.npy", np.eye(2))
    >>> _ = (folder / "meta.csv").write_text("id,genre\\nr1,jazz\\nr2,rock\\n")
    >>> (found,) = joined([SpaceSpec("file", str(folder / one)) for one in ("a.npy", "meta.csv")])
    >>> Path(found.name).name, Path(found.option("metadata")).name
    ('a.npy', 'meta.csv')
    """
    found: list[SpaceSpec] = []
    for spec in specs:
        plain_file = spec.source == "file" and not spec.options
        owners = (
            _owners(found, spec, in_order) if found and plain_file and is_metadata(Path(spec.name)) else []
        )
        found = [with_metadata(one, spec.name) if one in owners else one for one in found]
        found += [] if owners else [spec]
    return found


def _owners(before: Sequence[SpaceSpec], table: SpaceSpec, in_order: bool) -> list[SpaceSpec]:
    try:
        n, stem = len(open_table([Path(table.name)])), Path(table.name).stem
    except SpaceError:  # told when it is read
        return []
    fit = [one for one in before if one.source == "file" and not one.option("metadata") and n_rows(one) == n]
    if same := [one for one in fit if stem.startswith(Path(one.name).stem)]:
        return same[-1:]
    bare = [one for one in fit if Path(one.name).suffix.lower() == ".npy"]
    last = fit[-1:] if in_order or not bare else []
    return list(dict.fromkeys((*bare, *last)))


def with_metadata(spec: SpaceSpec, path: str, options: Sequence[tuple[str, str]] = ()) -> SpaceSpec:
    """The space with its ids, labels and counts from the table at `path`, whose columns the options
    choose.
    """
    of_table = ("ignore", "metadata", "ids")
    kept = [
        (name, value) for name, value in spec.options if name not in of_table and not name.endswith("_column")
    ]
    return replace(spec, options=(*kept, ("metadata", path), *options))


def by_rows(source: SpaceSpec, target: SpaceSpec) -> tuple[SpaceSpec, SpaceSpec]:
    """Both spaces with row numbers as ids, so that they pair by row order."""
    return numbered_spec(source), numbered_spec(target)


def is_numbered(space: LatentSpace) -> bool:
    """Whether the ids of a space are nothing but its row numbers, as they are where a file has no ids."""
    return space.ids[-1] == str(len(space) - 1) and np.array_equal(
        space.ids, np.arange(len(space)).astype(str)
    )


def pairs_by_rows(source: LatentSpace, target: LatentSpace) -> bool:
    """Whether row order is the likely way to pair two spaces: equally many rows, and just one of them with
    ids of its own.
    """
    return len(source) == len(target) and is_numbered(source) != is_numbered(target)


# More columns: what the table that came with a space tells about its rows beside ids, labels, counts and
# texts.

_MOST = 200  # columns on offer
_AT_ONCE = 4096
_TABLES = (".parquet", ".csv", ".tsv")


def more_columns(spec: SpaceSpec) -> tuple[str, ...]:
    """The columns that can colour the rows of a space: those of its metadata, its own table, or the table
    that it encodes.

    Ids, labels, counts, texts, pictures and dimensions are not among them.

    Raises
    ------
    SpaceError
        The table cannot be read, or whoever asks may not read it.
    """
    if dataset := _dataset_table(spec):
        used = {spec.dataset.column, spec.dataset.label_column}
        return tuple(name for name in label_columns(dataset.columns) if name not in used)[:_MOST]
    if spec.source != "file":
        return ()
    path, columns = described_table(spec)
    if columns is None or not columns.places("left out"):
        return ()
    table = open_table([path])
    kinds = list(table.columns.values())
    return tuple(
        columns.columns[i].name for i in columns.places("left out") if kinds[i] in ("number", "text")
    )[:_MOST]


def read_column(spec: SpaceSpec, space: LatentSpace, name: str) -> pd.Series:
    """The cells of a column by the ids of its rows; None where one is empty. `space` is what the spec loads,
    with all its rows.

    Raises
    ------
    SpaceError
        No such column, a table that cannot be read.
    """
    if name not in (known := more_columns(spec)):
        raise SpaceError(
            f"column: expected one of {quote(known) or 'none'} for {space.name!r}, got {name!r:.80}"
        )
    if dataset := _dataset_table(spec):
        rows = [int(one.rpartition("/")[2]) for one in space.ids]
        cells = _cells(dataset, name, max(rows) + 1)
        return pd.Series([cells[row] for row in rows], index=space.ids, dtype=object)
    path, columns = described_table(spec)
    table = open_table([path])
    ids = table_ids(spec, space, table, columns)
    return pd.Series(_cells(table, name, len(ids)), index=pd.Index(ids, dtype=object), dtype=object)


def _dataset_table(spec: SpaceSpec) -> ItemTable | None:
    """The table that an encoding was made of; the ids of its rows end in their number."""
    dataset = spec.dataset
    if dataset is None or dataset.source != "file":
        return None
    path = dataset_place(dataset)
    return open_table([path]) if path.suffix.lower() in _TABLES else None


def _cells(table: ItemTable, name: str, n: int) -> list[Any]:
    column = next(one for one in table.columns if one.strip() == name or one == name)
    names: Sequence[str] | None = table.class_names.get(column)
    cells: list[Any] = []
    for start in range(0, n, _AT_ONCE):
        cells += table.read(column, start, min(start + _AT_ONCE, n))
    if names:
        cells = [names[one] if isinstance(one, int) and 0 <= one < len(names) else None for one in cells]
    return [
        None if one is None or (isinstance(one, str) and one.strip() in MISSING) else one for one in cells
    ]
