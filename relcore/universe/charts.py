"""Figures of a universe: accuracy of all pairs, map and tree of the spaces, agreement and performance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import Named
from relcore.base.numbers import in_cell, percent, short
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, load_all
from relcore.engine.engine import thin_svd
from relcore.figures.charts import Diagram, Line, Lines, Matrices, MatrixPanel, MovingPoints
from relcore.figures.export import Exportable, chart_exportable
from relcore.maps.views import default_view, make_view, sample_view
from relcore.scores.score import average_linkage, distances
from relcore.spaces.matching import short_names
from relcore.spaces.space import LatentSpace
from relcore.universe.universe import Universe, UniverseSpec, consistency

CHARTS = {
    "map": Named("Map", help="each dot is a model; similar models are close"),
    "tree": Named("Tree", help="the lower two spaces join, the more similar they are"),
    "accuracy": Named("Table", help="every space translated into every other"),
    "performance": Named("Performance", help="whether a space that agrees with the others performs well"),
    "rows": Named("Rows", help="the same rows in one space after another, on a common map"),
}
_FEWEST = 3  # fewest points of a map
_LEAST_DISTANCE = 0.02  # below it, all models would be drawn as one dot
_TELLING = 8  # fewest spaces for a rank correlation
_MOST_DRAWN = 700
_OF_ALL = "Mean of all"


@dataclass(frozen=True, kw_only=True)
class UniverseChart(Recipe, figure="universe"):
    """A figure of a universe, one of `CHARTS`.

    Examples
    --------
    >>> from relcore import SpaceSpec, UniverseChart
    >>> UniverseChart(spaces=tuple(SpaceSpec("file", f"{name}.npy") for name in "abc")).figure
    'universe'
    """

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    universe: UniverseSpec = UniverseSpec()
    chart: str = "accuracy"

    def __post_init__(self) -> None:
        need_one_of("chart", self.chart, CHARTS)

    def draw(
        self, result: Universe | None = None, spaces: Mapping[str, LatentSpace] | None = None
    ) -> Exportable:
        """The figure; `spaces` are those whose rows are drawn, by their names in the universe (default:
        all)."""
        universe, rows = result, self.chart == "rows"
        if universe is None or (rows and spaces is None):
            loaded = load_all(self.spaces, self.digests, self.figure)
            universe = universe or self.universe.run(loaded)
            spaces = dict(zip(universe.names, loaded, strict=True))
        chart = moving_rows(universe, spaces) if rows else _DRAW[self.chart](universe)
        table = universe.table if self.chart == "accuracy" else None
        return chart_exportable(chart, self.to_json(), f"relscope-universe-{self.chart}", table=table)


def charts_of(universe: Universe) -> dict[str, str]:
    """Name → title of the charts that this universe has scores for."""
    n, performing = len(_scored(universe)), sum(one.performance is not None for one in universe.members)
    differ = n >= _FEWEST and distances(_alike(universe)[1]).max() > _LEAST_DISTANCE
    drawable = {
        "map": differ,
        "tree": differ,
        "accuracy": True,
        "performance": performing >= _FEWEST,
    }
    return {name: CHARTS[name].title for name, is_there in drawable.items() if is_there}


def _scored(universe: Universe) -> list[int]:
    """Numbers of the spaces with scores; spaces added later have none."""
    return [i for i, row in enumerate(universe.scores) if any(score is not None for score in row)]


def _alike(universe: Universe) -> tuple[tuple[str, ...], np.ndarray]:
    scored = _scored(universe)
    if len(scored) < _FEWEST:
        raise SpaceError(f"universe: expected {_FEWEST} spaces or more to draw, got {len(scored)}")
    names = short_names(universe.names)[0]
    return tuple(names[i] for i in scored), consistency(universe)[np.ix_(scored, scored)]


def map_of_spaces(universe: Universe) -> Diagram:
    """A map of the spaces: classical multidimensional scaling (Torgerson 1952) of 1 − accuracy to two
    dimensions."""
    names, alike = _alike(universe)
    squares = distances(alike) ** 2
    around = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-around / 2)
    places = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0))
    largest = places[np.abs(places).argmax(axis=0), [0, 1]]
    places = places * np.where(largest < 0, -1, 1)  # a map and its mirror image are equally valid
    pairs = sorted(combinations(range(len(names)), 2), key=lambda pair: -alike[pair])
    similarities = "; ".join(f"{names[i]} and {names[j]} {short(alike[i, j])}" for i, j in pairs[:5])
    hover = tuple(
        "\n".join(
            f"same row found in {other}: {percent(alike[i, j])}" for j, other in enumerate(names) if j != i
        )
        for i in range(len(names))
    )
    alt = f"Map of {len(names)} spaces. Most alike: {similarities}."
    title = "distance of two models: share of rows that are not nearest to themselves"
    return Diagram(names, places, alt, hover=hover, x_title=title)


def tree_of_spaces(universe: Universe) -> Diagram:
    """A dendrogram of the spaces by average linkage of 1 − accuracy."""
    from scipy.cluster.hierarchy import dendrogram

    names, alike = _alike(universe)
    tree = dendrogram(average_linkage(alike), no_plot=True)
    lines = tuple(
        np.column_stack([heights, (np.array(places) - 5) / 10])  # SciPy's leaves are at 5, 15, 25, …
        for places, heights in zip(tree["icoord"], tree["dcoord"], strict=True)
    )
    leaves = tuple(names[i] for i in tree["leaves"])
    points = np.column_stack([np.zeros(len(names)), np.arange(len(names))])
    alt = f"Tree of {len(names)} spaces, similar ones side by side: {', '.join(leaves)}."
    look = {"x_title": "1 − held-out accuracy", "upright": True, "colors": tuple(tree["leaves"])}
    return Diagram(leaves, points, alt, lines, **look)


def accuracy_matrix(universe: Universe) -> Matrices:
    """A matrix of the share of held-out rows of each space (row) that match in each other space (column)."""
    names, accuracy, n = short_names(universe.names)[0], universe.accuracy, len(universe.members)

    def text(i: int, j: int) -> str:
        score = universe.scores[i][j]
        return "" if score is None else in_cell(score.top1)

    def hover(i: int, j: int) -> str:
        score = universe.scores[i][j]
        if i == j:
            return "the space itself"
        if score is None:
            return "not scored: too few held-out rows in common, or added later"
        told = f"accuracy {short(score.top1)}, by chance {percent(1 / score.n)}"
        return f"{told}\nMRR {short(score)}, k = {score.k}\nn: {score.n:,} held-out rows"

    cells = (tuple(tuple(of(i, j) for j in range(n)) for i in range(n)) for of in (text, hover))
    panel = MatrixPanel("", names, names, accuracy, *cells, marked=tuple((i, i) for i in range(n)))
    alt = f"Heat map of held-out accuracy, {n} by {n} spaces. {universe.headline()}"
    return Matrices((panel,), (0.0, 1.0), "accuracy", alt, "from", "into")


def performance_chart(universe: Universe) -> Lines:
    """A chart of each space's agreement with the others against the accuracy of a head on it."""
    names = short_names(universe.names)[0]
    known = [member for member in universe.members if member.performance is not None]
    lines = [
        Line(name, [one.score.top1], [one.performance], labels=[name])
        for name, one in zip(names, universe.members, strict=True)
        if one.performance is not None
    ]
    rank = ""
    if len(known) >= _FEWEST:
        from scipy.stats import spearmanr

        rho = spearmanr([one.score.top1 for one in known], [one.performance for one in known]).statistic
        rank = f"Spearman {short(float(rho))}, {len(known)} spaces"
        rank += ": too few to tell" * (len(known) < _TELLING)
    titles = "held-out rows matched with the others' mean", "held-out accuracy of a linear head"
    return Lines(tuple(lines), *titles, kind="points", note=rank)


