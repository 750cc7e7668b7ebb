"""Passes over many rows, block by block on all cores: a block is read once, and stays in its core's cache until it is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

_NUMBERS = 1_200_000  # that a block reads and writes, 5 MB of float32; with fewer, measured, its product is slower
_FEWEST_ROWS = 64  # of a block: a product with less spends its time on the other matrix


def each_block(work: Callable[[slice], None], n_rows: int, width: int) -> None:
    """Call `work(rows)` for slices that cut n rows into blocks, on as many cores as BLAS would take.

    `width` is how many numbers a row brings along, read and written together. Products within `work` run on one thread each:
    a large product on all threads waits for the last of them, then one core does every pass after it. Blocks are the same
    whatever the number of cores, and so are the results.
    """
    size = max(_NUMBERS // max(width, 1), _FEWEST_ROWS)
    blocks = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    with _single_threaded_blas() as n_threads:
        if n_threads == 1 or len(blocks) < 2:
            for rows in blocks:
                work(rows)
        else:
            list(_pool(n_threads).map(work, blocks))


class _Limit:
    """BLAS has one number of threads for the whole process: who comes first lowers it, who leaves last restores it."""

    lock, users, threads, limit = Lock(), 0, 1, None


@contextmanager
def _single_threaded_blas() -> Iterator[int]:
    """Within this, BLAS takes one thread a product; gives how many it took before."""
    with _Limit.lock:
        if not _Limit.users:
            _Limit.threads = _threads()
            _Limit.limit = _blas().limit(limits=1, user_api="blas")
        _Limit.users += 1
        threads = _Limit.threads
    try:
        yield threads
    finally:
        with _Limit.lock:
            _Limit.users -= 1
            if not _Limit.users:
                _Limit.limit.restore_original_limits()


def _threads() -> int:
    return max((library["num_threads"] for library in _blas().info() if library["user_api"] == "blas"), default=1)


@lru_cache(maxsize=1)
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix=f"blocks-{os.getpid()}")
