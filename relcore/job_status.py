"""The status of a job, for the pages and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class JobStatus:
    """The status of a job: counts, seconds since its start, units per second, and the time left, if known.

    `lost` says that the job waits for a scheduler that does not answer, and how it continues; else it is empty.
    `curve` holds its measurements, ``{"loss": (2.1, 1.4, …)}``, one value per step.
    """

    state: State
    done: int = 0
    total: int = 0
    message: str = ""
    seconds: float = 0.0
    rate: float | None = None
    seconds_left: float | None = None
    error: str = ""
    curve: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    lost: str = ""

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")
