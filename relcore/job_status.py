"""The status of a job, for the pages and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["queued", "running", "done", "failed", "cancelled"]


def in_words(seconds: float) -> str:
    """``"7 s"``, ``"3 min"``, ``"1.5 h"``; at least a second."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@dataclass(frozen=True)
class JobStatus:
    """The status of a job: counts, seconds since its start, units per second, and the time left, if known.

    `lost` says that the job waits for a scheduler that does not answer, and how it continues; else it is empty.
    `exceeded` says that it takes longer than was last estimated, so that the time left is unknown.
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
    exceeded: bool = False

    @property
    def time_left(self) -> str:
        """``"about 12 s left"``, ``"about 3 min left"``, ``"almost done"``; "" where nothing is known."""
        if self.state != "running":
            return ""
        if self.seconds_left is not None:
            return f"about {in_words(self.seconds_left)} left"
        if self.done == self.total > 1:
            return "almost done"
        return "takes longer than estimated" if self.exceeded else ""

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")
