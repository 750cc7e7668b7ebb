"""Two processes on one store: they write, read and evict the same entries, and neither disturbs the other."""

import logging
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relcore.catalog.encodings import encode
from relcore.runs.entries import digest_of
from relcore.runs.store import Store, in_use
from tests.faults.victims import DIGITS, N_BLOCKS, ROWS, Pixels, computed_twice, lines, started
from tests.waiting import until

ROOT = Path(__file__).parents[2]
KEYS = [digest_of("shared", number) for number in range(12)]
TURNS = 80
SEED = 12
SIZE = 40_000


def content(number):
    return np.full(SIZE // 4, number, np.float32)


def busy_app(root, seed):
    """Work in turns: an entry that is found or stored during a turn must stay until the turn ends. The store
    has room for four of the twelve entries.
    """
    store = Store(root, limit_bytes=4 * SIZE)
    draw = random.Random(seed)
    for _ in range(TURNS):
        with in_use():
            chosen = draw.sample(range(len(KEYS)), 3)
            for number in chosen:
                if not store.has(KEYS[number]):
                    store.put(KEYS[number], {"x": content(number)}, {"number": number})
            for number in chosen:
                entry = store.get(KEYS[number])
                assert entry is not None, "an entry in use was evicted"
                assert entry.metadata == {"number": number}
                np.testing.assert_array_equal(entry.arrays["x"], content(number))
        store.summaries()
        if draw.random() < 0.1:
            Store(root)


def test_two_apps_on_one_store(tmp_path):
    apps = [started(busy_app, str(tmp_path), seed) for seed in (SEED, SEED + 1)]
    for app in apps:
        app.join()
        assert app.exitcode == 0
    store = Store(tmp_path, limit_bytes=4 * SIZE)
    store.put(digest_of("last"), {})
    assert store.size() <= 4 * SIZE
    assert [*(tmp_path / "partial").iterdir(), *(tmp_path / "pins").iterdir()] == []


def test_what_is_in_use_stays_above_the_limit(tmp_path, caplog):
    store = Store(tmp_path, limit_bytes=2 * SIZE)
    with in_use(), caplog.at_level(logging.WARNING, logger="relscope"):
        for number, key in enumerate(KEYS):
            store.put(key, {"x": content(number)})
        assert all(store.get(key) for key in KEYS)
        (record,) = caplog.records
        assert "RELSCOPE_STORE_GB" in record.getMessage()
    store.put(digest_of("after"), {})
    assert store.size() <= 2 * SIZE


HOLDER = """
import sys
from relcore.runs.store import Store, in_use
with in_use():
    Store(sys.argv[1]).get(sys.argv[2])
    print("holds", flush=True)
    sys.stdin.read()
"""


def test_another_process_keeps_an_entry_as_long_as_it_lives(tmp_path):
    store = Store(tmp_path, limit_bytes=2 * SIZE)
    store.put(KEYS[0], {"x": content(0)})
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path, KEYS[0]],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout.readline() == b"holds\n"
    for number in range(1, 6):
        store.put(KEYS[number], {"x": content(number)})
    assert set(store.entries()) == {KEYS[0], KEYS[5]}
    holder.kill()
    holder.communicate()
    for number in range(6, 9):
        store.put(KEYS[number], {"x": content(number)})
    assert KEYS[0] not in store.entries()


def test_an_encoding_in_a_store_too_small_for_it_resumes(tmp_path):
    """Its own finished blocks were evicted one by one, and a killed run began again."""
    encoder = Pixels(str(tmp_path / "log"))
    store = Store(tmp_path / "store", limit_bytes=1000)
    stopped = False

    def stop(done, total, message):
        nonlocal stopped
        if done == 10 * ROWS and not stopped:
            stopped = True
            raise KeyboardInterrupt

    with in_use():
        with pytest.raises(KeyboardInterrupt):
            encode(DIGITS, encoder, store, stop, block_rows=ROWS)
        encode(DIGITS, encoder, store, stop, block_rows=ROWS)
    assert (len(lines(encoder.log)), computed_twice(encoder.log)) == (N_BLOCKS, 0)


def test_a_waiting_job_keeps_its_inputs(one_worker, tmp_path):
    store = Store(tmp_path / "small", limit_bytes=2 * SIZE)
    one_worker.store = store
    for number in range(3):
        store.put(KEYS[number], {"x": content(number)})
    assert store.entries() == [KEYS[2]]
    gate = tmp_path / "gate"
    job = one_worker.submit(digest_of("job"), sum_of, title="t", inputs=[KEYS[2]], gate=str(gate))
    other = Store(store.root, limit_bytes=2 * SIZE)
    for number in range(4, 9):
        other.put(KEYS[number], {"x": content(number)})
    gate.touch()
    assert job.wait(120).state == "done", job.status().error
    assert job.result().metadata == {"sum": 2.0 * SIZE / 4}
    until(lambda: not list((store.root / "pins").iterdir()))


def sum_of(context, *, inputs, gate):
    until(lambda: Path(gate).exists())
    context.put({}, {"sum": float(context.store.get(inputs[0]).arrays["x"].sum())})


def test_a_worker_with_another_folder_does_not_begin(one_worker, tmp_path, monkeypatch):
    """As on a machine that does not mount the store: this must be noticed before the work, not after it."""
    monkeypatch.setattr(one_worker.store, "identity", lambda: "that of a folder elsewhere")
    job = one_worker.submit(digest_of("elsewhere"), sum_of, title="t", inputs=[], gate=str(tmp_path))
    status = job.wait(120)
    assert (status.state, "a folder that all workers share" in status.error) == ("failed", True)
