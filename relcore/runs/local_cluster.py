"""The default cluster: a Dask scheduler and workers in processes of this machine."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO
from unittest.mock import patch

from relcore.base.environment import GPU, resolve
from relcore.base.writing import temporary

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_CERTIFICATES = tuple(
    f"{role}_{part}" for role in ("scheduler", "worker", "client") for part in ("cert", "key")
)
PARENT = "RELSCOPE_PARENT"
# Bytes of free pages to keep: Dask's workers give all back at once, which slows training down. The second
# number is the largest that glibc accepts.
_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(256 * 2**20), "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20)}
_starting = threading.Lock()
_spawn = asyncio.create_subprocess_exec
_HAS_GPU = "RELSCOPE_CLUSTER_HAS_GPU"
_held: list[TextIO] = []  # an open file keeps its lock


class LocalCluster:
    """A scheduler at `address` and `n_workers` single-threaded workers on the loopback address.

    `threads` is what BLAS and numba may use in a worker. Whoever connects to a Dask process can have it run
    code, so connections are TLS, with a certificate that exists in memory only and travels in the
    environment.
    """

    def __init__(self, n_workers: int, threads: int, allowed_failures: int = 2) -> None:
        # Dask's own LocalCluster would import the user's script again in each process, which Streamlit cannot
        # bear.
        from distributed import Security
        from distributed.deploy.subprocess import SubprocessCluster
        from distributed.system import MEMORY_LIMIT

        self.has_gpu = resolve().startswith("cuda")
        self.security = Security.temporary()
        self._folder, self._groups, self._ends = temporary(), [], False
        usual = dict.fromkeys(_THREADS, str(threads)) | _MEMORY
        variables = {name: os.environ.get(name, value) for name, value in usual.items()} | {
            PARENT: str(os.getpid()),
            _HAS_GPU: str(int(self.has_gpu)),
            "DASK_TEMPORARY_DIRECTORY": self._folder.name,  # of the scheduler
            # A worker needs the caller's own modules, and relcore where it is not installed.
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
            # Also for the scheduler's sake: nobody reads its error stream, and a full pipe would stop it.
            "DASK_LOGGING__DISTRIBUTED": "critical",
            "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": self.security.tls_ca_file,
            # Dask's HTTP servers answer without a certificate; `dask_setup` ends them.
            "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
            "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
        }
        for name in _CERTIFICATES:  # a command line would show them to everybody
            place = f"DASK_DISTRIBUTED__COMM__TLS__{name.upper().replace('_', '__')}"
            variables[place] = getattr(self.security, f"tls_{name}")
        common = {"protocol": "tls://"}
        # SubprocessCluster's processes take their environment from this one's, the only interface to set it.
        with (
            _starting,
            patch.dict(os.environ, variables),
            patch.object(asyncio, "create_subprocess_exec", self._start),
            self._ended_if_interrupted(),
        ):
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
                # One job may use all memory that there is; Dask's default, an equal share each, kills it far
                # too early.
                worker_kwargs=common
                | {
                    "memory_limit": MEMORY_LIMIT,
                    "local_directory": self._folder.name,
                    "preload": [__name__],
                    "preload_nanny": [__name__],
                },
                silence_logs=logging.CRITICAL,
            )
        self.address = self._cluster.scheduler_address

    async def _start(self, *command: str, **settings: Any) -> asyncio.subprocess.Process:
        """Start a process in its own process group, so that Ctrl-C in the terminal does not reach it;
        `close` ends it in order.

        Python's own processes write tracebacks where they are ended while they start; what a job has to say
        is in its result.
        """
        if self._ends:
            raise OSError("the cluster was closed while it started")
        settings.setdefault("stderr", asyncio.subprocess.DEVNULL)
        process = await _spawn(*command, process_group=0, **settings)
        self._groups.append(process.pid)
        return process

    @contextmanager
    def _ended_if_interrupted(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._end(0)
            raise

    def close(self) -> None:
        """End all processes, even if the scheduler is dead."""
        from distributed.core import Status

        process, patience = self._cluster.scheduler.process, 5.0
        if process is None or process.returncode is not None:  # else Dask waits in vain for its workers
            self._cluster.scheduler.status = Status.closed
            self._cluster.shutdown_scheduler = False
        try:
            self._cluster.close(timeout=10)
        except Exception:  # the scheduler hangs, or died while it was asked
            patience = 0.0
        self._end(patience)

    def _end(self, patience: float) -> None:
        """Remove the folder when nothing writes there any more; after `patience` seconds the processes
        are killed."""
        self._ends = True
        if _signalled(self._groups, 0, patience):
            _signalled(self._groups, signal.SIGKILL, 5.0)
        self._folder.cleanup()


def _signalled(groups: list[int], number: int, seconds: float) -> bool:
    """Signal each process group until none is left, for at most `seconds`; True if one is left."""
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


def claimed(folder: str) -> bool:
    """Whether this process is the one of its cluster that uses the GPU, from now on until it ends."""
    # The lock ends with the process that holds it: the nanny's next one takes it.
    held = open(os.path.join(folder, "gpu"), "w")  # noqa: SIM115
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        return False
    _held.append(held)
    return True


def dask_setup(server: Any) -> None:
    """Called by Dask in our processes: close the HTTP port, which asks for no certificate. Scheduler and
    nannies end soon after the parent, which may be killed.
    """
    from distributed import Worker

    if hasattr(server, "http_server"):
        server.http_server.stop()
    if isinstance(server, Worker):  # its nanny ends it
        if os.environ.get(_HAS_GPU) == "1" and claimed(os.environ["DASK_TEMPORARY_DIRECTORY"]):
            server.state.total_resources[GPU] = server.state.available_resources[GPU] = 1
        return
    parent = int(os.environ[PARENT])  # and not os.getppid(): it may have died before this process came so far

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
