"""The charts of a universe: the map of its spaces, retrieval between them, and rows that moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.families import Named
from relcore.base.numbers import in_cell, percent, short
from relcore.catalog.task import SpacesRecipe
from relcore.engine.engine import thin_svd
from relcore.figures.charts import Diagram, MovingPoints
from relcore.figures.export import Exportable, chart_exportable
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.maps.pane_maps import default_view, make_view, sample_view
from relcore.scores.score import distances
from relcore.spaces.matching import short_names
from relcore.spaces.space import LatentSpace
from relcore.universe.plane import STRAINED, groups_of, places_in_plane
from relcore.universe.universe import Universe, UniverseSpec

CHARTS = {
    "map": Named("Map", help="each dot is a model; similar models are close"),
    "accuracy": Named("Table", help="every space translated into every other"),
    "rows": Named("Rows", help="the same rows in one space after another, on a common map"),
}
# minimum number of models on a map; maximum number with lines between all models
FEWEST_DRAWN_SPACES = 3
MOST_LINED = 5
_BESIDE = 0.1  # a line that comes nearer to a third dot, as a share of the map's extent, is not drawn
_LEAST_DISTANCE = 0.02  # if all distances are smaller, a map would show a single dot
_MOST_DRAWN = 700
_OF_ALL = "Mean of all"


@dataclass(frozen=True, kw_only=True)
class UniverseChart(SpacesRecipe, figure="universe"):
    """A figure of a universe: one of the charts that `CHARTS` names.

    Examples
    --------
    >>> from relcore import SpaceSpec, UniverseChart
    >>> UniverseChart(spaces=tuple(SpaceSpec("file", f"{name}.npy") for name in "abc")).figure
    'universe'
    """

    universe: UniverseSpec = UniverseSpec()
    chart: str = "accuracy"

    def __post_init__(self) -> None:
        super().__post_init__()
        need_one_of("chart", self.chart, CHARTS)

    def draw(
        self, result: Universe | None = None, spaces: Mapping[str, LatentSpace] | None = None
    ) -> Exportable:
        """The figure. `spaces` have the rows to draw, by their names in the universe (default: all)."""
        universe = result
        rows = self.chart == "rows"
        if universe is None or (rows and spaces is None):
            loaded = self.loaded()
            universe = universe or self.universe.run(loaded)
            spaces = dict(zip(universe.names, loaded, strict=True))
        if rows:
            chart = moving_rows(universe, spaces)
        else:
            if self.chart == "map":
                chart = map_of_spaces(universe)
            else:
                chart = accuracy_matrix(universe)
        table = None
        if self.chart == "accuracy":
            table = universe.table
        return chart_exportable(chart, self.to_json(), f"relscope-universe-{self.chart}", table, table)


def charts_of(universe: Universe) -> dict[str, str]:
    """The charts that can be drawn with the scores of this universe: their titles by name."""
    many = len(_scored_spaces(universe)) >= FEWEST_DRAWN_SPACES
    differ = many and distances(_alike(universe)[1]).max() > _LEAST_DISTANCE
    return {name: CHARTS[name].title for name in ("map", "accuracy") if differ or name == "accuracy"}


def _scored_spaces(universe: Universe) -> list[int]:
    return [i for i, row in enumerate(universe.scores) if any(score is not None for score in row)]


def _alike(universe: Universe) -> tuple[tuple[str, ...], np.ndarray]:
    scored = _scored_spaces(universe)
    if len(scored) < FEWEST_DRAWN_SPACES:
        raise SpaceError(
            f"universe: expected {FEWEST_DRAWN_SPACES} spaces or more to draw, got {len(scored)}"
        )
    names = short_names(universe.names)[0]
    # The accuracy of each pair of spaces, averaged over both directions.
    accuracy = (universe.accuracy + universe.accuracy.T) / 2
    np.fill_diagonal(accuracy, 1.0)
    return tuple(names[i] for i in scored), accuracy[np.ix_(scored, scored)]


def map_of_spaces(universe: Universe) -> Diagram:
    """A map of the spaces in two dimensions: the higher the accuracy of two spaces, the nearer they are; see
    `plane.places_in_plane`."""
    names, alike = _alike(universe)
    places, _ = places_in_plane(alike)
    pairs = sorted(combinations(range(len(names)), 2), key=lambda pair: -alike[pair])
    similarities = "; ".join(f"{names[i]} and {names[j]} {short(alike[i, j])}" for i, j in pairs[:5])
    hover = tuple(
        "\n".join(
            f"same row nearest in {other}: {percent(alike[i, j])}" for j, other in enumerate(names) if j != i
        )
        for i in range(len(names))
    )
    alt = f"Map of {len(names)} spaces. Most alike: {similarities}."
    lines = {}
    if len(names) <= MOST_LINED:
        lines = {pair: percent(float(alike[pair])) for pair in _pairs_with_lines(places, alike)}
    return Diagram(names, places, alt, lines, hover)


def _pairs_with_lines(places: np.ndarray, alike: np.ndarray) -> list[tuple[int, int]]:
    """The pairs between which a line is drawn: of two groups of models that share 100 %, the two models that
    are nearest; none that passes a model of another group."""
    lines = []
    for first, second in combinations(groups_of(alike), 2):
        pair = min(
            ((i, j) for i in first for j in second),
            key=lambda ends: np.linalg.norm(np.subtract(*places[[*ends]])),
        )
        others = [place for place in range(len(places)) if place not in (*first, *second)]
        if not _passes_another(places[[*pair, *others]], 0, 1):
            lines.append(pair)
    return sorted(lines, key=lambda pair: -alike[pair])


def is_strained(universe: Universe) -> bool:
    """Whether the map shows equal scores at visibly unequal distances, because a plane has no room for all
    distances."""
    return places_in_plane(_alike(universe)[1])[1] > STRAINED


def _passes_another(places: np.ndarray, i: int, j: int) -> bool:
    """Whether the line between points i and j comes near a third point, where its text could belong to
    another line."""
    start = places[i]
    along = places[j] - start
    length = float(along @ along)
    if not length:
        return True
    others = np.delete(places, [i, j], axis=0) - start
    nearest = np.clip(others @ along / length, 0, 1)[:, None] * along
    near = np.linalg.norm(others - nearest, axis=1) < _BESIDE * np.ptp(places, axis=0).max()
    return bool(near.any())


def accuracy_matrix(universe: Universe) -> Matrices:
    names = short_names(universe.names)[0]
    accuracy = universe.accuracy
    n = len(universe.members)

    def hover(i: int, j: int) -> str:
        score = universe.scores[i][j]
        if i == j:
            return "the space itself"
        if score is None:
            return "not scored: too few held-out rows in common, or added later"
        text = f"same row nearest: {short(score.top1)}, by chance {percent(1 / score.n)}"
        return f"{text}\nMRR {short(score)}, k = {score.k}\nn: {score.n:,} held-out rows"

    texts = (tuple("" if one is None else in_cell(one.top1) for one in row) for row in universe.scores)
    cells = tuple(texts), tuple(tuple(hover(i, j) for j in range(n)) for i in range(n))
    panel = MatrixPanel("", names, names, accuracy, *cells, marked=tuple((i, i) for i in range(n)))
    alt = f"Heat map: held-out rows with the same row nearest, {n} by {n} spaces. {universe.headline()}"
    return Matrices((panel,), (0.0, 1.0), "same row nearest", alt, "from", "into")


def moving_rows(universe: Universe, spaces: Mapping[str, LatentSpace]) -> MovingPoints:
    """Maps of the rows that all these spaces share, on the first two principal axes of the mean places. The
    first map shows the mean places, each further map the rows of one space.
    """
    ids = pd.Index(np.concatenate([universe.ids, universe.test_ids]))
    shared = np.ones(len(ids), bool)
    for space in spaces.values():
        shared &= ids.isin(space.index[space.norms > 0])
    if not shared.any():
        raise SpaceError("universe: expected rows that all of these spaces have, got none; choose fewer")
    mean = np.concatenate([universe.consensus, universe.test_consensus])
    rows, groups, names = _rows_to_draw(ids, shared, list(spaces.values()))
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


def _rows_to_draw(
    ids: pd.Index, shared: np.ndarray, spaces: Sequence[LatentSpace]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The positions in `ids` of the rows to draw, the group of each, and the names of the groups. The groups
    are the labels of the first space that has labels.
    """
    if not spaces:
        some = np.sort(np.random.default_rng(0).permutation(len(ids))[:_MOST_DRAWN])
        return some, np.full(len(some), -1), ()
    first = next((space for space in spaces if space.labels is not None), spaces[0])
    first = first.take(first.rows(ids[shared]))
    view = sample_view(make_view(first, replace(default_view(first), n_nearest=60)), _MOST_DRAWN)
    return np.flatnonzero(shared)[view.rows], view.categories, tuple(map(str, view.category_names))
