"""Jobs: long computations in other processes, of this machine or of a Dask cluster. Results are store
entries."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

from relcore.base.environment import GPU, chosen
from relcore.base.errors import RelscopeError, extra
from relcore.runs.cluster import ENVIRONMENT, JobQueueError, connect
from relcore.runs.entries import Entry
from relcore.runs.store import Pins, Store, in_use
from relcore.runs.work import Context, TimeLeft, run_in_worker

WAITS = "waiting for its turn"
State = Literal["queued", "running", "done", "failed", "cancelled"]
RECONNECTS = 10  # number of tries, of three seconds each, to connect after a scheduler died
_MOST_LOSSES = 3  # number of schedulers that a job may lose


def in_words(seconds: float) -> str:
    """A duration in words, at least one second: ``"7 s"``, ``"35 s"`` (a multiple of 5), ``"3 min"``,
    ``"1.5 h"``."""
    if seconds < 20:
        return f"{max(1, round(seconds))} s"
    if seconds < 100:
        return f"{5 * round(seconds / 5)} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


@dataclass(frozen=True)
class JobStatus:
    """The state and progress of a job: `done` of `total` units are finished. `seconds` is the time since its
    start."""

    state: State
    done: int = 0
    total: int = 0
    message: str = ""
    seconds: float = 0.0
    seconds_left: float | None = None
    error: str = ""

    @property
    def time_left(self) -> str:
        """The time left in words: ``"about 12 s left"``, ``"almost done"``; "" if it is unknown."""
        if self.state == "running" and self.seconds_left is not None:
            return f"about {in_words(self.seconds_left)} left"
        if self.state == "running" and self.done == self.total > 1:
            return "almost done"
        return ""

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")


@dataclass(eq=False)
class Job:
    """A long computation that `JobQueue.submit` returns. A job that is known only from its result in the
    store has no `function` and no `arguments`."""

    queue: JobQueue = field(repr=False)
    key: str
    title: str
    state: State
    function: Callable | None = None
    arguments: dict[str, Any] = field(default_factory=dict, repr=False)
    priority: int = 0
    expected: float | None = None
    here: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = threading.Event()
        message = ""
        if self.state == "queued":
            message = WAITS
        self._status = JobStatus(self.state, message=message)
        self._pins = Pins()  # protects the job's inputs and result until it has ended
        self._tries = 0
        self._losses = 0
        self._sent = 0.0
        self._started = 0.0
        self._stopped = 0.0
        self._left = TimeLeft()
        self._future: Any = None
        self._place: tuple[str, int] | None = None  # address and process id of the worker that runs the job
        if self.state == "done":
            self._ended.set()

    def status(self) -> JobStatus:
        with self._lock:
            now = self._stopped or time.monotonic()
            seconds = 0.0
            if self._started:
                seconds = now - self._started
            seconds_left = None
            if self._status.state == "running":
                seconds_left = self._left.left(now)
            return replace(self._status, seconds=seconds, seconds_left=seconds_left)

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait until the job has ended, at most `timeout` seconds, and return its status."""
        self._ended.wait(timeout)
        return self.status()

    def result(self, timeout: float | None = None) -> Entry:
        """Wait until the job has ended, and return its entry in the store.

        Raises a JobQueueError if the job failed, was cancelled or has not ended in time, or if its result was
        evicted.
        """
        status = self.wait(timeout)
        store = self.queue.store
        if status.state != "done":
            raise JobQueueError(f"{self.title}: {status.error or status.state}")
        if (entry := store.get(self.key)) is None:
            raise JobQueueError(f"{self.title}: the result is no longer in {store.root}; run it again")
        return entry

    def cancel(self) -> None:
        """Stop the job for good: its process is killed and replaced by a new one."""
        self.queue._cancel(self)

    def _hear(self, event: dict[str, Any]) -> None:
        with self._lock:
            now = time.monotonic()
            if event["event"] == "started":
                self._place = (event["worker"], event["pid"])
                self._tries += 1
                if self._tries == 1:
                    message = ""
                else:
                    message = f"the worker died; try {self._tries}"
                if self._status.state == "queued":
                    state = "running"
                else:
                    state = self._status.state
                self._status = replace(self._status, state=state, message=message, done=0, total=0)
                self._started = self._started or now
                self._left = TimeLeft(self.expected, now)
            elif self._status.state == "running":
                progress = {name: event[name] for name in ("done", "total", "message")}
                self._left.hear(event["done"], event["total"], now)
                self._status = replace(self._status, **progress)

    def _wait_again(self, why: str) -> None:
        with self._lock:
            if not self._ended.is_set():
                self._losses += 1
                self._tries = 0
                self._status = replace(self._status, state="queued", message=why)

    def _end(self, state: State, error: str = "") -> bool:
        with self._lock:
            if self._ended.is_set():
                return False
            if state == "done":
                done = self._status.total
            else:
                done = self._status.done
            self._status = replace(self._status, state=state, error=error, done=done)
            self._stopped = time.monotonic()
            self._pins.close()
            self._ended.set()
            return True


