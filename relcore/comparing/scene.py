"""What the figures of one comparison share: their settings, the pair of spaces, and the linked panes as a scene."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from relcore.charts.coloring import Coloring
from relcore.charts.scene import Clusters, Pane, Scene
from relcore.comparing.cluster_names import named_clusters, needs_clusters
from relcore.comparing.map_look import FACING, MapLook
from relcore.comparing.orientation import orient_pairs
from relcore.comparing.pane_maps import map_pair
from relcore.comparing.row_columns import Cells, cells_of, colored
from relcore.comparison import REPRESENTATIONS, ProjectionSpec
from relcore.numbers import counted
from relcore.recipe import load_again, need_same_content
from relcore.reduction import ReductionSpec, reduce_spaces
from relcore.sources.catalog import SpaceSpec
from relcore.sources.row_texts import row_texts
from relcore.spaces import LatentSpace, Match, distinct_names, match, need_one_of, need_strings
from relcore.views import COLUMN, NUMBERS, View, ViewSpec, make_view, same_rows, sample_view

PANES = ("absolute", "relative")  # the rows of the 2 × 2 grid


@dataclasses.dataclass(frozen=True)
class ComparisonRecipe:
    """Settings of the figures of two spaces: anchors by id, how to project, choose rows and reduce.

    The digests are of the matched spaces, the rows that are left once both are paired: they tell whether the data has changed.
    """

    source: SpaceSpec
    target: SpaceSpec
    anchors: tuple[str, ...]
    projection: ProjectionSpec = ProjectionSpec()
    view: ViewSpec = ViewSpec()
    reduction: ReductionSpec = ReductionSpec()
    panes: tuple[str, ...] = PANES
    source_digest: str = ""
    target_digest: str = ""

    def __post_init__(self) -> None:
        need_strings("recipe: anchors", self.anchors)
        for pane in self.panes:
            need_one_of("recipe: panes", pane, REPRESENTATIONS)

    @classmethod
    def of(cls, settings: ComparisonRecipe, **own: Any) -> Self:
        """Another figure of the same comparison, with settings of its own."""
        return cls(**{field.name: getattr(settings, field.name) for field in dataclasses.fields(ComparisonRecipe)}, **own)


def load_pair(recipe: ComparisonRecipe) -> Match:
    """Load and match the two spaces of a recipe.

    Raises
    ------
    SpaceError
        A space cannot be loaded, or is not the one that the recipe was made with.
    """
    matched = match(load_again(recipe.source), load_again(recipe.target))
    for space, digest in ((matched.source, recipe.source_digest), (matched.target, recipe.target_digest)):
        need_same_content(space, digest)
    return matched


def drawn_view(space: LatentSpace, view: ViewSpec, anchors: Sequence[str], reduction: ReductionSpec) -> View:
    """The rows to draw; t-SNE takes a sample where there are more than its `max_points`."""
    drawn = make_view(space, view, anchors)
    return sample_view(drawn, reduction.max_points, reduction.random_state) if reduction.method == "tsne" else drawn


def assemble_scene(
    spaces: tuple[LatentSpace, LatentSpace],
    view: View,
    pairs: Mapping[str, tuple[Sequence[np.ndarray], str]],
    anchor_ids: Sequence[str],
) -> Scene:
    """Put coordinates by representation and the view's colours together, two panes a row; the notes go into the caption."""
    names = distinct_names(spaces)
    panes = tuple(
        Pane(f"{name} · {representation}", coordinates)
        for representation, (pair, _) in pairs.items()
        for name, coordinates in zip(names, pair, strict=True)
    )
    ids = spaces[0].ids if len(view.rows) == len(spaces[0]) else spaces[0].ids[view.rows]  # rows are distinct and ascending
    anchor_rows = spaces[0].rows(anchor_ids) if len(anchor_ids) else np.empty(0, dtype=np.int64)
    places = np.searchsorted(view.rows, anchor_rows)
    drawn = (places < len(view.rows)) & (view.rows[np.minimum(places, len(view.rows) - 1)] == anchor_rows)
    caption = (
        f"{len(view.rows):,} of the {counted(len(spaces[0]), 'row')} of {names[0]} and {names[1]}; "
        + "; ".join(f"{representation}: {note}" for representation, (_, note) in pairs.items())
        + f"; {counted(len(anchor_ids), 'anchor')}"
        + (f"; {view.about}" if view.about else "")
    )
    number = {"scale": view.scale, "values": view.values, "color_title": view.scale.title} if view.scale else {}
    return Scene(panes, ids, view.categories, view.category_names, places[drawn], caption, **number)


