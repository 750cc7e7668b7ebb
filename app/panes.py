"""The linked panes of a page, with the bars of jobs over them and the export bar beneath: events go into
the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, exports, jobs, session
from app.components.linked_scatter import linked_scatter
from app.items import clusters_of, hover_columns, items_of, sheet_of
from app.workspace import Workspace
from relcore.base.names import REDUCTIONS
from relcore.compare.figures import Panes
from relcore.compare.scene import assemble_scene, dressed
from relcore.figures.scene import Scene, StarLook
from relcore.maps.pane_maps import orient_pairs
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import View
from relcore.panes.payload import PaneEvent, Sheet
from relcore.runs.jobs import Job
from relcore.spaces.space import Match

# What a pane shows while UMAP or t-SNE works: the last finished map of the same rows, or PCA; marked as old.

_MOST_MAPS = 8  # finished ones that a session remembers; of 20,000 rows they take 3 MB


@dataclass(frozen=True)
class DrawnMap:
    """Coordinates of both spaces, and a note on how they came about.

    Where they are not what was chosen: `old` says what they are, `earlier` whether they are a finished map
    rather than PCA, and `job` is what to wait for.
    """

    coordinates: list[np.ndarray]
    note: str
    old: str = ""
    earlier: bool = False
    job: Job | None = None


def pair_map(pair: Match, drawn: View, pane: str, workspace: Workspace) -> DrawnMap:
    """The map of one representation as it can be drawn now."""
    method = workspace.reduction.method
    settings = pair, drawn, pane, workspace.anchors, workspace.projection, workspace.reduction
    if method == "pca":
        return DrawnMap(*compute.pca_coordinates(*settings))
    place = compute.pair_key(pair), drawn.digest, pane, method, workspace.reduction.n_components
    found, kept = jobs.reduction(*settings), st.session_state.setdefault("relscope.maps", {})
    if isinstance(found, tuple):
        kept.pop(place, None)
        kept[place] = workspace.anchors, found
        if len(kept) > _MOST_MAPS:
            del kept[next(iter(kept))]
        return DrawnMap(*found)
    anchors, earlier = kept.get(place, (None, None))
    what = (
        "PCA"
        if earlier is None
        else "Earlier settings"
        if anchors == workspace.anchors
        else "Earlier anchors"
    )
    title, state = REDUCTIONS[method].title, found.status().state
    ended = {"failed": f"{what}: {title} failed", "cancelled": f"{what}: {title} was stopped"}
    told = ended.get(state, f"{what} until {title} is done")
    return DrawnMap(*(earlier or compute.pca_coordinates(*settings)), told, earlier is not None, found)


# The selected rows of a pair, looked up once for each selection: a lasso may hold half a million ids.

_KEPT = "relscope.selected-rows"


def selected(pair: Match) -> tuple[tuple[str, ...], np.ndarray]:
    """The selected ids that the pair has, in their order, and their row numbers (m,)."""
    ids, key = session.selection(), compute.pair_key(pair)
    kept = st.session_state.get(_KEPT)
    if kept is None or kept[0] is not ids or kept[1] != key:
        rows = (
            pair.source.index.get_indexer(pd.Index(ids, dtype=object)) if ids else np.empty(0, dtype=np.int64)
        )
        there = rows >= 0
        st.session_state[_KEPT] = kept = (
            ids,
            key,
            ids if there.all() else tuple(compress(ids, there)),
            rows[there],
        )
    return kept[2:]


def select(pair: Match, rows: np.ndarray) -> None:
    """Select these rows (m,) of the pair."""
    ids = tuple(pair.ids[rows])
    session.select(ids)
    st.session_state[_KEPT] = ids, compute.pair_key(pair), ids, rows


def anchors_among(pair: Match, rows: np.ndarray, anchors: Sequence[str]) -> list[str]:
    """Those of the anchors, in their order, that are among these rows (m,) of the pair."""
    chosen = np.zeros(len(pair), dtype=bool)
    chosen[rows] = True
    places = pair.source.index.get_indexer(pd.Index(anchors, dtype=object))
    return list(compress(anchors, (places >= 0) & chosen[places]))


def places_of_selected(pair: Match, drawn: np.ndarray) -> np.ndarray:
    """The places (s,), ascending, of the selected rows among the `drawn` row numbers (m,)."""
    _, rows = selected(pair)
    if not len(rows):
        return rows
    chosen = np.zeros(len(pair), dtype=bool)
    chosen[rows] = True
    return np.flatnonzero(chosen[drawn])


_ORIENTED = "relscope.oriented-maps"
_Maps = Mapping[str, tuple[Sequence[np.ndarray], str]]


@dataclass(frozen=True)
class Drawing:
    """The panes' current scene, its rows, its recipe, and its maps, of which some may be old and wait for
    a job.
    """

    scene: Scene
    view: View
    recipe: Panes
    maps: tuple[DrawnMap, ...]
    sheet: Sheet | None = None

    @property
    def is_of_its_recipe(self) -> bool:
        """Whether the recipe draws this scene: not while one map is new and another one old."""
        return not any(one.job for one in self.maps) or _all_by_pca(self.maps)


def _all_by_pca(maps: Iterable[DrawnMap]) -> bool:
    """Whether PCA stands in for all maps: this is a figure of its own."""
    return all(one.job and not one.earlier for one in maps)


def draw(pair: Match, workspace: Workspace) -> Drawing:
    """The panes as they can be drawn now: what UMAP or t-SNE still works on is an earlier map or PCA."""
    view = compute.view(pair, workspace)
    forms = [pane for pane in dict.fromkeys(workspace.panes) if pane == "absolute" or workspace.anchors]
    maps = {pane: pair_map(pair, view, pane, workspace) for pane in forms}
    if _all_by_pca(maps.values()):
        workspace = replace(workspace, reduction=replace(workspace.reduction, method="pca"))
    results = {pane: (one.coordinates, one.note) for pane, one in maps.items()}
    if workspace.oriented:
        pca = compute.pca_coordinates(pair, view, "absolute", (), workspace.projection, workspace.reduction)
        results = _oriented(results, pca[0][0], pair, workspace.reduction)
    scene = assemble_scene((pair.source, pair.target), view, results, workspace.anchors)
    items, second = items_of(workspace), compute.second_view(pair, view, workspace)
    clusters = clusters_of(pair, view, second, scene.panes[0].coordinates, workspace.look, items)
    scene = dressed(scene, workspace.look, second, clusters)
    texts, notes = hover_columns(pair, view, items, workspace.view.color_by != "labels")
    settings = replace(workspace.recipe(pair.source.digest, pair.target.digest), panes=tuple(results))
    stars = None if workspace.stars == StarLook() else workspace.stars
    recipe = Panes.of(settings, stars=stars, oriented=workspace.oriented, look=workspace.look)
    look = {"stars": workspace.stars, "prominence": compute.prominence(pair, view)}
    scene = replace(scene, texts=texts, notes=notes, **look)
    return Drawing(scene, view, recipe, tuple(maps.values()), sheet=sheet_of(pair, view, items))


def _oriented(results: _Maps, reference: np.ndarray, pair: Match, reduction: ReductionSpec) -> _Maps:
    """`orient_pairs`, once for the same maps: a selection changes none of them, and the panes find them
    packed already.
    """
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
