"""The linked panes of a page, with the progress bars of their jobs and the export bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO

import numpy as np
import streamlit as st

from app import compute, exports, jobs, live, session
from app.components.linked_scatter import linked_scatter
from app.items import Items, hover_columns, items_of, sheet_of
from app.selection import rows_of, select, selected_rows
from app.widgets import choose_anchors
from app.workspace import Workspace
from relcore.base.names import REDUCTIONS
from relcore.compare.clusters import lacks_names, named_clusters
from relcore.compare.columns import told_columns
from relcore.compare.filters import of_rows, undrawn
from relcore.compare.live_channel import N_SPREAD, SPREAD, page_units
from relcore.compare.pictures import Panes
from relcore.compare.scene import AXES, assemble_scene, with_look
from relcore.export.atlas import atlas_table
from relcore.figures.colorings import SELECTED_ROWS, Facet, StarLook
from relcore.figures.export import Exportable
from relcore.figures.scene import Clusters, Scene
from relcore.files.saving import write_parquet
from relcore.maps.pane_maps import OWN, TWO, Picture, View, drawn_panes, orient_pairs, with_rows
from relcore.maps.principal_axes import ReductionSpec
from relcore.panes.payload import PaneEvent, PaneSettings, Sheet
from relcore.runs.jobs import Job
from relcore.spaces.matching import Match

_MOST_MAPS = 8  # number of finished maps kept in a session; with 20,000 rows they take 3 MB
_MOST_FOUND = 200  # number of selected rows that the panes add to the drawn view
_FEW_ANCHORS = 20  # the panes draw all anchors if there are at most this many
_FILTERS = "relscope.filters"


@dataclass(frozen=True, eq=False)
class PaneInputs:
    """What the panes show: the matched models, the settings, the rows that these choose with their colours,
    the texts or pictures of the rows, and the numbers (s,) of the selected rows. `facets` are the columns by
    which rows can be filtered; () until the user opens the filters or sets one. `edges` are, for each model,
    the numbers of a row and of its neighbour, and 1 if they share a feature, (m, 3); () if no rows are joined
    by lines."""

    models: Match
    workspace: Workspace
    view: View
    items: Items | None
    selected: np.ndarray
    facets: tuple[Facet, ...] = ()
    edges: tuple[np.ndarray, ...] = ()


def inputs(
    models: Match,
    workspace: Workspace,
    *,
    with_selection: bool = True,
    edges: tuple[np.ndarray, ...] = (),
) -> PaneInputs:
    """The inputs of the panes of a workspace, with the rows that are selected in Explore, or with none."""
    selected = np.empty(0, dtype=int)
    if with_selection:
        selected = selected_rows(models)[1]
    return PaneInputs(
        models=models,
        workspace=workspace,
        view=compute.view(models, workspace),
        items=items_of(workspace),
        selected=selected,
        facets=_facets(models, workspace),
        edges=edges,
    )


def _facets(models: Match, workspace: Workspace) -> tuple[Facet, ...]:
    if not (workspace.look.filter or st.session_state.get(_FILTERS) == workspace.models):
        return ()
    return compute.workspace_facets(models, workspace)


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


@dataclass(frozen=True, eq=False)
class Drawing:
    """What the panes show now: the scene, its rows, and the maps of each pane. Jobs may still compute some
    maps. `workspace` has the settings by which the scene is drawn: those of the inputs, or PCA until the
    maps are computed."""

    inputs: PaneInputs
    workspace: Workspace
    scene: Scene
    view: View
    maps: Mapping[str, DrawnMap]
    sheet: Sheet | None
    offer: live.Offer

    @property
    def selected(self) -> np.ndarray:
        """The positions (s,) of the selected rows among the drawn rows."""
        return np.flatnonzero(np.isin(self.view.rows, self.inputs.selected))

    @property
    def is_of_its_recipe(self) -> bool:
        """Whether the recipe would draw this same scene. False while new and old maps are shown together."""
        return not any(drawn.job for drawn in self.maps.values()) or _all_by_pca(self.maps)


def _all_by_pca(maps: Mapping[str, DrawnMap]) -> bool:
    return all(drawn.job and not drawn.earlier for drawn in maps.values())


def draw(asked: PaneInputs) -> Drawing:
    """The scene of the panes. To the rows that the settings choose, it adds selected rows that these lack,
    such as the results of a search, the ends of edges, rows that pass the filter, and the anchors if they are
    few."""
    models = asked.models
    workspace = asked.workspace
    view = asked.view
    widths = [space.dimension for space in models.spaces]
    panes = drawn_panes(workspace.panes, widths, workspace.reduction)
    panes = tuple(pane for pane in panes if pane in AXES or workspace.anchors) or (OWN,)
    reduced = _reduced(models, view, panes, workspace)
    maps = {pane: _map_of(models, view, pane, workspace, reduced.get(pane)) for pane in panes}
    pictures: dict[str, Picture] = {pane: (drawn.coordinates, drawn.note) for pane, drawn in maps.items()}
    if _all_by_pca(maps):
        workspace = replace(workspace, reduction=replace(workspace.reduction, method="pca"))
    reference = None
    if workspace.oriented:
        reference = compute.pca_coordinates(models, view, OWN, (), workspace.projection, workspace.reduction)[
            0
        ][0]
        pictures = {
            pane: _oriented(models, pane, note, workspace.reduction, reference, *coordinates)
            for pane, (coordinates, note) in pictures.items()
        }
    shown = view
    others = _rows_to_add(asked, view)
    if len(others):
        shown = compute.view_with_rows(models, workspace, view, others)
        settings = workspace.anchors, workspace.projection, workspace.reduction
        pictures = {
            pane: with_rows(models, view.rows, others, pane, picture, *settings)
            for pane, picture in pictures.items()
        }
    return Drawing(
        inputs=asked,
        workspace=workspace,
        scene=_scene(asked, shown, compute.second_view(models, shown, workspace), pictures),
        view=shown,
        maps=maps,
        sheet=sheet_of(models, shown, asked.items),
        offer=live.AnchorOffer(
            pair=models,
            view=view,
            shown=shown.rows,
            workspace=workspace,
            panes=panes,
            reference=reference,
        ),
    )


def _reduced(
    models: Match, view: View, panes: Sequence[str], workspace: Workspace
) -> dict[str, Picture | Job]:
    """For each pane that shows a map by UMAP or t-SNE, the map or, until it is done, the job that computes
    it."""
    if workspace.reduction.method == "pca":
        return {}
    settings = (workspace.anchors, workspace.projection, workspace.reduction)
    return {pane: jobs.reduction(models, view, pane, *settings) for pane in panes if pane != TWO}


def _map_of(
    models: Match, view: View, pane: str, workspace: Workspace, result: Picture | Job | None
) -> DrawnMap:
    """The map of a pane. `result` is None for a map by PCA, and else that of `_reduced`. While this is a job,
    another map is drawn."""
    method = workspace.reduction.method
    settings = (models, view, pane, workspace.anchors, workspace.projection, workspace.reduction)
    if result is None:
        return DrawnMap(*compute.pca_coordinates(*settings))
    # The last finished maps of this session, each with its anchors. The newest is the last one.
    finished = st.session_state.setdefault("relscope.maps", {})
    place = compute.pair_key(models), view.digest, pane, method, workspace.reduction.n_components
    if isinstance(result, tuple):
        finished.pop(place, None)
        finished[place] = (workspace.anchors, result)
        if len(finished) > _MOST_MAPS:
            oldest = next(iter(finished))
            del finished[oldest]
        return DrawnMap(*result)
    if place not in finished:
        return DrawnMap(*compute.pca_coordinates(*settings), f"PCA{_why(method, result)}", False, result)
    anchors, earlier = finished[place]
    shown = "Earlier anchors"
    if anchors == workspace.anchors:
        shown = "Earlier settings"
    return DrawnMap(*earlier, f"{shown}{_why(method, result)}", True, result)


def _why(method: str, job: Job) -> str:
    """Why another map is shown: the end of a sentence that begins with its name."""
    title = REDUCTIONS[method].title
    state = job.status().state
    if state == "failed":
        return f": {title} failed"
    if state == "cancelled":
        return f": {title} was stopped"
    return f" until {title} is done"


@compute.cached(24)
def _oriented(
    models: Match,
    pane: str,
    note: str,
    reduction: ReductionSpec,
    reference: np.ndarray,
    *maps: np.ndarray,
) -> Picture:
    """The maps of a pane, rotated for display. They are cached, because selecting rows does not change
    them."""
    turned = orient_pairs({pane: (maps, note)}, reference, models, reduction)[pane]
    for coordinates in turned[0]:
        coordinates.flags.writeable = False
    return turned


def _rows_to_add(asked: PaneInputs, view: View) -> np.ndarray:
    others = np.setdiff1d(asked.selected, view.rows)[:_MOST_FOUND]
    for joined in asked.edges:
        others = np.union1d(others, np.setdiff1d(joined[:, :2], view.rows))
    anchors = asked.workspace.anchors
    if 0 < len(anchors) <= _FEW_ANCHORS:
        others = np.union1d(others, np.setdiff1d(rows_of(asked.models, anchors), [-1, *view.rows]))
    return np.union1d(others, _undrawn(asked, view))


def _undrawn(asked: PaneInputs, view: View) -> np.ndarray:
    """The rows that pass the filter, if there is one, and are not in the view."""
    if not asked.workspace.look.filter:
        return np.empty(0, dtype=np.int64)
    return undrawn(compute.passing_rows(asked.models, asked.workspace), view.rows)


def _scene(asked: PaneInputs, view: View, second: View | None, pictures: Mapping[str, Picture]) -> Scene:
    """The scene of the drawn rows with their maps. `second` has their second colouring, if there is one."""
    models = asked.models
    workspace = asked.workspace
    look = workspace.look
    scene = assemble_scene(models.spaces, view, pictures, workspace.anchors)
    clusters = None
    if look.named and lacks_names(view, second):
        clusters = _named_clusters(models, view, scene.panes[0].coordinates, asked.items)
    texts, notes = hover_columns(models, view, asked.items, workspace.view.color_by != "labels")
    scene = with_look(scene, look, second, clusters, asked.facets, view.rows)
    return replace(
        scene,
        texts=texts,
        notes=notes,
        stars=workspace.stars,
        prominence=compute.prominence(models, view),
        told=told_columns(models, view, workspace.view, workspace.tags),
    )


@compute.cached(16)
def _named_clusters(
    models: Match, view: View, coordinates: np.ndarray, items: Items | None
) -> Clusters | None:
    texts = None
    if items is not None and items.has_texts:
        texts = items.texts
    return named_clusters(models.source, view.rows, coordinates, texts, models.target)


def show(
    drawing: Drawing,
    key: str,
    height: int,
    hears: Callable[[PaneEvent, Drawing], None] | None = None,
    single: Sequence[int] = (),
    worded: bool = False,
) -> None:
    """Draw the panes. The callback `hears` gets their events. By default, events change the workspace.
    `single` are numbers of rows that get a dashed ring. With `worded`, each star shows its id."""
    scene = drawing.scene
    if np.isin(single, drawing.inputs.selected).any():  # explain the rings instead of counting the rows
        _, _, other_notes = scene.caption.partition("; ")
        scene = replace(scene, caption=f"Ring: found in both models; dashed: in one; {other_notes}")
    settings = PaneSettings(
        height=height,
        live=live.channel_of(key, drawing.offer),
        single=np.flatnonzero(np.isin(drawing.view.rows, single)).tolist(),
        worded=worded,
        named_by_class=drawing.workspace.view.color_by == "labels",
        filter_note="scores are of all rows",
        edges=[_drawn_edges(joined, drawing.view.rows) for joined in drawing.inputs.edges],
    )
    # One value per pane: a representation has as many panes as there are spaces.
    old = [drawn.old for drawn in drawing.maps.values() for _ in drawn.coordinates]
    receive = hears or _receive
    with st.container(key="panes"):
        linked_scatter(
            scene,
            key=key,
            selected=drawing.selected,
            old=old,
            sheet=drawing.sheet,
            settings=settings,
            on_event=lambda event: receive(event, drawing),
        )


def _drawn_edges(joined: np.ndarray, rows: np.ndarray) -> list[tuple[int, int, bool]]:
    """Edges (m, 3) between rows, as edges between positions among the drawn rows, all of which these are."""
    order = np.argsort(rows, kind="stable")
    ends = order[np.searchsorted(rows, joined[:, :2], sorter=order)]
    pairs = zip(ends.tolist(), joined[:, 2].tolist(), strict=True)
    return [(row, neighbour, bool(shared)) for (row, neighbour), shared in pairs]


def follow(drawing: Drawing) -> None:
    """Draw the progress bars of the jobs that compute the maps."""
    if waiting := [drawn.job for drawn in drawing.maps.values() if drawn.job]:
        with st.container(key="panes-jobs"):
            jobs.follow(waiting)


def _atlas(drawing: Drawing) -> bytes:
    """A table of the drawn rows for Embedding Atlas, with the coordinates of the first maps."""
    asked = drawing.inputs
    rows = drawing.view.rows
    stream = BytesIO()
    columns = compute.rows_table(asked.models, asked.workspace, rows, asked.items)
    coordinates = [pane.coordinates for pane in drawing.scene.panes]
    table = atlas_table(asked.models.spaces, rows, coordinates, columns)
    write_parquet(stream, table.schema, [table])
    return stream.getvalue()


def export_bar(drawing: Drawing, key: str, told: str, scores: Callable[[], Exportable] | None) -> None:
    """Draw the export menu of the panes. The HTML page shows the sentences `told` above the figure. `scores`
    returns the figure of the scores, which the menu exports, too."""
    if not drawing.is_of_its_recipe:
        st.caption("The panes can be exported when all maps are up to date.")
        return
    models = drawing.inputs.models
    workspace = drawing.workspace
    rows = drawing.view.rows
    stars = None
    if workspace.stars != StarLook():
        stars = workspace.stars
    settings = replace(workspace.recipe(models), panes=tuple(drawing.maps))
    view = drawing.inputs.view
    added = np.setdiff1d(rows, [*view.rows, *_undrawn(drawing.inputs, view)])
    recipe = Panes.of(
        settings,
        stars=stars,
        oriented=workspace.oriented,
        look=workspace.look,
        tags=workspace.tags,
        added=tuple(models.ids[added].tolist()),
    )
    scene = replace(
        drawing.scene,
        marked=drawing.selected,
        facets=of_rows(drawing.scene.facets, rows),
        facet_rows=None,
    )
    about = recipe.panes, len(scene.anchors), recipe.projection, recipe.reduction
    drawn = recipe.draw(scene, partial(page_units, models, rows, *about), told)
    exports.export_bar(drawn, key, partial(_atlas, drawing), scores)


def _receive(event: PaneEvent, drawing: Drawing) -> None:
    models = drawing.inputs.models
    rows = drawing.view.rows
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
        session.show_names(event.named)
    elif event.density is not None:
        step = "hide lines of density"
        if event.density:
            step = "show lines of density"
        session.edit_spec(step, "look", density=event.density)
    elif event.filter is not None:
        # The panes send only the name of a filter by ids, so the ids come from the workspace.
        own = {one.column: one for one in session.workspace().look.filter if one.column == SELECTED_ROWS}
        session.filter_rows(tuple(own.get(one.column, one) for one in event.filter))
    elif event.kind == "facets":
        st.session_state[_FILTERS] = session.workspace().models
    elif event.turn is not None:
        session.guarded(session.turn, event.turn)
    elif event.kind == "anchor":
        session.move_anchor(*models.ids[rows[event.rows]])
    elif event.kind == "spread":
        session.guarded(choose_anchors, models, SPREAD, N_SPREAD, 0)
    else:
        select(models, rows[event.rows])
