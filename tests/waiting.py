"""Wait for other threads and processes."""

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Return as soon as the condition holds. If it does not hold within this time, the test fails. The default is
    long, because the machine may be busy.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
