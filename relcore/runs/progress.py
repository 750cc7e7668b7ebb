"""The worker's side of a job: the context its function receives, and how it reports progress."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from relcore.base.libraries import extra
from relcore.runs.digest import ENVIRONMENT, StoreError
from relcore.runs.store import Store, in_use

SECONDS_BETWEEN_REPORTS = 0.2
Report = Callable[
    ..., None
]  # done, total, message and, once an epoch where something is trained, {"loss": …}


def silent(*told: Any, **measured: Any) -> None:
    """A `Report` for whoever does not listen."""


class Context:
    """The first argument of a job's function: it reports progress and stores the result.

    A context without `send` serves to call the same function in place: ``reduce_job(Context(key, store),
    …)``.
    """

    def __init__(self, key: str, store: Store, send: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.key = key
        self.store = store
        self._send = send
        self._latest: dict[str, Any] | None = None
        self._measured: list[dict[str, float]] = []

    def report(
        self, done: int, total: int, message: str = "", measured: Mapping[str, float] | None = None
    ) -> None:
        """Report `done` of `total`.

        Cheap: only the latest report is sent, at most five times a second. Values `measured` at this step,
        such as a loss, are sent for every step: `JobStatus.curve` collects them.
        """
        if measured:
            self._measured.append({name: float(value) for name, value in measured.items()})
        self._latest = {"event": "progress", "done": int(done), "total": int(total), "message": message}

    def put(self, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any] | None = None) -> None:
        """The job's result: keep it in the store under the job's key."""
        self.store.put(self.key, arrays, metadata)

    @contextmanager
    def sending(self):
        """Reports are sent while inside, the last one at the end."""
        ended = threading.Event()
        thread = threading.Thread(target=self._flush_until, args=(ended,), name="job-progress", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()

    def _flush_until(self, ended: threading.Event) -> None:
        sent, n_measured = None, 0
        while True:
            last = ended.wait(SECONDS_BETWEEN_REPORTS)
            latest = self._latest
            if latest is not sent and self._send:
                fresh = self._measured[n_measured:]
                self._send({**latest, "measured": fresh})
                sent, n_measured = latest, n_measured + len(fresh)
            if last:
                return


def run_in_worker(
    function: Callable[..., None],
    key: str,
    place: tuple[str, int, str, bool],
    topic: str,
    token: str,
    kwargs: dict[str, Any],
) -> None:
    """What Dask runs for a job: report where it runs, call the function, check that the result is stored.

    `place` is the store's folder, limit and identity, and whether it finds results that come with Relscope.
    """
    from distributed import get_worker

    worker = get_worker()

    def send(event: dict[str, Any]) -> None:
        worker.log_event(topic, {"token": token, **event})

    send({"event": "started", "worker": worker.address, "pid": os.getpid()})
    root, limit_bytes, identity, with_finished = place
    store = Store(root, limit_bytes, with_finished)
    if identity and store.identity() not in ("", identity):  # found before hours of work, not after them
        here = f"the worker on {socket.gethostname()} has another folder there"
        raise StoreError(
            f"{root}: expected a folder that all workers share, but {here}; mount it there, or change"
            f" {ENVIRONMENT}"
        )
    with in_use(), extra(), Context(key, store, send).sending() as context:
        store.require_writable()
        function(context, **kwargs)
    if not store.has(key, own=True):
        raise RuntimeError(
            f"{function.__module__}.{function.__qualname__} ended without context.put(arrays, metadata)"
        )


# Stages: the named parts of a long computation, whose progress counts their expected seconds.

_UNITS = 100  # of progress in a second as expected


class Stages:
    """Reports stages one after the other: ``"compiling · stage 1 of 3"``, then ``"layout: epoch 30 of 500 ·
    stage 3 of 3"``.

    Nothing is counted in a stage that does not say how far it is; its part is done when the next one begins.

    Parameters
    ----------
    report : Report
    stages : sequence of (name, seconds)
        In their order, with the seconds that each is expected to take. Their proportions matter: they decide
        the time left.
    """

    def __init__(self, report: Report, stages: Sequence[tuple[str, float]]) -> None:
        self._report, self._stages = report, stages
        self._units = [max(1, round(_UNITS * seconds)) for _, seconds in stages]
        self._number = -1

    def begin(self, name: str) -> None:
        """The next stage of this name begins; those before it that never began are done."""
        self._number = [one for one, _ in self._stages].index(name, self._number + 1)
        self._tell(0, name)

    def count(self, done: int, total: int, unit: str) -> None:
        """`done` of `total` units of the present stage are done, such as epochs."""
        name, units = self._stages[self._number][0], self._units[self._number]
        self._tell(units * done // max(total, 1), f"{name}: {unit} {done} of {total}")

    def end(self) -> None:
        """All are done."""
        self._report(sum(self._units), sum(self._units), "done")

    def _tell(self, units: int, what: str) -> None:
        place = f" · stage {self._number + 1} of {len(self._stages)}" if len(self._stages) > 1 else ""
        self._report(sum(self._units[: self._number]) + units, sum(self._units), what + place)
