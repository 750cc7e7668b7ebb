"""Columns that colour the rows of a pair: numbers in steps of one ramp, each step with as many rows as the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from relcore.comparison import neighbour_agreement
from relcore.numbers import general
from relcore.spaces import Match, SpaceError
from relcore.views import NUMBERS, View, ViewSpec

AGREEMENT_ROWS = 4000  # rows whose neighbourhoods are compared at once; a second's work
# Eight steps of viridis, which rises in lightness and is readable for colour-blind eyes, without its ends: these vanish on a
# dark and on a white page.
RAMP = ("#482475", "#3e4989", "#306a8e", "#24878e", "#20a486", "#48c16e", "#8ed645", "#dfe318")
_DIGITS = 3  # of the limits of a step


def columns_of(match: Match) -> list[str]:
    """The columns of numbers that this pair has."""
    return [name for name in NUMBERS if name != "counts" or match.source.counts is not None]


def values_of(match: Match, column: str, rows: np.ndarray) -> np.ndarray:
    """One number per row (m,), NaN where it was not computed: agreement is that of `AGREEMENT_ROWS` rows at most.

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


def colored(match: Match, view: View, spec: ViewSpec) -> View:
    """The view in the colours of the column that `spec` names; as it is where that is pivots or labels."""
    if spec.color_by not in NUMBERS:
        return view
    categories, names = steps_of(values_of(match, spec.color_by, view.rows), spec.color_by)
    places = np.linspace(0, len(RAMP) - 1, len(names)).round().astype(int)
    return replace(view, categories=categories, category_names=names, category_colors=tuple(RAMP[place] for place in places))


def steps_of(values: np.ndarray, title: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """The step of each value (m,), −1 for NaN, and the names of the steps: ``"agreement .1 … .25"``, the lowest first.

    Steps are quantiles with limits of three digits, so that one far value does not take the whole ramp; equal limits are one.
    """
    known = np.isfinite(values)
    if not known.any():
        return np.full(len(values), -1), ()
    quantiles = np.quantile(values[known], np.linspace(0, 1, len(RAMP) + 1))
    rounded = np.array([float(f"{limit:.{_DIGITS}g}") for limit in quantiles])
    inner = np.unique(rounded[1:-1][(rounded[1:-1] > rounded[0]) & (rounded[1:-1] <= rounded[-1])])
    limits = [rounded[0], *inner, rounded[-1]]
    steps = np.where(known, np.digitize(np.where(known, values, 0), inner), -1)
    told = [general(limit, _DIGITS) for limit in limits]
    names = [f"{low} … {high}" for low, high in pairwise(told)]
    return steps, (f"{title} {names[0]}", *names[1:])


def _agreement(match: Match, rows: np.ndarray) -> np.ndarray:
    """Of a random sample where there are more rows than `AGREEMENT_ROWS`."""
    compared = np.arange(len(rows))
    if len(rows) > AGREEMENT_ROWS:
        compared = np.sort(np.random.default_rng(0).choice(len(rows), AGREEMENT_ROWS, replace=False))
    found = neighbour_agreement(match, rows[compared])
    values = np.full(len(match), np.nan)
    values[found.row] = found.overlap
    return values[rows]
