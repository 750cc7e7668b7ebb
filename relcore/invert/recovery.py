"""The rows that an inversion recovers, and figures of their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import need_one_of
from relcore.base.numbers import counted, general, short
from relcore.base.rows import mean_row, unit_rows
from relcore.catalog.comparison_recipe import ComparisonRecipe, load_pair
from relcore.catalog.task import Recipe
from relcore.engine.nearest import nearest
from relcore.figures.colorings import Pane
from relcore.figures.export import Exportable, histogram_exportable
from relcore.figures.scene import Scene
from relcore.invert.inversion import Inversion, InversionSpec, invert_pair, side_names, sides
from relcore.maps.pane_maps import ViewSpec, make_view
from relcore.panes.page import scene_exportable
from relcore.spaces.matching import Match


@dataclass(frozen=True, eq=False)
class Recovery:
    """The true rows that are nearest to recovered rows.

    Attributes
    ----------
    groups : {"Best" | "Middle" | "Worst": array (m, 2)}
        Pairs of positions in `Inversion.rows`: a held-out row, and the true row that is nearest to its
        recovered row.
    first : float
        Share of the `n` held-out rows whose recovered row is nearest to the right true row, among `among`
        rows.
    labelled : (share, chance) or None
        Share of labelled rows whose recovered row is nearest to a true row with the same label, and the
        chance level of this share. None if fewer than half of the rows have labels.
    """

    groups: dict[str, np.ndarray]
    first: float
    n: int
    among: int
    labelled: tuple[float, float] | None = None


def recovered_rows(pair: Match, result: Inversion, n_rows: int = 5, most_queries: int = 1000) -> Recovery:
    """The true rows nearest to recovered rows, for the best, the middle and the worst rows of an inversion;
    `n_rows` rows in each group."""
    _, target = sides(pair, result.spec.route)
    mean = mean_row(target.vectors)
    scored = np.flatnonzero(result.scored)
    order = scored[np.argsort(result.errors[result.spec.title][scored], kind="stable")]
    n_rows = min(n_rows, -(-len(order) // 3))
    middle = (len(order) - n_rows) // 2
    groups = {
        "Best": order[:n_rows],
        "Middle": order[middle : middle + n_rows],
        "Worst": order[: -n_rows - 1 : -1],
    }
    queries = np.random.default_rng(0).permutation(scored)[:most_queries]
    sampled = np.concatenate([queries, *groups.values()])
    found = nearest(unit_rows(result.recovered[sampled], mean), unit_rows(result.true, mean), 1).rows[:, 0]
    first = float(np.mean(found[: len(queries)] == queries))
    parts = np.split(found[len(queries) :], len(groups))
    shown_rows = {
        name: np.column_stack([rows, part]) for (name, rows), part in zip(groups.items(), parts, strict=True)
    }
    labelled = None
    labels = pair.source.labels
    if labels is not None:
        labels = labels[result.rows]
        known = labels[queries] != ""
        own = labels[queries][known]
        other = labels[found[: len(queries)]][known]
        if 2 * len(own) > len(queries):
            shares = pd.Series(labels).value_counts(normalize=True)
            labelled = float(np.mean(own == other)), float(shares[own].mean())
    return Recovery(shown_rows, first, len(queries), len(result.rows), labelled)


def nearest_before_and_after(
    result: Inversion, position: int, k: int
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The true rows nearest to the true vector of a row, and those nearest to its recovered vector. Each are
    positions in `Inversion.rows` (k,) and cosines after centring (k,), the nearest first. The row itself is
    not among the first ones; it may be among the second ones. `position` is that of the row in
    `Inversion.rows`."""
    units = result.paired.units
    mean = result.paired.means[1]
    k = min(k, len(units) - 1)
    before = nearest(units[[position]], units, k + 1)
    others = before.rows[0] != position
    after = nearest(unit_rows(result.recovered[[position]], mean), units, k)
    return (before.rows[0][others][:k], before.products[0][others][:k]), (after.rows[0], after.products[0])


COLORS = ("error", "nearby", "pivots", "labels")
NEARBY = 50  # maximum number of rows on the map whose errors are averaged
_REGIONS = 10  # minimum number of rows for each averaged one, so that regions of the map can differ
# From pale grey over orange to red: the larger an error, the darker and the more vivid its colour, on white
# and on dark pages, also for eyes that see no red.
_ERROR_COLORS = ("#a9b7ca", "#c0b6ad", "#d5ab87", "#e09a5f", "#e28145", "#db603f", "#cc3d49", "#ad1d5b")


def error_edges(errors: np.ndarray) -> tuple[float, ...]:
    """Rounded edges between at most seven classes of errors. The classes cover the 1st to the 99th
    percentile."""
    low, high = np.percentile(errors, (1, 99))
    for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
        first = np.floor(low / step) + 1
        last = max(np.floor(low / step) + 1, np.ceil(high / step) - 1)
        if last - first < 6:
            break
    return tuple(np.round(np.arange(first, last + 1) * step, 3).tolist())


# Colourings by errors, with the names of their first class.
ERRORS = {"error": "Error", "nearby": "Mean error"}


def errors_to_color(inversion: Inversion, color_by: str) -> np.ndarray:
    """The number that colours each translated row, (m,). "error": its error, 1 − cosine. "nearby": the mean
    error of the `rows_nearby` held-out rows that are nearest to it on the map of the original rows."""
    errors = inversion.errors[inversion.spec.title]
    if color_by == "error":
        return errors
    from scipy.spatial import cKDTree

    places, _ = inversion.paired.map
    scored = np.flatnonzero(inversion.scored)
    k = rows_nearby(len(scored))
    _, near = cKDTree(places[scored]).query(places, k)
    return errors[scored][near.reshape(len(places), k)].mean(axis=1)