class JobQueue:
    """A queue of jobs, which runs functions of importable modules in processes of a Dask cluster. Several
    threads may use it at once.

    A job whose worker dies is tried up to three times. If the scheduler dies, its jobs resume on the next
    scheduler.

    Parameters
    ----------
    address : str, optional
        The address of a scheduler, ``tcp://host:8786`` or ``tls://host:8786``. The default is
        ``RELSCOPE_SCHEDULER``. If that is not set, local processes are used, which end with this process.
        Workers must be able to import relcore and to write to the store's folder. Start them with
        ``--nthreads 1`` and a nanny (Dask's default), so that cancelling one job stops no other job.
    n_workers : int, optional
        The number of local processes. The default is two, or one per four processors if that is more.
    store : Store, optional
        The store for the results. Messages between processes contain counts, never arrays.
    """

    in_place: ClassVar[bool] = False  # whether jobs run in this process

    def __init__(
        self, address: str | None = None, n_workers: int | None = None, store: Store | None = None
    ) -> None:
        self.address = address or os.environ.get(ENVIRONMENT) or None
        self.n_workers = n_workers or max(2, (os.cpu_count() or 1) // 4)
        self.store = store or Store()
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._running: dict[str, Job] = {}  # jobs by the key of their Dask task
        self._first: list[Job] = []  # jobs that wait for the start of the processes
        self._topic = f"relscope-{uuid.uuid4().hex}"
        self._client = self._cluster = None

    def submit(
        self,
        key: str,
        function: Callable[..., None],
        *,
        title: str,
        priority: int = 0,
        expected: float | None = None,
        here: bool = False,
        **kwargs: Any,
    ) -> Job:
        """Run ``function(context, **kwargs)`` in a worker. The function must store its result with
        ``context.put``.

        Waiting jobs start in the order of their priority; with equal priority, the one that was submitted
        first. If a job with this key waits, runs or has a stored result, that job is returned. A failed or
        cancelled job runs again. With `here`, the job also runs if there is a bundled result.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job and not job._ended.is_set():
                return job
            if self.store.has(key, own=here):
                if job is None or job._status.state != "done":
                    job = Job(self, key, title, "done", function, kwargs)
                return self._remember(job)
            must_start = self._client is None and not self.address
            if not must_start:
                self.start()
            job = self._remember(Job(self, key, title, "queued", function, kwargs, priority, expected, here))
            inputs = [name for name in kwargs.get("inputs", ()) if isinstance(name, str)]
            job._pins.add(self.store.root, [key, *inputs])
            if must_start:
                self._first.append(job)
                if len(self._first) == 1:
                    threading.Thread(target=self._send_first, args=(self._first,), daemon=True).start()
            else:
                self._dispatch(job)
            return job

    def job(self, key: str) -> Job | None:
        """The job with this key, which any session may have submitted. If only its result is in the store, a
        finished job is returned; if there is neither, None."""
        job = self._jobs.get(key)
        # Ask the job before the store, because results are stored before the job is "done".
        if job and job._status.state != "done":
            return job
        if self.store.has(key):
            return job or Job(self, key, "stored result", "done")
        return None

    def jobs(self) -> list[Job]:
        """All jobs of this queue, with the newest first."""
        return list(self._jobs.values())[::-1]

    def start(self, seconds: int = 10) -> None:
        """Start the processes now, or connect to the scheduler; otherwise the first job does so. Raises a
        JobQueueError if there is no answer within these seconds."""
        with self._lock:
            if self._client is None or self._client.status != "running":
                self._disconnect()
                self._adopt(*connect(self.address, self.n_workers, seconds))

    @property
    def size(self) -> int:
        """The number of jobs that can run at once, at least 1. For a cluster, its current number of
        workers."""
        if self.address:
            return max(1, len(self._client.nthreads()))
        return self.n_workers

    def close(self) -> None:
        """Stop all processes. Running jobs count as cancelled. A later `submit` starts new processes."""
        with self._lock:
            self._end_all("cancelled", "the job queue was closed")
            for job in self._first:
                job._end("cancelled", "the job queue was closed")
            self._first = []
            self._disconnect()

    def _remember(self, job: Job) -> Job:
        self._jobs.pop(job.key, None)  # moves the job to the end, where the newest is
        self._jobs[job.key] = job
        return job

    def _adopt(self, client: Any, cluster: Any) -> None:
        self._client = client
        self._cluster = cluster
        client.subscribe_topic(self._topic, self._heard)
        atexit.register(self.close)

    def _disconnect(self) -> None:
        atexit.unregister(self.close)
        client = self._client
        cluster = self._cluster
        self._client = None
        self._cluster = None
        _close(client, cluster)

    def _dispatch(self, job: Job) -> None:
        # From tasks with the same name before the dash, Dask estimates how long this task takes.
        token = f"{job.function.__name__}-{uuid.uuid4().hex}"
        with_finished = self.store.finished is not None and not job.here
        place = (str(self.store.root), self.store.limit_bytes, self.store.identity(), with_finished)
        task = (run_in_worker, job.function, job.key, place, self._topic, token, job.arguments, chosen())
        # Set this before sending, because "started" may arrive before `submit` returns.
        self._running[token] = job
        # Only one local process uses the GPU. Several would share its memory, and none could know how much is
        # free. Workers of other clusters may lack this Dask resource.
        on_gpu = self._cluster is not None and self._cluster.has_gpu
        wanted = None
        if on_gpu and not getattr(job.function, "on_cpu", False):
            wanted = {GPU: 1}
        job._future = self._client.submit(
            *task, key=token, pure=False, priority=job.priority, resources=wanted
        )
        job._future.add_done_callback(partial(self._finished, token))
        job._sent = time.monotonic()

    def _heard(self, event: tuple[float, dict[str, Any]]) -> None:
        """Handle an event that a worker sent. This runs in Dask's event loop, so it must not wait for a lock:
        the thread that holds it may be waiting for Dask."""
        message = event[1]
        if job := self._running.get(message["token"]):
            job._hear(message)
        elif message["event"] == "started":  # the job was cancelled while it started
            place = (message["worker"], message["pid"])
            threading.Thread(target=self._kill, args=place, name="kill-cancelled", daemon=True).start()

    def _finished(self, token: str, future: Any) -> None:
        from distributed import KilledWorker

        job = self._running.pop(token, None)
        if job is None:
            return
        error = None
        if future.status == "error":
            error = future.exception()
        killed = isinstance(error, KilledWorker)
        job._future = None  # otherwise Dask would run the job again if the worker that holds the result died
        if future.status not in ("finished", "error"):
            self._send_again(job, "the scheduler died; the job resumes")
        elif killed and not job._tries:  # the workers that died had not started the job
            self._send_again(job, WAITS)
        elif killed:
            died = "the worker process died each time it ran this job (killed, or out of memory)"
            job._end("failed", f"{died}; try fewer rows, or a machine with more memory")
        elif error is not None:
            explained = str(error)
            if not isinstance(error, RelscopeError):
                explained = f"{type(error).__name__}: {error}"
            job._end("failed", explained)
        elif self.store.has(job.key, own=True):
            job._end("done")
        else:
            elsewhere = f"the worker's result is not in {self.store.root}"
            job._end("failed", f"{elsewhere}: expected a folder that all workers share")

    def _send_first(self, waiting: list[Job]) -> None:
        """Start the processes, then send the jobs that were submitted meanwhile. Processes take seconds to
        start, and pages ask for the lock, so it is free until they have started."""
        try:
            client, cluster = connect(self.address, self.n_workers, 10)
        except (JobQueueError, OSError) as error:
            with self._lock:
                if self._first is waiting:
                    self._first = []
                for job in waiting:
                    job._end("failed", f"{error}; finished parts are kept")
            return
        with self._lock:
            if self._first is not waiting:  # the queue was closed meanwhile
                _close(client, cluster)
                return
            self._first = []
            if self._client is None:
                self._adopt(client, cluster)
            else:
                _close(client, cluster)
            for job in waiting:
                if not job._ended.is_set():
                    self._dispatch(job)

    def _send_again(self, job: Job, why: str) -> None:
        job._wait_again(why)
        if job._losses > _MOST_LOSSES:
            job._end("failed", "the scheduler died each time this job ran; see the machine's memory")
        self._send(job, RECONNECTS, 3)

    def _send(self, job: Job, tries: int, seconds: int) -> None:
        """Send a job to the scheduler. In each try, wait at most these seconds until there is one."""
        for _ in range(tries):  # the waits are equal, while Dask's own retries wait longer each time
            with self._lock:
                if job._ended.is_set():
                    return
                try:
                    self.start(seconds)
                    self._dispatch(job)
                    return
                except (JobQueueError, OSError) as error:
                    failed = f"{error}; finished parts are kept"
            time.sleep(1)
        job._end("failed", failed)
        with self._lock:
            self._end_all("failed", failed)

    def _end_all(self, state: State, error: str) -> None:
        running = self._running
        self._running = {}
        for job in running.values():
            job._end(state, error)

    def _cancel(self, job: Job) -> None:
        if not job._end("cancelled", "cancelled"):
            return
        with self._lock:  # after this lock, every job that was being sent has its future
            sent = list(self._running.items())
        for token, candidate in sent:
            if candidate is job and self._running.pop(token, None) and self._client is not None:
                stop = threading.Thread(target=self._withdraw, args=(token, job, job._future), daemon=True)
                stop.start()
                stop.join(10)  # ten seconds at most, because a scheduler that hangs never answers

    def _withdraw(self, token: str, job: Job, future: Any) -> None:
        """Remove a task, then kill its worker. If the worker were killed first, Dask would retry the task."""
        # A cancellation is lost while the scheduler reads the graph of the task. So wait until the task runs,
        # but at most until a second after it was sent, because waiting tasks of a stopped study must not
        # start meanwhile.
        self._until_processing(token, True, job._sent + 1)
        future.cancel()
        job._future = None
        self._until_processing(token, False, time.monotonic() + 1)
        if job._place:
            self._kill(*job._place)

    def _until_processing(self, token: str, wanted: bool, deadline: float) -> None:
        with suppress(Exception):  # the scheduler may die meanwhile
            while time.monotonic() < deadline and wanted is not any(
                token in names for names in self._client.processing().values()
            ):
                time.sleep(0.01)

    def _kill(self, worker: str, pid: int) -> None:
        # Killing may fail because the worker is dead or has no nanny. The job has ended in any case.
        with suppress(Exception):
            self._client.run(os.kill, pid, signal.SIGKILL, workers=[worker], nanny=True)


def _close(client: Any, cluster: Any) -> None:
    with suppress(Exception):  # the scheduler may be dead
        client.close(timeout=5)
    if cluster is not None:
        cluster.close()


class QueueInPlace(JobQueue):
    """A job queue without other processes: `submit` runs the job and then returns. `send` is called with the
    events that the job reports."""

    in_place: ClassVar[bool] = True

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(n_workers=1)
        self._report = send

    def submit(
        self,
        key: str,
        function: Callable[..., None],
        *,
        title: str,
        priority: int = 0,
        here: bool = False,
        **settings: Any,
    ) -> Job:
        if not self.store.has(key, own=here):
            with in_use(), extra(), Context(key, self.store, self._report).sending() as context:
                self.store.require_writable()
                function(context, **settings)
        return self.job(key)
