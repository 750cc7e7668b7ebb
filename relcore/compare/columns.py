"""Columns by which the rows of two matched spaces are coloured: numbers, classes, clusters, agreement of
neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.cells import numbers_in, quantities_in
from relcore.catalog.row_tables import TableColumns
from relcore.compare.agreement import AGREEMENT_ROWS, neighbour_agreement
from relcore.figures.colorings import EDGES, ColorScale, column_title, number_text
from relcore.maps.pane_maps import COLUMN, NUMBERS, View, ViewSpec
from relcore.spaces.matching import Match, distinct_names, short_names
from relcore.spaces.space import LatentSpace

_COMPARED = 250_000_000  # number of pairs of rows that are compared in about a second
MOST_CLASSES = 20  # as many classes as there are colours that people can distinguish
_MOST_READ = 24  # number of columns in the cache
Cells = Callable[[str], pd.Series]
Tags = tuple[tuple[str, tuple[str, ...]], ...]  # names of sets of rows, each with the ids of its rows
TAGS = "tag"  # the column with the names of all tags of a row


def columns_of(match: Match) -> list[str]:
    """The names of the numeric columns of a pair: those that every pair has, and counts if they are known."""
    return [name for name in NUMBERS if name != "counts" or match.source.counts is not None]


def cells_of(
    source: SpaceSpec,
    target: SpaceSpec,
    load: Callable[[SpaceSpec], LatentSpace],
    tables: Callable[[SpaceSpec], TableColumns] | None = None,
) -> Cells:
    """Return a function that reads a column by name from the tables of the two spaces; if both have it, from
    that of the source. `tables` returns the table of a space, for example one that is already open."""

    tables = tables or cache(TableColumns)

    @lru_cache(_MOST_READ)
    def cells(name: str) -> pd.Series:
        spec = target
        if name in tables(source).names:
            spec = source
        return tables(spec).read(name, load(spec))

    return cells


def tag_columns(tags: Tags) -> list[str]:
    """The names of the columns of tags: one per tag and, if there are several, `TAGS`."""
    names = [name for name, _ in tags]
    if len(names) > 1:
        names.append(TAGS)
    return names


def with_tags(cells: Cells, tags: Tags, ids: pd.Index) -> Cells:
    """The function `cells` with the columns of tags added, for the rows with these ids.

    The column of a tag has the name of the tag for its rows, and None for the others. The column `TAGS` has
    the names of all tags of a row, joined by " + ".
    """

    def column(name: str) -> pd.Series:
        if name not in tag_columns(tags):
            return cells(name)
        named = [one for one in tags if name in (TAGS, one[0])]
        return pd.Series(_names_of_tags(named, ids), index=ids, dtype=object)

    return column


def _names_of_tags(tags: Iterable[tuple[str, tuple[str, ...]]], ids: pd.Index) -> np.ndarray:
    """The names of the tags of each row, joined by " + ", (n,); None for a row without a tag."""
    names = np.full(len(ids), None, dtype=object)
    for name, tagged in tags:
        rows = np.flatnonzero(ids.isin(list(tagged)))
        for row in rows.tolist():
            names[row] = " + ".join(filter(None, (names[row], name)))
    return names


def values_of(match: Match, column: str, rows: np.ndarray) -> np.ndarray:
    """The number of each row in this column, an array (m,); NaN if it was not computed.

    Raises
    ------
    SpaceError
        The column is "counts", and the space has none.
    """
    if column == "counts" and match.source.counts is None:
        raise SpaceError(f"color_by 'counts': {match.source.name!r} has no counts; colour by pivots")
    if column == "agreement":
        return _agreement(match, rows)
    if column == "target norm":
        values = match.target.norms
    elif column == "counts":
        values = match.source.counts
    else:
        values = match.source.norms
    return np.asarray(values[rows], dtype=np.float64)


def with_color_column(match: Match, view: View, spec: ViewSpec, cells: Cells | None = None) -> View:
    """The view (drawn rows and their colours), coloured by the column that `spec` names. For "pivots" and
    "labels", it is unchanged.

    Raises
    ------
    SpaceError
        A column that is not there.
    """
    if spec.color_by in NUMBERS:
        values = values_of(match, spec.color_by, view.rows)
        return _on_scale(view, values, column_title(spec.color_by, models(match)))
    if not spec.color_by.startswith(COLUMN):
        return view
    name = spec.color_by.removeprefix(COLUMN)
    content = cells_in(match, view.rows, name, cells)
    if isinstance(content, np.ndarray):
        return _on_scale(view, content, name)
    categories, kept, about = classes_of(content)
    return View(view.rows, categories, kept, about=f"{name}: {about}" if about else "", column=name)


def cells_in(match: Match, rows: np.ndarray, name: str, cells: Cells | None) -> np.ndarray | list[str]:
    """The cells of a column in the tables of the spaces, at these rows (m,): numbers, with NaN for empty
    cells; or names of classes, with "" for empty cells.

    Raises
    ------
    SpaceError
        A column that is not there.
    """
    if cells is None:
        raise SpaceError(f"color_by: expected spaces with a column {name!r:.80}, got spaces without a table")
    column = _at(match, rows, cells(name))
    numbers = quantities_in(column)
    if numbers is not None:
        return numbers
    codes, distinct = pd.factorize(column)
    return np.array([*map(_class, distinct), ""], dtype=object)[codes].tolist()


def _at(match: Match, rows: np.ndarray, column: pd.Series) -> np.ndarray:
    """The cells of a column at rows (m,) of the pair; None for rows without a cell. If an id appears more
    than once in the table, its first cell is used."""
    ids = match.source.index
    if not column.index.equals(ids):  # a comparison is ten times as fast as looking ids up
        column = column[~column.index.duplicated()].reindex(ids)
    return column.to_numpy()[rows]


def rows_table(
    match: Match,
    rows: np.ndarray,
    tables: Sequence[str] = (),
    cells: Cells | None = None,
    texts: Callable[[Sequence[str]], list[str]] | None = None,
    tags: Tags = (),
) -> pd.DataFrame:
    """A table of rows (m,) with all known columns: id, text, label, count, whether a row has each tag, and
    the columns of the tables of both spaces.

    Raises
    ------
    SpaceError
        A column that is not there.
    """
    space = match.source
    ids = match.ids[rows]
    columns: dict[str, Any] = {"id": ids}
    if texts is not None:
        columns["text"] = texts(ids.tolist())
    if space.labels is not None:
        columns["label"] = space.labels[rows]
    if space.counts is not None:
        columns["count"] = space.counts[rows]
    for name, tagged in tags:
        columns[name] = pd.Index(ids).isin(list(tagged))
    for name in tables:
        columns.setdefault(name, _at(match, rows, cells(name)))
    return pd.DataFrame(columns).infer_objects()


def told_columns(match: Match, view: View, spec: ViewSpec, tags: Tags) -> Callable[[], dict[str, np.ndarray]]:
    """Return a function that makes columns of the drawn rows (m,) that the colours do not show: one for each
    tag, which says whether a row has it, and the label if there are tags or the colours show another column.
    """

    def columns() -> dict[str, np.ndarray]:
        told: dict[str, np.ndarray] = {}
        of_others = spec.color_by.startswith(COLUMN) or (bool(tags) and spec.color_by != "labels")
        if of_others and match.source.labels is not None:
            told["label"] = match.source.labels[view.rows]
        ids = pd.Index(match.ids[view.rows])
        for name, tagged in tags:
            told[name] = ids.isin(list(tagged))
        return told

    return columns


def classes_of(names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...], str]:
    """Three values: the class of each row (m,), −1 for "" and for rare classes; the names of the classes; and
    a note if classes are left out because there are more than `MOST_CLASSES`."""
    counts = Counter(name for name in names if name)
    kept = sorted(counts, key=lambda name: (-counts[name], name))
    about = ""
    if len(kept) > MOST_CLASSES:
        kept = kept[: MOST_CLASSES - 1]
        about = f"the {len(kept)} most frequent of {len(counts):,} values, the rest as other"
    numbers = numbers_in(kept)
    if numbers is None:
        kept.sort()
    else:
        sizes = dict(zip(kept, numbers.tolist(), strict=True))
        kept.sort(key=lambda name: (sizes[name], name))
    places = {name: place for place, name in enumerate(kept)}
    return np.array([places.get(name, -1) for name in names], dtype=np.int64), tuple(kept), about


def _on_scale(view: View, values: np.ndarray, title: str) -> View:
    scale = ColorScale.of(values, title)
    low = number_text(scale.low)
    high = number_text(scale.high)
    kind = ""
    if scale.logarithmic:
        kind = ", logarithmic"
    about = f"colours from {low} to {high} ({EDGES[0]}st to {EDGES[1]}th percentile{kind})"
    return View(view.rows, scale.steps(values), (), scale, values, f"{title}: {about}")


def _class(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    whole = isinstance(cell, float) and cell.is_integer()
    return " ".join(str(int(cell) if whole else cell).split())


def agreement_rows(n: int) -> int:
    """The number of rows whose neighbourhoods are compared. In larger spaces it is smaller, because each row
    takes longer."""
    return int(np.clip(_COMPARED // n, *AGREEMENT_ROWS))


def _agreement(match: Match, rows: np.ndarray) -> np.ndarray:
    compared = rows
    most = agreement_rows(len(match))
    if len(rows) > most:
        compared = rows[np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))]
    table = neighbour_agreement(match, compared)
    values = np.full(len(match), np.nan)
    values[table.row] = table.overlap
    return values[rows]


def class_numbers(labels: np.ndarray) -> tuple[np.ndarray, list[str]]:
    names = sorted(set(labels) - {""})
    numbers = {name: number for number, name in enumerate(names)} | {"": -1}
    return np.array([numbers[label] for label in labels]), names


def models(match: Match) -> tuple[str, ...]:
    return short_names(distinct_names((match.source, match.target)))[0]
