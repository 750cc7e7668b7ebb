"""One thread of BLAS for each block, and as many blocks at a time as BLAS has threads.

So the steps between two products use all cores, too. The setting belongs to the process and is put back after the last pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Event, Lock
from typing import Any, TypeVar

Made = TypeVar("Made")
_lock = Lock()
_users: dict[int, int] = {}  # number of threads before → passes at work
_limits: list[Any] = []


def in_threads(
    parts: Sequence[Any],
    make: Callable[[], Made],
    add: Callable[[Made, Any], None],
    done: Callable[[int, int], None],
    most: int | None = None,
) -> list[Made]:
    """Give each thread something that `make` returns, and `add` a fixed share of the parts to it, in order.

    `done(parts, all)` is called in the caller's thread, from time to time. An exception in any thread ends all. There are
    at most `most` threads.
    """
    stopped = Event()

    def work(turn: int, n_threads: int) -> Made:
        made = make()
        try:
            for place in range(turn, len(parts), n_threads):
                if stopped.is_set():
                    break
                if not turn:
                    done(place, len(parts))
                add(made, parts[place])
        except BaseException:
            stopped.set()
            raise
        return made

    with one_thread_products() as available:
        n_threads = max(1, min(available, len(parts), most or available))
        with ThreadPoolExecutor(n_threads) as pool:
            others = [pool.submit(work, turn, n_threads) for turn in range(1, n_threads)]
            first = work(0, n_threads)
            found = [first, *(other.result() for other in others)]
    done(len(parts), len(parts))
    return found


@lru_cache(maxsize=1)
def _blas(n_modules: int) -> Any:
    """The libraries of BLAS that this process has loaded: looked for again, which takes milliseconds, after further imports."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread_products() -> Iterator[int]:
    """While it lasts, a matrix product runs in one thread; gives the number of threads that it had."""
    with _lock:
        if not _users:
            controller = _blas(len(sys.modules))
            usual = max((library["num_threads"] for library in controller.info()), default=1)
            _limits.append(controller.limit(limits=1))
            _users[usual] = 0
        (usual,) = _users
        _users[usual] += 1
    try:
        yield usual
    finally:
        with _lock:
            _users[usual] -= 1
            if not _users[usual]:
                _users.clear()
                _limits.pop().restore_original_limits()
