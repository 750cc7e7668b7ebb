"""Engine: long work in other processes, here or on a Dask cluster, with progress, cancel and results in the store."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from relcore import pace
from relcore.extras import extra
from relcore.job_status import JobStatus, State
from relcore.progress import run_in_worker
from relcore.store import Entry, Store

ENVIRONMENT = "RELSCOPE_SCHEDULER"


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
        self.function, self.arguments = function, arguments or {}
        self._engine = engine
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._state: State = state
        self._done, self._total, self._message, self._error = 0, 0, "waiting for a worker" if state == "queued" else "", ""
        self._curve: dict[str, list[float]] = {}
        self._tries, self._again = 0, False
        self._started = self._stopped = 0.0
        self._origin = (0.0, 0)  # when the present count began, and where
        self._place: tuple[str, int] | None = None  # the worker's address and process id, once it runs
        if state == "done":
            self._ended.set()

    def __repr__(self) -> str:
        return f"Job({self.title!r}, {self._state}, key={self.key[:8]})"

    def status(self) -> JobStatus:
        with self._lock:
            now = self._stopped or time.monotonic()
            since, first = self._origin
            counted = self._done - first
            rate = counted / (now - since) if counted > 0 and now > since else None
            left = (self._total - self._done) / rate if rate and self._state == "running" else None
            seconds = now - self._started if self._started else 0.0
            curve = {name: tuple(values) for name, values in self._curve.items()}
            return JobStatus(self._state, self._done, self._total, self._message, seconds, rate, left, self._error, curve)

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
                if self._state == "queued":
                    self._state = "running"
                self._started = self._started or time.monotonic()
                self._message = "" if self._tries == 1 else f"the worker died; try {self._tries}"
                self._done, self._total, self._origin = 0, 0, (time.monotonic(), 0)
                self._curve = {}  # it trains from the beginning again
            elif self._state == "running":
                if self._total and (event["total"] != self._total or event["done"] < self._done):
                    self._origin = (time.monotonic(), event["done"])  # another stage, which has its own pace
                self._done, self._total, self._message = event["done"], event["total"], event["message"]
                for measured in event["measured"]:
                    for name, value in measured.items():
                        self._curve.setdefault(name, []).append(value)

    def _end(self, state: State, error: str = "") -> bool:
        """Whether this call ended the job; only the first call does."""
        with self._lock:
            if self._ended.is_set():
                return False
            self._state, self._error, self._stopped = state, error, time.monotonic()
            if state == "done":
                self._done = self._total
            self._ended.set()
            return True


class Engine:
    """Runs functions of importable modules in the processes of a Dask cluster; one engine serves all threads of an app.

    Parameters
    ----------
    address : str, optional
        A scheduler, ``tcp://host:8786``; default: the environment's ``RELSCOPE_SCHEDULER``; without either, processes of
        this machine, started with the first job, ended with this process. The workers of a cluster must be able to import
        relcore and to write to the store's folder. Start them with ``--nthreads 1`` and a nanny (Dask's default), so that
        cancelling one job stops its process and no other.
    n_workers : int, optional
        Local processes; default two, or one for every four processors where that is more.
    store : Store, optional
        Where results go. Results are only passed through the store: messages carry counts, never arrays.
    """

    def __init__(self, address: str | None = None, n_workers: int | None = None, store: Store | None = None) -> None:
        self.address = address or os.environ.get(ENVIRONMENT) or None
        self.n_workers = n_workers or max(2, (os.cpu_count() or 1) // 4)
        self.store = store or Store()
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._running: dict[str, tuple[Job, Any]] = {}  # token → job and Dask future
        self._topic = f"relscope-{uuid.uuid4().hex}"
        self._client = self._cluster = None

    def __repr__(self) -> str:
        return f"Engine({self.address or f'{self.n_workers} local processes'}, {len(self._running)} running jobs)"

    def submit(
        self,
        key: str,
        function: Callable[..., None],
        *,
        title: str,
        priority: int = 0,
        expected: pace.Expected | None = None,
        **kwargs: Any,
    ) -> Job:
        """Have ``function(context, **kwargs)`` run in a worker; it must ``context.put`` its result.

        Waiting jobs run by priority, then by time of submission. The same key again gives the same job
        while it waits or runs, and one that is done where the store has the result; a job that failed or was cancelled
        runs again. The function must be importable in the workers by its name. If the expected time is given, the
        measured time is saved in the store for the next estimate.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job and not job._ended.is_set():
                return job
            if self.store.has(key):
                stored = Job(self, key, title, "done", function, kwargs)
                return self._remember(job if job and job._state == "done" else stored)
            client = self._connected()
            job = self._remember(Job(self, key, title, "queued", function, kwargs))
            job.expected = expected
            self._dispatch(client, job, priority)
            return job

    def job(self, key: str) -> Job | None:
        """The job of this key, of whichever session, or one for what the store has; None also once a result has left it."""
        with self._lock:
            job = self._jobs.get(key)
        if job and job._state != "done":  # asked before the store: the result is there before the job is done
            return job
        return (job or Job(self, key, "stored result", state="done")) if self.store.has(key) else None

    def jobs(self) -> list[Job]:
        """All jobs of this engine, the newest first."""
        with self._lock:
            return list(reversed(self._jobs.values()))

    def start(self) -> None:
        """Start the processes now (a second or two) instead of with the first job."""
        with self._lock:
            self._connected()

    def close(self) -> None:
        """Stop everything; running jobs count as cancelled. A later submit starts new processes."""
        with self._lock:
            for job, _ in list(self._running.values()):
                job._end("cancelled", "the engine was closed")
            self._running.clear()
            self._disconnect()

    def _remember(self, job: Job) -> Job:
        self._jobs.pop(job.key, None)  # so that the newest is last
        self._jobs[job.key] = job
        return job

    def _connected(self) -> Any:
        if self._client is not None and self._client.status == "running":
            return self._client
        with extra():
            from distributed import Client

        from relcore.local_cluster import LocalCluster

        self._disconnect()
        atexit.register(self.close)
        if not self.address:
            threads = max(1, (os.cpu_count() or 1) // self.n_workers)
            self._cluster = LocalCluster(self.n_workers, threads)
        try:
            self._client = Client(self.address or self._cluster.address, set_as_default=False, timeout=10)
        except OSError as error:
            self._disconnect()
            fix = f"start one with `dask scheduler`, or unset {ENVIRONMENT} to use processes of this machine"
            raise EngineError(f"{self.address}: expected a Dask scheduler, got no answer in 10 s; {fix}") from error
        self._client.subscribe_topic(self._topic, self._heard)
        return self._client

    def _disconnect(self) -> None:
        atexit.unregister(self.close)
        client, cluster, self._client, self._cluster = self._client, self._cluster, None, None
        if client is not None:
            client.close(timeout=5)
        if cluster is not None:
            cluster.close()

    def _dispatch(self, client: Any, job: Job, priority: int) -> None:
        token = f"{job.function.__name__}-{uuid.uuid4().hex}"  # Dask learns durations by what precedes the dash
        arguments = (job.function, job.key, str(self.store.root), self.store.limit_bytes, self._topic, token, job.arguments)
        self._running[token] = (job, None)  # noted before it is sent: an idle worker's "started" may outrun `submit`
        future = client.submit(run_in_worker, *arguments, key=token, pure=False, priority=priority)
        self._running[token] = (job, future)
        future.add_done_callback(partial(self._finished, token, priority))

    def _heard(self, event: tuple[float, dict[str, Any]]) -> None:
        """In Dask's event loop: must not wait, and so takes no lock that a waiting thread may hold."""
        message = event[1]
        token = message["token"]
        if found := self._running.get(token):
            found[0]._hear(message)
        elif message["event"] == "started":  # cancelled at the moment when it started
            place = (message["worker"], message["pid"])
            threading.Thread(target=self._kill, args=place, name="kill-cancelled", daemon=True).start()

    def _finished(self, token: str, priority: int, future: Any) -> None:
        from distributed import KilledWorker

        job, _ = self._running.get(token, (None, None))
        if job is None:
            return
        error = future.exception() if future.status == "error" else None
        if isinstance(error, KilledWorker) and not job._tries and not job._again:
            # It only waited on workers that died of something else, several times over: it deserves tries of its own.
            job._again = True
            with self._lock:
                self._running.pop(token, None)
                if not job._ended.is_set():
                    self._dispatch(self._connected(), job, priority)
            return
        self._running.pop(token, None)
        if future.status == "finished":
            there = self.store.has(job.key)
            elsewhere = f"the worker's result is not in {self.store.root}: expected a folder that all workers share"
            job._end("done") if there else job._end("failed", elsewhere)
            if there and job.expected and job._tries == 1:
                pace.note(self.store, job.expected.kind, job.expected.seconds, job.status().seconds)
        elif isinstance(error, KilledWorker):
            died = "the worker process died each time it ran this job (killed, or out of memory)"
            job._end("failed", f"{died}; try fewer rows, or a machine with more memory")
        elif error is not None:
            job._end("failed", str(error) if type(error).__name__ == "SpaceError" else f"{type(error).__name__}: {error}")
        else:
            job._end("failed", "the connection to the scheduler was lost; submit it again")

    def _cancel(self, job: Job) -> None:
        if not job._end("cancelled", "cancelled"):
            return
        with self._lock:  # what is being sent at this moment has its future once the lock is free
            sent = list(self._running.items())
        for token, (candidate, future) in sent:
            if candidate is job and self._running.pop(token, None) and self._client is not None:
                self._withdraw(token, future)
                if job._place:
                    self._kill(*job._place)

    def _withdraw(self, token: str, future: Any) -> None:
        """Remove a task from the scheduler before its worker is killed; otherwise it would be retried."""
        future.cancel()
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline and any(token in tasks for tasks in self._client.processing().values()):
            time.sleep(0.01)

    def _kill(self, worker: str, pid: int) -> None:
        """Have the worker's nanny kill its process; a nanny starts a new one by itself."""
        with suppress(Exception):  # it died by itself meanwhile, or has no nanny: then nobody waits for its result
            self._client.run(os.kill, pid, signal.SIGKILL, workers=[worker], nanny=True)
