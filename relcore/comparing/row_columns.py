"""Columns that colour the rows of a pair: numbers on a scale with a colour bar, and classes with a legend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from relcore.charts.coloring import EDGES, ColorScale, told
from relcore.comparing.row_neighbours import neighbour_agreement
from relcore.sources.catalog import SpaceSpec
from relcore.sources.more_columns import more_columns, read_column
from relcore.spaces import LatentSpace, Match, SpaceError
from relcore.views import COLUMN, NUMBERS, View, ViewSpec

AGREEMENT_ROWS = (500, 4000)  # rows at least and at most whose neighbourhoods are compared at once
_COMPARED = 250_000_000  # with how many pairs of rows: a second's work
MOST_CLASSES = 20  # the number of distinguishable colours
WHOLE_CLASSES = 12  # a column with at most as many whole numbers holds classes, not quantities
Cells = Callable[[str], pd.Series]


def columns_of(match: Match) -> list[str]:
    """The columns of numbers that every pair has, and counts where they are known."""
    return [name for name in NUMBERS if name != "counts" or match.source.counts is not None]


def cells_of(source: SpaceSpec, target: SpaceSpec, load: Callable[[SpaceSpec], LatentSpace]) -> Cells:
    """What reads a column of the tables that came with two spaces, the source's where both have one of this name."""

    def cells(name: str) -> pd.Series:
        spec = source if name in more_columns(source) else target
        return read_column(spec, load(spec), name)

    return cells


def values_of(match: Match, column: str, rows: np.ndarray) -> np.ndarray:
    """One number per row (m,), NaN where it was not computed: agreement is that of a sample, see `agreement_rows`.

    Raises
    ------
    SpaceError
        Counts of a space that has none.
    """
    if column == "counts" and match.source.counts is None:
        raise SpaceError(f"color_by 'counts': {match.source.name!r} has no counts; colour by pivots")
    readers: dict[str, Callable[[], np.ndarray]] = {
        "counts": lambda: match.source.counts[rows],
        "source norm": lambda: match.source.norms[rows],
        "target norm": lambda: match.target.norms[rows],
        "agreement": lambda: _agreement(match, rows),
    }
    return np.asarray(readers[column](), dtype=np.float64)


def colored(match: Match, view: View, spec: ViewSpec, cells: Cells | None = None) -> View:
    """The view in the colours of the column that `spec` names; as it is where that is pivots or labels.

    Raises
    ------
    SpaceError
        A column that is not there: `cells` reads those of the tables that came with the spaces.
    """
    if spec.color_by in NUMBERS:
        return _on_scale(view, values_of(match, spec.color_by, view.rows), spec.color_by)
    if not spec.color_by.startswith(COLUMN):
        return view
    name = spec.color_by.removeprefix(COLUMN)
    if cells is None:
        raise SpaceError(f"color_by: expected spaces with a column {name!r:.80}, got spaces without a table")
    found = cells(name)
    found = found[~found.index.duplicated()].reindex(pd.Index(match.ids[view.rows], dtype=object))
    numbers = numbers_in(list(found))
    if numbers is not None and not _few_whole(numbers):
        return _on_scale(view, numbers, name)
    return _by_classes(view, [_class(cell) for cell in found], name)


def numbers_in(cells: Sequence[Any]) -> np.ndarray | None:
    """The cells as numbers (m,), NaN where one is empty; None where one is no number, or none is."""
    numbers = pd.to_numeric(pd.Series([None if _empty(cell) else cell for cell in cells], dtype=object), errors="coerce")
    full = sum(not _empty(cell) for cell in cells)
    values = numbers.to_numpy(dtype=np.float64, copy=True)
    values[~np.isfinite(values)] = np.nan
    return values if 0 < full == np.count_nonzero(np.isfinite(values)) else None


def classes_of(names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...], str]:
    """The class of each row (m,), -1 for "" and for rare ones; the names; and, where some are left out, how many.

    The most frequent `MOST_CLASSES` − 1 where there are more than `MOST_CLASSES`. Names come in their order, numbers by size.
    """
    counts = Counter(name for name in names if name)
    kept = [name for name, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]
    about = ""
    if len(kept) > MOST_CLASSES:
        kept = kept[: MOST_CLASSES - 1]
        about = f"the {len(kept)} most frequent of {len(counts):,} values, the rest as other"
    ordered = sorted(kept, key=_order(kept))
    places = {name: place for place, name in enumerate(ordered)}
    return np.array([places.get(name, -1) for name in names], dtype=np.int64), tuple(ordered), about


def _on_scale(view: View, values: np.ndarray, title: str) -> View:
    scale = ColorScale.of(values, title)
    low, high = (told(end) for end in (scale.low, scale.high))
    kind = ", logarithmic" if scale.logarithmic else ""
    about = f"colours from {low} to {high} ({EDGES[0]}st to {EDGES[1]}th percentile{kind})"
    return View(view.rows, scale.steps(values), (), scale, values, f"{title}: {about}")


def _by_classes(view: View, names: Sequence[str], title: str) -> View:
    categories, kept, about = classes_of(names)
    return View(view.rows, categories, kept, about=f"{title}: {about}" if about else "")


def _few_whole(numbers: np.ndarray) -> bool:
    known = np.unique(numbers[np.isfinite(numbers)])
    return len(known) <= WHOLE_CLASSES and np.array_equal(known, np.round(known))


def _class(cell: Any) -> str:
    if _empty(cell):
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return " ".join(str(cell).split())


def _empty(cell: Any) -> bool:
    return cell is None or cell == "" or (isinstance(cell, float) and cell != cell)


def _order(names: Sequence[str]) -> Callable[[str], Any]:
    sizes: Mapping[str, float] = {}
    numbers = numbers_in(list(names))
    if numbers is not None:
        sizes = dict(zip(names, numbers.tolist(), strict=True))
    return lambda name: (sizes.get(name, 0.0), name)


def agreement_rows(n: int) -> int:
    """The number of rows, of n, whose neighbourhoods are compared: fewer where each takes longer."""
    least, most = AGREEMENT_ROWS
    return int(np.clip(_COMPARED // n, least, most))


def _agreement(match: Match, rows: np.ndarray) -> np.ndarray:
    """Of a random sample where there are more rows than `agreement_rows`."""
    compared, most = np.arange(len(rows)), agreement_rows(len(match))
    if len(rows) > most:
        compared = np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))
    found = neighbour_agreement(match, rows[compared])
    values = np.full(len(match), np.nan)
    values[found.row] = found.overlap
    return values[rows]
