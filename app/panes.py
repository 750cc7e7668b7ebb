"""The linked panes of a page, with the bars of jobs over them and the export bar beneath: events go into the session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from app import compute, exports, jobs, map_looks, session
from app.components.linked_scatter import linked_scatter
from app.items import hover_columns, items_of, sheet_of
from app.old_maps import PairMap, pair_map
from app.selected_rows import places_of_selected, select
from app.workspace import Workspace
from relcore.charts.scene import Scene
from relcore.charts.star_look import StarLook
from relcore.comparing.figures import Panes
from relcore.comparing.orientation import orient_pairs
from relcore.comparing.scene import assemble_scene, dressed
from relcore.panes.events import PaneEvent
from relcore.panes.sheet import Sheet
from relcore.reduction import ReductionSpec
from relcore.spaces import Match
from relcore.views import View

_ORIENTED = "relscope.oriented-maps"
_Maps = Mapping[str, tuple[Sequence[np.ndarray], str]]


@dataclass(frozen=True)
class Drawing:
    """The panes' current scene, its rows, its recipe, and its maps, of which some may be old and wait for a job."""

    scene: Scene
    view: View
    recipe: Panes
    maps: tuple[PairMap, ...]
    sheet: Sheet | None = None

    @property
    def is_of_its_recipe(self) -> bool:
        """Whether the recipe draws this scene: not while one map is new and another one old."""
        return not any(one.job for one in self.maps) or _all_by_pca(self.maps)


def _all_by_pca(maps: Iterable[PairMap]) -> bool:
    """Whether PCA stands in for all maps: this is a figure of its own."""
    return all(one.job and not one.earlier for one in maps)


def draw(pair: Match, workspace: Workspace) -> Drawing:
    """The panes as they can be drawn now: what UMAP or t-SNE still works on is an earlier map or PCA."""
    view = map_looks.view(pair, workspace)
    forms = [pane for pane in dict.fromkeys(workspace.panes) if pane == "absolute" or workspace.anchors]
    maps = {pane: pair_map(pair, view, pane, workspace) for pane in forms}
    if _all_by_pca(maps.values()):
        workspace = replace(workspace, reduction=replace(workspace.reduction, method="pca"))
    results = {pane: (one.coordinates, one.note) for pane, one in maps.items()}
    if workspace.oriented:
        pca = compute.pca_coordinates(pair, view, "absolute", (), workspace.projection, workspace.reduction)
        results = _oriented(results, pca[0][0], pair, workspace.reduction)
    scene = assemble_scene((pair.source, pair.target), view, results, workspace.anchors)
    items, second = items_of(workspace), map_looks.second(pair, view, workspace)
    clusters = map_looks.clusters(pair, view, second, scene.panes[0].coordinates, workspace, items)
    scene = dressed(scene, workspace.look, second, clusters)
    texts, notes = hover_columns(pair, view, items, label=workspace.view.color_by != "labels")
    settings = replace(workspace.recipe(pair.source.digest, pair.target.digest), panes=tuple(results))
    stars = None if workspace.stars == StarLook() else workspace.stars
    recipe = Panes.of(settings, stars=stars, oriented=workspace.oriented, look=workspace.look)
    look = {"stars": workspace.stars, "prominence": map_looks.prominence(pair, view)}
    scene = replace(scene, texts=texts, notes=notes, **look)
    return Drawing(scene, view, recipe, tuple(maps.values()), sheet=sheet_of(pair, view, items))


def _oriented(results: _Maps, reference: np.ndarray, pair: Match, reduction: ReductionSpec) -> _Maps:
    """`orient_pairs`, once for the same maps: a selection changes none of them, and the panes find them packed already."""
    kept, found = st.session_state.get(_ORIENTED, {}), {}
    for form, (coordinates, note) in results.items():
        arrays, asked = [reference, *coordinates], (note, reduction, compute.pair_key(pair))
        known = kept.get(form)
        if known is None or known[1] != asked or list(map(id, known[0])) != list(map(id, arrays)):
            turned = orient_pairs({form: results[form]}, reference, pair, reduction)[form]
            for one in turned[0]:
                one.flags.writeable = False
            known = arrays, asked, turned
        found[form] = known
    st.session_state[_ORIENTED] = found
    return {form: turned for form, (_, _, turned) in found.items()}


def show(pair: Match, drawing: Drawing, key: str, height: int) -> None:
    """The linked panes, and the bars of jobs over them."""
    scene = drawing.scene
    with st.container(key="panes"):
        linked_scatter(
            scene,
            key=key,
            selected=places_of_selected(pair, drawing.view.rows),
            height=height,
            fill=True,
            old=[one.old for one in drawing.maps for _ in one.coordinates],
            sheet=drawing.sheet,
            on_event=lambda event: _receive(event, pair, drawing.view),
        )
        if waiting := [one.job for one in drawing.maps if one.job]:
            with st.container(key="panes-jobs"):  # over the panes that will change
                jobs.follow(waiting)


def export_bar(drawing: Drawing, key: str) -> None:
    """The bar beneath the panes."""
    if drawing.is_of_its_recipe:
        exports.export_bar(drawing.recipe.draw(drawing.scene), key)
    else:
        st.caption("The panes can be exported when all maps are up to date.")


def _receive(event: PaneEvent, pair: Match, drawn: View) -> None:
    if event.stars is not None:
        session.edit("look of the anchors", stars=event.stars)
    elif event.hidden is not None:
        hidden, *second = event.hidden
        look = {"hidden": hidden, "second_hidden": second[0] if second else ()}
        session.edit_spec("hide classes" if any(event.hidden) else "show all classes", "look", **look)
    elif event.named is not None:
        session.edit_spec("show names" if event.named else "hide names", "look", named=event.named)
    elif event.turn is not None:
        session.guarded(session.turn, event.turn)
    else:
        select(pair, drawn.rows[event.rows])
