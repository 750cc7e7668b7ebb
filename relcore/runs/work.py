"""The part of a job that runs in a worker: it reports progress and saves a result."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from math import exp
from typing import Any

import numpy as np

from relcore.base.environment import use_device
from relcore.base.errors import extra
from relcore.runs.entries import ENVIRONMENT, StoreError
from relcore.runs.store import Store, in_use

# Jobs: what runs in the worker, its progress, and the time left.

SECONDS_BETWEEN_REPORTS = 0.2
Progress = Callable[..., None]  # called as (done, total, message)


def silent(*_: Any, **__: Any) -> None:
    """A `Progress` that does nothing."""


class Context:
    """The first argument of a job's function, which uses it to report progress and to store the result.

    Without `send`, the function can be called in this process: ``reduce_job(Context(key, store), …)``.
    """

    def __init__(self, key: str, store: Store, send: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.key: str = key
        self.store: Store = store
        self._send = send
        self._latest: dict[str, Any] | None = None

    def report(self, done: int, total: int, message: str = "") -> None:
        """Report that `done` of `total` units are done. Reports are sent at most five times a second."""
        self._latest = {"event": "progress", "done": int(done), "total": int(total), "message": message}

    def put(self, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any] | None = None) -> None:
        """Store the result under the job's key."""
        self.store.put(self.key, arrays, metadata)

    @contextmanager
    def sending(self) -> Iterator[Context]:
        """A context in which reports are sent to the queue. The last report is sent at its end."""
        ended = threading.Event()
        thread = threading.Thread(target=self._flush_until, args=(ended,), name="job-progress", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()

    def _flush_until(self, ended: threading.Event) -> None:
        sent = None
        last = False
        while not last:
            last = ended.wait(SECONDS_BETWEEN_REPORTS)
            latest = self._latest
            if latest is not sent and self._send:
                self._send(latest)
                sent = latest


def run_in_worker(
    function: Callable[..., None],
    key: str,
    place: tuple[str, int, str, bool],
    topic: str,
    token: str,
    kwargs: dict[str, Any],
    device: str = "auto",
) -> None:
    """Run the function of a job in a Dask worker. `place` is the store's folder, size limit, identity, and
    whether it includes bundled results. A `device` other than "auto" replaces the worker's own choice."""
    from distributed import get_worker

    worker = get_worker()

    def send(event: dict[str, Any]) -> None:
        worker.log_event(topic, {"token": token, **event})

    send({"event": "started", "worker": worker.address, "pid": os.getpid()})
    root, limit_bytes, identity, with_finished = place
    store = Store(root, limit_bytes, with_finished)
    if identity and store.identity() not in ("", identity):  # fail before hours of work instead of after them
        raise StoreError(
            f"{root}: expected a folder that all workers share, but the worker on {socket.gethostname()} has"
            f" another folder there; mount it there, or change {ENVIRONMENT}"
        )
    if device == "auto":
        on_device = nullcontext()
    else:
        on_device = use_device(device)
    with on_device, in_use(), extra(), Context(key, store, send).sending() as context:
        store.require_writable()
        function(context, **kwargs)
    if not store.has(key, own=True):
        raise RuntimeError(
            f"{function.__module__}.{function.__qualname__} ended without context.put(arrays, metadata)"
        )


_UNITS = 100  # number of units of progress per expected second


class Stages:
    """Reports the progress of a computation in several stages, such as ``"layout: epoch 30 of 500 · stage 3
    of 3"``. `stages` are pairs (name, expected seconds), in order. Only the ratios of the seconds matter."""

    def __init__(self, report: Progress, stages: Sequence[tuple[str, float]]) -> None:
        self._report = report
        self._names = [name for name, _ in stages]
        self._units = [max(1, round(_UNITS * seconds)) for _, seconds in stages]
        self._number = -1

    def begin(self, name: str) -> None:
        """Begin the next stage with this name. All earlier stages count as done."""
        self._number = self._names.index(name, self._number + 1)
        self._say(0, name)

    def count(self, done: int, total: int, unit: str) -> None:
        """Report that `done` of `total` units, such as epochs, of the current stage are done."""
        units = self._units[self._number] * done // max(total, 1)
        self._say(units, f"{self._names[self._number]}: {unit} {done} of {total}")

    def end(self) -> None:
        self._report(sum(self._units), sum(self._units), "done")

    def _say(self, units: int, what: str) -> None:
        # Do not show "stage 1", which sounds like the beginning, although it may take most of the time.
        place = ""
        if self._number:
            place = f" · stage {self._number + 1} of {len(self._names)}"
        self._report(sum(self._units[: self._number]) + units, sum(self._units), what + place)


_EVEN = 0.1  # share of the work after which progress and the expected time count about equally
_MEMORY = 0.1  # share of the remaining time after which most of the old estimate has been replaced
_TOO_SHORT = 0.05  # if less than this share of an estimate is left, it was too short and is not shown


class TimeLeft:
    """An estimate of the seconds left. It decreases as time passes, and each report of progress corrects it a
    little. If the count decreases or the total changes, a new estimate starts. `expected` is the expected
    total time in seconds."""

    def __init__(self, expected: float | None = None, now: float = 0.0) -> None:
        self._expected = expected
        self._began = now
        self._origin = now, 0  # time and count at the start of the present count
        self._done = self._total = 0
        self._estimate = (expected, now) if expected else None  # (seconds left, time of the estimate)

    def hear(self, done: int, total: int, now: float) -> None:
        if self._total and (total != self._total or done < self._done):
            self._origin = now, done
            if not self._expected:
                self._estimate = None
        elif (done, total) == (self._done, self._total):
            return
        self._done = done
        self._total = total
        if (rate := self.rate(now)) is None:
            return
        left = (total - done) / rate
        first = self._origin[1]
        if self._expected is not None:
            share = (done - first) / (total - first)
            promised = self._expected - (now - self._began)
            left += (max(promised, 0.0) - left) * _EVEN * (1 - share) / (share + _EVEN)
        if self._estimate is not None:
            before = self._falling(now)
            weight = 1 - exp((self._estimate[1] - now) / max(_MEMORY * left, 0.5))
            left = before + (left - before) * weight
        self._estimate = left, now

    def left(self, now: float) -> float | None:
        """The seconds left. None before any progress, and once the estimate has run out."""
        if self._estimate is None or self._done == self._total > 0:
            return None
        left = self._falling(now)
        if left > _TOO_SHORT * self._estimate[0]:
            return left
        return None

    def rate(self, now: float) -> float | None:
        """The units per second of the current count; None before any progress."""
        since, first = self._origin
        if self._done > first and now > since:
            return (self._done - first) / (now - since)
        return None

    def _falling(self, now: float) -> float:
        return max(self._estimate[0] - (now - self._estimate[1]), 0.0)
