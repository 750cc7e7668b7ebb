"""Figures of inversion from their recipes: the panes and the errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import need_one_of
from relcore.base.numbers import counted, short
from relcore.figures.export import Exportable, histogram_exportable
from relcore.figures.scene import Pane, Scene
from relcore.invert.recovery import Inversion, InversionSpec, invert_pair, side_names
from relcore.maps.reduction import ReductionSpec, reduce_spaces
from relcore.maps.views import ViewSpec, make_view
from relcore.panes.page import scene_exportable
from relcore.spaces.space import Match
from relcore.tasks.recipe import ComparisonRecipe, Recipe, load_pair

COLORS = ("error", "pivots", "labels")
EDGES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7)  # fixed, so that pictures compare
ERROR_NAMES = ("below .05", ".05 – .1", ".1 – .2", ".2 – .3", ".3 – .4", ".4 – .5", ".5 – .7", ".7 and more")
# Viridis without its ends, which are hard to see on a dark or a white page.
ERROR_COLORS = ("#414487", "#355f8d", "#2a768e", "#218e8d", "#21a585", "#3dbc74", "#70cf57", "#b0dd2f")


def inversion_scene(
    pair: Match, found: Inversion, color_by: str = "error", view: ViewSpec | None = None
) -> Scene:
    """Original and recovered rows in the target's space, both by the PCA that was fitted on the original.

    `color_by` "pivots" and "labels" colour as `view` says, "error" by 1 − cosine in fixed steps.

    Raises
    ------
    SpaceError
        Colours that the pair does not have.
    """
    need_one_of("color_by", color_by, COLORS)
    coordinates = reduce_spaces([found.true, found.found], ReductionSpec(fit="first"))
    inverse = found.errors[found.spec.title]
    if color_by == "error":
        categories, names = np.digitize(inverse, EDGES), tuple(f"error {name}" for name in ERROR_NAMES)
    else:
        view = (
            ViewSpec((), everything=True, color_by="labels")
            if color_by == "labels"
            else replace(view or ViewSpec(), everything=True, color_by="pivots")
        )
        drawn = make_view(pair.source, view)
        categories, names = drawn.categories[found.rows], drawn.category_names
    source, target = side_names(pair, found.spec.route)
    origin = f"through {counted(found.n_anchors, 'anchor')}" if source == target else f"from {source}"
    panes = (Pane(f"Original {target}", coordinates[0]), Pane(f"Recovered {origin}", coordinates[1]))
    caption = (
        f"{len(found.rows):,} of the {counted(found.n, 'row')}; both panes by the PCA of the original."
        f" Recovered through {counted(found.n_anchors, 'anchor')}, {found.spec.title},"
        f" {found.spec.settings()}: mean cosine to the true rows {short(found.scores[found.spec.title])} over"
        f" {counted(found.n_scored, 'held-out row')}. Coloured by"
        f" {'error, 1 − cosine' if color_by == 'error' else color_by}."
    )
    colors = ERROR_COLORS if color_by == "error" else ()
    return Scene(panes, pair.ids[found.rows], categories, names, caption=caption, category_colors=colors)


@dataclass(frozen=True)
class RecoveredRows(Recipe, ComparisonRecipe):
    """The two panes of original and recovered rows; the CSV has each row's errors."""

    figure: ClassVar[str] = "inversion"

    inversion: InversionSpec = InversionSpec()
    color_by: str = "error"

    def draw(self, result: tuple[Inversion, Scene] | None = None) -> Exportable:
        if result is None:
            pair = load_pair(self)
            found = invert_pair(pair, self.anchors, self.inversion)
            result = found, inversion_scene(pair, found, self.color_by, self.view)
        found, scene = result
        drawn = scene_exportable(scene, self.to_json(), name="relscope-inversion")
        return replace(drawn, table=lambda: _with_errors(scene.table(), found))


def _with_errors(table: pd.DataFrame, found: Inversion) -> pd.DataFrame:
    columns = {f"error, {method}": errors for method, errors in found.errors.items()}
    return table.assign(**columns, distance=found.distance, held_out=found.scored)


@dataclass(frozen=True)
class RecoveryErrors(Recipe, ComparisonRecipe):
    """Histogram of 1 − cosine of the held-out rows by each method; as LaTeX the mean cosines with their
    chance levels.
    """

    figure: ClassVar[str] = "inversion-errors"

    inversion: InversionSpec = InversionSpec()

    def draw(self, result: Inversion | None = None) -> Exportable:
        found = result or invert_pair(load_pair(self), self.anchors, self.inversion)
        title = "1 − cosine of recovered and true row, held-out rows"
        drawn = histogram_exportable(
            found.held_out_errors, title, self.to_json(), name="relscope-inversion-errors"
        )
        return replace(drawn, latex=found.summary)
