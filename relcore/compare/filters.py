"""Facets, by which rows are filtered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from relcore.base.errors import SpaceError
from relcore.compare.columns import Cells, cells_in, classes_of, columns_of, models, values_of
from relcore.figures.colorings import (
    NO_CODE,
    SELECTED_ROWS,
    ColorScale,
    Condition,
    Facet,
    column_title,
    passing,
)
from relcore.figures.map_names import BINS
from relcore.maps.pane_maps import COLUMN
from relcore.maps.principal_axes import random_rows
from relcore.spaces.matching import Match

# Facets: classes and bins of numbers by which rows are filtered.

MOST_FACETS = 12
_MOST_ADDED = 5000  # maximum number of rows that a map draws besides its own because they pass a filter
# Minimum share of the filled cells that have one of the most frequent values. Below it, it is free text.
_TELLING = 0.2


def facets_of(match: Match, columns: Sequence[str], cells: Cells | None = None) -> tuple[Facet, ...]:
    """A facet of each of these columns: the value of every row, by which users can filter. There are at most
    `MOST_FACETS`. Columns of free text are left out.

    Raises
    ------
    SpaceError
        A column that is not there.
    """
    facets = (_facet(match, column, cells) for column in columns)
    return tuple(islice((facet for facet in facets if facet), MOST_FACETS))


def filter_columns(match: Match, tables: Sequence[str] = ()) -> list[str]:
    """The columns that rows can be filtered by: labels, those of `tables`, and numbers of the pair."""
    labels = []
    if match.source.labels is not None:
        labels = ["labels"]
    # Leave out the agreement, which is known only for a sample.
    numbers = [name for name in columns_of(match) if name != "agreement"]
    return [*labels, *(f"{COLUMN}{name}" for name in tables), *numbers]


def _facet(match: Match, column: str, cells: Cells | None) -> Facet | None:
    rows = np.arange(len(match))
    title = column_title(column, models(match))
    if column == "labels":
        if match.source.labels is None:
            raise SpaceError(f"filter: expected labels in {match.source.name!r}, got none; clear the filter")
        content = [str(label) for label in match.source.labels]
    elif column.startswith(COLUMN):
        content = cells_in(match, rows, title, cells)
    else:
        content = values_of(match, column, rows)
    if isinstance(content, np.ndarray):
        scale = ColorScale.of(content, title)
        known = np.isfinite(content)
        if scale.low == scale.high:
            return None
        if scale.logarithmic:
            spaced = np.geomspace
        else:
            spaced = np.linspace
        edges = spaced(scale.low, scale.high, BINS + 1)
        codes = np.clip(np.searchsorted(edges, content, side="right") - 1, 0, BINS - 1)
        return Facet(
            column,
            title,
            np.where(known, codes, NO_CODE).astype(np.uint8),
            edges=tuple(edges.tolist()),
            whole=bool((content[known] == np.rint(content[known])).all()),
        )
    numbers, names, _ = classes_of(content)
    filled = np.array([bool(cell) for cell in content])
    has_one_value = len(names) < 2 and filled.all()
    if not names or has_one_value or np.mean(numbers[filled] >= 0) < _TELLING:
        return None
    return Facet(column, title, np.where(numbers < 0, NO_CODE, numbers).astype(np.uint8), names)


def kept_rows(
    match: Match, conditions: Sequence[Condition], cells: Cells | None = None
) -> tuple[tuple[Facet, ...], np.ndarray]:
    """The facets of the columns in the conditions, and whether each row meets all conditions, (n,) bool.

    Raises
    ------
    SpaceError
        A column that is not there; a column that holds neither classes nor numbers.
    """
    columns = dict.fromkeys(one.column for one in conditions if one.column != SELECTED_ROWS)
    facets = (*facets_of(match, list(columns), cells), *selected_facet(match, conditions))
    if missing := {one.column for one in conditions} - {facet.column for facet in facets}:
        raise SpaceError(
            f"filter: expected a column of numbers or classes, got {min(missing)!r:.80}; clear the filter"
        )
    return facets, passing(facets, conditions, len(match))


def selected_facet(match: Match, conditions: Sequence[Condition]) -> tuple[Facet, ...]:
    """A facet that says which rows a filter selects by their ids; () if no filter does so."""
    for one in conditions:
        if one.column == SELECTED_ROWS:
            inside = match.source.index.isin(list(one.classes))
            codes = np.where(inside, 0, NO_CODE).astype(np.uint8)
            return (Facet(SELECTED_ROWS, SELECTED_ROWS, codes, ("kept",)),)
    return ()


def undrawn(kept: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """The numbers (e,) of the rows that pass a filter, `kept` (n,) bool, and are not among the `drawn` rows
    (m,). Of more than 5,000 rows, a random sample."""
    others = np.setdiff1d(np.flatnonzero(kept), drawn)
    if len(others) <= _MOST_ADDED:
        return others
    return others[random_rows(len(others), _MOST_ADDED, 0)]


def of_rows(facets: Sequence[Facet], rows: np.ndarray) -> tuple[Facet, ...]:
    """The facets, reduced to these rows (m,)."""
    return tuple(replace(facet, codes=facet.codes[rows]) for facet in facets)
