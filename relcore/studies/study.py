"""Study: a question of the papers, what can be chosen, and the runs that answer it; StudySpec: the choices
as JSON.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import FORMER_STUDIES, STUDIES
from relcore.base.records import need_plain
from relcore.catalog.catalog import SpaceSpec
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import Encoder
from relcore.figures.charts import Lines, Matrices, PictureGrid
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.studies.statistics import findings_over, findings_table

Settings = Mapping[str, Any]  # plain JSON, the random state among it
Chart = Lines | Matrices | PictureGrid


@dataclass(frozen=True)
class Option:
    """One setting of a study that the user chooses.

    Attributes
    ----------
    name, label, help : str
    choices : tuple
        What can be chosen; empty: any list of strings (such as ids).
    default : one of the choices, or a tuple of them where `many` may be chosen
    many : bool
    names : tuple of str
        Names of the choices; by default the choices themselves.
    """

    name: str
    label: str
    choices: tuple
    default: Any
    many: bool = False
    help: str = ""
    names: tuple[str, ...] = ()

    def check(self, study: str, value: Any) -> Any:
        """The value as this option holds it.

        Raises
        ------
        SpaceError
            No such choice.
        """
        items, allowed = value if self.many else [value], self.choices
        kinds = {type(choice) for choice in allowed} or {str}
        valid = isinstance(items, list | tuple) and len(set(map(str, items))) == len(items)
        if (
            not valid
            or not all(type(item) in kinds and item in (allowed or [item]) for item in items)
            or (allowed and not items)
        ):
            wanted = (
                f"{'some' if self.many else 'one'} of {quote(allowed)}" if allowed else "different strings"
            )
            raise SpaceError(f"{study}: {self.name}: expected {wanted}, got {value!r:.80}")
        return tuple(value) if self.many else value


def states(draws: str, default: int = 3, choices: tuple[int, ...] = (3, 5, 10)) -> Option:
    """The number of random states, and what each of them draws."""
    return Option("n_states", "Random states", choices, default, help=f"Each draws {draws}.")


@dataclass(frozen=True)
class RunResult:
    """What one run found: numbers (and words) by name, and curves by epoch or other arrays."""

    values: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Opening:
    """What a run can put into a session: an encoder to run on a dataset, or spaces that are there, and
    anchors by id.
    """

    dataset: DatasetSpec | None = None
    encoders: tuple[Encoder, ...] = ()
    spaces: tuple[SpaceSpec, ...] = ()
    anchors: tuple[str, ...] = ()


class Study(ABC):
    """A study has no state: a worker gets its name only. Raise `version` when a run would give another
    result. A `table` is `StudyRuns.table` of one finished run or more.

    Attributes
    ----------
    by, measures, names
        Of the usual findings: the column that is varied, the measured columns with their names, and the
        names of the values of `by`, where they are no numbers.
    cost : seconds, or by data
        Of a run on one core, where `seconds` does not compute them.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    options: ClassVar[tuple[Option, ...]]
    by: ClassVar[str] = ""
    measures: ClassVar[Mapping[str, str]] = {}
    names: ClassVar[Mapping[Any, str]] = {}
    cost: ClassVar[float | Mapping[str, float]] = 5.0

    @property
    def title(self) -> str:
        return STUDIES[self.kind].title

    @abstractmethod
    def runs(self, options: Settings) -> list[dict[str, Any]]:
        """The settings of every run, in the order in which they start; see `grid`."""

    @abstractmethod
    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        """One run; equal settings give an equal result."""

    def seconds(self, settings: Settings) -> float:
        """Roughly how long a run takes on one core."""
        return self.cost[settings["data"]] if isinstance(self.cost, Mapping) else self.cost

    @abstractmethod
    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Chart]:
        """What to draw, by name; empty while there is too little."""

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        """The answer in numbers. Columns: what, value, low, high (95 %), n, interval (how it was found)."""
        return findings_table(findings_over(table, self.by, self.measures, self.names))

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        """The finding in one sentence, with its 95 % interval; "" while too few runs are done to say it."""
        return ""

    def opening(self, settings: Settings) -> Opening | None:
        """What other pages can show of a run."""
        return None


@dataclass(frozen=True)
class StudySpec:
    """Which study with which choices: hashes, and goes to JSON and back."""

    kind: str
    options: tuple[tuple[str, Any], ...]
    version: int = 1

    @classmethod
    def of(cls, study: Study, options: Settings | None = None) -> StudySpec:
        """The spec of these choices; what is not chosen takes its default.

        Raises
        ------
        SpaceError
            An option that the study does not have, or no such choice.
        """
        given, known = dict(options or {}), {option.name: option for option in study.options}
        if unknown := sorted(set(given) - set(known)):
            raise SpaceError(f"{study.kind}: expected options among {quote(known)}, got {quote(unknown)}")
        chosen = {
            name: option.check(study.kind, given.get(name, option.default)) for name, option in known.items()
        }
        return cls(study.kind, tuple(chosen.items()), study.version)

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.options)

    def to_json(self) -> dict[str, Any]:
        """``{"study": "anchor-count", "version": 1, "options": {…}}``."""
        options = {name: list(value) if isinstance(value, tuple) else value for name, value in self.options}
        return {"study": self.kind, "version": self.version, "options": options}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], known: Callable[[str], Study] | None = None) -> StudySpec:
        """Back from JSON; `known` finds a study by its name, default those of Relscope.

        Raises
        ------
        SpaceError
            Not a study, one of another version, options that it does not have.
        """
        need_plain(record, "study file")
        if (
            not isinstance(record, Mapping)
            or set(record) - {"study", "version", "options"}
            or not isinstance(record.get("study"), str)
            or not isinstance(options := record.get("options", {}), Mapping)
        ):
            raise SpaceError(
                f"study file: expected a JSON object of 'study', 'version' and 'options', got {record!r:.80}"
            )
        study, version = (known or study_of)(record["study"]), record.get("version")
        if version != study.version or isinstance(version, bool):
            raise SpaceError(
                f"study file: expected version {study.version} of {study.kind!r}, got {version!r:.80}; choose"
                " its options again on the Studies page, or use the Relscope that wrote it"
            )
        return cls.of(study, options)


def grid(options: Settings, shared: str, **varied: Iterable) -> list[dict[str, Any]]:
    """Settings of a run for each random state and each combination of what is varied, the last varied
    fastest; with the options named in `shared`.
    """
    named = {name: options[name] for name in shared.split()}
    same = {name: list(value) if isinstance(value, tuple) else value for name, value in named.items()}
    return [
        {**same, **dict(zip(varied, chosen, strict=True)), "random_state": state}
        for state, *chosen in itertools.product(range(options["n_states"]), *varied.values())
    ]


def study_of(kind: str) -> Study:
    """The study of this name.

    Raises
    ------
    SpaceError
        There is none.
    """
    if kind in FORMER_STUDIES:
        now = FORMER_STUDIES[kind]
        raise SpaceError(f"study {kind}: version 0.1.0 of Relscope opens it; now it is part of {now!r}")
    need_one_of("study", kind, STUDIES)
    return STUDIES[kind].load()()
