"""Waiting for what other threads and processes do."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Return as soon as the condition holds. A test fails after so many seconds, which are many, for a
    busy machine.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def run_apart(work: Coroutine) -> Any:
    """The result of a coroutine, run in a thread of its own: Playwright keeps a loop running in that of
    the tests.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
