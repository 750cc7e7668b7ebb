"""Jobs over shards in threads of this process, for a computer without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from itertools import islice
from threading import Event

from relcore.engine.threads import one_thread_products
from relcore.runs.store import Store
from relcore.runs.work import Context

MOST_THREADS = 16  # each holds blocks and sums in memory
_PAUSE = 0.05
ShardJob = Callable[[Context], None]


class _Stopped(BaseException):
    """Ends a job in the middle of its shard. It is no error of the job."""


class _StoppableContext(Context):
    """A context whose reports end the job once `stopped` is set, and tell which `share` of it is done."""

    def __init__(self, key: str, store: Store, stopped: Event) -> None:
        super().__init__(key, store)
        self.share = 0.0
        self._stopped = stopped

    def report(self, done: int, total: int, message: str = "") -> None:
        if self._stopped.is_set():
            raise _Stopped
        self.share = done / max(total, 1)


def run_in_threads(
    jobs: Sequence[tuple[str, ShardJob]],
    store: Store,
    told: Callable[[Collection[str], float], None],
    threads: int | None = None,
    most: int | None = None,
) -> None:
    """Run jobs, each with the key of its result, in `threads` threads. By default there are as many as BLAS
    uses. There are at most `most` threads. Matrix products use one thread each, so that results do not depend
    on the number of threads.

    `told(waiting, left)` is called in the caller's thread, from time to time, with the keys that have no
    result yet, and the amount of work left, in jobs. If a job fails, no other is started, but those that run
    finish, and the error of the first job that failed is raised. So it does not depend on the number of
    threads either. Ctrl-C ends running jobs at their next report.
    """
    if not jobs:
        return
    stopped = Event()
    waiting = dict.fromkeys(key for key, _ in jobs)
    failures: dict[str, BaseException] = {}
    running: dict[Future[None], _StoppableContext] = {}
    left = iter(jobs)
    with one_thread_products() as available:
        n_threads = max(1, min(threads or available, len(jobs), most or MOST_THREADS, MOST_THREADS))
        pool = ThreadPoolExecutor(n_threads, "shard")
        try:
            while waiting:
                # One more job for each thread waits in the pool, so that no thread waits for a merge.
                n_more = 2 * n_threads - len(running)
                if failures:
                    n_more = 0
                for key, job in islice(left, n_more):
                    context = _StoppableContext(key, store, stopped)
                    # A copy of the context variables, so that entries in use are not evicted.
                    running[pool.submit(copy_context().run, job, context)] = context
                for future in wait(running, _PAUSE, FIRST_COMPLETED).done:
                    key = running.pop(future).key
                    if future.cancelled():
                        continue
                    if error := future.exception():
                        failures[key] = error
                    else:
                        del waiting[key]
                if failures:
                    for future in running:
                        future.cancel()
                    if not running:
                        raise next(failures[key] for key in waiting if key in failures)
                told(waiting, len(waiting) - sum(context.share for context in running.values()))
        except BaseException:
            stopped.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
