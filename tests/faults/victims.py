"""Work for processes that are killed. An encoding logs every block that it computes, so that tests can count the
blocks that were computed twice.
"""

import multiprocessing
import os
import signal
import sys
import time
import zlib
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import psutil

from relcore.catalog.encodings import encode, encode_job, encoding_job_key
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from tests.waiting import until

DIGITS = DatasetSpec("digits", limit=500)
ROWS = 20
N_BLOCKS = 25

_processes = multiprocessing.get_context("forkserver")
# With these modules preloaded, each process starts in milliseconds. lancedb is not one of them, because it starts
# threads, which a fork would lose.
_processes.set_forkserver_preload(
    [__name__, "sklearn.datasets", "PIL.Image", "pyarrow.parquet", "relcore.cli", "relcore.files.confined"]
    + [f"relcore.{module}" for module in ("migrate.adapt_command", "project.command", "migrate.adapters")]
    + ["torch", "relcore.training.watching", "relcore.encode.network"]
)


@dataclass(frozen=True)
class Pixels(Encoder):
    """An encoder that logs its process id and a checksum of each block. After five blocks it waits until the file
    `gate` exists.
    """

    log: str
    pause: float = 0.0
    gate: str = ""

    kind: ClassVar = "images"
    title: ClassVar = "Pixels"

    def prepare(self, dataset, report):
        def encode(images):
            rows = np.stack([np.asarray(image, dtype=np.float32).ravel() for image in images])
            with open(self.log, "a") as file:
                file.write(f"{os.getpid()} {zlib.crc32(rows)}\n")
            time.sleep(self.pause)
            while self.gate and len(lines(self.log)) >= 5 and not Path(self.gate).exists():
                time.sleep(0.01)
            return {"": rows}

        return encode


def lines(log):
    if Path(log).exists():
        return [line.split() for line in Path(log).read_text().splitlines()]
    return []


def computed_twice(log):
    return sum(n - 1 for n in Counter(block for _, block in lines(log)).values())


def started(work, *arguments):
    """Start `work` in a process that does not import the main module again. After a test of a page, the main
    module is the whole app.
    """
    process = _processes.Process(target=work, args=arguments)
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        process.start()
    finally:
        sys.modules["__main__"] = main
    return process


def killed(process, seconds):
    """Kill the process after this number of seconds and wait until its children have ended. Returns False if it had
    ended before.
    """
    process.join(seconds)
    if process.exitcode is not None:
        assert process.exitcode == 0
        return False
    children = []
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.join()
    until(lambda: not any(map(lives, children)))
    return process.exitcode == -signal.SIGKILL


def lives(process):
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def encode_in_place(root, log, block_rows):
    encode(DIGITS, Pixels(log, 0.005), Store(root), block_rows=block_rows)


def submit(queue, encoder, block_rows):
    settings = {"dataset": DIGITS, "encoder": encoder, "block_rows": block_rows}
    key = encoding_job_key(load_dataset(DIGITS).digest, encoder)
    return queue.submit(key, encode_job, title="encoding", **settings)


def encode_by_queue(root, log, block_rows):
    with closing(JobQueue(n_workers=1, store=Store(root))) as queue:
        assert submit(queue, Pixels(log, 0.02), block_rows).wait().state == "done"
