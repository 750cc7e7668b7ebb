"""The core of Relscope, which works without a screen: latent spaces, absolute and relative to anchors.

The names of `__all__` are imported when they are first used, so that ``import relcore`` takes no time.
"""

import sys

from relcore.base.version import __version__ as __version__

# The module typing is not imported, because until `relcore.base.stopping` listens, Ctrl-C prints a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:  # for type checkers and editors; a test compares these imports with `_MODULES`
    from typing import Any

    from relcore.base.errors import (
        RelscopeError as RelscopeError,
        SpaceError as SpaceError,
    )
    from relcore.base.names import METRICS as METRICS
    from relcore.catalog.catalog import SpaceSpec as SpaceSpec
    from relcore.catalog.loading import load_space as load_space
    from relcore.catalog.naming import example_spaces as example_spaces
    from relcore.compare.pictures import figure_of as figure_of, panes_of as panes_of
    from relcore.compare.notebook import show as show
    from relcore.drift.chart import DriftChart as DriftChart
    from relcore.drift.check import DriftCheck as DriftCheck, drift as drift
    from relcore.drift.thresholds import Thresholds as Thresholds
    from relcore.encoders.words import load_words as load_words
    from relcore.figures.charts import Line as Line, Lines as Lines
    from relcore.figures.matrices import Matrices as Matrices, MatrixPanel as MatrixPanel
    from relcore.figures.export import (
        chart_exportable as chart_exportable,
        histogram_exportable as histogram_exportable,
    )
    from relcore.files.saving import save_space as save_space
    from relcore.files.selections import read_selection as read_selection
    from relcore.invert.inversion import InversionSpec as InversionSpec, invert as invert
    from relcore.linking.bootstrap import bootstrap_anchors as bootstrap_anchors
    from relcore.linking.link import BootstrapSpec as BootstrapSpec, link as link
    from relcore.migrate import adapters as adapters
    from relcore.migrate.charts import MigrationChart as MigrationChart
    from relcore.migrate.migration import (
        Migration as Migration,
        migrate as migrate,
        starting_models as starting_models,
    )
    from relcore.check.collection import check as check
    from relcore.passport.passport import Passport as Passport
    from relcore.represent.projection import RelativeProjection as RelativeProjection
    from relcore.represent.strategies import select_anchors as select_anchors
    from relcore.represent.translation import (
        Affine as Affine,
        LeastSquares as LeastSquares,
        Procrustes as Procrustes,
    )
    from relcore.represent.inverse import InverseRelativeProjection as InverseRelativeProjection
    from relcore.represent.representations import ProjectionSpec as ProjectionSpec
    from relcore.runs.entries import bundled_results as bundled_results
    from relcore.scores.cka import (
        linear_cka as linear_cka,
        mean_cosine as mean_cosine,
    )
    from relcore.scores.matrix_measures import (
        angular_cka as angular_cka,
        kernel_cka as kernel_cka,
        rsa as rsa,
    )
    from relcore.scores.shape_measures import (
        angular_shape as angular_shape,
        procrustes_similarity as procrustes_similarity,
    )
    from relcore.scores.neighbour_measures import (
        cknna as cknna,
        cycle_knn as cycle_knn,
        mutual_knn as mutual_knn,
        second_order_cosine as second_order_cosine,
    )
    from relcore.scores.subspace_measures import gulp as gulp, pwcca as pwcca, svcca as svcca
    from relcore.scores.neighbours import (
        jaccard as jaccard,
        mrr as mrr,
    )
    from relcore.scores.passes import AlignedPair as AlignedPair
    from relcore.scores.score import Score as Score
    from relcore.spaces.space import LatentSpace as LatentSpace
    from relcore.spaces.matching import match as match
    from relcore.spaces.split import Split as Split
    from relcore.stitch.charts import StitchMatrix as StitchMatrix
    from relcore.stitch.stitching import StitchSpec as StitchSpec, stitch_matrix as stitch_matrix
    from relcore.universe.universe import Universe as Universe, UniverseSpec as UniverseSpec
    from relcore.universe.charts import UniverseChart as UniverseChart

_MODULES = {
    "Affine": "represent.translation",
    "AlignedPair": "scores.passes",
    "BootstrapSpec": "linking.link",
    "DriftChart": "drift.chart",
    "DriftCheck": "drift.check",
    "InverseRelativeProjection": "represent.inverse",
    "InversionSpec": "invert.inversion",
    "LatentSpace": "spaces.space",
    "LeastSquares": "represent.translation",
    "Line": "figures.charts",
    "Lines": "figures.charts",
    "METRICS": "base.names",
    "Matrices": "figures.matrices",
    "MatrixPanel": "figures.matrices",
    "Migration": "migrate.migration",
    "MigrationChart": "migrate.charts",
    "Passport": "passport.passport",
    "Procrustes": "represent.translation",
    "ProjectionSpec": "represent.representations",
    "RelativeProjection": "represent.projection",
    "RelscopeError": "base.errors",
    "Score": "scores.score",
    "SpaceError": "base.errors",
    "SpaceSpec": "catalog.catalog",
    "Split": "spaces.split",
    "StitchMatrix": "stitch.charts",
    "StitchSpec": "stitch.stitching",
    "Thresholds": "drift.thresholds",
    "Universe": "universe.universe",
    "UniverseChart": "universe.charts",
    "UniverseSpec": "universe.universe",
    "adapters": "migrate",
    "angular_cka": "scores.matrix_measures",
    "angular_shape": "scores.shape_measures",
    "bootstrap_anchors": "linking.bootstrap",
    "bundled_results": "runs.entries",
    "check": "check.collection",
    "chart_exportable": "figures.export",
    "cknna": "scores.neighbour_measures",
    "cycle_knn": "scores.neighbour_measures",
    "drift": "drift.check",
    "example_spaces": "catalog.naming",
    "gulp": "scores.subspace_measures",
    "figure_of": "compare.pictures",
    "histogram_exportable": "figures.export",
    "invert": "invert.inversion",
    "jaccard": "scores.neighbours",
    "kernel_cka": "scores.matrix_measures",
    "linear_cka": "scores.cka",
    "link": "linking.link",
    "load_space": "catalog.loading",
    "load_words": "encoders.words",
    "match": "spaces.matching",
    "mean_cosine": "scores.cka",
    "migrate": "migrate.migration",
    "mrr": "scores.neighbours",
    "mutual_knn": "scores.neighbour_measures",
    "panes_of": "compare.pictures",
    "procrustes_similarity": "scores.shape_measures",
    "pwcca": "scores.subspace_measures",
    "read_selection": "files.selections",
    "rsa": "scores.matrix_measures",
    "save_space": "files.saving",
    "second_order_cosine": "scores.neighbour_measures",
    "select_anchors": "represent.strategies",
    "show": "compare.notebook",
    "starting_models": "migrate.migration",
    "stitch_matrix": "stitch.stitching",
    "svcca": "scores.subspace_measures",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'relcore' has no attribute {name!r}")
    if name in _FOLDERS:
        return import_module(f"relcore.{name}")
    found = globals()[name] = _public(name)
    return found


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]


def _public(name: str) -> "Any":
    """The public function, class or module of this name, which `_MODULES` tells where to find."""
    from importlib import import_module

    module = import_module(f"relcore.{_MODULES[name]}")
    if name in vars(module):
        return vars(module)[name]
    return import_module(f"{module.__name__}.{name}")


_FOLDERS = ("check", "drift", "invert", "migrate")  # folders that have the name of their public function


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
        return self.__wrapped__.__doc__

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
