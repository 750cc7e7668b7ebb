"""Progress of a job, and the time left."""

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
from relcore.base.libraries import extra
from relcore.runs.digest import ENVIRONMENT, StoreError
from relcore.runs.store import Store, in_use

SECONDS_BETWEEN_REPORTS = 0.2
Progress = Callable[..., None]  # done, total, message and, for trainings, {"loss": …}


def silent(*_: Any, **__: Any) -> None:
    """A `Progress` that does nothing."""


class Context:
    """The first argument of a job's function; the function uses it to report progress and store the result.

    Without `send` the function can be called in place: ``reduce_job(Context(key, store), …)``.
    """

    def __init__(self, key: str, store: Store, send: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.key: str = key
        self.store: Store = store
        self._send = send
        self._latest: dict[str, Any] | None = None
        self._measured: list[dict[str, float]] = []

    def report(
        self, done: int, total: int, message: str = "", measured: Mapping[str, float] | None = None
    ) -> None:
        """Report `done` of `total`, at most five times a second. `JobStatus.curve` collects all `measured`
        values, such as a loss."""
        if measured:
            self._measured.append({name: float(value) for name, value in measured.items()})
        self._latest = {"event": "progress", "done": int(done), "total": int(total), "message": message}

    def put(self, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any] | None = None) -> None:
        """Store the result under the job's key."""
        self.store.put(self.key, arrays, metadata)

    @contextmanager
    def sending(self) -> Iterator[Context]:
        """Send reports within the block, the last one at its end."""
        ended = threading.Event()
        thread = threading.Thread(target=self._flush_until, args=(ended,), name="job-progress", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()

    def _flush_until(self, ended: threading.Event) -> None:
        sent, n_measured, last = None, 0, False
        while not last:
            last = ended.wait(SECONDS_BETWEEN_REPORTS)
            latest = self._latest
            if latest is not sent and self._send:
                fresh = self._measured[n_measured:]
                self._send({**latest, "measured": fresh})
                sent, n_measured = latest, n_measured + len(fresh)


def run_in_worker(
    function: Callable[..., None],
    key: str,
    place: tuple[str, int, str, bool],
    topic: str,
    token: str,
    kwargs: dict[str, Any],
    device: str = "auto",
) -> None:
    """The function that Dask runs for a job. `place` is the store's folder, size limit and identity, and
    whether it includes bundled results; a `device` other than "auto" replaces the worker's own choice."""
    from distributed import get_worker

    worker = get_worker()

    def send(event: dict[str, Any]) -> None:
        worker.log_event(topic, {"token": token, **event})

    send({"event": "started", "worker": worker.address, "pid": os.getpid()})
    root, limit_bytes, identity, with_finished = place
    store = Store(root, limit_bytes, with_finished)
    if identity and store.identity() not in ("", identity):  # fail before hours of work, not after
        raise StoreError(
            f"{root}: expected a folder that all workers share, but the worker on {socket.gethostname()} has"
            f" another folder there; mount it there, or change {ENVIRONMENT}"
        )
    on_device = nullcontext() if device == "auto" else use_device(device)
    with on_device, in_use(), extra(), Context(key, store, send).sending() as context:
        store.require_writable()
        function(context, **kwargs)
    if not store.has(key, own=True):
        raise RuntimeError(
            f"{function.__module__}.{function.__qualname__} ended without context.put(arrays, metadata)"
        )


_UNITS = 100  # units of progress per expected second


class Stages:
    """Progress of a computation in stages, weighted by expected seconds: ``"layout: epoch 30 of 500 · stage 3
    of 3"``. `stages` are (name, seconds) in order; only their proportions matter."""

    def __init__(self, report: Progress, stages: Sequence[tuple[str, float]]) -> None:
        self._report, self._names = report, [name for name, _ in stages]
        self._units = [max(1, round(_UNITS * seconds)) for _, seconds in stages]
        self._number = -1

    def begin(self, name: str) -> None:
        """Begin the next stage of this name; all earlier stages count as done."""
        self._number = self._names.index(name, self._number + 1)
        self._say(0, name)

    def count(self, done: int, total: int, unit: str) -> None:
        """Report `done` of `total` units, such as epochs, of the present stage."""
        units = self._units[self._number] * done // max(total, 1)
        self._say(units, f"{self._names[self._number]}: {unit} {done} of {total}")

    def end(self) -> None:
        self._report(sum(self._units), sum(self._units), "done")

    def _say(self, units: int, what: str) -> None:
        place = f" · stage {self._number + 1} of {len(self._names)}" if len(self._names) > 1 else ""
        self._report(sum(self._units[: self._number]) + units, sum(self._units), what + place)


_EVEN = 0.1  # share of work done at which progress and expected time have equal weight
_MEMORY = 0.1  # share of the remaining time after which a new estimate has replaced the old one
_TOO_SHORT = 0.05  # an estimate is withdrawn as too short when this share of it is left


class TimeLeft:
    """An estimate of the seconds left. It falls with the clock, and each report corrects it a little. A lower
    count or a new total starts a new estimate. `expected` is the total time in seconds."""

    def __init__(self, expected: float | None = None, now: float = 0.0) -> None:
        self._expected, self._began = expected, now
        self._origin = now, 0  # time and count when the present count began
        self._done = self._total = 0
        self._estimate = (expected, now) if expected else None  # (seconds left, time of the estimate)

    def hear(self, done: int, total: int, now: float) -> None:
        if self._total and (total != self._total or done < self._done):
            self._origin = now, done
            self._estimate = self._estimate if self._expected else None
        elif (done, total) == (self._done, self._total):
            return
        self._done, self._total = done, total
        if (rate := self.rate(now)) is None:
            return
        left, first = (total - done) / rate, self._origin[1]
        if self._expected is not None:
            share, promised = (done - first) / (total - first), self._expected - (now - self._began)
            left += (max(promised, 0.0) - left) * _EVEN * (1 - share) / (share + _EVEN)
        if self._estimate is not None:
            before, weight = self._falling(now), 1 - exp((self._estimate[1] - now) / max(_MEMORY * left, 0.5))
            left = before + (left - before) * weight
        self._estimate = left, now

    def left(self, now: float) -> float | None:
        """Seconds left; None before any progress, or once the estimate has run out."""
        if self._estimate is None or self._done == self._total > 0:
            return None
        left = self._falling(now)
        return left if left > _TOO_SHORT * self._estimate[0] else None

    def rate(self, now: float) -> float | None:
        """Units per second of the present count, or None."""
        since, first = self._origin
        return (self._done - first) / (now - since) if self._done > first and now > since else None

    def _falling(self, now: float) -> float:
        return max(self._estimate[0] - (now - self._estimate[1]), 0.0)
