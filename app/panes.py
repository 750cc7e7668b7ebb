"""The linked panes of a page, with the progress bars of their jobs and the export bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import compress

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, exports, jobs, live, session
from app.components.linked_scatter import linked_scatter
from app.items import clusters_of, hover_columns, items_of, sheet_of
from app.widgets import choose_anchors
from app.workspace import Workspace
from relcore.base.names import REDUCTIONS
from relcore.compare.filters import of_rows
from relcore.compare.live_channel import N_SPREAD, SPREAD, page_units
from relcore.compare.pictures import Panes
from relcore.compare.scene import AXES, assemble_scene, with_look
from relcore.export.atlas import atlas_table
from relcore.figures.colorings import SELECTED_ROWS, Facet, StarLook
from relcore.figures.export import Exportable
from relcore.figures.scene import Scene
from relcore.files.saving import write_parquet
from relcore.maps.pane_maps import OWN, TWO, View, coordinates_on_maps, drawn_panes, orient_pairs
from relcore.maps.principal_axes import ReductionSpec
from relcore.panes.payload import PaneEvent, Sheet
from relcore.runs.jobs import Job
from relcore.spaces.matching import Match

_MOST_MAPS = 8  # number of finished maps kept in a session; with 20,000 rows they take 3 MB
_MOST_FOUND = 200  # number of selected rows that the panes add to the drawn view
_FEW_ANCHORS = 20  # the panes draw all anchors if there are at most this many
_KEPT = "relscope.selected-rows"
_FILTERS = "relscope.filters"


@dataclass(frozen=True)
class DrawnMap:
    """The coordinates of each space in a map, and a note. While UMAP or t-SNE runs, they are those of the
    last finished map of these rows (`earlier` is True) or, if there is none, of a PCA map. `old` then says
    which map is shown."""

    coordinates: list[np.ndarray]
    note: str
    old: str = ""
    earlier: bool = False
    job: Job | None = None


def pair_map(pair: Match, drawn: View, pane: str, workspace: Workspace) -> DrawnMap:
    method = workspace.reduction.method
    anchors = workspace.anchors
    settings = pair, drawn, pane, anchors, workspace.projection, workspace.reduction
    if method == "pca" or pane == TWO:
        return DrawnMap(*compute.pca_coordinates(*settings))
    place = compute.pair_key(pair), drawn.digest, pane, method, workspace.reduction.n_components
    result = jobs.reduction(*settings)
    kept = st.session_state.setdefault("relscope.maps", {})
    if isinstance(result, tuple):
        kept.pop(place, None)
        kept[place] = anchors, result
        if len(kept) > _MOST_MAPS:
            del kept[next(iter(kept))]
        return DrawnMap(*result)
    anchors_then, earlier = kept.get(place, (None, None))
    if anchors_then == anchors:
        shown = "Earlier settings"
    elif earlier:
        shown = "Earlier anchors"
    else:
        shown = "PCA"
    title = REDUCTIONS[method].title
    state = result.status().state
    ended = {"failed": f": {title} failed", "cancelled": f": {title} was stopped"}
    old = shown + ended.get(state, f" until {title} is done")
    return DrawnMap(*(earlier or compute.pca_coordinates(*settings)), old, earlier is not None, result)


def selected_rows(pair: Match) -> tuple[tuple[str, ...], np.ndarray]:
    """The selected ids that the pair contains, and their row numbers (m,)."""
    ids = session.selection()
    key = pair.source.digest
    kept = st.session_state.get(_KEPT)
    if kept is None or kept[0] is not ids or kept[1] != key:
        rows = _rows(pair, ids)
        there = rows >= 0
        if there.all():
            known = ids
        else:
            known = tuple(compress(ids, there))
        st.session_state[_KEPT] = kept = ids, key, known, rows[there]
    return kept[2:]


def _rows(pair: Match, ids: Sequence[str]) -> np.ndarray:
    """Row numbers (m,) of these ids; −1 for an id that the pair lacks."""
    return pair.source.index.get_indexer(pd.Index(ids, dtype=object))


def select(pair: Match, rows: np.ndarray) -> None:
    ids = tuple(pair.ids[rows])
    session.select(ids)
    st.session_state[_KEPT] = ids, pair.source.digest, ids, rows


def _chosen(pair: Match, rows: np.ndarray) -> np.ndarray:
    chosen = np.zeros(len(pair), dtype=bool)
    chosen[rows] = True
    return chosen


def anchors_among(pair: Match, rows: np.ndarray, anchors: Sequence[str]) -> list[str]:
    """The anchors that are among these rows (m,)."""
    places = _rows(pair, anchors)
    return list(compress(anchors, (places >= 0) & _chosen(pair, rows)[places]))


def places_of_selected(pair: Match, drawn: np.ndarray) -> np.ndarray:
    """The positions (s,) of the selected rows within `drawn` (m,), in ascending order."""
    _, rows = selected_rows(pair)
    if len(rows):
        return np.flatnonzero(_chosen(pair, rows)[drawn])
    return rows


@dataclass(frozen=True)
class Drawing:
    """What the panes show now: the scene, its rows, its recipe and its maps. Jobs may still compute some
    maps.

    `found` is the scene with added rows: selected rows that the view lacks, such as the results of a search,
    and the anchors if they are few.
    """

    scene: Scene
    view: View
    recipe: Panes
    maps: tuple[DrawnMap, ...]
    found: tuple[Scene, View]
    sheet: Sheet | None = None
    offer: live.Offer | None = None

    @property
    def is_of_its_recipe(self) -> bool:
        """Whether the recipe would draw this same scene. False while new and old maps are shown together."""
        return not any(drawn.job for drawn in self.maps) or _all_by_pca(self.maps)


def _all_by_pca(maps: Sequence[DrawnMap]) -> bool:
    return all(drawn.job and not drawn.earlier for drawn in maps)


def draw(pair: Match, workspace: Workspace, selection: bool = True) -> Drawing:
    """The panes of a workspace. Without `selection`, they ignore the rows that are selected in Explore."""
    view = compute.view(pair, workspace)
    widths = [space.dimension for space in pair.spaces]
    forms = drawn_panes(workspace.panes, widths, workspace.reduction)
    forms = [form for form in forms if form in AXES or workspace.anchors] or [OWN]
    maps = tuple(pair_map(pair, view, pane, workspace) for pane in forms)
    if _all_by_pca(maps):
        workspace = replace(workspace, reduction=replace(workspace.reduction, method="pca"))
    results = {pane: (drawn.coordinates, drawn.note) for pane, drawn in zip(forms, maps, strict=True)}
    if workspace.oriented:
        pca = compute.pca_coordinates(pair, view, OWN, (), workspace.projection, workspace.reduction)
        results = {
            pane: _oriented_maps(pair, pane, note, workspace.reduction, pca[0][0], *coordinates)
            for pane, (coordinates, note) in results.items()
        }
    scene = _scene(pair, workspace, view, results)
    settings = replace(workspace.recipe(pair), panes=tuple(results))
    if workspace.stars == StarLook():
        stars = None
    else:
        stars = workspace.stars
    recipe = Panes.of(settings, stars=stars, oriented=workspace.oriented, look=workspace.look)
    found = scene, view
    if selection:
        chosen = selected_rows(pair)[1]
    else:
        chosen = np.empty(0, dtype=int)
    others = np.setdiff1d(chosen, view.rows)[:_MOST_FOUND]
    if 0 < len(workspace.anchors) <= _FEW_ANCHORS:
        others = np.union1d(others, np.setdiff1d(_rows(pair, workspace.anchors), [-1, *view.rows]))
    if len(others):
        shown = with_rows(pair, workspace, view, others)
        affine = workspace.reduction.method == "pca"
        how = "; rows found by search stand at the mean place of their 3 nearest rows"
        if affine:
            how = ""
        placed = {
            pane: (_with_places(pair, workspace, pane, view, shown, others, maps, affine), f"{note}{how}")
            for pane, (maps, note) in results.items()
        }
        found = _scene(pair, workspace, shown, placed), shown
    sheet = sheet_of(pair, found[1], items_of(workspace))
    reference = None
    if workspace.oriented:
        reference = pca[0][0]
    offer = live.AnchorOffer(
        pair=pair,
        view=view,
        shown=found[1].rows,
        workspace=workspace,
        panes=tuple(results),
        reference=reference,
    )
    return Drawing(scene, view, recipe, maps, found, sheet, offer)


def _scene(
    pair: Match, workspace: Workspace, view: View, results: dict[str, tuple[Sequence[np.ndarray], str]]
) -> Scene:
    scene = assemble_scene(pair.spaces, view, results, workspace.anchors)
    look = workspace.look
    items = items_of(workspace)
    second = compute.second_view(pair, view, workspace)
    clusters = clusters_of(pair, view, second, scene.panes[0].coordinates, look, items)
    texts, notes = hover_columns(pair, view, items, workspace.view.color_by != "labels")
    prominence = compute.prominence(pair, view)
    scene = with_look(scene, look, second, clusters, _facets(pair, workspace, view))
    return replace(scene, texts=texts, notes=notes, stars=workspace.stars, prominence=prominence)


def _facets(pair: Match, workspace: Workspace, view: View) -> tuple[Facet, ...]:
    """The columns by which the drawn rows can be filtered. Returns () until the user opens the filters or
    sets one."""
    if not (workspace.look.filter or st.session_state.get(_FILTERS) == workspace.models):
        return ()
    return of_rows(compute.workspace_facets(pair, workspace), view.rows)


def with_rows(pair: Match, workspace: Workspace, view: View, others: np.ndarray) -> View:
    rows = np.union1d(view.rows, others)
    if workspace.view.color_by != "pivots":
        return compute.view_of_rows(pair, workspace, rows)
    categories = np.full(len(rows), -1)
    categories[np.searchsorted(rows, view.rows)] = view.categories
    return replace(view, rows=rows, categories=categories)


def _with_places(
    pair: Match,
    workspace: Workspace,
    pane: str,
    view: View,
    shown: View,
    others: np.ndarray,
    maps: Sequence[np.ndarray],
    affine: bool,
) -> list[np.ndarray]:
    """The maps with the rows `others` added. Rows that are drawn already keep their places."""
    settings = pane, workspace.anchors, workspace.projection, maps, affine
    both = []
    for known, new in zip(maps, coordinates_on_maps(pair, view.rows, others, *settings), strict=True):
        coordinates = np.empty((len(shown.rows), known.shape[1]), dtype=known.dtype)
        coordinates[np.searchsorted(shown.rows, view.rows)] = known
        coordinates[np.searchsorted(shown.rows, others)] = new
        both.append(coordinates)
    return both


@compute.cached(24)
def _oriented_maps(
    pair: Match, form: str, note: str, reduction: ReductionSpec, reference: np.ndarray, *maps: np.ndarray
) -> tuple[list[np.ndarray], str]:
    """The result of `orient_pairs`, which rotates the maps for display. It is cached, because selecting rows
    does not change it."""
    turned = orient_pairs({form: (maps, note)}, reference, pair, reduction)[form]
    for coordinates in turned[0]:
        coordinates.flags.writeable = False
    return turned


def show(
    pair: Match,
    drawing: Drawing,
    key: str,
    height: int,
    hears: Callable[[PaneEvent, Match, View], None] | None = None,
    single: Sequence[int] = (),
    worded: bool = False,
    selection: bool = True,
) -> None:
    """Draw the panes. The callback `hears` gets their events. By default, events change the workspace.
    `single` are numbers of rows that get a dashed ring. With `worded`, each star shows its id. Without
    `selection`, no row is selected."""
    scene, view = drawing.found
    if len(single):
        scene = replace(
            scene, caption=f"Ring: found in both models; dashed: in one; {scene.caption.partition('; ')[2]}"
        )
    with st.container(key="panes"):
        if selection:
            selected = places_of_selected(pair, view.rows)
        else:
            selected = np.empty(0, dtype=int)
        places = ()
        if len(single):
            places = np.flatnonzero(np.isin(view.rows, single)).tolist()
        linked_scatter(
            scene,
            key=key,
            selected=selected,
            height=height,
            old=[drawn.old for drawn in drawing.maps for _ in drawn.coordinates],
            sheet=drawing.sheet,
            live=live.channel_of(key, drawing.offer),
            worded=worded,
            single=places,
            on_event=lambda event: (hears or _receive)(event, pair, view),
        )


def follow(drawing: Drawing) -> None:
    """Draw the progress bars of the jobs that compute the maps."""
    if waiting := [drawn.job for drawn in drawing.maps if drawn.job]:
        with st.container(key="panes-jobs"):
            jobs.follow(waiting)


def _atlas(pair: Match, drawing: Drawing, workspace: Workspace) -> bytes:
    """A table of the drawn rows for Embedding Atlas, with the coordinates of the first maps."""
    rows = drawing.view.rows
    stream = BytesIO()
    columns = compute.rows_table(pair, workspace, rows, items_of(workspace))
    table = atlas_table(pair.spaces, rows, [pane.coordinates for pane in drawing.scene.panes], columns)
    write_parquet(stream, table.schema, [table])
    return stream.getvalue()


def export_bar(
    pair: Match, drawing: Drawing, key: str, told: str, scores: Callable[[], Exportable] | None
) -> None:
    """Draw the export menu of the panes. The HTML page shows the sentences `told` above the figure. `scores`
    returns the figure of the scores, which the menu exports, too."""
    workspace = session.workspace()
    if drawing.is_of_its_recipe:
        recipe = drawing.recipe
        anchors = drawing.scene.anchors
        about = recipe.panes, len(anchors), recipe.projection, recipe.reduction
        units = partial(page_units, pair, drawing.view.rows, *about)
        drawn = recipe.draw(drawing.scene, units, told)
        exports.export_bar(drawn, key, partial(_atlas, pair, drawing, workspace), scores)
    else:
        st.caption("The panes can be exported when all maps are up to date.")


def _receive(event: PaneEvent, pair: Match, drawn: View) -> None:
    if event.stars is not None:
        session.edit("look of the anchors", stars=event.stars)
    elif event.hidden is not None:
        hidden, *second = event.hidden
        step = "show all classes"
        if any(event.hidden):
            step = "hide classes"
        session.edit_spec(
            step,
            "look",
            hidden=hidden,
            second_hidden=second[0] if second else (),
        )
    elif event.named is not None:
        step = "hide names"
        if event.named:
            step = "show names"
        session.edit_spec(step, "look", named=event.named)
    elif event.filter is not None:
        # The panes send only the name of a filter by ids, so the ids come from the workspace.
        own = {one.column: one for one in session.workspace().look.filter if one.column == SELECTED_ROWS}
        session.filter_rows(tuple(own.get(one.column, one) for one in event.filter))
    elif event.kind == "facets":
        st.session_state[_FILTERS] = session.workspace().models
    elif event.turn is not None:
        session.guarded(session.turn, event.turn)
    elif event.kind == "anchor":
        session.move_anchor(*pair.ids[drawn.rows[event.rows]])
    elif event.kind == "spread":
        session.guarded(choose_anchors, pair, SPREAD, N_SPREAD, 0)
    else:
        select(pair, drawn.rows[event.rows])
