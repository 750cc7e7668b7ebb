"""The figure of a training, with its recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.kinds import need_kinds
from relcore.catalog.task import Recipe
from relcore.figures.export import Exportable, chart_exportable
from relcore.training.agreement import AXES, OWN, TrainingResult, TrainingSpec
from relcore.training.comparison import compare_runs
from relcore.training.runs import Run, open_run


@dataclass(frozen=True)
class RunSpec:
    """The folder of a run. The recipe names it without the folders that it is in.

    Attributes
    ----------
    name : str
        Its path.
    digest : str
        `Run.digest`; "" matches every run.
    """

    name: str
    digest: str = ""
    source: str = "folder"

    @classmethod
    def of(cls, run: Run) -> RunSpec:
        digest = ""
        if not run.growing:
            digest = run.digest
        return cls(str(run.folder.absolute()), digest)

    def open(self) -> Run:
        """The run. Raises a SpaceError if it has changed."""
        run = open_run(self.name)
        if self.digest and run.digest != self.digest:
            raise SpaceError(
                f"{run.name!r} has changed: expected content {self.digest[:8]}…, got {run.digest[:8]}…; find"
                " the original, or delete the digest from the recipe"
            )
        return run


@dataclass(frozen=True, kw_only=True)
class TrainingChart(Recipe, figure="training-runs"):
    """A figure of runs: their rows while they are trained, side by side, and the lines of `compare_runs`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> import relcore
    >>> folder = Path(mkdtemp())
    >>> np.save(folder / "step-0.npy", np.random.default_rng(0).normal(size=(40, 4)))
    >>> relcore.TrainingChart.of([relcore.open_run(folder)], relcore.TrainingSpec()).figure
    'training-runs'
    """

    runs: tuple[RunSpec, ...]
    training: TrainingSpec = TrainingSpec()
    axes: str = OWN

    def __post_init__(self) -> None:
        need_kinds(self)
        need_one_of("axes", self.axes, AXES)

    @classmethod
    def of(cls, runs: Sequence[Run], training: TrainingSpec, axes: str = OWN) -> TrainingChart:
        return cls(runs=tuple(map(RunSpec.of, runs)), training=training, axes=axes)

    def draw(self, result: TrainingResult | None = None) -> Exportable:
        if result is None:
            result = compare_runs([spec.open() for spec in self.runs], self.training)
        return chart_exportable(
            result.panels(self.axes), self.to_json(), "relscope-training", table=lambda: result.table
        )
