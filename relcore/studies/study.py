"""Study: a question of the papers, what can be chosen, and the runs that answer it; StudySpec: the choices
as JSON.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import STUDIES
from relcore.base.records import need_plain
from relcore.catalog.catalog import SpaceSpec
from relcore.charts.lines import Lines
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import Encoder
from relcore.figures.matrices import Matrices
from relcore.figures.picture_grid import PictureGrid
from relcore.runs.progress import Report
from relcore.runs.store import Store

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
        if not self.many:
            if value not in self.choices or isinstance(value, bool) != isinstance(self.default, bool):
                raise SpaceError(
                    f"{study}: {self.name}: expected one of {quote(self.choices)}, got {value!r:.80}"
                )
            return value
        if (
            not isinstance(value, list | tuple)
            or (not value and self.choices)
            or len(set(map(str, value))) < len(value)
        ):
            raise SpaceError(f"{study}: {self.name}: expected a list without repeats, got {value!r:.80}")
        unknown = [
            one for one in value if (one not in self.choices if self.choices else not isinstance(one, str))
        ]
        if unknown:
            raise SpaceError(
                f"{study}: {self.name}: expected some of {quote(self.choices) or 'strings'}, got"
                f" {quote(unknown[:3])}"
            )
        return tuple(value)


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
    result.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    question: ClassVar[str]
    paper: ClassVar[str]
    version: ClassVar[int] = 1
    options: ClassVar[tuple[Option, ...]]

    @abstractmethod
    def runs(self, options: Settings) -> list[dict[str, Any]]:
        """The settings of every run, in the order in which they start."""

    @abstractmethod
    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        """One run; equal settings give an equal result."""

    @abstractmethod
    def seconds(self, settings: Settings) -> float:
        """Roughly how long a run takes on one core."""

    @abstractmethod
    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Chart]:
        """What to draw of the finished runs (`runs.run_table`), by name; empty while there is too little."""

    @abstractmethod
    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        """The answer in numbers. Columns: what, value, low, high (95 %), n, interval (how it was found)."""

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
        given = dict(options or {})
        known = [option.name for option in study.options]
        if unknown := set(given) - set(known):
            raise SpaceError(
                f"{study.kind}: expected options among {quote(known)}, got {quote(sorted(unknown))}"
            )
        chosen = tuple(
            (one.name, one.check(study.kind, given.get(one.name, one.default))) for one in study.options
        )
        return cls(study.kind, chosen, study.version)

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
        names = {"study", "version", "options"}
        if not isinstance(record, Mapping) or set(record) - names or not isinstance(record.get("study"), str):
            got = quote(sorted(record)) if isinstance(record, Mapping) else type(record).__name__
            raise SpaceError(
                f"study file: expected a JSON object of 'study', 'version' and 'options', got {got}"
            )
        study = (known or study_of)(record["study"])
        version = record.get("version")
        if version != study.version or isinstance(version, bool):
            raise SpaceError(
                f"study file: expected version {study.version} of {study.kind!r}, got {version!r:.80}; its"
                " runs would not be those of this Relscope: choose its options again on the Studies page, or"
                " use the Relscope that wrote it"
            )
        options = record.get("options", {})
        if not isinstance(options, Mapping):
            raise SpaceError(f"study file: expected 'options' as an object, got {type(options).__name__}")
        return cls.of(study, options)


def grid(options: Settings, shared: Mapping[str, Any], **varied: Sequence) -> list[dict[str, Any]]:
    """Settings of a run for each random state and each combination of what is varied, the last varied
    fastest.
    """
    values = itertools.product(range(options["n_states"]), *varied.values())
    return [
        {**shared, **dict(zip(varied, chosen, strict=True)), "random_state": state}
        for state, *chosen in values
    ]


def finding(what: str, estimate, interval: str = "") -> dict[str, Any]:
    """A row of `Study.findings` of an `Estimate`."""
    return {
        "what": what,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "interval": interval if not np.isnan(estimate.low) else "",
    }


def findings_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["what", "value", "low", "high", "n", "interval"])


# Studies: a grid of runs that answers one question of the papers, each run kept in the store as soon as it is
# done.


def study_of(kind: str) -> Study:
    """The study of this name.

    Raises
    ------
    SpaceError
        There is none.
    """
    need_one_of("study", kind, STUDIES)
    return STUDIES[kind].load()()