def second_view(matched: Match, view: View, spec: ViewSpec, look: MapLook, cells: Cells | None) -> View | None:
    """The same rows in the colours of the second colouring; None where there is none. Errors as in `colored`."""
    if not look.second:
        return None
    spec = dataclasses.replace(spec, color_by=look.second)
    if look.second in NUMBERS or look.second.startswith(COLUMN):
        return colored(matched, view, spec, cells)
    return same_rows(matched.source, spec, view.rows)


def dressed(scene: Scene, look: MapLook, second: View | None, clusters: Clusters | None = None) -> Scene:
    """The scene with hidden classes, names, a turn and, where it has such panes, a second colouring; the caption says so."""
    panes, title = look.panes(len(scene.panes)), look.second.removeprefix(COLUMN)
    colors = None
    if second and panes:
        scale = second.scale
        shown = (scale.colors if scale else (), title, scale, second.values, look.second_hidden)
        colors = Coloring(second.categories, second.category_names, *shown)
    scene = dataclasses.replace(scene, hidden=look.hidden, second=colors, second_panes=panes if colors else ())
    caption = scene.caption
    if colors:
        caption += f"; the {look.second_panes} panes coloured by {second.about or title}"
    if hidden := len(scene) - int(scene.shown.sum()):
        caption += f"; {counted(hidden, 'row')} hidden"
    return dataclasses.replace(scene, caption=caption, clusters=clusters, named=look.named, turn=look.turn or FACING)


def _reference(
    pairs: Mapping[str, tuple[Sequence[np.ndarray], str]], source: LatentSpace, view: View, reduction: ReductionSpec
) -> np.ndarray:
    """PCA of the drawn rows of the absolute source space, (m, c), which may be among the maps."""
    if reduction.method == "pca" and "absolute" in pairs:
        return pairs["absolute"][0][0]
    vectors = source.vectors if len(view.rows) == len(source) else source.vectors[view.rows]
    return reduce_spaces([vectors], dataclasses.replace(reduction, method="pca", align=False))[0]


def comparison_scene(
    recipe: ComparisonRecipe, matched: Match | None = None, oriented: bool = False, look: MapLook | None = None
) -> Scene:
    """From a recipe to the picture, without a screen; `oriented` turns maps as `orient_pairs` does, `look` is the screen's."""
    matched = matched or load_pair(recipe)
    cells = cells_of(recipe.source, recipe.target, load_again)
    view = colored(matched, drawn_view(matched.source, recipe.view, recipe.anchors, recipe.reduction), recipe.view, cells)
    pairs = {
        pane: map_pair(matched, view.rows, pane, recipe.anchors, recipe.projection, recipe.reduction) for pane in recipe.panes
    }
    if oriented:
        pairs = orient_pairs(pairs, _reference(pairs, matched.source, view, recipe.reduction), matched, recipe.reduction)
    scene = assemble_scene((matched.source, matched.target), view, pairs, recipe.anchors)
    if look is None:
        return scene
    second = second_view(matched, view, recipe.view, look, cells)
    clusters = None
    if look.named and needs_clusters(view, second):
        texts = row_texts((recipe.source, recipe.target), load_again) if matched.source.labels is None else None
        clusters = named_clusters(matched.source, view.rows, scene.panes[0].coordinates, texts)
    return dressed(scene, look, second, clusters)
