"""Waiting for what other threads and processes do."""

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Return as soon as the condition holds. A test fails after this number of seconds, which is large, for a
    busy machine.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
