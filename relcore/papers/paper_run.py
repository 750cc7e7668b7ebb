"""The runs that measure our numbers for the papers, by name, as listed in relcore/data/papers/runs.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relcore import record
from relcore.papers.published import FOLDER


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


RUNS = record.from_json(dict[str, PaperRun], json.loads((FOLDER / "runs.json").read_text(encoding="utf-8")), "runs.json")
