"""Every figure of the app from its recipe: what the export bar offers and what `relscope figure` draws again.

Each `draw_` function takes settings and, where the caller has them already, results; what it is not given it computes. So the
app and the command line cannot draw different pictures of one recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Any

from relcore import __version__
from relcore.anchors.diagnostics import AnchorDiagnostics, diagnose_anchors
from relcore.charts.scene import Scene
from relcore.comparing.all_pairs import similarity_matrix
from relcore.comparing.pair_scores import PairScores
from relcore.comparing.scene import ComparisonRecipe, comparison_scene, load_pair
from relcore.comparison import REPRESENTATIONS, ProjectionSpec, held_out, represent, score_pair, score_table
from relcore.figures.export import (
    Exportable,
    histogram_exportable,
    pairs_exportable,
    scene_exportable,
    scores_exportable,
    spectrum_exportable,
)
from relcore.figures.training import Curves, curve_of, training_exportable
from relcore.metrics.calibration import Score
from relcore.names import FIGURES
from relcore.recipe import load_again, need_same_content, recipe_of
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import LatentSpace, SpaceError, distinct_names, quote
from relcore.store import Store


def exportable(recipe: Mapping[str, Any]) -> Exportable:
    """The figure that a recipe describes, with its data loaded and everything computed; ``recipe["figure"]`` says which.

    ``"comparison"``  the panes of a `ComparisonRecipe`
    ``"scores"``      the same settings, ``"k"``, ``"convention"``, and ``"n_queries"`` where only a sample of the rows is asked
    ``"spectrum"``    the same settings: the singular values of the anchors in both spaces
    ``"norms"``       ``"spaces"``, a list of `SpaceSpec.to_json`
    ``"training"``    the same: the loss and accuracy of the encoders that were trained for them
    ``"all-pairs"``   the same, their ``"digests"``, ``"metric"``, ``"grouped"``, and the settings of the metric

    Raises
    ------
    SpaceError
        An unknown figure, settings that are missing, unknown or wrong, data that is gone or has changed.
    """
    kind = recipe.get("figure") if isinstance(recipe, Mapping) else None
    if kind in FIGURES:
        return recipe_of(recipe).draw()
    if kind not in _FIGURES and kind not in _ELSEWHERE:
        known = quote([*FIGURES, *_FIGURES, *_ELSEWHERE])
        raise SpaceError(f'recipe: expected a JSON object whose "figure" is one of {known}, got {kind!r}')
    figures = _FIGURES if kind in _FIGURES else import_module(_ELSEWHERE[kind]).FIGURES
    return figures[kind]({name: value for name, value in recipe.items() if name not in ("relscope", "figure")})


def draw_panes(recipe: ComparisonRecipe, scene: Scene | None = None) -> Exportable:
    """The linked panes of a comparison."""
    return scene_exportable(scene or comparison_scene(recipe), recipe.to_json(), name="relscope-panes")


def draw_scores(
    recipe: ComparisonRecipe,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int | None = None,
    scores: Mapping[str, Mapping[str, Score]] | None = None,
) -> Exportable:
    """Scores of all representations on held-out rows beside their chance levels; queries are all of them, or `n_queries`."""
    _need_counts(k, n_queries)
    if scores is None:
        pair = load_pair(recipe)
        settings = {"k": k, "convention": convention, "n_queries": n_queries}
        scores = {
            form: score_pair(
                *represent(pair, form, recipe.anchors, recipe.projection), held_out(pair, recipe.anchors, form), **settings
            )
            for form in REPRESENTATIONS
        }
    own = {"figure": "scores", "k": k, "convention": convention, "n_queries": n_queries}
    return scores_exportable(score_table(scores), recipe.to_json() | own, name="relscope-scores")


def draw_spectrum(recipe: ComparisonRecipe, diagnostics: Mapping[str, AnchorDiagnostics] | None = None) -> Exportable:
    """Singular values of the anchors in both spaces; `diagnostics` are by `distinct_names` of the two."""
    if diagnostics is None:
        pair = load_pair(recipe)
        spaces = pair.source, pair.target
        found = (diagnose_anchors(space, recipe.anchors) for space in spaces)
        diagnostics = dict(zip(distinct_names(spaces), found, strict=True))
    spectra = {name: found.singular_values for name, found in diagnostics.items()}
    return spectrum_exportable(spectra, recipe.to_json() | {"figure": "spectrum"}, name="relscope-anchor-spectrum")


def draw_norms(specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace] | None = None) -> Exportable:
    """Distribution of vector lengths, one curve a space."""
    if not specs:
        raise SpaceError("spaces: expected at least one to draw the norms of, got none")
    spaces = [load_again(spec) for spec in specs] if spaces is None else spaces
    norms = {name: space.norms for name, space in zip(distinct_names(spaces), spaces, strict=True)}
    recipe = {"relscope": __version__, "figure": "norms", "spaces": [spec.to_json() for spec in specs]}
    return histogram_exportable(norms, "Norm of a vector", recipe, name="relscope-norms")


def draw_all_pairs(
    specs: Sequence[SpaceSpec],
    *,
    metric: str = "cka",
    anchors: tuple[str, ...] = (),
    projection: ProjectionSpec | None = None,
    k: int = 10,
    n_queries: int | None = None,
    grouped: bool = False,
    digests: Sequence[str] = (),
    scores: PairScores | None = None,
) -> Exportable:
    """Every space with every other, one number a pair; `scores` come in the order of `specs`, not yet grouped."""
    _need_counts(k, n_queries)
    projection = projection or ProjectionSpec()
    if scores is None:
        spaces = [load_again(spec) for spec in specs]
        for space, digest in zip(spaces, digests or [""] * len(spaces), strict=True):
            need_same_content(space, digest)
        scores = similarity_matrix(spaces, metric, anchors, projection, k, n_queries)
    described = [spec.to_json() for spec in specs]
    recipe = {"relscope": __version__, "figure": "all-pairs", "spaces": described, "digests": list(digests)}
    recipe |= {"metric": metric, "grouped": grouped}
    if metric == "relative cosine":
        recipe |= {"anchors": list(anchors), "projection": asdict(projection)}
    if metric == "mutual knn":
        recipe |= {"k": k, "n_queries": n_queries}
    shown = scores.grouped() if grouped else scores
    return pairs_exportable(shown.table(), scores.title, recipe, name="relscope-all-pairs")


def draw_training(specs: Sequence[SpaceSpec], curves: Curves | None = None) -> Exportable:
    """Loss and held-out accuracy by epoch of the encoders behind these encodings; `curves` are by the spaces' names."""
    if curves is None:
        curves = {spec.name: training_of(spec) for spec in specs}
    recipe = {"relscope": __version__, "figure": "training", "spaces": [spec.to_json() for spec in specs]}
    return training_exportable(curves, recipe, name="relscope-training")