def rows_nearby(n_scored: int) -> int:
    """The number of held-out rows near a place on the map whose errors are averaged. If all of few rows were
    averaged, every place would have the same error."""
    return max(1, min(NEARBY, n_scored // _REGIONS))


def chance_errors(inversion: Inversion) -> np.ndarray:
    """Errors by chance, (number of held-out rows,): 1 − cosine of each recovered held-out row and the true
    vector of another one, by a random derangement."""
    scored = np.random.default_rng(0).permutation(np.flatnonzero(inversion.scored))
    recovered = unit_rows(inversion.recovered[scored], inversion.paired.means[1])
    return 1 - np.vecdot(recovered, inversion.paired.units[np.roll(scored, 1)])


def about_errors(inversion: Inversion) -> str:
    """A sentence that says how many errors are drawn, and the mean by chance."""
    chance = short(float(np.mean(chance_errors(inversion))), 2)
    return f"Errors of {counted(inversion.n_scored, 'held-out row')}; by chance, {chance} on average."


def inversion_scene(
    pair: Match,
    inversion: Inversion,
    color_by: str = "error",
    view: ViewSpec | None = None,
    edges: Sequence[float] = (),
) -> Scene:
    """A scene of the original and the recovered rows in the target space, both in the PCA of the original
    rows. If `color_by` is "pivots" or "labels", rows have the colours of `view`. If it is "error" or
    "nearby", colours show `errors_to_color` in steps, between `edges` (default: `error_edges` of the held-out
    rows).

    Raises
    ------
    SpaceError
        The pair lacks the labels or examples that `color_by` needs.
    """
    need_one_of("color_by", color_by, COLORS)
    coordinates = inversion.paired.coordinates(inversion.recovered)
    colors: tuple[str, ...] = ()
    if color_by in ERRORS:
        errors = errors_to_color(inversion, color_by)
        edges = edges or error_edges(errors[inversion.scored])
        first, *others = [f"< {general(edge)}" for edge in edges]
        categories = np.digitize(errors, edges)
        names = (f"{ERRORS[color_by].lower()} {first}", *others, f"≥ {general(edges[-1])}")
        places = np.linspace(0, len(_ERROR_COLORS) - 1, len(names)).round().astype(int)
        colors = tuple(_ERROR_COLORS[place] for place in places)
    else:
        if color_by == "labels":
            view = ViewSpec((), everything=True, color_by="labels")
        else:
            view = replace(view or ViewSpec(), everything=True, color_by="pivots")
        drawn = make_view(pair.source, view)
        categories = drawn.categories[inversion.rows]
        names = drawn.category_names
    source, target = side_names(pair, inversion.spec.route)
    if source == target:
        origin = f"through {counted(inversion.n_anchors, 'anchor')}"
    else:
        origin = f"from {source}"
    panes = (Pane(f"Original {target}", coordinates[0]), Pane(f"Recovered {origin}", coordinates[1]))
    colored = color_by
    if color_by == "pivots":
        colored = "examples"
    elif color_by == "error":
        colored = "error, 1 − cosine"
    elif color_by == "nearby":
        near = counted(rows_nearby(int(np.count_nonzero(inversion.scored))), "held-out row")
        colored = f"mean error, 1 − cosine, of the {near} nearest on the original map"
    caption = (
        f"{counted(len(inversion.rows), 'row')}, anchors among them; both panes by the PCA of the original."
        f" Recovered through {counted(inversion.n_anchors, 'anchor')}, {inversion.spec.title},"
        f" {inversion.spec.settings()}: mean error"
        f" {short(1 - inversion.scores[inversion.spec.title])} over"
        f" {counted(inversion.n_scored, 'held-out row')}. Coloured by {colored}."
    )
    return Scene(panes, pair.ids[inversion.rows], categories, names, caption=caption, category_colors=colors)


@dataclass(frozen=True)
class RecoveredRows(Recipe, ComparisonRecipe, figure="inversion"):
    """A figure with a pane of the original rows and a pane of the recovered rows. Its CSV file has the errors
    of each row."""

    inversion: InversionSpec = InversionSpec()
    color_by: str = "error"

    def draw(self, result: tuple[Inversion, Scene] | None = None) -> Exportable:
        if result is None:
            pair = load_pair(self)
            found = invert_pair(pair, self.anchors, self.inversion)
            result = found, inversion_scene(pair, found, self.color_by, self.view)
        found, scene = result
        drawn = scene_exportable(scene, self.to_json(), name="relscope-inversion")
        columns = {f"error, {method}": errors for method, errors in found.errors.items()}
        columns |= {"distance": found.distance, "held_out": found.scored}
        return replace(drawn, table=lambda: scene.table().assign(**columns))


@dataclass(frozen=True)
class RecoveryErrors(Recipe, ComparisonRecipe, figure="inversion-errors"):
    """A figure with a histogram for each method: 1 − cosine of the held-out rows. With `own`, it has the
    inverse and the chance level only."""

    newer: ClassVar[tuple[str, ...]] = ("own",)

    inversion: InversionSpec = InversionSpec()
    own: bool = False

    def draw(self, result: Inversion | None = None) -> Exportable:
        found = result or invert_pair(load_pair(self), self.anchors, self.inversion)
        title = "1 − cosine of recovered and true row, held-out rows"
        errors = {method: errors[found.scored] for method, errors in found.errors.items()}
        if self.own:
            errors = {found.spec.title: errors[found.spec.title], "chance": chance_errors(found)}
        drawn = histogram_exportable(errors, title, self.to_json(), name="relscope-inversion-errors")
        return replace(drawn, latex=found.summary)
