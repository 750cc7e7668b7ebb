"""Workers of Dask: a cluster of processes of this machine, or one at an address."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import logging
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any, TextIO
from unittest.mock import patch
from urllib.parse import urlsplit

from relcore.base.environment import GPU, resolve
from relcore.base.errors import RelscopeError, extra
from relcore.base.writing import temporary

ENVIRONMENT = "RELSCOPE_SCHEDULER"
_log = logging.getLogger("relscope")


class JobQueueError(RelscopeError, RuntimeError):
    """A job has no result, or no cluster can be reached. The message tells the reason."""


def connect(address: str | None, n_workers: int, seconds: int) -> tuple[Any, Any]:
    """Start local processes, and return a Dask client and their cluster. With an address, connect to the
    scheduler there instead; the cluster is then None. Raises a JobQueueError if there is no answer."""
    with extra():
        from distributed import Client

    if address:
        cluster = None
    else:
        cluster = LocalCluster(n_workers, max(1, (os.cpu_count() or 1) // n_workers))
    # A client that starts holds a lock of Dask, and collecting a client needs the same lock. If one thread
    # did both, it would wait for ever.
    collects = gc.isenabled()
    gc.disable()
    try:
        warn_of_open(address or "")
        options = {"timeout": seconds, "security": cluster and cluster.security}
        return Client(address or cluster.address, set_as_default=False, **options), cluster
    except (ValueError, TypeError) as error:  # TypeError: TLS without certificates
        reason = (
            f"{address!r:.80}: expected the address of a Dask scheduler, such as tcp://127.0.0.1:8786, got"
            f" {error!s:.80}; correct it, or unset {ENVIRONMENT}"
        )
    except (OSError, AssertionError):
        if cluster is not None:
            cluster.close()
        fix = (
            "start one with `dask scheduler`, or leave --scheduler out and unset"
            f" {ENVIRONMENT} to use processes of this machine"
        )
        reason = f"{address}: expected a Dask scheduler, got no answer in {seconds} s; {fix}"
        if not address:
            fix = "close other programs, or run it again once the machine is less busy"
            reason = f"expected the processes of this machine to start, got no answer in {seconds} s; {fix}"
    finally:
        if collects:
            gc.enable()
    gc.collect()  # collect the failed client before the next one is made
    raise JobQueueError(reason)


@cache
def warn_of_open(address: str) -> None:
    """Warn once if other machines can reach the scheduler at this address without a certificate."""
    host = urlsplit(address).hostname or ""
    if address.startswith("tcp://") and host not in ("localhost", "::1") and not host.startswith("127."):
        _log.warning(
            "%s: whoever reaches this scheduler can run code on its workers; use tls:// (see SECURITY.md)",
            address,
        )


# The default cluster: a Dask scheduler and workers in processes of this machine.

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_CERTIFICATES = tuple(
    f"{role}_{part}" for role in ("scheduler", "worker", "client") for part in ("cert", "key")
)
PARENT = "RELSCOPE_PARENT"
# Bytes of free memory that a process keeps. By default, Dask's workers return it all at once, which slows
# training down. The second number is the largest that glibc accepts.
_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(256 * 2**20), "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20)}
# By default Dask checks its processes every 10 to 500 ms, and two idle workers take a quarter of a core. With
# these settings they take a fiftieth.
_RARELY = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "500ms",
    "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING_INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
}
_starting = threading.Lock()
_spawn = asyncio.create_subprocess_exec
_HAS_GPU = "RELSCOPE_CLUSTER_HAS_GPU"
_held: list[TextIO] = []  # keeps files open, because a lock ends when its file is closed


class LocalCluster:
    """A scheduler at `address` and `n_workers` single-threaded workers on the loopback address.

    `threads` is the number of threads for BLAS and numba in a worker. Any client of a Dask process can run
    code in it. Therefore connections use TLS, with a certificate that exists only in memory and is passed in
    the environment.
    """

    def __init__(self, n_workers: int, threads: int, allowed_failures: int = 2) -> None:
        # Not Dask's LocalCluster: each of its processes imports the user's script, which fails under
        # Streamlit.
        from distributed import Security
        from distributed.deploy.subprocess import SubprocessCluster
        from distributed.system import MEMORY_LIMIT

        self.has_gpu = resolve().startswith("cuda")
        self.security = Security.temporary()
        self._folder = temporary()
        self._groups = []
        self._ends = False
        self._variables = self._environment(threads)
        common = {"protocol": "tls://"}
        # SubprocessCluster accepts no environment for its processes, so `_start` gives it to them. The
        # environment of this process stays as it is: other threads may read and change it meanwhile.
        with (
            _starting,
            patch.object(asyncio, "create_subprocess_exec", self._start),
            ExitStack() as if_interrupted,
        ):
            if_interrupted.callback(self._end, 0)
            self._cluster = SubprocessCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                security=self.security,
                scheduler_kwargs=common
                | {
                    "allowed_failures": allowed_failures,
                    "dashboard": False,
                    "scheduler_file": os.path.join(self._folder.name, "scheduler.json"),
                    "preload": [__name__],
                },
                # A job may use all memory. By default, Dask would end a job that uses more than an equal
                # share for each worker.
                worker_kwargs=common
                | {
                    "memory_limit": MEMORY_LIMIT,
                    "local_directory": self._folder.name,
                    "preload": [__name__],
                    "preload_nanny": [__name__],
                },
                silence_logs=logging.CRITICAL,
            )
            if_interrupted.pop_all()
        self.address = self._cluster.scheduler_address

    def _environment(self, threads: int) -> dict[str, str]:
        """The environment variables of the processes, which compute in this number of threads."""
        usual = dict.fromkeys(_THREADS, str(threads)) | _MEMORY | _RARELY
        variables = {name: os.environ.get(name, value) for name, value in usual.items()} | {
            PARENT: str(os.getpid()),
            _HAS_GPU: str(int(self.has_gpu)),
            "DASK_TEMPORARY_DIRECTORY": self._folder.name,
            # A worker needs the modules of the caller, and relcore if it is not installed.
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
            # The scheduler also gets this setting: nobody reads its error stream, and a full pipe would block
            # it.
            "DASK_LOGGING__DISTRIBUTED": "critical",
            "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": self.security.tls_ca_file,
            # Dask's HTTP servers need no certificate to answer, so `dask_setup` ends them.
            "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
            "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
        }
        for name in _CERTIFICATES:  # in the environment, because other users can see a command line
            place = f"DASK_DISTRIBUTED__COMM__TLS__{name.upper().replace('_', '__')}"
            variables[place] = getattr(self.security, f"tls_{name}")
        return variables

    async def _start(self, *command: str, **settings: Any) -> asyncio.subprocess.Process:
        """Start a process in its own process group, so that Ctrl-C in the terminal does not reach it. `close`
        ends it in order.

        Its error stream is dropped, because a process that is ended while it starts prints tracebacks.
        """
        if self._ends:
            raise OSError("the cluster was closed while it started")
        settings.setdefault("stderr", asyncio.subprocess.DEVNULL)
        environment = {**os.environ, **self._variables}
        process = await _spawn(*command, process_group=0, env=environment, **settings)
        self._groups.append(process.pid)
        return process

    def close(self) -> None:
        """End all processes, even if the scheduler is dead."""
        from distributed.core import Status

        process = self._cluster.scheduler.process
        patience = 5.0
        # Otherwise Dask would wait for the workers of a dead scheduler.
        if process is None or process.returncode is not None:
            self._cluster.scheduler.status = Status.closed
            self._cluster.shutdown_scheduler = False
        try:
            self._cluster.close(timeout=10)
        except Exception:  # the scheduler hangs, or it died during the request
            patience = 0.0
        self._end(patience)

    def _end(self, patience: float) -> None:
        self._ends = True
        if _signal_until_ended(self._groups, 0, patience):
            _signal_until_ended(self._groups, signal.SIGKILL, 5.0)
        self._folder.cleanup()


def _signal_until_ended(groups: list[int], number: int, seconds: float) -> bool:
    """Signal each process group until all have ended, for at most `seconds`. Returns True if one has not
    ended."""
    until = time.monotonic() + seconds
    while True:
        left = False
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, number)
                left = True
        if not left or time.monotonic() >= until:
            return left
        time.sleep(0.02)


def claim_gpu(folder: str) -> bool:
    """Reserve the GPU for this process until it ends. Returns False if another process of the cluster has
    reserved it."""
    # The lock ends with its process, so the worker process that replaces it can take the lock.
    held = open(os.path.join(folder, "gpu"), "w")  # noqa: SIM115
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        return False
    _held.append(held)
    return True


def dask_setup(server: Any) -> None:
    """Dask calls this function in each process that Relscope starts. It closes the HTTP port, because anyone
    could connect to it without a certificate. It makes the scheduler and the supervisors of the workers
    (Dask's nannies) end soon after the parent process, even if the parent is killed.
    """
    from distributed import Worker

    if hasattr(server, "http_server"):
        server.http_server.stop()
    if isinstance(server, Worker):  # a worker is ended by its nanny, which has a watch of its own
        if os.environ.get(_HAS_GPU) == "1" and claim_gpu(os.environ["DASK_TEMPORARY_DIRECTORY"]):
            server.state.total_resources[GPU] = server.state.available_resources[GPU] = 1
        return
    parent = int(os.environ[PARENT])  # unlike os.getppid(), also right if the parent is already dead

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