def training_of(spec: SpaceSpec, store: Store | None = None) -> dict[str, list[float]]:
    """The curve of an encoding's encoder by its metadata, empty where nothing was trained by epochs.

    Raises
    ------
    SpaceError
        No encoding, or one that is gone and cannot be made again.
    """
    if spec.source != "encoding":
        raise SpaceError(f"training: expected encodings, got {spec.name!r} of the source {spec.source!r}; leave it out")
    from relcore.encoding import encode_again  # other recipes do without, and a start should

    store = store or Store()
    encode_again(spec, store)
    found = store.summary(spec.option("key"))
    return curve_of(found.metadata.get("training", {})) if found else {}


def _need_counts(k: Any, n_queries: Any) -> None:
    for name, value in (("k", k), ("n_queries", n_queries)):
        if not (isinstance(value, int) and value > 0) and not (name == "n_queries" and value is None):
            raise SpaceError(f"{name}: expected a whole number above 0, got {value!r}")


def _comparison(settings: Mapping[str, Any]) -> ComparisonRecipe:
    return ComparisonRecipe.from_json({"figure": "comparison", **settings})


def _scores(settings: dict[str, Any]) -> Exportable:
    own = {name: settings.pop(name) for name in ("k", "convention", "n_queries") if name in settings}
    return draw_scores(_comparison(settings), **own)


def _spaces(settings: dict[str, Any], figure: str) -> list[SpaceSpec]:
    spaces = settings.get("spaces")
    if set(settings) != {"spaces"} or not isinstance(spaces, list) or not all(isinstance(one, dict) for one in spaces):
        raise SpaceError(
            f"recipe of {figure}: expected a list 'spaces' of objects and nothing else, got {quote(sorted(settings))}"
        )
    return [SpaceSpec.from_json(one) for one in spaces]


def _all_pairs(settings: dict[str, Any]) -> Exportable:
    specs = _spaces({"spaces": settings.pop("spaces", None)}, "all pairs")
    for name in ("digests", "anchors"):
        value = settings.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise SpaceError(f"recipe of all pairs: expected a list of strings as {name!r}, got {value!r:.80}")
    if settings.get("digests") and len(settings["digests"]) != len(specs):
        raise SpaceError(f"recipe of all pairs: expected {len(specs)} digests, one a space, got {len(settings['digests'])}")
    anchors, projection = tuple(settings.pop("anchors", ())), settings.pop("projection", {})
    try:
        return draw_all_pairs(specs, anchors=anchors, projection=ProjectionSpec(**projection), **settings)
    except TypeError as error:
        raise SpaceError(f"recipe of all pairs: unknown or misplaced setting ({error})") from error


_FIGURES: dict[str, Callable[[dict[str, Any]], Exportable]] = {
    "comparison": lambda settings: draw_panes(_comparison(settings)),
    "scores": _scores,
    "spectrum": lambda settings: draw_spectrum(_comparison(settings)),
    "norms": lambda settings: draw_norms(_spaces(settings, "norms")),
    "training": lambda settings: draw_training(_spaces(settings, "training")),
    "all-pairs": _all_pairs,
}
# Kinds that other modules draw, in their `FIGURES`: what a start does not need is not imported.
_ELSEWHERE: dict[str, str] = {
    "bootstrap": "relcore.bootstrapping.figures",
    "bootstrap-scores": "relcore.bootstrapping.figures",
    "layers": "relcore.comparing.layers_figure",
    "study": "relcore.studies.figures",
    "inversion": "relcore.inverting.figures",
    "inversion-errors": "relcore.inverting.figures",
    "inversion-grid": "relcore.inverting.figures",
    "inversion-lengths": "relcore.inverting.figures",
    "translation-table": "relcore.inverting.translation_figures",
    "cross-domain": "relcore.inverting.translation_figures",
}
