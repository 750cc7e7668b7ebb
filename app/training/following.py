"""Runs that grow while the page shows them. A new frame is drawn at once; its scores follow."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from relcore.figures.charts import MovingPanels
from relcore.training.agreement import TrainingResult, TrainingSpec
from relcore.training.comparison import RunComparison
from relcore.training.runs import METRICS, Run, open_runs

_KEY = "relscope.growing-runs"
_PAUSE = 1.0  # seconds between two comparisons
_SECONDS = 5.0  # after which runs are read again although no file is new: the training may have been killed


class GrowingRuns:
    """The runs of a folder, and what is known of them so far.

    `runs` are those of the last look, and `result` is that of the last comparison.
    """

    def __init__(self, folder: str, spec: TrainingSpec, runs: Sequence[Run]) -> None:
        self.folder = folder
        self.spec = spec
        self.runs = runs
        self.comparison = RunComparison(spec, to_last=False)
        self._files = self._files_of_now()
        self._read = time.monotonic()
        self._drawn: list[tuple[str, bytes]] = []
        self._panels: tuple[Any, Any] = (None, None)
        self.compare()

    def compare(self) -> TrainingResult:
        """The result for the runs of now."""
        begin = time.monotonic()
        self.result = self.comparison.compare(self.runs)
        self._compared = _frames(self.runs)
        self.compared_at = time.monotonic()
        self._pause = max(_PAUSE, 2 * (self.compared_at - begin))
        return self.result

    def look(self) -> None:
        """Read the runs again if there are new frames or metrics, or after some seconds."""
        files = self._files_of_now()
        if files == self._files and time.monotonic() - self._read < _SECONDS:
            return
        self.runs = open_runs(self.folder)
        self._files = files
        self._read = time.monotonic()

    def _files_of_now(self) -> list[tuple[list[str], int]]:
        """For each run, the names in its folder and when its metrics were written: they also say that it has
        ended. To look takes less than a millisecond; to read the runs takes longer."""
        return [(sorted(os.listdir(run.folder)), _written_at(run.folder / METRICS)) for run in self.runs]

    @property
    def has_scores(self) -> bool:
        """Whether the result has all frames."""
        return self._compared == _frames(self.runs)

    @property
    def is_due(self) -> bool:
        """Whether to compare the frames of now: if all of them are drawn, and some time has passed."""
        drawn = self._drawn == _frames(self.runs)
        return drawn and not self.has_scores and time.monotonic() > self.compared_at + self._pause

    @property
    def growing(self) -> bool:
        return any(run.growing for run in self.runs)

    def panels(self, axes: str) -> MovingPanels:
        """The frames of now, with the lines of the last comparison. While nothing is new, always the same
        object."""
        key = (axes, self._compared, _frames(self.runs))
        if key != self._panels[0]:
            steps, places = self.comparison.places(self.runs, axes)
            self._panels = key, replace(self.result, steps=steps, places={axes: places}).panels(axes)
            self._drawn = _frames(self.runs)
        return self._panels[1]


def _written_at(file: Path) -> int:
    """Nanoseconds; 0 if there is no such file, as in a folder of checkpoints."""
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _frames(runs: Sequence[Run]) -> list[tuple[str, bytes]]:
    return [(str(run.folder), run.steps.tobytes()) for run in runs]


def compared(folder: str, spec: TrainingSpec, runs: Sequence[Run]) -> TrainingResult:
    """Compare runs that grow, as their folder is now."""
    known = st.session_state.get(_KEY)
    if known is None or (known.folder, known.spec) != (folder, spec):
        known = GrowingRuns(folder, spec, runs)
        st.session_state[_KEY] = known
    known.runs = runs
    if not known.has_scores:
        known.compare()
    return known.result


def growing_runs() -> GrowingRuns | None:
    """What this session knows of the runs that `compared` got last; None if they have ended."""
    return st.session_state.get(_KEY)


def comparison(spec: TrainingSpec) -> RunComparison:
    """What compares runs that have ended. It knows what this session knew while they grew."""
    known = st.session_state.pop(_KEY, None)
    if known is None or known.spec != spec:
        return RunComparison(spec)
    return known.comparison.of_ended_runs()
