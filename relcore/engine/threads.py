"""Threads of this process, and libraries that compute in one thread."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Event, Lock
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Part = TypeVar("Part", contravariant=True)
Result = TypeVar("Result", covariant=True)


class Accumulator(Protocol[Part, Result]):
    """A result that is computed part by part. Each thread, device or worker adds its parts to its own
    accumulator. Then these are merged, in order, and one has the result of all parts."""

    def add(self, part: Part, /) -> None: ...

    def merge(self, other: Any, /) -> None: ...

    def result(self) -> Result: ...


class ProcessSetting:
    """A setting of the whole process, such as a precision. The first thread that enters a block changes it;
    the last one that leaves restores it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before: Any = None  # what the `change` of the first thread returned

    @contextmanager
    def changed(self, change: Callable[[], T], restore: Callable[[T], None]) -> Iterator[T]:
        """Within the block, the setting is changed. The result of `change` is yielded, and passed to
        `restore` afterwards."""
        with self._lock:
            if not self._users:
                self._before = change()
            self._users += 1
        try:
            yield self._before
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    restore(self._before)


_one_thread = ProcessSetting()
_one_thread_in_torch = ProcessSetting()


@contextmanager
def one_thread_in_torch() -> Iterator[None]:
    """Within the block, PyTorch computes in one thread. For thousands of small products, that is as fast on
    an idle machine. On a busy one, several threads would wait for each other at each product."""
    import torch

    def change() -> int:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        return before

    with _one_thread_in_torch.changed(change, torch.set_num_threads):
        yield


# Each block uses one BLAS thread, and as many blocks run at once as BLAS has threads. So the steps between
# products also use all cores.


def in_threads(
    parts: Sequence[Part],
    make: Callable[[], Accumulator[Part, Result]],
    done: Callable[[int, int], None] = lambda n_done, n: None,
    most: int | None = None,
) -> Result:
    """The result of all parts. Each thread gets its own accumulator from `make`, and adds a fixed share of
    the parts to it, in order.

    `done(n_done, n)` is called in the caller's thread, from time to time. An exception in one thread stops
    all threads. There are at most `most` threads.
    """
    stopped = Event()

    def work(turn: int, n_threads: int) -> Accumulator[Part, Result]:
        total = make()
        try:
            for place in range(turn, len(parts), n_threads):
                if stopped.is_set():
                    break
                if not turn:
                    done(place, len(parts))
                total.add(parts[place])
        except BaseException:
            stopped.set()
            raise
        return total

    with one_thread_products() as available:
        n_threads = max(1, min(available, len(parts), most or available))
        with ThreadPoolExecutor(n_threads) as pool:
            others = [pool.submit(work, turn, n_threads) for turn in range(1, n_threads)]
            first = work(0, n_threads)
            for other in others:
                first.merge(other.result())
    done(len(parts), len(parts))
    return first.result()


@lru_cache(maxsize=1)
def _blas(n_modules: int) -> Any:
    """The BLAS libraries of this process. Searching for them takes milliseconds, so it is repeated only after
    further imports.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread_products() -> Iterator[int]:
    """Within the block, matrix products use one thread. Yields the earlier number of threads."""

    def change() -> tuple[int, Any]:
        controller = _blas(len(sys.modules))
        usual = max((library["num_threads"] for library in controller.info()), default=1)
        return usual, controller.limit(limits=1)

    with _one_thread.changed(change, lambda before: before[1].restore_original_limits()) as (usual, _):
        yield usual
