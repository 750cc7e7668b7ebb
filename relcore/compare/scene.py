"""The scene of the linked panes of a comparison: maps, colours and names of the rows of two spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from relcore.base.errors import SpaceError, need_one_of, need_strings
from relcore.base.numbers import counted
from relcore.base.rows import derived_unit_rows, row_blocks, unit_rows
from relcore.catalog.catalog import load
from relcore.catalog.comparison_recipe import ComparisonRecipe, load_models
from relcore.catalog.row_tables import row_texts
from relcore.compare.clusters import among_free_rows, are_readable_ids, lacks_names, named_clusters
from relcore.compare.columns import Cells, Tags, cells_of, told_columns, with_color_column, with_tags
from relcore.compare.filters import kept_rows, of_rows, undrawn
from relcore.engine.nearest import nearest_within
from relcore.figures.colorings import Coloring, Condition, Facet, Pane, conditions_in_words
from relcore.figures.scene import FACING, Clusters, Scene
from relcore.maps.pane_maps import (
    COLUMN,
    NUMBERS,
    OWN,
    TWO,
    Picture,
    View,
    ViewSpec,
    drawn_panes,
    make_view,
    map_pair,
    need_color,
    orient_pairs,
    same_rows,
    sample_view,
    with_rows,
)
from relcore.maps.principal_axes import ReductionSpec, is_tsne
from relcore.maps.reduction import reduce_spaces
from relcore.represent.representations import ProjectionSpec, represent
from relcore.represent.similarity import mean_of
from relcore.spaces.matching import Match, distinct_names
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import derangement

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
    density : bool, optional
        Draw lines around the most crowded places. None: where points hide each other.
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
    density: bool | None = None

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
        if self.second_panes == LOWER:
            return tuple(range(columns, n_panes))
        return tuple(pane for pane in range(n_panes) if pane % columns)


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
    notes = [_rows_in_words(len(rows), len(source), names)]
    notes += [f"{title}: {note}" for title, (_, note) in titled.items()]
    notes.append(_anchors_in_words(len(anchor_ids), int(drawn.sum())))
    if view.about:
        notes.append(view.about)
    color_title = view.column
    values = None
    if view.scale:
        color_title = view.scale.title
        values = view.values
    return Scene(
        panes,
        ids,
        view.categories,
        view.category_names,
        places[drawn],
        "; ".join(notes),
        mute=not are_readable_ids(source.ids),
        columns=len(spaces),
        anchor_numbers=np.flatnonzero(drawn) + 1,
        scale=view.scale,
        values=values,
        color_title=color_title,
    )


def _rows_in_words(drawn: int, n: int, names: Sequence[str]) -> str:
    size = f"{drawn:,} of the {counted(n, 'row')}"
    if drawn == n:
        size = f"All {counted(n, 'row')}"
    return f"{size} of {', '.join(names[:-1])} and {names[-1]}"


def _anchors_in_words(n: int, drawn: int) -> str:
    if drawn < n:
        return f"{counted(n, 'anchor')}, {drawn:,} of them drawn"
    return counted(n, "anchor")


def view_with_rows(
    matched: Match, view: View, spec: ViewSpec, others: np.ndarray, cells: Cells | None
) -> View:
    """The rows of the view and `others` (e,), with their colours. Colours of example rows stay with the rows
    of the view. Raises the errors of `with_color_column`."""
    rows = np.union1d(view.rows, others)
    if spec.color_by == "pivots":
        categories = np.full(len(rows), -1)
        categories[np.searchsorted(rows, view.rows)] = view.categories
        return replace(view, rows=rows, categories=categories)
    spec = replace(spec, pivots=())
    return with_color_column(matched, same_rows(matched.source, spec, rows), spec, cells)


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
    facet_rows: np.ndarray | None = None,
) -> Scene:
    """The scene with the display settings of `look`: hidden classes, filter, names, turn and, on the panes
    that have it, the second colouring. `facets` are the columns by which its rows can be filtered, including
    those of the current filter; `facet_rows` are the places (m,) of its rows among theirs, by default the
    same rows."""
    panes = look.panes(len(scene.panes), scene.columns)
    title = look.second.removeprefix(COLUMN)
    colors = None
    if second and panes:
        scale = second.scale
        scale_colors = scale.colors if scale else ()
        colors = Coloring(
            categories=second.categories,
            names=second.category_names,
            colors=scale_colors,
            title=title,
            scale=scale,
            values=second.values,
            hidden=look.second_hidden,
        )
    scene = replace(
        scene,
        second=colors,
        second_panes=panes if colors else (),
        hidden=look.hidden,
        facets=tuple(facets),
        facet_rows=facet_rows,
        filter=look.filter if facets else (),
    )
    caption = scene.caption
    if colors:
        caption += f"; the {look.second_panes} panes coloured by {second.about or title}"
    if hidden := len(scene) - int(scene.shown.sum()):
        caption += f"; {counted(hidden, 'row')} hidden"
    if scene.filter:
        conditions = conditions_in_words(scene.facets, scene.filter)
        caption += f"; {counted(int(scene.kept.sum()), 'row')} in colour by the filter ({conditions})"
    if clusters is not None and not clusters.names:
        caption += "; no clusters: fewer than half of the rows would lie in dense groups"
        clusters = None
    if clusters is not None:
        clusters = among_free_rows(clusters, scene.colorings())
    return replace(
        scene,
        caption=caption,
        clusters=clusters,
        named=look.named,
        density=look.density,
        turn=look.turn or FACING,
    )


def comparison_scene(
    recipe: ComparisonRecipe,
    matched: Match | None = None,
    oriented: bool = False,
    look: MapLook | None = None,
    tags: Tags = (),
    added: Sequence[str] = (),
) -> Scene:
    """The scene that a recipe describes. If `oriented` is True, maps are rotated as by `orient_pairs`. `tags`
    are further columns. `added` are ids of rows that are drawn, too, without a change of the maps."""
    matched = matched or load_models(recipe)
    cells = cells_of(recipe.source, recipe.target, partial(load, again=True))
    cells = with_tags(cells, tags, matched.source.index)
    view = with_color_column(
        matched, drawn_view(matched.source, recipe.view, recipe.anchors, recipe.reduction), recipe.view, cells
    )
    pairs = _maps(recipe, matched, view, oriented)
    conditions = look.filter if look else ()
    facets, kept = kept_rows(matched, conditions, cells)
    others = np.setdiff1d(matched.source.rows(added), view.rows)
    if conditions:
        others = np.union1d(others, undrawn(kept, view.rows))
    if len(others):
        settings = recipe.anchors, recipe.projection, recipe.reduction
        pairs = {
            pane: with_rows(matched, view.rows, others, pane, picture, *settings)
            for pane, picture in pairs.items()
        }
        view = view_with_rows(matched, view, recipe.view, others, cells)
    scene = assemble_scene(matched.spaces, view, pairs, recipe.anchors)
    scene = replace(scene, told=told_columns(matched, view, recipe.view, tags))
    if look is None:
        return scene
    second = second_view(matched, view, recipe.view, look, cells)
    clusters = texts = None
    if look.named and lacks_names(view, second):
        if matched.source.labels is None:
            texts = row_texts((recipe.source, recipe.target), partial(load, again=True))
        coordinates = scene.panes[0].coordinates
        clusters = named_clusters(matched.source, view.rows, coordinates, texts, matched.target)
    return with_look(scene, look, second, clusters, of_rows(facets, view.rows))


def _maps(recipe: ComparisonRecipe, matched: Match, view: View, oriented: bool) -> dict[str, Picture]:
    """The maps of the rows of the view, for each pane."""
    widths = [space.dimension for space in matched.spaces]
    pairs = {
        pane: map_pair(matched, view.rows, pane, recipe.anchors, recipe.projection, recipe.reduction)
        for pane in drawn_panes(recipe.panes, widths, recipe.reduction)
    }
    if not oriented:
        return pairs
    absolute = pairs.get("absolute") or pairs.get(OWN)
    # `reference` is the PCA of the drawn absolute rows of the source, (m, c)
    if recipe.reduction.method == "pca" and absolute:
        reference = absolute[0][0]
    else:
        vectors = matched.source.vectors
        by_pca = replace(recipe.reduction, method="pca", align=False)
        if len(view.rows) != len(vectors):
            vectors = vectors[view.rows]
        reference = reduce_spaces([vectors], by_pca)[0]
    return orient_pairs(pairs, reference, matched, recipe.reduction)


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
    points = PLANE.vectors.astype(np.float64)
    if mirrored:
        points = points * [-1, 1]
    points = scale * points @ rotation
    return _with_target(Match(PLANE, PLANE, 0, 0, 0), points)


def plane_similarities(pair: Match) -> tuple[np.ndarray, np.ndarray]:
    """The cosines (n, 3) between the points and the anchors, before and after the move. Angles are measured
    at the origin."""
    return represent(pair, "relative", PLANE_ANCHORS, ProjectionSpec(center=False))


def crowded_anchors(space: LatentSpace, around: str, n_anchors: int) -> tuple[str, ...]:
    """Anchors from a single cluster: the row with the id `around`, and the n_anchors − 1 rows nearest to
    it."""
    row = space.rows([around])
    near = nearest_within(derived_unit_rows(space.vectors, mean_of(space)), row, n_anchors - 1)[0]
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
    return replace(
        pair,
        target=LatentSpace(points, target.ids, name=target.name, labels=target.labels, counts=target.counts),
    )
