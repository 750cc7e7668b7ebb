"""The scheduler of an engine's jobs: connect to a cluster or start one here, and watch whether it answers."""

from __future__ import annotations

import gc
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from relcore.extras import extra
from relcore.job import EngineError

ENVIRONMENT = "RELSCOPE_SCHEDULER"
_log = logging.getLogger("relscope")
SECONDS_BETWEEN_LOOKS = 2.0
SECONDS_TO_ANSWER = 5.0  # with those between two looks: less than the ten within which a page says that a scheduler died


def connect(address: str | None, n_workers: int, seconds: float) -> tuple[Any, Any]:
    """A Dask client of the scheduler; without an address also the cluster that is started here.

    Raises
    ------
    EngineError
        The scheduler does not answer within that many seconds; the address is none.
    """
    with extra():
        from distributed import Client

    from relcore.local_cluster import LocalCluster

    cluster = None if address else LocalCluster(n_workers, max(1, (os.cpu_count() or 1) // n_workers))
    try:
        return _made(Client, address or cluster.address, seconds), cluster
    except (ValueError, TypeError) as error:  # TypeError: TLS without its certificates
        said = (
            f"{address!r:.80}: expected the address of a Dask scheduler, such as tcp://127.0.0.1:8786, got {error!s:.80}; "
            f"correct it, or unset {ENVIRONMENT}"
        )
    except (OSError, AssertionError):  # Dask asserts that a connection that failed was one
        disconnect(None, cluster)
        fix = f"start one with `dask scheduler`, or unset {ENVIRONMENT} to use processes of this machine"
        said = f"{address}: expected a Dask scheduler, got no answer in {seconds} s; {fix}"
    gc.collect()  # the client that failed, now rather than while another one is made; so the error must not hold it
    raise EngineError(said)


def _made(client: Callable[..., Any], address: str, seconds: float) -> Any:
    """A Dask client, made while the garbage collector rests.

    A client holds a lock of Dask's for a moment while it starts, and one that is collected takes the same lock to close
    itself. If that happens in the first one's thread at that moment, both wait for ever.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return client(address, set_as_default=False, timeout=seconds)
    finally:
        if collects:
            gc.enable()


def disconnect(client: Any, cluster: Any) -> None:
    """Close what there is of the two; a scheduler that is dead or hangs cannot prevent it."""
    with suppress(Exception):
        if client is not None:
            client.close(timeout=5)
    if cluster is not None:
        cluster.close()


class Watch:
    """Calls `look` every two seconds in a thread of its own while it is `needed`, which is read under the lock."""

    def __init__(self, needed: Callable[[], Any], look: Callable[[], None], lock: threading.RLock) -> None:
        self._needed, self._look, self._lock = needed, look, lock
        self._sooner = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless it has begun."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="scheduler-watch", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """Look now."""
        self._sooner.set()

    def _run(self) -> None:
        while True:
            self._sooner.wait(SECONDS_BETWEEN_LOOKS)
            self._sooner.clear()
            with self._lock:
                if not self._needed():
                    self._thread = None
                    return
            try:
                self._look()
            except Exception:  # jobs wait for this thread, so one turn that fails must not be its last
                _log.exception("looking after the scheduler failed; the next try is in %s s", SECONDS_BETWEEN_LOOKS)


def answers(client: Any) -> bool:
    """Whether the scheduler of this Dask client answers a small question in five seconds."""
    try:
        client.sync(client.scheduler.ncores, workers=[], callback_timeout=SECONDS_TO_ANSWER)
    except Exception:
        return False
    return True