_DRAW = {
    "map": map_of_spaces,
    "tree": tree_of_spaces,
    "accuracy": accuracy_matrix,
    "performance": performance_chart,
}


def moving_rows(universe: Universe, spaces: Mapping[str, LatentSpace]) -> MovingPoints:
    """Maps of the rows that all these spaces share, on the first two principal axes of the consensus, which
    is the first map."""
    ids = pd.Index(np.concatenate([universe.ids, universe.test_ids]))
    shared = np.ones(len(ids), bool)
    for space in spaces.values():
        shared &= ids.isin(space.index[space.norms > 0])
    if not shared.any():
        raise SpaceError("universe: expected rows that all of these spaces have, got none; choose fewer")
    mean = np.concatenate([universe.consensus, universe.test_consensus])
    rows, groups, names = _drawn(ids, shared, list(spaces.values()))
    middle = universe.consensus.mean(axis=0)
    axes = thin_svd(universe.consensus - middle)[2][:2]
    axes *= np.where(axes.sum(axis=1, keepdims=True) < 0, -1, 1)
    mapped = [universe.map(space.vectors[space.rows(ids[rows])], name) for name, space in spaces.items()]
    titles = (
        _OF_ALL,
        *(
            short
            for name, short in zip(universe.names, short_names(universe.names)[0], strict=True)
            if name in spaces
        ),
    )
    return MovingPoints(
        titles,
        np.stack([(one - middle) @ axes.T for one in (mean[rows], *mapped)]),
        tuple(map(str, ids[rows])),
        groups,
        names,
        "rows on the first two principal axes of the mean of all models",
    )


def _drawn(
    ids: pd.Index, shared: np.ndarray, spaces: Sequence[LatentSpace]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The places of the ids to draw, the group of each, and the names of the groups, as in a map of the first
    space with labels."""
    if not spaces:
        some = np.sort(np.random.default_rng(0).permutation(len(ids))[:_MOST_DRAWN])
        return some, np.full(len(some), -1), ()
    first = next((space for space in spaces if space.labels is not None), spaces[0])
    first = first.take(first.rows(ids[shared]))
    view = sample_view(make_view(first, replace(default_view(first), n_nearest=60)), _MOST_DRAWN)
    return np.flatnonzero(shared)[view.rows], view.categories, tuple(map(str, view.category_names))
