"""Where a job stands, as the pages and the command line read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class JobStatus:
    """Where a job stands: counts, seconds since it started, units a second, and what is left, as far as it is known.

    `curve` is what it measured so far, ``{"loss": (2.1, 1.4, …)}``, one value a step.
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

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")
