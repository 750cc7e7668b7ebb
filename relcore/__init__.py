"""The core of Relscope, which works without a screen: latent spaces, absolute and relative to anchors.

spaces
    LatentSpace, SpaceSpec, load_space, save_space, load_words, example_spaces, bundled_results,
    BundledResults, read_selection, Selection, match, Match, Split, RelscopeError, SpaceError
networks
    encode, layers, nn, watch, Watch, watch_trainer, watch_lightning, open_run, open_runs, Run,
    compare_runs, TrainingSpec, TrainingResult
anchors
    select_anchors, RelativeProjection, ProjectionSpec
measures
    linear_cka, jaccard, mrr, mean_cosine, mutual_knn, cknna, cycle_knn, second_order_cosine, kernel_cka,
    angular_cka, rsa, procrustes_similarity, angular_shape, svcca, pwcca, gulp, compare, Comparison,
    METRICS, AlignedPair, Score, ChanceLevel
reasons
    explain, Explain, Explanation, Reason, FeatureFamily, axis, PoleAxis, AxisPlaces
connect
    Procrustes, LeastSquares, Affine, InverseRelativeProjection, invert, InversionSpec, Inversion,
    stitch_matrix, StitchSpec, StitchResult, link, Linked, bootstrap_anchors, BootstrapSpec,
    BootstrapResult, Universe, UniverseSpec
operate
    drift, DriftCheck, Drift, Thresholds, migrate, Migration, MigrationResult, starting_models, adapters,
    move_threshold, MovedThreshold, choose, Choose, ModelChoice, Passport, PassportChange, check, Checked
figures
    show, panes_of, figure_of, DriftChart, DriftMap, MigrationChart, ChoiceChart, ReasonsChart, AxisChart,
    StitchMatrix, UniverseChart, TrainingChart, Line, Lines, Matrices, MatrixPanel, chart_exportable,
    histogram_exportable, Exportable

The names are imported when they are first used, so that ``import relcore`` takes no time.
"""

import sys

from relcore.base.version import __version__ as __version__

# The module typing is not imported, because until `relcore.base.stopping` listens, Ctrl-C prints a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:  # for type checkers and editors; a test compares these imports with `_MODULES`
    from typing import Any

    from relcore import adapters as adapters, nn as nn
    from relcore.axis.chart import AxisChart as AxisChart
    from relcore.axis.places import AxisPlaces as AxisPlaces
    from relcore.axis.task import PoleAxis as PoleAxis, axis as axis
    from relcore.base.errors import RelscopeError as RelscopeError, SpaceError as SpaceError
    from relcore.base.names import METRICS as METRICS
    from relcore.catalog.catalog import SpaceSpec as SpaceSpec
    from relcore.catalog.loading import load_space as load_space
    from relcore.catalog.naming import example_spaces as example_spaces
    from relcore.check.collection import Checked as Checked, check as check
    from relcore.choose.chart import ChoiceChart as ChoiceChart
    from relcore.choose.result import ModelChoice as ModelChoice
    from relcore.choose.task import Choose as Choose, choose as choose
    from relcore.compare.comparison import Comparison as Comparison, compare as compare
    from relcore.compare.notebook import show as show
    from relcore.compare.pictures import figure_of as figure_of, panes_of as panes_of
    from relcore.drift.chart import DriftChart as DriftChart
    from relcore.drift.check import Drift as Drift, DriftCheck as DriftCheck, drift as drift
    from relcore.drift.moved_rows import DriftMap as DriftMap
    from relcore.drift.thresholds import Thresholds as Thresholds
    from relcore.encode.network import encode as encode, layers as layers
    from relcore.encoders.words import load_words as load_words
    from relcore.explain.chart import ReasonsChart as ReasonsChart
    from relcore.explain.explanation import Explain as Explain, explain as explain
    from relcore.explain.families import FeatureFamily as FeatureFamily
    from relcore.explain.reason import Reason as Reason
    from relcore.explain.result import Explanation as Explanation
    from relcore.figures.charts import Line as Line, Lines as Lines
    from relcore.figures.export import (
        Exportable as Exportable,
        chart_exportable as chart_exportable,
        histogram_exportable as histogram_exportable,
    )
    from relcore.figures.matrices import Matrices as Matrices, MatrixPanel as MatrixPanel
    from relcore.files.saving import save_space as save_space
    from relcore.files.selections import Selection as Selection, read_selection as read_selection
    from relcore.invert.inversion import (
        Inversion as Inversion,
        InversionSpec as InversionSpec,
        invert as invert,
    )
    from relcore.linking.links_found import BootstrapResult as BootstrapResult
    from relcore.linking.bootstrap import bootstrap_anchors as bootstrap_anchors
    from relcore.linking.link import BootstrapSpec as BootstrapSpec, Linked as Linked, link as link
    from relcore.migrate.charts import MigrationChart as MigrationChart
    from relcore.migrate.migration import (
        Migration as Migration,
        migrate as migrate,
        starting_models as starting_models,
    )
    from relcore.migrate.moved_threshold import MovedThreshold as MovedThreshold
    from relcore.migrate.result import MigrationResult as MigrationResult
    from relcore.migrate.thresholds import move_threshold as move_threshold
    from relcore.passport.change import PassportChange as PassportChange
    from relcore.passport.passport import Passport as Passport
    from relcore.represent.inverse import InverseRelativeProjection as InverseRelativeProjection
    from relcore.represent.projection import RelativeProjection as RelativeProjection
    from relcore.represent.representations import ProjectionSpec as ProjectionSpec
    from relcore.represent.strategies import select_anchors as select_anchors
    from relcore.represent.translation import (
        Affine as Affine,
        LeastSquares as LeastSquares,
        Procrustes as Procrustes,
    )
    from relcore.runs.entries import BundledResults as BundledResults, bundled_results as bundled_results
    from relcore.scores.cka import linear_cka as linear_cka, mean_cosine as mean_cosine
    from relcore.scores.matrix_measures import (
        angular_cka as angular_cka,
        kernel_cka as kernel_cka,
        rsa as rsa,
    )
    from relcore.scores.neighbour_measures import (
        cknna as cknna,
        cycle_knn as cycle_knn,
        mutual_knn as mutual_knn,
        second_order_cosine as second_order_cosine,
    )
    from relcore.scores.neighbours import jaccard as jaccard, mrr as mrr
    from relcore.scores.passes import AlignedPair as AlignedPair
    from relcore.scores.score import ChanceLevel as ChanceLevel, Score as Score
    from relcore.scores.shape_measures import (
        angular_shape as angular_shape,
        procrustes_similarity as procrustes_similarity,
    )
    from relcore.scores.subspace_measures import gulp as gulp, pwcca as pwcca, svcca as svcca
    from relcore.spaces.matching import Match as Match, match as match
    from relcore.spaces.space import LatentSpace as LatentSpace
    from relcore.spaces.split import Split as Split
    from relcore.stitch.charts import StitchMatrix as StitchMatrix
    from relcore.stitch.stitching import (
        StitchResult as StitchResult,
        StitchSpec as StitchSpec,
        stitch_matrix as stitch_matrix,
    )
    from relcore.universe.charts import UniverseChart as UniverseChart
    from relcore.training.agreement import (
        TrainingResult as TrainingResult,
        TrainingSpec as TrainingSpec,
    )
    from relcore.training.callbacks import (
        watch_lightning as watch_lightning,
        watch_trainer as watch_trainer,
    )
    from relcore.training.chart import TrainingChart as TrainingChart
    from relcore.training.comparison import compare_runs as compare_runs
    from relcore.training.runs import Run as Run, open_run as open_run, open_runs as open_runs
    from relcore.training.watching import Watch as Watch, watch as watch
    from relcore.universe.universe import Universe as Universe, UniverseSpec as UniverseSpec

