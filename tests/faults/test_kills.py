"""kill -9 at random moments: what was acknowledged is there, what is there is whole, and at most one block is
computed twice.

At moments drawn from one seed: six kills each. The slow ones also kill a worker, and the process that owns the
queue, as the app does: twice, as it takes seconds to start, or RELSCOPE_TEST_KILLS times.
"""

import os
import random
import signal

import numpy as np
import pytest

from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from tests.faults import victims
from tests.faults.blocks import computed_twice, lines
from tests.waiting import until

KILLS, SEED = 6, 12
KILLS_OF_QUEUES = int(os.environ.get("RELSCOPE_TEST_KILLS", "2"))


@pytest.fixture
def log(tmp_path):
    return str(tmp_path / "log")


def kill_often(work, *arguments, log, most_seconds, n):
    """Kill it so many times; partial files that were found after a kill. Each start of the store sweeps
    them.
    """
    draw, left = random.Random(SEED), 0
    for number in range(n):
        found = victims.killed(work, *arguments, log=log, draw=draw, most_seconds=most_seconds)
        assert found is not None, f"it ended before the kill {number}"
        left += found
        store = Store(arguments[0])
        assert store.size() == sum(one.size for one in store.summaries())
        assert list((store.root / "partial").iterdir()) == []
        assert list((store.root / "pins").glob("*")) == []
    return left


def test_a_store_write(tmp_path, log):
    root = str(tmp_path / "store")
    kill_often(victims.write, root, log, log=log, most_seconds=0.03, n=KILLS)
    store, acknowledged = Store(root), victims.n_lines(log)
    assert acknowledged >= KILLS
    for number in range(acknowledged):
        key, content = victims.entry(number)
        entry = store.get(key)
        assert entry.metadata == {"number": number}
        np.testing.assert_array_equal(entry.arrays["x"], content)
    # At most the one that was renamed, and not yet acknowledged, when the last kill came.
    assert len(store.entries()) <= acknowledged + 1


def test_an_encoding(tmp_path, log):
    root = str(tmp_path / "store")
    kill_often(victims.encode_in_place, root, log, 5, log=log, most_seconds=0.03, n=KILLS)
    victims.encode_in_place(root, log, 5)
    store = Store(root)
    assert len(store.entries()) == 1
    assert len(lines(log)) - computed_twice(log) == 100
    assert computed_twice(log) <= KILLS


@pytest.mark.slow
def test_the_worker_of_an_encoding(tmp_path, log):
    queue, draw, block_rows = JobQueue(n_workers=1, store=Store(tmp_path / "store")), random.Random(SEED), 5
    try:
        for _ in range(KILLS):
            before = victims.n_lines(log)
            job = victims.submit(queue, log, block_rows)  # again, after three kills
            until(lambda: victims.n_lines(log) > before or job.status().ended)  # noqa: B023, called in this turn only
            if not job.status().ended:
                job.wait(draw.uniform(0, 0.03))
                os.kill(int(lines(log)[-1][0]), signal.SIGKILL)
        while victims.submit(queue, log, block_rows).wait().state != "done":
            pass
    finally:
        queue.close()
    assert len(lines(log)) - computed_twice(log) == 100
    assert computed_twice(log) <= KILLS
    Store(tmp_path / "store")
    assert list((tmp_path / "store" / "partial").iterdir()) == []


@pytest.mark.slow
def test_the_process_that_owns_the_queue(tmp_path, log):
    root = str(tmp_path / "store")
    kill_often(victims.encode_by_queue, root, log, 2, log=log, most_seconds=0.1, n=KILLS_OF_QUEUES)
    victims.encode_by_queue(root, log, 2)
    assert len(lines(log)) - computed_twice(log) == 250
    assert computed_twice(log) <= KILLS_OF_QUEUES
