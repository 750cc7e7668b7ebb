"""The figures of the Compare, Anchors and Spaces pages, each with the recipe that draws it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from relcore.base.errors import SpaceError
from relcore.base.names import SEARCHES
from relcore.base.settings import check, setting
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.all_pairs import SETTINGS, AllPairs, pair_matrices, used_settings
from relcore.compare.exact import TARGET_RECALL, ExactScores
from relcore.compare.scene import MapLook, comparison_scene
from relcore.figures.charts import Curves, curve_of
from relcore.figures.export import (
    Exportable,
    chart_exportable,
    scores_exportable,
    spectrum_exportable,
    training_exportable,
)
from relcore.figures.scene import Scene, StarLook
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import default_view
from relcore.panes.page import scene_exportable
from relcore.represent.anchors import AnchorDiagnostics, diagnose_anchors
from relcore.runs.store import Store
from relcore.scores.comparison import REPRESENTATIONS, ProjectionSpec, class_labels, score_table
from relcore.scores.pair_scores import PairScores
from relcore.scores.passes import score_forms
from relcore.scores.score import Score
from relcore.spaces.space import Match, distinct_names
from relcore.tasks.recipe import ComparisonRecipe, Recipe, load_all, load_pair, recipe_of


def exportable(recipe: Mapping[str, Any]) -> Exportable:
    """The figure that a recipe describes, with its data loaded and everything computed; ``recipe["figure"]``
    says which.

    Raises
    ------
    SpaceError
        An unknown figure, settings that are missing, unknown or wrong, data that is gone or has changed.
    """
    return recipe_of(recipe).draw()


@dataclass(frozen=True)
class Panes(Recipe, ComparisonRecipe):
    """The linked panes of a comparison; `oriented` turns the maps so that they agree, `stars` and `look`
    are the screen's.
    """

    figure: ClassVar[str] = "comparison"
    newer: ClassVar[tuple[str, ...]] = ("stars", "oriented", "look")

    stars: StarLook | None = None
    oriented: bool = False
    look: MapLook | None = None

    def draw(self, result: Scene | None = None) -> Exportable:
        scene = result
        if scene is None:
            made = comparison_scene(self, oriented=self.oriented, look=self.look)
            scene = replace(made, stars=self.stars or StarLook())
        return scene_exportable(scene, self.to_json(), "relscope-panes")


def panes_of(pair: Match, anchors: Sequence[str]) -> Exportable:
    """All rows of two spaces, absolute above and relative below, by PCA fitted on the first space; anchors by
    id.

    For scripts and notebooks that hold the spaces already: a notebook shows the figure, ``save("panes.pdf")``
    writes it. It carries no recipe, since only the caller knows where the spaces come from.

    Examples
    --------
    >>> from relcore import load_words, match, select_anchors
    >>> pair = match(*(load_words(name, limit=300) for name in ("word2vec-novels", "fasttext-novels")))
    >>> figure = panes_of(pair, select_anchors(pair.source, 30))
    >>> len(figure.table())
    300
    """
    named = (SpaceSpec("file", space.name) for space in (pair.source, pair.target))
    view = replace(default_view(pair.source), everything=True)
    recipe = ComparisonRecipe(*named, tuple(anchors), view=view, reduction=ReductionSpec(fit="first"))
    return scene_exportable(comparison_scene(recipe, pair))


@dataclass(frozen=True)
class Scores(Recipe, ComparisonRecipe):
    """Scores of all representations on held-out rows beside their chance levels; queries are all of them, or
    `n_queries`.

    The neighbours of all may be searched approximately: see `ExactScores`.
    """

    figure: ClassVar[str] = "scores"
    newer: ClassVar[tuple[str, ...]] = ("class_agreement",)

    k: int = setting(10, low=1)
    convention: str = "paper"
    n_queries: int | None = setting(None, low=1)
    class_agreement: bool = False
    neighbours: str = setting("exact", choices=SEARCHES)
    target_recall: float = setting(TARGET_RECALL, above=0, high=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self)
        if self.neighbours != "exact" and self.n_queries is not None:
            raise SpaceError(
                f"n_queries: expected none with approximate neighbours, got {self.n_queries}; leave it out"
            )

    def to_json(self) -> dict[str, Any]:
        """Without the settings of an approximate search where the search is exact, as earlier versions
        wrote it.
        """
        exact = ("neighbours", "target_recall") if self.neighbours == "exact" else ()
        return {name: value for name, value in super().to_json().items() if name not in exact}

    def draw(self, result: Mapping[str, Mapping[str, Score]] | None = None) -> Exportable:
        return scores_exportable(score_table(result or self._scores()), self.to_json(), "relscope-scores")

    def _scores(self) -> dict[str, dict[str, Score]]:
        pair = load_pair(self)
        shared = self.anchors, self.projection
        if self.neighbours != "exact":
            search = {"search": self.neighbours, "target_recall": self.target_recall}
            tasks = {
                form: ExactScores.on(form, *shared, self.k, self.convention, **search)
                for form in REPRESENTATIONS
            }
            return {form: task.run((pair.source, pair.target)).scores for form, task in tasks.items()}
        settings = {"k": self.k, "convention": self.convention, "n_queries": self.n_queries}
        labels = class_labels(pair) if self.class_agreement else None
        return score_forms(pair, REPRESENTATIONS, *shared, labels=labels, **settings)


@dataclass(frozen=True)
class Spectrum(Recipe, ComparisonRecipe):
    """Singular values of the anchors in both spaces; the result is by `distinct_names` of the two."""

    figure: ClassVar[str] = "spectrum"

    def draw(self, result: Mapping[str, AnchorDiagnostics] | None = None) -> Exportable:
        if result is None:
            pair = load_pair(self)
            spaces = pair.source, pair.target
            found = (diagnose_anchors(space, self.anchors) for space in spaces)
            result = dict(zip(distinct_names(spaces), found, strict=True))
        spectra = {name: found.singular_values for name, found in result.items()}
        return spectrum_exportable(spectra, self.to_json(), "relscope-anchor-spectrum")


@dataclass(frozen=True)
class PairMap(Recipe):
    """Every space with every other, one number a pair; the result comes in the order of the spaces, not
    yet grouped.
    """

    figure: ClassVar[str] = "all-pairs"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    metric: str = "cka"
    grouped: bool = False
    anchors: tuple[str, ...] = ()
    projection: ProjectionSpec = ProjectionSpec()
    k: int = setting(10, low=1)
    n_queries: int | None = setting(None, low=1)

    def __post_init__(self) -> None:
        check(self)

    def to_json(self) -> dict[str, Any]:
        """Without the settings that the metric does not need."""
        return used_settings(super().to_json())

    def draw(self, result: PairScores | None = None) -> Exportable:
        if result is None:
            task = AllPairs.of(**{name: getattr(self, name) for name in ("metric", *SETTINGS)})
            result = task.run(load_all(self.spaces, self.digests, self.figure))
        shown = result.grouped() if self.grouped else result
        return chart_exportable(pair_matrices(shown), self.to_json(), "relscope-all-pairs", table=shown.table)


@dataclass(frozen=True)
class Training(Recipe):
    """Loss and held-out accuracy by epoch of the encoders behind these encodings; the result is by the
    spaces' names.
    """

    figure: ClassVar[str] = "training"

    spaces: tuple[SpaceSpec, ...]

    def draw(self, result: Curves | None = None) -> Exportable:
        curves = result or {spec.name: training_of(spec) for spec in self.spaces}
        return training_exportable(curves, self.to_json(), "relscope-training")


def training_of(spec: SpaceSpec, store: Store | None = None) -> dict[str, list[float]]:
    """The curve of an encoding's encoder by its metadata, empty where nothing was trained by epochs.

    Raises
    ------
    SpaceError
        No encoding, or one that is gone and cannot be made again.
    """
    if spec.source != "encoding":
        raise SpaceError(
            f"training: expected encodings, got {spec.name!r} of the source {spec.source!r}; leave it out"
        )
    from relcore.catalog.encoding import encode_again  # other recipes do without, and a start should

    store = store or Store()
    encode_again(spec, store)
    found = store.summary(spec.option("key"))
    return curve_of(found.metadata.get("training", {})) if found else {}
