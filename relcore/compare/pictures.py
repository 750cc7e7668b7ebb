"""The figures of a comparison, with the settings that draw them again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from relcore.base.access import data_folder, expand_home
from relcore.base.arguments import need_ids, need_kind
from relcore.base.errors import need_one_of, need_strings
from relcore.base.kinds import takes_kinds
from relcore.base.names import FIGURES
from relcore.base.numbers import counted
from relcore.base.plugins import named_in_errors
from relcore.base.records import finder, with_paths
from relcore.base.settings import check, setting
from relcore.catalog.catalog import SpaceSpec, space_name
from relcore.catalog.comparison_recipe import ComparisonRecipe, load_pair
from relcore.catalog.task import Recipe, SpacesRecipe, recipe_of
from relcore.compare.all_pairs import SETTINGS, AllPairs, pair_matrices, used_settings
from relcore.compare.columns import Tags
from relcore.compare.live_channel import page_units
from relcore.compare.scene import MapLook, comparison_scene
from relcore.figures.colorings import StarLook
from relcore.figures.export import Exportable, chart_exportable, read_recipe, scores_exportable
from relcore.figures.scene import Scene
from relcore.maps.pane_maps import default_view
from relcore.maps.principal_axes import ReductionSpec
from relcore.panes.page import PageUnits, scene_exportable
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec
from relcore.scores.comparison import class_labels, metrics_of_a_pair, score_representations
from relcore.scores.score import PairScores, Score
from relcore.scores.score_report import score_table
from relcore.spaces.matching import Match, short_names


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


@takes_kinds
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
    """The exported figure of the linked panes, as a recipe describes it. `added` are the ids of rows that
    are drawn besides those of the view, such as anchors."""

    newer: ClassVar[tuple[str, ...]] = ("stars", "oriented", "look", "tags", "added")

    stars: StarLook | None = None
    oriented: bool = False
    look: MapLook | None = None
    tags: Tags = ()
    added: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        need_strings("recipe: added", self.added)
        for name, ids in self.tags:
            need_strings(f"recipe: tag {name!r:.80}", ids)

    def draw(
        self,
        result: Scene | None = None,
        units: Callable[[], PageUnits | None] = lambda: None,
        about: str = "",
    ) -> Exportable:
        if result is None:
            scene = comparison_scene(
                self, oriented=self.oriented, look=self.look, tags=self.tags, added=self.added
            )
            result = replace(scene, stars=self.stars or StarLook())
        # The file is named without the representation, with which the title of a pane ends.
        titles = [pane.title.rpartition(" · ")[0] for pane in result.panes[: result.columns]]
        name = _file_name("relscope-panes", titles)
        return scene_exportable(result, self.to_json(), name, units, about)


def _file_name(kind: str, spaces: Sequence[str]) -> str:
    named = (re.sub(r"[^\w.]+", "-", name)[:30].strip("-.") for name in short_names(spaces)[0])
    return "-".join([kind, *filter(None, named)])


@takes_kinds
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
    recipe = ComparisonRecipe(
        SpaceSpec("file", pair.source.name),
        SpaceSpec("file", pair.target.name),
        tuple(anchors),
        view=replace(default_view(pair.source), everything=True),
        reduction=ReductionSpec(fit="first"),
    )

    def units() -> PageUnits | None:
        rows = np.arange(len(pair))
        return page_units(pair, rows, recipe.panes, len(anchors), recipe.projection, recipe.reduction)

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
        known = {name: scores for name, scores in (result or self._scores()).items() if scores}
        spaces = [space_name(spec) for spec in (self.source, self.target)]
        anchors = counted(len(self.anchors), "anchor")
        return scores_exportable(
            partial(score_table, known),
            self.to_json(),
            _file_name("relscope-scores", spaces),
            caption=f"Scores of {spaces[0]} and {spaces[1]} ({anchors})",
        )

    def _scores(self) -> dict[str, dict[str, Score]]:
        pair = load_pair(self)
        settings = {name: getattr(self, name) for name in ("k", "convention", "n_queries", "metrics")}
        if self.class_agreement:
            settings["labels"] = class_labels(pair)
        else:
            settings["labels"] = None
        return score_representations(pair, REPRESENTATIONS, self.anchors, self.projection, **settings)


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
        pairs = result
        if self.grouped:
            pairs = result.grouped()
        return chart_exportable(pair_matrices(pairs), self.to_json(), "relscope-all-pairs", table=pairs.table)
