"""The rows that a map shows, and their colours."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from relcore.base.errors import SpaceError, need_one_of, need_strings
from relcore.base.rows import unit_rows
from relcore.engine.engine import Engine
from relcore.figures.scene import ColorScale
from relcore.represent.similarity import mean_of
from relcore.spaces.space import LatentSpace

NUMBERS = ("counts", "source norm", "target norm", "agreement")
COLUMN = "column:"
MOST_PIVOTS = 20  # the number of distinguishable colours
NEARLY_ALL = 0.99
_CLUSTERED = 20_000  # largest sample of rows from which default pivots are chosen
DEFAULT_PIVOTS = ("wine", "anger", "silver", "senate", "face")


@dataclass(frozen=True)
class ViewSpec:
    """The settings that choose rows and colours.

    Attributes
    ----------
    pivots : tuple of str
        Ids, each drawn with its neighbourhood in one colour; at most `MOST_PIVOTS`.
    n_nearest : int
        Rows of each neighbourhood, including the pivot itself.
    everything : bool
        Also draw all other rows, in grey.
    color_by : "pivots", "labels", one of `NUMBERS`, or "column:" and a name
        What a colour shows: the nearby pivot, the row's label, a number, or a column of a space's table. The
        last two need both spaces, see `compare.columns.colored`.
    show_anchors : bool
        Draw the anchors as stars; anchors that the view lacks are added.
    """

    pivots: tuple[str, ...] = DEFAULT_PIVOTS
    n_nearest: int = 200
    everything: bool = False
    color_by: str = "pivots"
    show_anchors: bool = False

    def __post_init__(self) -> None:
        need_strings("pivots", self.pivots)
        if len(self.pivots) > MOST_PIVOTS:
            raise SpaceError(
                f"pivots: expected at most {MOST_PIVOTS}, one for each colour, got {len(self.pivots)}; take"
                " some out"
            )
        if not isinstance(self.n_nearest, int) or self.n_nearest < 1:
            raise SpaceError(f"n_nearest: expected 1 or more rows around each pivot, got {self.n_nearest!r}")
        need_color("color_by", self.color_by)


def need_color(setting: str, color_by: str) -> None:
    if not (isinstance(color_by, str) and color_by.startswith(COLUMN) and len(color_by) > len(COLUMN)):
        need_one_of(setting, color_by, ("pivots", "labels", *NUMBERS, f"{COLUMN}…"))


@dataclass(frozen=True)
class View:
    """The rows to draw (m,), ascending, with a class per row (−1: none), or `values` (m,) and their scale."""

    rows: np.ndarray
    categories: np.ndarray
    category_names: tuple[str, ...]
    scale: ColorScale | None = None  # if the categories are its steps
    values: np.ndarray | None = None
    about: str = ""  # further facts about the colours, for the caption

    @cached_property
    def digest(self) -> str:
        return hashlib.blake2b(np.ascontiguousarray(self.rows, dtype=np.int64), digest_size=16).hexdigest()


def make_view(space: LatentSpace, spec: ViewSpec, anchor_ids: Sequence[str] = ()) -> View:
    """The rows and colours of this space by `spec`."""
    belongs = _nearest_pivots(space, spec)
    near = belongs >= 0
    # Leaving out a few rows of many would only raise the question which ones.
    drawn = np.ones(len(space), dtype=bool) if spec.everything or near.mean() > NEARLY_ALL else near
    if spec.show_anchors and len(anchor_ids):
        drawn[space.rows(anchor_ids)] = True
    rows = np.flatnonzero(drawn)
    if not len(rows):
        raise SpaceError("nothing to draw: name at least one pivot, or draw everything")
    return _colored(space, spec, rows, belongs)


def same_rows(space: LatentSpace, spec: ViewSpec, rows: np.ndarray) -> View:
    """These rows in the colours of labels or pivots. Errors as in `make_view`."""
    return _colored(space, spec, rows, _nearest_pivots(space, spec))


def _colored(space: LatentSpace, spec: ViewSpec, rows: np.ndarray, belongs: np.ndarray) -> View:
    if spec.color_by != "labels":
        # A number alone would look like the name of the colour.
        names = tuple(f"around {pivot}" if pivot.isdecimal() else pivot for pivot in spec.pivots)
        return View(rows, belongs[rows], names)
    if space.labels is None:
        raise SpaceError(f"color_by 'labels': {space.name!r} has no labels; colour by pivots")
    names = tuple(sorted(set(space.labels) - {""}))
    numbers = {name: number for number, name in enumerate(names)} | {"": -1}
    return View(rows, np.array([numbers[label] for label in space.labels[rows]]), names)


def sample_view(view: View, n_most: int, random_state: int = 0) -> View:
    """At most `n_most` of the view's rows, a random sample."""
    if len(view.rows) <= n_most:
        return view
    kept = np.sort(np.random.default_rng(random_state).choice(len(view.rows), n_most, replace=False))
    values = None if view.values is None else view.values[kept]
    return replace(view, rows=view.rows[kept], categories=view.categories[kept], values=values)


def _nearest_pivots(space: LatentSpace, spec: ViewSpec) -> np.ndarray:
    """The pivot whose neighbourhood contains each row, (n,); of two the nearer one, −1 for none."""
    belongs = np.full(len(space), -1)
    if not spec.pivots:
        return belongs
    mean, n_nearest = mean_of(space), min(spec.n_nearest, len(space))
    pivots = unit_rows(space.vectors[space.rows(spec.pivots)], mean)
    best = np.full(len(space), -np.inf, dtype=np.float32)
    cosines = Engine().map_rows(space.vectors, pivots.T, mean=mean, unit=True)
    for number, column in enumerate(cosines.T):
        near = np.argpartition(-column, n_nearest - 1)[:n_nearest]
        near = near[column[near] > best[near]]
        belongs[near], best[near] = number, column[near]
    return belongs


def default_pivots(space: LatentSpace) -> tuple[str, ...]:
    """Five ids: the usual words if the space has them, else rows far apart from each other."""
    if space.index.isin(DEFAULT_PIVOTS).sum() == len(DEFAULT_PIVOTS):
        return DEFAULT_PIVOTS
    from relcore.represent.similarity import select_anchors

    strategy = "k-means" if len(space) > 100 else "random"
    if len(space) > _CLUSTERED:  # k-means of all rows would delay the first picture
        space = space.take(np.sort(np.random.default_rng(0).choice(len(space), _CLUSTERED, replace=False)))
        strategy = "farthest-point"
    n_pivots = min(len(DEFAULT_PIVOTS), np.count_nonzero(space.norms))
    return tuple(select_anchors(space, n_pivots, strategy)) if n_pivots else ()


def default_view(space: LatentSpace) -> ViewSpec:
    """All rows coloured by class if the space has 2 to `MOST_PIVOTS` labels and no word counts; else a
    few pivots with their neighbours."""
    classes = set() if space.labels is None or space.counts is not None else set(space.labels) - {""}
    labelled = 2 <= len(classes) <= MOST_PIVOTS
    return ViewSpec(default_pivots(space), everything=labelled, color_by="labels" if labelled else "pivots")
