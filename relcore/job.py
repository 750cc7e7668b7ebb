"""Job: one piece of long work of an engine, its status, and its result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from relcore import pace
from relcore.job_status import JobStatus, State
from relcore.store import Entry, Pins
from relcore.time_left import TimeLeft

if TYPE_CHECKING:
    from relcore.engine import Engine


class EngineError(RuntimeError):
    """A job has no result, or no cluster can be reached, and the message says why."""


class Job:
    """One piece of long work, made by `Engine.submit`; every thread that submits its key gets the same one.

    `function` and `arguments` are what was submitted, None and nothing where only the store knows of it: so a page that is
    opened again can list the running jobs.
    """

    def __init__(
        self, engine: Engine, key: str, title: str, state: State, function: Callable | None = None, arguments: Any = None
    ) -> None:
        self.key, self.title = key, title
        self.expected: pace.Expected | None = None
        self.promised: float | None = (
            None  # seconds that were expected when it was submitted, with all else that the machine does
        )
        self.here = False  # whether it runs without the results that come with Relscope
        self.function, self.arguments = function, arguments or {}
        self._engine = engine
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._state: State = state
        self._done, self._total, self._message, self._error = 0, 0, "waiting for a worker" if state == "queued" else "", ""
        self._curve: dict[str, list[float]] = {}
        self._lost, self._losses = "", 0
        self._pins = Pins()  # its inputs and its result, until it has ended
        self._tries, self._again = 0, False
        self._started = self._stopped = 0.0
        self._left = TimeLeft()
        self._place: tuple[str, int] | None = None  # the worker's address and process id, once it runs
        if state == "done":
            self._ended.set()

    def __repr__(self) -> str:
        return f"Job({self.title!r}, {self._state}, key={self.key[:8]})"

    def status(self) -> JobStatus:
        with self._lock:
            now = self._stopped or time.monotonic()
            running = self._state == "running"
            left = self._left.left(now) if running else None
            seconds = now - self._started if self._started else 0.0
            curve = {name: tuple(values) for name, values in self._curve.items()}
            return JobStatus(
                self._state,
                self._done,
                self._total,
                self._message,
                seconds,
                self._left.rate(now),
                left,
                self._error,
                curve,
                self._lost,
                exceeded=running and left is None and self._left.exceeded,
            )

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait until the job has ended, or for `timeout` seconds; says where it then stands."""
        self._ended.wait(timeout)
        return self.status()

    def result(self, timeout: float | None = None) -> Entry:
        """Wait for what the job put into the store.

        Raises
        ------
        EngineError
            It failed, was cancelled, has not ended in time, or its result has left the store.
        """
        status = self.wait(timeout)
        if status.state != "done":
            raise EngineError(f"{self.title}: {status.error or status.state}")
        entry = self._engine.store.get(self.key)
        if entry is None:
            raise EngineError(f"{self.title}: the result is no longer in {self._engine.store.root}; run it again")
        return entry

    def cancel(self) -> None:
        """Stop the job permanently: the process that runs it is killed and started again empty."""
        self._engine._cancel(self)

    def _hear(self, event: dict[str, Any]) -> None:
        with self._lock:
            if event["event"] == "started":
                self._place = (event["worker"], event["pid"])
                self._tries += 1
                self._lost = ""
                if self._state == "queued":
                    self._state = "running"
                self._started = self._started or time.monotonic()
                self._message = "" if self._tries == 1 else f"the worker died; try {self._tries}"
                self._done, self._total = 0, 0
                self._left = TimeLeft(self.promised)
                self._left.begin(time.monotonic())
                self._curve = {}  # it trains from the beginning again
            elif self._state == "running":
                self._left.hear(event["done"], event["total"], time.monotonic())
                self._done, self._total, self._message = event["done"], event["total"], event["message"]
                for measured in event["measured"]:
                    for name, value in measured.items():
                        self._curve.setdefault(name, []).append(value)

    def _wait_for_scheduler(self, why: str) -> None:
        """It has no scheduler and waits for one; whoever sends it again starts it from its last finished part."""
        with self._lock:
            if not self._ended.is_set():
                self._state, self._message, self._lost = "queued", "waiting for the scheduler", why
                self._losses += 1
                self._tries = 0

    def _silent(self, why: str) -> None:
        """Its scheduler does not answer at present, or does again; it may well be running."""
        with self._lock:
            self._lost = why

    def _end(self, state: State, error: str = "") -> bool:
        """Whether this call ended the job; only the first call does."""
        with self._lock:
            if self._ended.is_set():
                return False
            self._state, self._error, self._stopped = state, error, time.monotonic()
            if state == "done":
                self._done = self._total
            self._lost = ""
            self._pins.close()
            self._ended.set()
            return True
