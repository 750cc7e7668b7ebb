"""The linked panes of a page: coordinates at once or by job, events into the session, the export bar beneath."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app import compute, exports, jobs, session
from app.components.linked_scatter import PaneEvent, linked_scatter
from app.workspace import Workspace
from relcore.engine import Job
from relcore.figures.export import scene_exportable
from relcore.figures.scene import Scene
from relcore.recipe import assemble_scene
from relcore.spaces import Match
from relcore.views import View


def make_scene(pair: Match, workspace: Workspace) -> tuple[Scene, View, list[Job]]:
    """The scene as far as it can be drawn now, its rows, and the jobs that will refine it: until then PCA stands in."""
    drawn = compute.view(pair, workspace.view, workspace.anchors, workspace.reduction)
    pairs, waiting = {}, []
    for pane in dict.fromkeys(workspace.panes):
        asked = (pair, drawn, pane, workspace.anchors, workspace.projection, workspace.reduction)
        result = compute.pca_coordinates(*asked) if workspace.reduction.method == "pca" else jobs.reduction(*asked)
        if isinstance(result, Job):
            waiting.append(result)
            coordinates, note = compute.pca_coordinates(*asked)
            result = coordinates, f"{note}, until {result.title} is ready"
        pairs[pane] = result
    return assemble_scene((pair.source, pair.target), drawn, pairs, workspace.anchors), drawn, waiting


def show_scene(pair: Match, workspace: Workspace, scene: Scene, drawn: View, key: str, height: int) -> None:
    """Draw the panes, linked where they are flat, and their export bar."""
    ids = pair.ids[drawn.rows]
    if workspace.reduction.n_components == 3:
        from relcore.figures.interactive import panes_figure

        figure = panes_figure(scene, exports.theme(), height=height)
        st.plotly_chart(figure, theme=None, key=f"{key}-solid", config={"displaylogo": False})
        st.caption("Three dimensions are to look at; pick in two dimensions or in the tables.")
    else:
        linked_scatter(
            scene,
            key=key,
            selected=_rows_among(drawn.rows, pair, session.selection()),
            height=height,
            on_event=lambda event: _receive(event, ids),
        )
    recipe = workspace.recipe(pair.source.digest, pair.target.digest).to_json()
    exports.export_bar(scene_exportable(scene, recipe, name="relscope-panes"), key)


def _receive(event: PaneEvent, ids: np.ndarray) -> None:
    session.select(tuple(ids[event.rows]))


def _rows_among(rows: np.ndarray, pair: Match, chosen: Sequence[str]) -> np.ndarray:
    """Positions among the drawn rows of those ids that are drawn."""
    known = pair.source.index.get_indexer(list(chosen)) if chosen else np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.isin(rows, known[known >= 0]))
