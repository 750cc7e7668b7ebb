"""Runs: measure what stands beside the papers' numbers, at once or as a job, and keep it in the store."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

from relcore import __version__
from relcore.base import records
from relcore.base.errors import SpaceError, need_one_of
from relcore.papers.ours import Number, Ours, shipped
from relcore.papers.published import FOLDER
from relcore.runs import pace
from relcore.runs.digest import digest_of
from relcore.runs.progress import Context, Report, silent
from relcore.runs.store import Store

# The runs that measure our numbers for the papers, by name, as listed in relcore/data/papers/runs.json.


@dataclass(frozen=True)
class PaperRun:
    """One run.

    Attributes
    ----------
    title, data : str
        What it does, and on which data.
    function : "module:name"
        Under relcore.papers; called with settings, store, report, gives `Measured`.
    settings : dict
        JSON values: every size, so that a run on a laptop takes minutes.
    minutes : float
        Roughly, on one core that does nothing else.
    local : str
        What it needs in the data folder; "" where all is bundled.
    version : int
        Raise it when the same settings would give other numbers.
    """

    title: str
    data: str
    function: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    minutes: float = 1.0
    local: str = ""
    version: int = 1


RUNS = records.from_json(
    dict[str, PaperRun], json.loads((FOLDER / "runs.json").read_text(encoding="utf-8")), "runs.json"
)


# The commit of the project's own checkout: what code a number was measured with.

_PROJECT = Path(__file__).parents[2]
_MEASURES = "relcore"


def commit_of(project: Path = _PROJECT) -> str:
    """Short hash of HEAD, ``"a8e5362"``; with "+" behind it where tracked files under relcore differ from it.

    "" where the folder is no checkout of its own, or git is not installed.
    """
    top = _git(project, "rev-parse", "--show-toplevel")
    if (
        not top or Path(top).resolve() != project.resolve()
    ):  # installed into a folder of someone else's checkout
        return ""
    changed = _git(project, "status", "--porcelain", "--untracked-files=no", "--", _MEASURES)
    return _git(project, "rev-parse", "--short=7", "HEAD") + ("+" if changed else "")


def _git(folder: Path, *asked: str) -> str:
    try:
        return subprocess.run(
            ["git", *asked], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """The result of a run's function: numbers, and the seconds of parts that were in the store already."""

    numbers: tuple[Number, ...]
    earlier_seconds: float = 0.0


def run_key(name: str) -> str:
    """The store's key of what a run finds: other settings, or a raised version, give another."""
    run = RUNS[name]
    return digest_of("papers run", name, run.version, dict(run.settings))


def measure(name: str, store: Store, report: Report | None = None) -> Ours:
    """Do the run now.

    Raises
    ------
    SpaceError
        No such run, or data that it needs are not in the data folder.
    """
    need_one_of("run", name, RUNS)
    run = RUNS[name]
    if missing := what_is_missing(name):
        raise SpaceError(missing)
    commit = commit_of()  # before it runs: the code is loaded now
    module, _, function = run.function.partition(":")
    began = time.perf_counter()
    found = getattr(import_module(f"relcore.papers.{module}"), function)(
        run.settings, store, report or silent
    )
    seconds = round(time.perf_counter() - began + found.earlier_seconds, 1)
    today = date.today().isoformat()
    return Ours(
        name, run.data, dict(run.settings), today, __version__, seconds, found.numbers, commit, run.version
    )


def expected(name: str, store: Store) -> pace.Expected:
    """The expected time of a run: that of the project's numbers, at the pace of its last runs here."""
    known = shipped().get(name)
    return pace.expect(store, f"papers/{name}", known.seconds if known else 60 * RUNS[name].minutes)


def paper_job(context: Context, *, name: str) -> None:
    """`measure` as a job of the Engine, under `run_key`."""
    context.report(0, 1, "starting")
    context.put({}, {"ours": records.to_json(measure(name, context.store, context.report))})


def result_of(name: str, store: Store) -> Ours | None:
    """The numbers of a run: the store's own, else the project's if settings and version are unchanged."""
    if found := store.summary(run_key(name)):
        return records.from_json(Ours, found.metadata["ours"])
    known = shipped().get(name)
    return known if known and is_current(known) else None


def is_current(found: Ours) -> bool:
    """Whether the run still has the settings and the version with which this was measured."""
    run = RUNS.get(found.run)
    return run is not None and (found.settings, found.run_version) == (dict(run.settings), run.version)


def what_is_missing(name: str) -> str:
    """A sentence on the missing data of this run; "" if it can start."""
    from relcore.papers.local import folder_of

    needed = RUNS[name].local
    if not needed or folder_of(needed):
        return ""
    return (
        f"{RUNS[name].title}: expected {needed} in the data folder, which RELSCOPE_DATA names, got none; put"
        " it there, or set RELSCOPE_DATA to a folder that has it"
    )
