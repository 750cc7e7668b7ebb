"""The linked panes of a page: coordinates at once or by job, events into the session, the export bar beneath."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app import compute, exports, jobs, map_looks, session
from app.components.linked_scatter import PaneEvent, linked_scatter
from app.items import hover_columns, items_of, sheet_of
from app.sheets import Sheet
from app.workspace import Workspace
from relcore.charts.scene import Scene
from relcore.charts.star_look import StarLook
from relcore.comparing.figures import Panes
from relcore.comparing.orientation import orient_pairs
from relcore.comparing.scene import assemble_scene
from relcore.engine import Job
from relcore.spaces import Match
from relcore.views import View


@dataclass(frozen=True)
class Drawing:
    """The panes' current scene, its rows, its recipe, and the jobs that will refine it."""

    scene: Scene
    view: View
    recipe: Panes
    waiting: tuple[Job, ...] = ()
    sheet: Sheet | None = None


def draw(pair: Match, workspace: Workspace) -> Drawing:
    """The panes as they can be drawn now: PCA until UMAP or t-SNE is done."""
    if workspace.reduction.method == "pca":
        return _drawing(pair, workspace, compute.pca_coordinates)
    refined = _drawing(pair, workspace, jobs.reduction)
    if isinstance(refined, Drawing):
        return refined
    standing_in = replace(workspace, reduction=replace(workspace.reduction, method="pca"))
    return replace(_drawing(pair, standing_in, compute.pca_coordinates), waiting=refined)


def _drawing(pair: Match, workspace: Workspace, coordinates: Callable) -> Drawing | tuple[Job, ...]:
    view = compute.view(pair, workspace.view, workspace.anchors, workspace.reduction)
    results = {
        pane: coordinates(pair, view, pane, workspace.anchors, workspace.projection, workspace.reduction)
        for pane in dict.fromkeys(workspace.panes)
        if pane == "absolute" or workspace.anchors
    }
    waiting = tuple(result for result in results.values() if isinstance(result, Job))
    if waiting:
        return waiting
    if workspace.oriented:
        pca = compute.pca_coordinates(pair, view, "absolute", (), workspace.projection, workspace.reduction)
        results = orient_pairs(results, pca[0][0], pair, workspace.reduction)
    scene = assemble_scene((pair.source, pair.target), view, results, workspace.anchors)
    items = items_of(workspace)
    texts, notes = hover_columns(pair, view, items, label=workspace.view.color_by != "labels")
    settings = replace(workspace.recipe(pair.source.digest, pair.target.digest), panes=tuple(results))
    stars = None if workspace.stars == StarLook() else workspace.stars
    recipe = Panes.of(settings, stars=stars, oriented=workspace.oriented)
    look = {"stars": workspace.stars, "prominence": map_looks.prominence(pair, view)}
    return Drawing(replace(scene, texts=texts, notes=notes, **look), view, recipe, sheet=sheet_of(pair, view, items))


def show(pair: Match, drawing: Drawing, key: str, height: int) -> None:
    """The linked panes, their export bar, and the bars of jobs under way."""
    scene, ids = drawing.scene, pair.ids[drawing.view.rows]
    linked_scatter(
        scene,
        key=key,
        selected=_rows_among(drawing.view.rows, pair, session.selection()),
        height=height,
        sheet=drawing.sheet,
        on_event=lambda event: _receive(event, ids),
    )
    jobs.follow(drawing.waiting)
    exports.export_bar(drawing.recipe.draw(scene), key)


def _receive(event: PaneEvent, ids: np.ndarray) -> None:
    if event.stars is None:
        session.select(tuple(ids[event.rows]))
    else:
        session.edit("look of the anchors", stars=event.stars)


def _rows_among(rows: np.ndarray, pair: Match, chosen: Sequence[str]) -> np.ndarray:
    """Positions among the drawn rows of those ids that are drawn."""
    known = pair.source.index.get_indexer(list(chosen)) if chosen else np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.isin(rows, known[known >= 0]))
