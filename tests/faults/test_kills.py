"""kill -9 at random moments of an encoding: all stored blocks are complete, and at most one is computed twice.

The slow tests kill a worker, and the process that owns the queue (in use, this is the app). They do it twice,
because a start takes seconds, or RELSCOPE_TEST_KILLS times.
"""

import os
import random
import signal
from contextlib import closing

import pytest

from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from tests.faults import victims
from tests.faults.victims import Pixels, computed_twice, lines
from tests.waiting import until

KILLS = 6
SEED = 12
SLOW_KILLS = int(os.environ.get("RELSCOPE_TEST_KILLS", "2"))


def killed(work, root, log, block_rows, seconds):
    before = len(lines(log))
    process = victims.started(work, root, log, block_rows)
    until(lambda: len(lines(log)) > before or process.exitcode is not None)
    return victims.killed(process, seconds)


@pytest.mark.parametrize(
    ("work", "block_rows", "most_seconds", "n_kills"),
    [
        (victims.encode_in_place, 5, 0.03, KILLS),
        pytest.param(victims.encode_by_queue, 2, 0.1, SLOW_KILLS, marks=pytest.mark.slow),
    ],
)
def test_a_killed_encoding_resumes(tmp_path, work, block_rows, most_seconds, n_kills):
    root = str(tmp_path / "store")
    log = str(tmp_path / "log")
    draw = random.Random(SEED)
    for _ in range(n_kills):
        assert killed(work, root, log, block_rows, draw.uniform(0, most_seconds)), "it ended before the kill"
        store = Store(root)
        assert store.size() == sum(one.size for one in store.summaries())
        assert [*(store.root / "partial").iterdir(), *(store.root / "pins").glob("*")] == []
    work(root, log, block_rows)
    assert len(store.entries()) == 1
    assert len(lines(log)) - computed_twice(log) == 500 // block_rows
    assert computed_twice(log) <= n_kills


@pytest.mark.slow
def test_the_worker_of_an_encoding(tmp_path):
    store = Store(tmp_path / "store")
    log = str(tmp_path / "log")
    draw = random.Random(SEED)
    with closing(JobQueue(n_workers=1, store=store)) as queue:
        for _ in range(KILLS):
            before = len(lines(log))
            job = victims.submit(queue, Pixels(log, 0.02), 5)  # again, after three kills
            until(lambda: len(lines(log)) > before or job.status().ended)  # noqa: B023, called in this turn only
            if not job.status().ended:
                job.wait(draw.uniform(0, 0.03))
                os.kill(int(lines(log)[-1][0]), signal.SIGKILL)
        while victims.submit(queue, Pixels(log, 0.02), 5).wait().state != "done":
            pass
    assert len(lines(log)) - computed_twice(log) == 100
    assert computed_twice(log) <= KILLS
    assert list((Store(store.root).root / "partial").iterdir()) == []
