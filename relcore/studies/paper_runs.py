"""The runs whose numbers appear beside those of papers.

A run without a study was measured by an earlier version of Relscope."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from relcore.base import records
from relcore.base.version import __version__
from relcore.runs.store import Store
from relcore.studies.published import FOLDER, Number, Ours, mean_and_deviation, round_number, shipped_results
from relcore.studies.runs import StudyRuns
from relcore.studies.study import StudySpec, study_of


@dataclass(frozen=True)
class PaperRun:
    """One run in the list relcore/data/papers/runs.json.

    The settings are options of its study. `study` is "" for runs of an earlier version of Relscope. `words`
    says that it ran on the bundled word spaces, so that it can be opened on a page. `version` is raised
    whenever the same settings give other numbers than before.
    """

    title: str
    data: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    study: str = ""
    words: bool = False
    version: int = 1


RUNS = records.from_json(
    dict[str, PaperRun], json.loads((FOLDER / "runs.json").read_text(encoding="utf-8")), "runs.json"
)


def study_runs(name: str) -> StudyRuns | None:
    run = RUNS[name]
    if not run.study:
        return None
    study = study_of(run.study)
    return StudyRuns(study, StudySpec.of(study, run.settings))


def result_of(name: str, store: Store) -> Ours | None:
    """The numbers of a run of a paper's study: from the runs in this store if all are there, otherwise the
    bundled numbers."""
    runs = study_runs(name)
    if runs and not runs.missing(store, own=True):
        return ours_of(name, runs, store)
    known = shipped_results().get(name)
    if known and is_current(known):
        return known
    return None


def is_current(ours: Ours) -> bool:
    run = RUNS.get(ours.run)
    return run is not None and (ours.settings, ours.run_version) == (dict(run.settings), run.version)


def is_own(ours: Ours) -> bool:
    """Whether these numbers are from runs of the user, and not those that come with Relscope."""
    return ours is not shipped_results().get(ours.run)


def ours_of(name: str, runs: StudyRuns, store: Store, commit: str = "") -> Ours:
    run = RUNS[name]
    table = runs.table(store)
    seconds = round(float(table.seconds.sum()), 1)
    today = date.today().isoformat()
    numbers = NUMBERS[run.study](runs, table)
    return Ours(name, run.data, dict(run.settings), today, __version__, seconds, numbers, commit, run.version)


def _training(runs: StudyRuns, table: pd.DataFrame) -> tuple[Number, ...]:
    forms = {"absolute": "absolute", "relative": "relative", "whitened": "relative, whitened (ours)"}
    columns = ["F1", "accuracy", *(name for name in table if name.startswith("F1 of "))]
    metrics = dict.fromkeys(columns, "weighted F1") | {"accuracy": "accuracy"}
    encoders = {name: name.partition(" of ")[2].partition(" · ")[0] for name in columns}
    return mean_and_deviation(
        [
            {
                "label": f"{forms[run['features']]}, {encoders[column] or 'mean of 4 encoders'}",
                "metric": metrics[column],
                "value": run[column],
                "n": run["test rows"],
                "baseline": run["chance"],
            }
            for run in table.to_dict("records")
            for column in columns
        ],
        baseline_is="chance (accuracy)",
    )


def _similarity(runs: StudyRuns, table: pd.DataFrame) -> tuple[Number, ...]:
    numbers = []
    for line in runs.study.findings(runs.spec.settings, table).to_dict("records"):
        metric = "Pearson"
        if "Spearman" in line["what"]:
            metric = "Spearman"
        ends = {end: round_number(line[end]) for end in ("low", "high") if not pd.isna(line[end])}
        facts = {"unit": "−1 … 1", "n": int(line["n"]), "baseline": 0.0, "baseline_is": "unrelated"}
        label = line["what"].replace(f"{metric} ", "")
        numbers.append(Number(label, metric, round_number(line["value"]), **facts, **ends))
    return tuple(numbers)


def _by_count(*measures: str) -> Callable[[StudyRuns, pd.DataFrame], tuple[Number, ...]]:
    def numbers(runs: StudyRuns, table: pd.DataFrame) -> tuple[Number, ...]:
        return mean_and_deviation(
            [
                {
                    "label": f"{run['n_anchors']} anchors",
                    "metric": f"{measure}: accuracy",
                    "value": run[measure],
                    "n": run["test rows"],
                    "baseline": run["chance"],
                }
                for run in table.sort_values("n_anchors").to_dict("records")
                for measure in measures
            ]
        )

    return numbers


NUMBERS = {
    "training": _training,
    "similarity-performance": _similarity,
    "anchor-count": _by_count(
        "relative, same space", "relative, stitched", "whitened, same space", "whitened, stitched"
    ),
    "trained-count": _by_count("relative, same space", "relative, stitched", "absolute"),
}
_PROJECT = Path(__file__).parents[2]


def commit_of(project: Path = _PROJECT) -> str:
    """The short hash of HEAD, with "+" if tracked files below relcore differ from HEAD.

    "" if git is not installed or the folder is not the root of a checkout. A folder inside another checkout
    is not a root.
    """
    try:
        if Path(_git(project, "rev-parse", "--show-toplevel")).resolve() != project.resolve():
            return ""
        changed = _git(project, "status", "--porcelain", "--untracked-files=no", "--", "relcore")
        commit = _git(project, "rev-parse", "--short=7", "HEAD")
        return f"{commit}+" if changed else commit
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()
