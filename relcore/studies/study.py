"""`Study`, a question with its options, runs, numbers, charts and sentences."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.earlier import refuse_study
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import PLUGIN_STUDIES, STUDIES
from relcore.base.records import need_plain
from relcore.base.settings import Setting, complete
from relcore.figures.charts import Lines
from relcore.figures.matrices import Matrices
from relcore.runs.entries import bundled_results
from relcore.runs.store import Store
from relcore.runs.work import Progress
from relcore.studies.estimates import findings_over, findings_table

Settings = Mapping[str, Any]  # plain JSON values, including the random state
Chart = Lines | Matrices


def Option(
    name: str,
    label: str,
    choices: tuple,
    default: Any,
    many: bool = False,
    help: str = "",
    names: Iterable[str] = (),
) -> Setting:
    """A setting that the user chooses. It is one of the choices; if `many`, it may be several. Without
    choices, it is any list of strings. `names` are the labels of the choices.
    """
    item = str
    if choices:
        item = type(choices[0])
    named = dict(zip(choices, names or map(str, choices), strict=True))
    setting = Setting(label=label, choices=named, help=help, distinct=many and bool(choices))
    return complete(setting, name, tuple[item, ...] if many else item, default)


def states(draws: str, default: int = 3, choices: tuple[int, ...] = (3, 5, 10)) -> Setting:
    return Option("n_states", "Random states", choices, default, help=f"Each draws {draws}.")


@dataclass(frozen=True)
class RunResult:
    values: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


class Study(ABC):
    """The base class of studies. `kind` is the name in `names.STUDIES`. Increase `version` when results
    change.

    The class of a plugin's study has the attributes `title`, `question` and `paper` (the source of the
    question). It may have `topic`, the group in which the page lists the study.

    A `table` is the result of `StudyRuns.table`, with at least one finished run. Pages show the docstring of
    a study.

    Attributes
    ----------
    by, measures, names
        The default findings use these: the varied column, the measured columns with their names, and names
        for the values of `by` if these are not numbers.
    shared, varied
        The default runs use these: `shared` names the options that are settings of every run, and `varied`
        gives the values of each further setting, or the name of the option that has these values.
    reading : str
        A sentence that says how to read the charts.
    data : str
        The data, ``"digits"``, ``"sentences"`` or ``"words"``, if no option of this name chooses them.
    cost : seconds, or by the value of a setting
        The time of a run on one core in seconds, or this time for each value of a setting. Not needed if the
        study overrides `seconds`.
    """

    version: ClassVar[int] = 1
    options: ClassVar[tuple[Setting, ...]]
    shared: ClassVar[str] = ""
    varied: ClassVar[Mapping[str, str | Iterable]] = {}
    by: ClassVar[str] = ""
    measures: ClassVar[Mapping[str, str]] = {}
    names: ClassVar[Mapping[Any, str]] = {}
    reading: ClassVar[str] = ""
    data: ClassVar[str] = ""
    cost: ClassVar[float | Mapping[str, float]] = 5.0

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @property
    def title(self) -> str:
        return STUDIES[self.kind].title

    @property
    def question(self) -> str:
        return STUDIES[self.kind].help

    @property
    def paper(self) -> str:
        return STUDIES[self.kind].paper

    @property
    def topic(self) -> str:
        return STUDIES[self.kind].topic

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        """The settings of every run, in the order in which runs start (see `grid`)."""
        chosen = {name: options[of] if isinstance(of, str) else of for name, of in self.varied.items()}
        return grid(options, self.shared, **chosen)

    @abstractmethod
    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        """Compute one run. Equal settings give equal results."""

    def seconds(self, settings: Settings) -> float:
        cost = self.cost
        values = map(str, settings.values())
        if isinstance(cost, Mapping):
            return next(cost[value] for value in values if value in cost)
        return cost

    @abstractmethod
    def charts(self, options: Settings, table: pd.DataFrame) -> Mapping[str, Chart]:
        """The charts by name. There are none if the table has too little to draw."""

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        """The findings as a table with the columns what, value, low, high (the 95 % interval), n, and
        interval (how it was computed)."""
        return findings_table(findings_over(table, self.by, self.measures, self.names))

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        """The main finding in one sentence, with its 95 % interval; "" if too few runs are done."""
        return ""


@dataclass(frozen=True)
class StudySpec:
    """A study with its options. It is hashable, and can be converted to JSON and back."""

    kind: str
    options: tuple[tuple[str, Any], ...]
    version: int = 1

    @classmethod
    def of(cls, study: Study, options: Settings | None = None) -> StudySpec:
        """The spec of a study with these options. Missing options have their defaults. Raises a SpaceError
        for an unknown option or choice."""
        values = dict(options or {})
        known = {option.name: option for option in study.options}
        if unknown := sorted(set(values) - set(known)):
            raise SpaceError(f"{study.kind}: expected options among {quote(known)}, got {quote(unknown)}")
        chosen = {}
        for name, option in known.items():
            value = values.get(name, option.default)
            if option.is_tuple and isinstance(value, list):
                chosen[name] = tuple(value)
            else:
                chosen[name] = value
            replace(option, name=f"{study.kind}: {name}").check(chosen[name])
        return cls(study.kind, tuple(chosen.items()), study.version)

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.options)

    def to_json(self) -> dict[str, Any]:
        options = {name: list(value) if isinstance(value, tuple) else value for name, value in self.options}
        return {"study": self.kind, "version": self.version, "options": options}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], known: Callable[[str], Study] | None = None) -> StudySpec:
        """Read a spec from JSON. `known` returns the study with a given name, by default one of Relscope's
        studies.

        Raises a SpaceError if the study has another version or lacks one of the options.
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
        study = (known or study_of)(record["study"])
        version = record.get("version")
        if version != study.version or isinstance(version, bool):
            raise SpaceError(
                f"study file: expected version {study.version} of {study.kind!r}, got {version!r:.80}; choose"
                " its options again in Research, Studies, or use the Relscope that wrote it"
            )
        return cls.of(study, options)


def grid(options: Settings, shared: str, **varied: Iterable) -> list[dict[str, Any]]:
    """The settings of each run: all combinations of random states and `varied` values. Each run also has the
    options that `shared` names.
    """
    named = {name: options[name] for name in shared.split()}
    same = {name: list(value) if isinstance(value, tuple) else value for name, value in named.items()}
    return [
        {**same, **dict(zip(varied, chosen, strict=True)), "random_state": state}
        for state, *chosen in product(range(options["n_states"]), *varied.values())
    ]


def study_of(kind: str) -> Study:
    """The study with this name. The finished runs of a plugin's study, in the folder "finished" beside its
    module, are from then on among the bundled results.

    Raises a SpaceError for an unknown name, and for a study whose package is not installed.
    """
    refuse_study(kind)
    if kind in PLUGIN_STUDIES and kind not in STUDIES:
        raise SpaceError(
            f"study {kind}: expected the package relscope-studies, which has it, got none; install the folder"
            " plugins/studies of Relscope's source: pip install ./plugins/studies"
        )
    need_one_of("study", kind, STUDIES)
    study = STUDIES[kind].load()(kind)
    if STUDIES[kind].plugin:
        module = sys.modules[type(study).__module__]
        where = getattr(module, "__file__", "")  # a module made in memory has no file
        if where:
            bundled_results().add(Path(where).parent / "finished")
    return study
