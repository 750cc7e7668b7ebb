"""Facets of a pair: classes and bins of numbers by which its rows are filtered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from relcore.base.errors import SpaceError
from relcore.compare.columns import Cells, cells_in, classes_of, columns_of, values_of
from relcore.figures.scene import (
    BINS,
    NO_CODE,
    SELECTED_ROWS,
    ColorScale,
    Condition,
    Facet,
    column_title,
    passing,
)
from relcore.maps.views import COLUMN
from relcore.spaces.matching import Match

MOST_FACETS = 12
_TELLING = 0.2  # the most frequent values cover at least this share of rows; else the column is free text


def facets_of(match: Match, columns: Sequence[str], cells: Cells | None = None) -> tuple[Facet, ...]:
    """The facets of these columns over all rows, at most `MOST_FACETS`; columns of free text are left out.

    Raises
    ------
    SpaceError
        A column that is not there.
    """
    found: list[Facet] = []
    for column in columns:
        facet = _facet(match, column, cells)
        found += [facet] if facet else []
        if len(found) == MOST_FACETS:
            break
    return tuple(found)


def filter_columns(match: Match, tables: Sequence[str] = ()) -> list[str]:
    """The columns that rows can be filtered by: labels, those of `tables`, and numbers of the pair."""
    labels = ["labels"] if match.source.labels is not None else []
    numbers = [name for name in columns_of(match) if name != "agreement"]  # known for a sample only
    return [*labels, *(f"{COLUMN}{name}" for name in tables), *numbers]


def _facet(match: Match, column: str, cells: Cells | None) -> Facet | None:
    rows, title = np.arange(len(match)), column_title(column)
    if column == "labels":
        if match.source.labels is None:
            raise SpaceError(f"filter: expected labels in {match.source.name!r}, got none; clear the filter")
        content = [str(label) for label in match.source.labels]
    elif column.startswith(COLUMN):
        content = cells_in(match, rows, title, cells)
    else:
        content = values_of(match, column, rows)
    if isinstance(content, np.ndarray):
        return _binned(column, title, content)
    numbers, names, _ = classes_of(content)
    if len(names) < 2 or np.mean(numbers >= 0) < _TELLING:
        return None
    return Facet(column, title, np.where(numbers < 0, NO_CODE, numbers).astype(np.uint8), names)


def _binned(column: str, title: str, values: np.ndarray) -> Facet | None:
    scale, known = ColorScale.of(values, title), np.isfinite(values)
    if scale.low == scale.high:
        return None
    spaced = np.geomspace if scale.logarithmic else np.linspace
    edges = spaced(scale.low, scale.high, BINS + 1)
    codes = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, BINS - 1)
    return Facet(column, title, np.where(known, codes, NO_CODE).astype(np.uint8), (), tuple(edges.tolist()))


def kept_rows(
    match: Match, conditions: Sequence[Condition], cells: Cells | None = None
) -> tuple[tuple[Facet, ...], np.ndarray]:
    """The facets of the conditions, and whether each row meets all of them, (n,) bool.

    Raises
    ------
    SpaceError
        A column that is not there, or holds neither classes nor numbers.
    """
    columns = dict.fromkeys(one.column for one in conditions if one.column != SELECTED_ROWS)
    facets = (*facets_of(match, list(columns), cells), *selected_facet(match, conditions))
    if missing := {one.column for one in conditions} - {facet.column for facet in facets}:
        raise SpaceError(
            f"filter: expected a column of numbers or classes, got {min(missing)!r:.80}; clear the filter"
        )
    return facets, passing(facets, conditions, len(match))


def selected_facet(match: Match, conditions: Sequence[Condition]) -> tuple[Facet, ...]:
    """The facet of the rows that a filter keeps by ids; () without such a filter."""
    for one in conditions:
        if one.column == SELECTED_ROWS:
            inside = match.source.index.isin(list(one.classes))
            codes = np.where(inside, 0, NO_CODE).astype(np.uint8)
            return (Facet(SELECTED_ROWS, SELECTED_ROWS, codes, ("kept",)),)
    return ()


def of_rows(facets: Sequence[Facet], rows: np.ndarray) -> tuple[Facet, ...]:
    """The facets of some of the rows (m,)."""
    return tuple(replace(facet, codes=facet.codes[rows]) for facet in facets)
