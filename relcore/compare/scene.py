"""The figures of a comparison, and what they need: settings, the pair of spaces, and the scene of the linked
panes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.access import data_folder, expand_home
from relcore.base.arguments import need_ids, need_kind
from relcore.base.errors import SpaceError, extra, need_one_of, need_strings
from relcore.base.names import FIGURES, named_in_errors
from relcore.base.numbers import counted
from relcore.base.records import finder, with_paths
from relcore.base.rows import directions, row_blocks, unit_rows
from relcore.base.settings import check, setting
from relcore.catalog.catalog import SpaceSpec, load, space_name
from relcore.catalog.comparison_recipe import ComparisonRecipe, load_models, load_pair
from relcore.catalog.row_tables import row_texts
from relcore.catalog.task import Recipe, SpacesRecipe, recipe_of
from relcore.compare.columns import (
    Cells,
    are_readable_ids,
    cells_of,
    kept_rows,
    lacks_names,
    named_clusters,
    of_rows,
    with_color_column,
)
from relcore.compare.live import (
    FORMS,
    N_SPREAD,
    SPREAD,
    LiveAnswers,
    LiveComparison,
    LiveRows,
    live_header,
    page_units,
    why_not,
)
from relcore.compare.scoring import (
    SETTINGS,
    AllPairs,
    pair_matrices,
    used_settings,
)
from relcore.encoders.sentences import load_words
from relcore.engine.engine import nearest_within
from relcore.figures.export import (
    Exportable,
    chart_exportable,
    read_recipe,
    scores_exportable,
)
from relcore.figures.scene import FACING, Clusters, Coloring, Condition, Facet, Pane, Scene, StarLook
from relcore.maps.pane_maps import (
    COLUMN,
    GRID,
    NUMBERS,
    OWN,
    PANES,
    TWO,
    View,
    ViewSpec,
    default_view,
    drawn_panes,
    make_view,
    map_pair,
    need_color,
    orient_pairs,
    same_rows,
    sample_view,
)
from relcore.maps.reduction import ReductionSpec, is_tsne, reduce_spaces
from relcore.panes.channel import read_request
from relcore.panes.page import PageUnits, scene_exportable
from relcore.represent.similarity import (
    mean_of,
    select_anchors,
    usual_anchors,
)
from relcore.represent.translation import REPRESENTATIONS, ProjectionSpec, represent
from relcore.scores.comparison import class_labels, metrics_of_a_pair, score_forms, score_table
from relcore.scores.score import PairScores, Score
from relcore.spaces.space import LatentSpace, Match, MatrixLike, as_pair, distinct_names, match, short_names
from relcore.spaces.split import derangement

if TYPE_CHECKING:
    import pyarrow as pa

    from relcore.panes.widget import PanesWidget

RIGHT = "right"
LOWER = "lower"
BY_TWO = {TWO: "by two anchors"}
AXES = {OWN: "own axes", "absolute": "shared axes"}  # names of the panes that show absolute spaces


@dataclass(frozen=True)
class MapLook:
    """The display settings that a figure of the linked maps shares with the screen.

    Attributes
    ----------
    named : bool
        Write the names of classes or clusters on the maps.
    turn : tuple of 9 floats
        Rotation matrix of maps of three dimensions, row by row: right, up, to the viewer. If it is empty,
        `FACING` is used.
    hidden, second_hidden : tuple of str
        Classes whose rows are hidden, in the first and in the second colouring.
    second : str
        The column of the second colouring, as in `ViewSpec.color_by`; "" if all panes have the same colours.
    second_panes : "right" or "lower"
    filter : tuple of Condition
        Rows that do not meet all of these conditions are grey.
    """

    named: bool = True
    turn: tuple[float, ...] = ()
    hidden: tuple[str, ...] = ()
    second: str = ""
    second_panes: str = RIGHT
    second_hidden: tuple[str, ...] = ()
    filter: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        need_strings("look: hidden", self.hidden)
        need_strings("look: second_hidden", self.second_hidden)
        need_one_of("look: second_panes", self.second_panes, (RIGHT, LOWER))
        if self.second:
            need_color("look: second", self.second)
        if self.turn:
            matrix = np.array(self.turn, dtype=np.float64)
            if len(matrix) != len(FACING) or not np.allclose(
                matrix.reshape(3, 3) @ matrix.reshape(3, 3).T, np.eye(3), atol=1e-3
            ):
                raise SpaceError(f"look: turn: expected the 9 numbers of a rotation, got {self.turn!r:.80}")

    def panes(self, n_panes: int, columns: int = 2) -> tuple[int, ...]:
        """Indices of the panes with the second colouring: the lower panes, or the panes of all spaces except
        the first."""
        if not self.second:
            return ()
        lower = self.second_panes == LOWER
        return tuple(pane for pane in range(n_panes) if (pane >= columns if lower else pane % columns))


def drawn_view(space: LatentSpace, view: ViewSpec, anchors: Sequence[str], reduction: ReductionSpec) -> View:
    """The rows to draw and their colours. For t-SNE, the rows are sampled if there are more than
    `max_points`."""
    drawn = make_view(space, view, anchors)
    if not is_tsne(reduction):
        return drawn
    return sample_view(drawn, reduction.max_points, reduction.random_state)


def assemble_scene(
    spaces: Sequence[LatentSpace],
    view: View,
    pairs: Mapping[str, tuple[Sequence[np.ndarray], str]],
    anchor_ids: Sequence[str],
) -> Scene:
    """A scene, which is all that the linked panes draw. `pairs` gives the coordinates and the note of each
    representation, and the view gives the colours. Each representation has a row of panes, with one pane per
    space. The notes form the caption."""
    names = distinct_names(spaces)
    titled = {
        (AXES | BY_TWO).get(representation, representation): pair for representation, pair in pairs.items()
    }
    panes = tuple(
        Pane(f"{name} · {title}", coordinates)
        for title, (pair, _) in titled.items()
        for name, coordinates in zip(names, pair, strict=True)
    )
    # row numbers are distinct and ascending
    source = spaces[0]
    rows = view.rows
    if len(rows) == len(source):
        ids = source.ids
    else:
        ids = source.ids[rows]
    if len(anchor_ids):
        anchor_rows = source.rows(anchor_ids)
    else:
        anchor_rows = np.empty(0, dtype=np.int64)
    places = np.searchsorted(rows, anchor_rows)
    drawn = (places < len(rows)) & (rows[np.minimum(places, len(rows) - 1)] == anchor_rows)
    every = len(rows) == len(source)
    shown = f"{'All ' if every else f'{len(rows):,} of the '}{counted(len(source), 'row')}"
    notes = [f"{shown} of {', '.join(names[:-1])} and {names[-1]}"]
    notes += [f"{title}: {note}" for title, (_, note) in titled.items()]
    n = len(anchor_ids)
    among = ""
    if drawn.sum() < n:
        among = f", {drawn.sum():,} of them drawn"
    caption = "; ".join([*notes, f"{counted(n, 'anchor')}{among}", *filter(None, [view.about])])
    title = view.scale.title if view.scale else ""
    number = {}
    if view.scale:
        number = {"scale": view.scale, "values": view.values, "color_title": title}
    mute = not are_readable_ids(source.ids)
    look = {"mute": mute, "columns": len(spaces), "anchor_numbers": np.flatnonzero(drawn) + 1} | number
    return Scene(panes, ids, view.categories, view.category_names, places[drawn], caption, **look)


def second_view(
    matched: Match, view: View, spec: ViewSpec, look: MapLook, cells: Cells | None
) -> View | None:
    """The same rows in the second colouring; None if there is no second colouring. Raises the errors of
    `with_color_column`."""
    if not look.second:
        return None
    spec = replace(spec, color_by=look.second)
    if look.second in NUMBERS or look.second.startswith(COLUMN):
        return with_color_column(matched, view, spec, cells)
    return same_rows(matched.source, spec, view.rows)


def with_look(
    scene: Scene,
    look: MapLook,
    second: View | None,
    clusters: Clusters | None = None,
    facets: Sequence[Facet] = (),
) -> Scene:
    """The scene with the display settings of `look`: hidden classes, filter, names, turn and, on the panes
    that have it, the second colouring. `facets` are the columns by which its rows can be filtered, including
    those of the current filter."""
    panes = look.panes(len(scene.panes), scene.columns)
    title = look.second.removeprefix(COLUMN)
    colors = None
    if second and panes:
        scale = second.scale
        shown = (scale.colors if scale else (), title, scale, second.values, look.second_hidden)
        colors = Coloring(second.categories, second.category_names, *shown)
    shown = {"hidden": look.hidden, "facets": tuple(facets), "filter": look.filter if facets else ()}
    scene = replace(scene, second=colors, second_panes=panes if colors else (), **shown)
    caption = scene.caption
    if colors:
        caption += f"; the {look.second_panes} panes coloured by {second.about or title}"
    if hidden := len(scene) - int(scene.shown.sum()):
        caption += f"; {counted(hidden, 'row')} hidden"
    if scene.filter:
        conditions = "; ".join(map(str, scene.filter))
        caption += f"; {counted(int(scene.kept.sum()), 'row')} in colour by the filter ({conditions})"
    if clusters is not None and not clusters.names:
        caption += "; no clusters: fewer than half of the rows would lie in dense groups"
        clusters = None
    return replace(scene, caption=caption, clusters=clusters, named=look.named, turn=look.turn or FACING)


def comparison_scene(
    recipe: ComparisonRecipe,
    matched: Match | None = None,
    oriented: bool = False,
    look: MapLook | None = None,
) -> Scene:
    """The scene that a recipe describes. If `oriented` is True, maps are rotated as by `orient_pairs`."""
    matched = matched or load_models(recipe)
    cells = cells_of(recipe.source, recipe.target, partial(load, again=True))
    view = with_color_column(
        matched, drawn_view(matched.source, recipe.view, recipe.anchors, recipe.reduction), recipe.view, cells
    )
    widths = [space.dimension for space in matched.spaces]
    pairs = {
        pane: map_pair(matched, view.rows, pane, recipe.anchors, recipe.projection, recipe.reduction)
        for pane in drawn_panes(recipe.panes, widths, recipe.reduction)
    }
    if oriented:  # `reference` is the PCA of the drawn absolute rows of the source, (m, c)
        absolute = pairs.get("absolute") or pairs.get(OWN)
        if recipe.reduction.method == "pca" and absolute:
            reference = absolute[0][0]
        else:
            vectors = matched.source.vectors
            by_pca = replace(recipe.reduction, method="pca", align=False)
            if len(view.rows) != len(vectors):
                vectors = vectors[view.rows]
            reference = reduce_spaces([vectors], by_pca)[0]
        pairs = orient_pairs(pairs, reference, matched, recipe.reduction)
    scene = assemble_scene(matched.spaces, view, pairs, recipe.anchors)
    if look is None:
        return scene
    second = second_view(matched, view, recipe.view, look, cells)
    clusters = texts = None
    if look.named and lacks_names(view, second):
        if matched.source.labels is None:
            texts = row_texts((recipe.source, recipe.target), partial(load, again=True))
        coordinates = scene.panes[0].coordinates
        clusters = named_clusters(matched.source, view.rows, coordinates, texts, matched.target)
    facets, _ = kept_rows(matched, look.filter, cells)
    return with_look(scene, look, second, clusters, of_rows(facets, view.rows))


def prominent_rows(space: LatentSpace, view: View) -> np.ndarray:
    """The rows of the view (m,) in order of prominence. The first row is the most frequent one; without
    counts, it is the most central one.

    A row is central if its cosine with the mean of its own category is high, in the centred space. The rows
    are read twice, block by block, to avoid a copy; with a million rows, a copy would be the largest object
    in memory.
    """
    if space.counts is not None:
        return np.argsort(-np.asarray(space.counts)[view.rows], kind="stable")
    mean = mean_of(space)
    vectors = space.vectors
    _, groups = np.unique(view.categories, return_inverse=True)
    sums = np.zeros((groups.max(initial=-1) + 1, space.dimension))
    for block in row_blocks(len(view.rows)):
        members = np.zeros((len(sums), block.stop - block.start), dtype=np.float32)
        members[groups[block], np.arange(members.shape[1])] = 1
        sums += members @ unit_rows(vectors[view.rows[block]], mean)
    middles = unit_rows(sums)
    central = np.empty(len(view.rows), dtype=np.float32)
    for block in row_blocks(len(view.rows)):
        central[block] = np.vecdot(unit_rows(vectors[view.rows[block]], mean), middles[groups[block]])
    return np.argsort(-central, kind="stable")


def exportable(recipe: Mapping[str, Any]) -> Exportable:
    """Load the data of a recipe, and compute the figure that it describes.

    Raises
    ------
    SpaceError
        An unknown figure; settings that are missing, unknown or wrong; data that are missing or have changed.
    """
    described = recipe_of(recipe)
    with named_in_errors(FIGURES[described.figure].plugin):
        return described.draw()


def figure_of(
    recipe: Mapping[str, Any] | str | Path,
    folders: Sequence[str | Path] = (),
    files: Mapping[str, Path] | None = None,
) -> Exportable:
    """Draw the figure of a recipe. The recipe is a mapping, or the path of a recipe or picture file that
    Relscope exported.

    The files that the recipe names are searched in the folder of the recipe, in the current folder, and up to
    two levels below `folders` and RELSCOPE_DATA. `files` maps names of files to their paths.

    Raises
    ------
    SpaceError
        The errors of `exportable`; a recipe that cannot be read; a file that is not found.

    Examples
    --------
    >>> from relcore import figure_of
    >>> names = "word2vec-novels", "fasttext-novels"
    >>> source, target = ({"source": "bundled", "name": name, "limit": 500} for name in names)
    >>> recipe = {"figure": "comparison", "source": source, "target": target, "anchors": ["time", "man"]}
    >>> figure_of(recipe | {"view": {"pivots": ["time"]}}).name
    'relscope-panes-word2vec-novels-fasttext-novels'
    """
    return exportable(recipe_with_paths(recipe, folders, files))


def recipe_with_paths(
    recipe: Mapping[str, Any] | str | Path,
    folders: Sequence[str | Path] = (),
    files: Mapping[str, Path] | None = None,
) -> dict[str, Any]:
    """The recipe with the full paths of the files that it names. The arguments and errors are those of
    `figure_of`."""
    beside = []
    if not isinstance(recipe, Mapping):
        recipe = expand_home(recipe)
        beside = [recipe.parent]
        recipe = read_recipe(recipe)
    remedy = "give the file's folder (--data FOLDER on the command line) or its path (--file NAME=PATH)"
    places = [*map(Path, folders), *filter(None, [data_folder()])]
    return with_paths(recipe, finder([*beside, Path()], places, files, remedy))


@dataclass(frozen=True)
class Panes(Recipe, ComparisonRecipe, figure="comparison"):
    """The exported figure of the linked panes, as a recipe describes it."""

    newer: ClassVar[tuple[str, ...]] = ("stars", "oriented", "look")

    stars: StarLook | None = None
    oriented: bool = False
    look: MapLook | None = None

    def draw(
        self,
        result: Scene | None = None,
        units: Callable[[], PageUnits | None] = lambda: None,
        about: str = "",
    ) -> Exportable:
        if result is None:
            scene = comparison_scene(self, oriented=self.oriented, look=self.look)
            result = replace(scene, stars=self.stars or StarLook())
        # The file is named without the representation, with which the title of a pane ends.
        titles = [pane.title.rpartition(" · ")[0] for pane in result.panes[: result.columns]]
        name = _file_name("relscope-panes", titles)
        return scene_exportable(result, self.to_json(), name, units, about)


def _file_name(kind: str, spaces: Sequence[str]) -> str:
    named = (re.sub(r"[^\w.]+", "-", name)[:30].strip("-.") for name in short_names(spaces)[0])
    return "-".join([kind, *filter(None, named)])


def panes_of(pair: Match, anchors: Sequence[str] | np.ndarray) -> Exportable:
    """A figure of all rows of the matched spaces: absolute maps above, relative maps below, by PCA fitted on
    the first space. Anchors are given by id.

    It is meant for scripts and notebooks: ``save("panes.pdf")`` writes the figure. It has no recipe, because
    only the caller knows where the spaces come from.

    Examples
    --------
    >>> from relcore import load_words, match, select_anchors
    >>> pair = match(*(load_words(name, limit=300) for name in ("word2vec-novels", "fasttext-novels")))
    >>> figure = panes_of(pair, select_anchors(pair.source, 30))
    >>> len(figure.table())
    300
    """
    need_kind("pair", pair, Match)
    anchors = need_ids("anchors", anchors)
    named = (SpaceSpec("file", space.name) for space in (pair.source, pair.target))
    view = replace(default_view(pair.source), everything=True)
    recipe = ComparisonRecipe(*named, tuple(anchors), view=view, reduction=ReductionSpec(fit="first"))
    about = recipe.panes, len(recipe.anchors), recipe.projection, recipe.reduction
    units = partial(page_units, pair, np.arange(len(pair)), *about)
    return scene_exportable(comparison_scene(recipe, pair), units=units)


@dataclass(frozen=True)
class Scores(Recipe, ComparisonRecipe, figure="scores"):
    """A figure of the scores of all representations on held-out rows, with chance levels."""

    newer: ClassVar[tuple[str, ...]] = ("class_agreement", "metrics")

    k: int = setting(10, low=1)
    convention: str = "paper"
    n_queries: int | None = setting(None, low=1)
    class_agreement: bool = False
    metrics: tuple[str, ...] = ()  # if empty, the metrics of the page Explore

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self)
        for name in self.metrics:
            need_one_of("metrics", name, metrics_of_a_pair(more=True))

    def draw(self, result: Mapping[str, Mapping[str, Score]] | None = None) -> Exportable:
        known = {form: scores for form, scores in (result or self._scores()).items() if scores}
        spaces = [space_name(spec) for spec in (self.source, self.target)]
        drawn = scores_exportable(score_table(known), self.to_json(), _file_name("relscope-scores", spaces))
        anchors = counted(len(self.anchors), "anchor")
        return replace(drawn, caption=f"Scores of {spaces[0]} and {spaces[1]} ({anchors})")

    def _scores(self) -> dict[str, dict[str, Score]]:
        pair = load_pair(self)
        settings = {name: getattr(self, name) for name in ("k", "convention", "n_queries", "metrics")}
        if self.class_agreement:
            settings["labels"] = class_labels(pair)
        else:
            settings["labels"] = None
        return score_forms(pair, REPRESENTATIONS, self.anchors, self.projection, **settings)


@dataclass(frozen=True)
class PairMap(SpacesRecipe, figure="all-pairs"):
    """A figure with a heat map: one score for every pair of spaces."""

    metric: str = "cka"
    grouped: bool = False
    anchors: tuple[str, ...] = ()
    projection: ProjectionSpec = ProjectionSpec()
    k: int = setting(10, low=1)
    n_queries: int | None = setting(None, low=1)

    __post_init__ = check

    def to_json(self) -> dict[str, Any]:
        return used_settings(super().to_json())

    def draw(self, result: PairScores | None = None) -> Exportable:
        if result is None:
            task = AllPairs.of(**{name: getattr(self, name) for name in ("metric", *SETTINGS)})
            result = task.run(self.loaded())
        shown = result
        if self.grouped:
            shown = result.grouped()
        return chart_exportable(pair_matrices(shown), self.to_json(), "relscope-all-pairs", table=shown.table)


MOST_OTHERS = 2
_MAP = ReductionSpec(fit="first")


@extra("notebook")
def show(
    source: MatrixLike | str | Path,
    target: MatrixLike | str | Path,
    anchors: Sequence[str] | int | None = None,
    *,
    others: Sequence[MatrixLike | str | Path] = (),
    panes: Sequence[str] = GRID,
    color_by: str | Sequence[object] | None = None,
    link_zoom: bool = False,
    height: int = 640,
) -> PanesWidget:
    """Show the linked panes of two to four spaces in a widget for Jupyter, VS Code and marimo. The maps are a
    PCA fitted on the first space.

    Three traits of the widget can be read, set, and observed with ``widget.observe``: `selection` (ids),
    `selected_rows` (numbers of the shared rows) and `anchors` (ids).

    Parameters
    ----------
    source, target : LatentSpace, matrix (n, d) in any form, or path
        Rows of spaces are paired by id, rows of arrays by number. The name of a bundled space can be given as
        a path.
    anchors : ids, or how many, optional
        By default, 300 random rows, but at most a fifth of the rows. If the list is empty, only the absolute
        panes are drawn.
    others : sequence of one or two more spaces, optional
        Spaces that are drawn beside the source and the target. The rows are those that all spaces share.
        While an anchor is dragged, scores compare only source and target.
    panes : representations
        One or two representations: "own" (absolute, each space on its own axes), "absolute" (on shared axes),
        "relative", "whitened" and "procrustes".
    color_by : str or one value per row of `source`, optional
        A column, as in `ViewSpec.color_by`, or your own list of numbers or names. By default, rows are
        coloured by their labels if these are classes. Otherwise, some rows and their neighbourhoods are
        coloured.
    height : int
        Pixels for all panes together.

    Raises
    ------
    SpaceError
        A file that does not exist; no shared rows; anchors that a space lacks; an unknown pane or colour;
        anywidget is not installed.

    Examples
    --------
    >>> from relcore import load_words, show
    >>> source, target = (load_words(name, limit=500) for name in ("word2vec-novels", "fasttext-novels"))
    >>> widget = show(source, target, anchors=50)
    >>> widget.selection = ["time", "man"]
    >>> [source.ids[row] for row in widget.selected_rows]
    ['time', 'man']
    """
    from relcore.panes.widget import PanesWidget

    for pane in _as_tuple("panes", panes, "a list of representations"):
        need_one_of("panes", pane, PANES)
    if not 1 <= len(set(panes)) == len(panes) <= 2:
        raise SpaceError(f"panes: expected one or two representations, none twice, got {panes!r:.80}")
    if len(_as_tuple("others", others, "a list of spaces")) > MOST_OTHERS:
        raise SpaceError(f"others: expected at most {MOST_OTHERS} more spaces, got {len(others)}")
    given = (source, target, *others)
    source, target, *others = (load_words(one) if isinstance(one, str | Path) else one for one in given)
    source, target = as_pair(source, target)
    pair = match(source, target, *others)
    if anchors is None or (isinstance(anchors, int | np.integer) and not isinstance(anchors, bool)):
        if anchors is None:
            n_anchors = usual_anchors(len(pair))
        else:
            n_anchors = int(anchors)
        anchors = ()
        if n_anchors:
            anchors = select_anchors(pair.source, n_anchors)
    anchors = _as_tuple("anchors", anchors, "a list of ids, or a number")
    drawing, live = _drawing(pair, _view(pair, source, color_by), tuple(panes))
    return PanesWidget(pair.ids, drawing, anchors=anchors, height=height, link_zoom=link_zoom, live=live)


def _as_tuple(name: str, given: Any, what: str) -> tuple:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise SpaceError(f"{name}: expected {what}, got {given!r:.80}")
    return tuple(given)


def _view(pair: Match, source: LatentSpace, color_by: str | Sequence[object] | None) -> View:
    spec = replace(default_view(pair.source), everything=True)
    if color_by is None:
        return make_view(pair.source, spec)
    if isinstance(color_by, str):
        spec = replace(spec, color_by=color_by)
        return with_color_column(pair, make_view(pair.source, spec), spec)
    values = list(_as_tuple("color_by", color_by, "a name, or one value per row of the source"))
    if len(values) != len(source):
        raise SpaceError(
            f"color_by: expected {len(source):,} values, one per row of the source, got {len(values):,}"
        )
    spec = replace(spec, color_by=f"{COLUMN}colour")
    own = pd.Series(values, index=source.ids)
    return with_color_column(pair, make_view(pair.source, spec), spec, lambda name: own)


def _drawing(
    pair: Match, view: View, panes: tuple[str, ...]
) -> tuple[Callable[[Sequence[str]], tuple[Scene, np.ndarray]], _Dragged]:
    """Two values: a function that returns the scene for given anchors, and the object that answers the panes
    while an anchor is dragged. Parts that do not depend on the anchors are computed once.
    """

    def picture(pane: str, anchors: Sequence[str]) -> tuple[list[np.ndarray], str]:
        return map_pair(pair, view.rows, pane, anchors, ProjectionSpec(), _MAP)

    widths = [space.dimension for space in pair.spaces]
    panes = drawn_panes(panes, widths, _MAP)
    first = drawn_panes(["absolute"], widths, _MAP)[0]
    absolute = picture(first, ())
    names = None
    if lacks_names(view, None):
        names = named_clusters(pair.source, view.rows, absolute[0][0])
    prominence = prominent_rows(pair.source, view)

    def draw(anchors: Sequence[str]) -> tuple[Scene, np.ndarray]:
        forms = [pane for pane in panes if anchors or pane in (OWN, "absolute")]
        if not forms:
            raise SpaceError(f"anchors: expected at least one for the {panes[0]} panes, got none")
        pictures = {pane: absolute if pane == first else picture(pane, anchors) for pane in forms}
        oriented = orient_pairs(pictures, absolute[0][0], pair, _MAP)
        scene = assemble_scene(pair.spaces, view, oriented, anchors)
        return replace(with_look(scene, MapLook(), None, names), prominence=prominence), view.rows

    return draw, _Dragged(pair, view.rows, panes, absolute[0][0])


class _Dragged:
    """Answers the panes of a widget while an anchor is dragged.

    All maps are rotated onto the map `reference` (m, 2).
    """

    def __init__(self, pair: Match, rows: np.ndarray, panes: tuple[str, ...], reference: np.ndarray) -> None:
        self.pair = pair
        self.rows = rows
        self.panes = panes
        self.reference = reference
        self.known: tuple[tuple[str, ...], LiveAnswers] | None = None

    @cached_property
    def held(self) -> LiveRows:
        return LiveRows(self.pair, self.rows, reference=self.reference)

    def header(self, anchors: Sequence[str]) -> dict[str, Any] | None:
        if not anchors:
            return None
        if refused := why_not(self.pair, ProjectionSpec(), _MAP):
            return {"refused": refused}
        return live_header(self.panes, len(anchors), len(self.pair.spaces))

    def answer(self, anchors: Sequence[str], message: bytes) -> bytes:
        request = read_request(message, len(self.rows))
        anchors = tuple(anchors)
        if request is None:
            return b""
        if self.known is None or self.known[0] != anchors:
            numbers = self.pair.source.rows(anchors).tolist()
            forms = [pane for pane in self.panes if pane in FORMS]
            following = LiveComparison(self.held, numbers, None, _MAP, forms)
            self.known = anchors, LiveAnswers(following, numbers, self.rows)
        return self.known[1].answer(request)

    def spread(self) -> list[str]:
        return select_anchors(self.pair.source, N_SPREAD, SPREAD)


NEIGHBOURS = 15


def how_to_open(path: str) -> str:
    """The command that opens a file of `atlas_table` in Embedding Atlas."""
    return f"embedding-atlas {path} --x x --y y --neighbors neighbors"


def atlas_table(
    spaces: Sequence[LatentSpace],
    rows: np.ndarray,
    maps: Sequence[np.ndarray],
    columns: pd.DataFrame,
    k: int = NEIGHBOURS,
) -> pa.Table:
    """The rows (m,) of paired spaces as an Arrow table for Embedding Atlas.

    The table has all `columns` of these rows, the coordinates x and y on the map of the first space (m, 2 or
    more), and `neighbors`. The latter has the k nearest of these rows: their `ids` (row numbers of the table,
    from 0) and their cosine `distances` after centring. Further spaces have the columns "x_NAME", "y_NAME"
    and "neighbors_NAME". If one of the `columns` has such a name, it is renamed to "NAME (column)".

    Raises
    ------
    SpaceError
        Fewer than three rows.
    """
    with extra():
        import pyarrow as pa

    if len(rows) < 3:
        raise SpaceError(f"Embedding Atlas: expected three rows or more, got {len(rows)}; choose more")
    made: dict[str, Any] = {}
    for number, (space, name) in enumerate(zip(spaces, distinct_names(spaces), strict=True)):
        of = f"_{name}" if number else ""
        made |= {f"{axis}{of}": pa.array(maps[number][:, i]) for i, axis in enumerate("xy")}
        made[f"neighbors{of}"] = _neighbours(space, rows, min(k, len(rows) - 1))
    titles = {name: f"{name} (column)" for name in columns if name in made}
    table = pa.Table.from_pandas(columns.rename(columns=titles), preserve_index=False)
    for name, column in made.items():
        table = table.append_column(name, column)
    return table


def _neighbours(space: LatentSpace, rows: np.ndarray, k: int) -> pa.StructArray:
    import pyarrow as pa

    unit = unit_rows(space.vectors[rows], mean_of(space))
    near = nearest_within(unit, np.arange(len(rows)), k)
    cosines = np.stack([np.einsum("ij,ij->i", unit, unit[near[:, place]]) for place in range(k)], axis=1)
    offsets = pa.array(np.arange(0, near.size + 1, k, dtype=np.int32))
    lists = [
        pa.ListArray.from_arrays(offsets, pa.array(values.ravel()))
        for values in (near.astype(np.int64), np.clip(1 - cosines, 0, 2).astype(np.float32))
    ]
    return pa.StructArray.from_arrays(lists, ["ids", "distances"])


# The pictures of the lesson on the page Start.


# Words at places that a model with two dimensions could give them. Some of the words are anchors.
_FIRST = [2.3, 2.9, 1.4, -2.4, -1.1, -2.8, -1.3, 0.6, 1.2]
_SECOND = [0.5, 1.5, 2, 1.8, 2.6, 0.4, -2.3, -1.7, -3]
PLANE = LatentSpace(
    np.stack([_FIRST, _SECOND], axis=1),
    ["cat", "dog", "wolf", "car", "bus", "bike", "oak", "rose", "fern"],
    labels=["animal"] * 3 + ["vehicle"] * 3 + ["plant"] * 3,
    name="plane",
)
PLANE_ANCHORS = ("wolf", "bus", "rose")


def moved_plane(degrees: float, mirrored: bool, scale: float) -> Match:
    """The space `PLANE`, paired with a copy whose points are mirrored left to right if `mirrored`, then
    rotated counter-clockwise and scaled."""
    turn = np.deg2rad(degrees)
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    points = scale * (PLANE.vectors * ([-1, 1] if mirrored else [1, 1])) @ rotation
    return _with_target(Match(PLANE, PLANE, 0, 0, 0), points)


def plane_similarities(pair: Match) -> tuple[np.ndarray, np.ndarray]:
    """The cosines (n, 3) between the points and the anchors, before and after the move. Angles are measured
    at the origin."""
    return represent(pair, "relative", PLANE_ANCHORS, ProjectionSpec(center=False))


def crowded_anchors(space: LatentSpace, around: str, n_anchors: int) -> tuple[str, ...]:
    """Anchors from a single cluster: the row with the id `around`, and the n_anchors − 1 rows nearest to
    it."""
    row = space.rows([around])
    near = nearest_within(directions(space.vectors, mean_of(space)), row, n_anchors - 1)[0]
    return (around, *space.ids[near])


def with_wrong_pairs(pair: Match, anchors: tuple[str, ...], random_state: int = 0) -> Match:
    """The pair with the target rows of the anchors permuted; all other rows are unchanged."""
    rows = pair.target.rows(anchors)
    points = np.array(pair.target.vectors)
    points[rows] = points[rows[derangement(len(rows), np.random.default_rng(random_state))]]
    return _with_target(pair, points)


def with_unrelated_target(pair: Match, random_state: int = 0) -> Match:
    """The pair with a target of random numbers (standard normal)."""
    shape = len(pair), pair.target.dimension
    return _with_target(pair, np.random.default_rng(random_state).normal(size=shape))


def _with_target(pair: Match, points: np.ndarray) -> Match:
    target = pair.target
    columns = {"name": target.name, "labels": target.labels, "counts": target.counts}
    return replace(pair, target=LatentSpace(points, target.ids, **columns))
