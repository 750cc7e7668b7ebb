"""Processes that are killed at random moments, and what they do until then."""

import itertools
import multiprocessing
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import numpy as np
import psutil

from relcore.catalog.catalog import encode, encode_job, encoding_job_key
from relcore.encoders.datasets import load_dataset
from relcore.runs.entries import digest_of
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from tests.faults.blocks import DIGITS, Pixels
from tests.waiting import until

_processes = multiprocessing.get_context("forkserver")
# So that each victim starts in milliseconds; lancedb starts threads, which a fork would lose.
_COMMANDS = (
    "cli",
    "commands.adapt",
    "commands.project",
    "migrate.adapters",
    "files.confined",
)
_processes.set_forkserver_preload(
    [__name__, "sklearn.datasets", "PIL.Image", "pyarrow.parquet"]
    + [f"relcore.{module}" for module in _COMMANDS]
)


def killed(
    work: Callable[..., None], *arguments: str, log: str, draw: random.Random, most_seconds: float
) -> int | None:
    """Have a process do the work, kill it at most so long after it has left one more line; what it left, in
    partial files.

    None where the work was done before. All its children must end, too.
    """
    before = n_lines(log)
    process = started(work, *arguments)
    until(lambda: n_lines(log) > before or process.exitcode is not None)
    process.join(draw.uniform(0, most_seconds))
    if process.exitcode is not None:
        assert process.exitcode == 0
        return None
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.join()
    until(lambda: not any(lives(child) for child in children))
    return len(list(Path(arguments[0], "partial").iterdir()))


def started(work: Callable[..., None], *arguments: object) -> multiprocessing.process.BaseProcess:
    process = _processes.Process(target=work, args=arguments)
    start(process)
    return process


def start(process: multiprocessing.process.BaseProcess) -> None:
    """Start a process that does not import the main module again: after a test of a page that is the whole
    app.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        process.start()
    finally:
        sys.modules["__main__"] = main


def lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def n_lines(log: str) -> int:
    return Path(log).read_text().count("\n") if Path(log).exists() else 0


def note(log: str, line: object) -> None:
    with open(log, "a") as file:
        file.write(f"{line}\n")


def entry(number: int) -> tuple[str, np.ndarray]:
    return digest_of("written", number), np.full(100_000, number, dtype=np.float64)


def write(root: str, log: str) -> None:
    store = Store(root)
    for number in itertools.count(n_lines(log)):
        key, content = entry(number)
        store.put(key, {"x": content}, {"number": number})
        note(log, number)


def encode_in_place(root: str, log: str, block_rows: int) -> None:
    encode(DIGITS, Pixels(log, 0.005), Store(root), block_rows=block_rows)


def submit(queue: JobQueue, log: str, block_rows: int):
    encoder = Pixels(log, 0.02)
    key = encoding_job_key(load_dataset(DIGITS).digest, encoder)
    return queue.submit(
        key, encode_job, title="encoding", dataset=DIGITS, encoder=encoder, block_rows=block_rows
    )


def encode_by_queue(root: str, log: str, block_rows: int) -> None:
    queue = JobQueue(n_workers=1, store=Store(root))
    assert submit(queue, log, block_rows).wait().state == "done"
    queue.close()