# Group → name → module. A reader meets the names in these groups in the docstring above and in the reference.
GROUPS = {
    "spaces": {
        "LatentSpace": "spaces.space",
        "SpaceSpec": "catalog.catalog",
        "load_space": "catalog.loading",
        "save_space": "files.saving",
        "load_words": "encoders.words",
        "example_spaces": "catalog.naming",
        "bundled_results": "runs.entries",
        "BundledResults": "runs.entries",
        "read_selection": "files.selections",
        "Selection": "files.selections",
        "match": "spaces.matching",
        "Match": "spaces.matching",
        "Split": "spaces.split",
        "RelscopeError": "base.errors",
        "SpaceError": "base.errors",
    },
    "networks": {
        "encode": "encode.network",
        "layers": "encode.network",
        "nn": "nn",
        "watch": "training.watching",
        "Watch": "training.watching",
        "watch_trainer": "training.callbacks",
        "watch_lightning": "training.callbacks",
        "open_run": "training.runs",
        "open_runs": "training.runs",
        "Run": "training.runs",
        "compare_runs": "training.comparison",
        "TrainingSpec": "training.agreement",
        "TrainingResult": "training.agreement",
    },
    "anchors": {
        "select_anchors": "represent.strategies",
        "RelativeProjection": "represent.projection",
        "ProjectionSpec": "represent.representations",
    },
    "measures": {
        "linear_cka": "scores.cka",
        "jaccard": "scores.neighbours",
        "mrr": "scores.neighbours",
        "mean_cosine": "scores.cka",
        "mutual_knn": "scores.neighbour_measures",
        "cknna": "scores.neighbour_measures",
        "cycle_knn": "scores.neighbour_measures",
        "second_order_cosine": "scores.neighbour_measures",
        "kernel_cka": "scores.matrix_measures",
        "angular_cka": "scores.matrix_measures",
        "rsa": "scores.matrix_measures",
        "procrustes_similarity": "scores.shape_measures",
        "angular_shape": "scores.shape_measures",
        "svcca": "scores.subspace_measures",
        "pwcca": "scores.subspace_measures",
        "gulp": "scores.subspace_measures",
        "compare": "compare.comparison",
        "Comparison": "compare.comparison",
        "METRICS": "base.names",
        "AlignedPair": "scores.passes",
        "Score": "scores.score",
        "ChanceLevel": "scores.score",
    },
    "reasons": {
        "explain": "explain.explanation",
        "Explain": "explain.explanation",
        "Explanation": "explain.result",
        "Reason": "explain.reason",
        "FeatureFamily": "explain.families",
        "axis": "axis.task",
        "PoleAxis": "axis.task",
        "AxisPlaces": "axis.places",
    },
    "connect": {
        "Procrustes": "represent.translation",
        "LeastSquares": "represent.translation",
        "Affine": "represent.translation",
        "InverseRelativeProjection": "represent.inverse",
        "invert": "invert.inversion",
        "InversionSpec": "invert.inversion",
        "Inversion": "invert.inversion",
        "stitch_matrix": "stitch.stitching",
        "StitchSpec": "stitch.stitching",
        "StitchResult": "stitch.stitching",
        "link": "linking.link",
        "Linked": "linking.link",
        "bootstrap_anchors": "linking.bootstrap",
        "BootstrapSpec": "linking.link",
        "BootstrapResult": "linking.links_found",
        "Universe": "universe.universe",
        "UniverseSpec": "universe.universe",
    },
    "operate": {
        "drift": "drift.check",
        "DriftCheck": "drift.check",
        "Drift": "drift.check",
        "Thresholds": "drift.thresholds",
        "migrate": "migrate.migration",
        "Migration": "migrate.migration",
        "MigrationResult": "migrate.result",
        "starting_models": "migrate.migration",
        "adapters": "adapters",
        "move_threshold": "migrate.thresholds",
        "MovedThreshold": "migrate.moved_threshold",
        "choose": "choose.task",
        "Choose": "choose.task",
        "ModelChoice": "choose.result",
        "Passport": "passport.passport",
        "PassportChange": "passport.change",
        "check": "check.collection",
        "Checked": "check.collection",
    },
    "figures": {
        "show": "compare.notebook",
        "panes_of": "compare.pictures",
        "figure_of": "compare.pictures",
        "DriftChart": "drift.chart",
        "DriftMap": "drift.moved_rows",
        "MigrationChart": "migrate.charts",
        "ChoiceChart": "choose.chart",
        "ReasonsChart": "explain.chart",
        "AxisChart": "axis.chart",
        "StitchMatrix": "stitch.charts",
        "UniverseChart": "universe.charts",
        "TrainingChart": "training.chart",
        "Line": "figures.charts",
        "Lines": "figures.charts",
        "Matrices": "figures.matrices",
        "MatrixPanel": "figures.matrices",
        "chart_exportable": "figures.export",
        "histogram_exportable": "figures.export",
        "Exportable": "figures.export",
    },
}
_MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}
__all__ = [*_MODULES]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'relcore' has no attribute {name!r}")
    if name in _FOLDERS or _MODULES[name] == name:  # a folder or a module of this name
        return import_module(f"relcore.{name}")
    value = _public(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def _public(name: str) -> "Any":
    """The public function or class of this name, imported from the module that `_MODULES` gives."""
    from importlib import import_module

    return getattr(import_module(f"relcore.{_MODULES[name]}"), name)


# Folders that have the name of their public function.
_FOLDERS = ("axis", "check", "choose", "compare", "drift", "encode", "explain", "invert", "migrate")


class _CallableFolder(type(sys)):
    """The type of a folder with the name of a public function, such as `relcore.drift`. A call of the folder
    is a call of the function, so both ``relcore.drift(old, new)`` and ``import relcore.drift.check`` work.
    """

    def __call__(self, *arguments: "Any", **options: "Any") -> "Any":
        return self.__wrapped__(*arguments, **options)

    @property
    def __wrapped__(self) -> "Any":
        return _public(self.__name__.rpartition(".")[2])

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The function's docstring, with its arguments below the first paragraph: `help` shows them of
        functions only, not of folders."""
        from inspect import Parameter, cleandoc

        summary, _, rest = cleandoc(self.__wrapped__.__doc__ or "").partition("\n\n")
        bare = [one.replace(annotation=Parameter.empty) for one in self.__signature__.parameters.values()]
        call = self.__signature__.replace(parameters=bare, return_annotation=Parameter.empty)
        return f"{summary}\n\n    {self.__name__}{call}\n\n{rest}"

    @property
    def __signature__(self) -> "Any":
        from inspect import signature

        return signature(self.__wrapped__)

    def __reduce__(self) -> "Any":
        from importlib import import_module

        return import_module, (self.__name__,)


class _Package(type(sys)):
    """The type of this module. Python binds a folder here when it first imports a module of the folder."""

    def __setattr__(self, name: str, value: "Any") -> None:
        if name in _FOLDERS and isinstance(value, type(sys)):
            value.__class__ = _CallableFolder
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
