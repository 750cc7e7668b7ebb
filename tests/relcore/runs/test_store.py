"""The store never holds a part of an entry, whatever is killed. The time left is estimated well on known sequences."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from relcore.base.writing import own_name
from relcore.runs.entries import StoreError, digest_of
from relcore.runs.store import Store
from relcore.runs.work import TimeLeft

ROOT = Path(__file__).parents[3]
KEY = "a" * 32
OTHER = "b" * 32


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def partial_files(store):
    return list((store.root / "partial").iterdir())


@pytest.mark.parametrize("dtype", ["float16", "int64", "bool"])
def test_arrays_come_back_as_they_went_in(store, dtype):
    arrays = {
        "matrix": np.arange(12).reshape(3, 4).astype(dtype),
        "empty": np.zeros((0, 3), dtype),
        "scalar": np.array(1, dtype),
    }
    store.put(KEY, arrays, {"title": "Größe", "k": [1, 2.5, None]})
    entry = store.get(KEY)
    assert entry.metadata == {"title": "Größe", "k": [1, 2.5, None]}
    assert entry.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert entry.arrays[name].dtype == array.dtype
        assert entry.arrays[name].shape == array.shape
        np.testing.assert_array_equal(entry.arrays[name], array)
        assert not entry.arrays[name].flags.writeable


def test_matrix_is_written_in_blocks_and_read_as_map(store):
    rows = np.random.default_rng(0).standard_normal((10, 3), dtype=np.float32)
    others = {
        "counts": np.arange(10),
        "ids": np.frombuffer(b"abc", np.uint8),
        "labels": np.zeros(0, np.uint8),
    }
    blocks = (rows[start : start + 4] for start in (0, 4, 8))
    store.put(KEY, others, {"file": "Größe"}, (blocks, (10, 3)))
    for entry in (store.mapped(KEY), store.get(KEY)):  # the latter compares the checksums
        assert entry.metadata == {"file": "Größe"}
        assert entry.arrays.keys() == {"vectors", *others}
        for name, array in {"vectors": rows, **others}.items():
            np.testing.assert_array_equal(entry.arrays[name], array)
            assert entry.arrays[name].dtype == array.dtype
    found = store.mapped(KEY).arrays["vectors"]
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    assert found.flags.aligned
    assert partial_files(store) == []


def test_has_remove_size_entries(store):
    assert (store.has(KEY), store.get(KEY)) == (False, None)
    store.put(KEY, {"x": np.zeros(1000, np.float32)})
    store.put(OTHER, {})
    assert store.has(KEY)
    assert set(store.entries()) == {KEY, OTHER}
    assert 4000 < store.size() < 5000
    for key in (KEY, KEY, OTHER):
        store.remove(key)
    assert (store.entries(), store.size()) == ([], 0)


@pytest.mark.parametrize("key", ["../../etc/passwd", "A" * 32])
def test_keys_that_are_no_digests_are_refused(store, key):
    for operation in (store.has, store.get, store.remove, lambda key: store.put(key, {})):
        with pytest.raises(ValueError, match="hexadecimal"):
            operation(key)


@pytest.mark.parametrize("damage", ["truncated", "foreign"])
def test_a_corrupt_file_is_missing_and_goes(store, damage):
    store.put(KEY, {"x": np.ones(1000)})
    path = store.root / "entries" / KEY[:2] / f"{KEY}.safetensors"
    if damage == "foreign":  # a safetensors file, but not one of ours
        from safetensors.numpy import save_file

        save_file({"x": np.ones(2)}, path)
    else:
        path.write_bytes(path.read_bytes()[:-10])
    assert store.get(KEY) is None
    assert not path.exists()
    store.put(KEY, {"x": np.ones(2)})
    assert store.get(KEY).arrays["x"].sum() == 2


def test_the_least_recently_used_entries_go_first(tmp_path):
    store = Store(tmp_path, limit_bytes=3_500)
    keys = [digit * 32 for digit in "abc"]
    for age, key in zip((30, 20, 10), keys, strict=True):
        store.put(key, {"x": np.zeros(1000, np.uint8)})
        path = store.root / "entries" / key[:2] / f"{key}.safetensors"
        os.utime(path, (time.time() - age, time.time() - age))
    store.get(keys[0])
    store.put("d" * 32, {"x": np.zeros(1000, np.uint8)})
    assert store.entries()[0] == "d" * 32
    assert set(store.entries()) == {keys[0], keys[2], "d" * 32}
    assert store.size() <= 3_500
    store.put(KEY, {"x": np.zeros(5_000)})  # the newest stays even above the limit
    assert store.entries() == [KEY]


def test_a_disk_that_fills_meanwhile_loses_nothing(store, monkeypatch):
    store.put(KEY, {"x": np.ones(3)})
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(StoreError, match="No space left on device"):
        store.put(KEY, {"x": np.zeros(3)})
    assert store.get(KEY).arrays["x"].sum() == 3
    assert partial_files(store) == []


def test_leftovers_of_dead_writers_are_swept_and_those_of_living_ones_kept(store):
    living = own_name()
    host, pid, began, token = living.split("~")
    dead = "~".join((host, pid, f"{began}0", token))  # its number has another process now
    for name in (living, dead, "elsewhere~1~0~0"):
        (store.root / "partial" / name).write_text("half")
    Store(store.root)
    assert {path.name for path in partial_files(store)} == {living, "elsewhere~1~0~0"}


def test_readers_among_racing_writers_see_whole_entries(store):
    stop = threading.Event()
    whole = set()

    def write(value):
        while not stop.is_set():
            store.put(KEY, {"x": np.full(20_000, value, np.int32)})

    store.put(KEY, {"x": np.zeros(20_000, np.int32)})
    writers = [threading.Thread(target=write, args=(value,)) for value in (1, 2)]
    for thread in writers:
        thread.start()
    try:
        for _ in range(500):
            (value,) = np.unique(store.get(KEY).arrays["x"])
            whole.add(int(value))
    finally:
        stop.set()
        for thread in writers:
            thread.join()
    assert {1, 2} <= whole  # both were seen at work
    assert store.has(KEY)
    assert partial_files(store) == []


def test_writer_killed_half_way_leaves_old_entry(store):
    store.put(KEY, {"x": np.ones(3)})
    script = (
        "import os, sys, numpy as np\n"
        "from relcore.runs.store import Store\n"
        "os.fsync = lambda descriptor: os.kill(os.getpid(), 9)\n"
        f"Store(sys.argv[1]).put({KEY!r}, {{'x': np.zeros(3)}})"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(store.root)], cwd=ROOT)
    assert killed.returncode == -9
    assert len(partial_files(store)) == 1
    assert Store(store.root).get(KEY).arrays["x"].sum() == 3
    assert partial_files(store) == []


@dataclass(frozen=True)
class Spec:
    k: int = 10
    names: tuple = ("a",)


class Namesake(Spec):
    pass


def test_digests_tell_apart_what_differs():
    parts = [1, 1.0, True, "1", None, "None", (1,), ((1,),), {"1": 1}, {1: 1}, ("a", "b"), "ab"]
    parts += [Spec(), Spec(k=11), Namesake(), {"k": 10, "names": ("a",)}, {"dict": 1}, ("dict", ("dict", 1))]
    parts += [np.ones(2), np.ones(2, np.float32), np.ones((1, 2))]
    assert len({digest_of(part) for part in parts}) == len(parts)
    assert digest_of("a", "b") != digest_of("ab")


def test_digests_are_the_same_in_every_process_and_version():
    assert digest_of("x", {"a": (2.5, None), "b": 1}) == digest_of("x", {"b": 1, "a": (2.5, None)})
    assert digest_of("x", {"b": 1, "a": (2.5, None)}) == "b6ca79d9f9995d6df34057e765466b4a"


def told(reports, expected=None, every=0.5, until=None):
    """The estimates at all times of a grid: a page looks twice a second. `reports` are (time, done,
    total), ascending.
    """
    left = TimeLeft(expected)
    reports = list(reports)
    found = {}
    for step in range(int((until or reports[-1][0]) / every) + 1):
        while reports and reports[0][0] <= step * every:
            now, done, total = reports.pop(0)
            left.hear(done, total, now)
        found[step * every] = left.left(step * every)
    return found


EVEN = [(second, second, 40) for second in range(1, 40)]


def test_even_progress_alone_gives_time_that_is_left():
    found = told(EVEN)
    assert found[0.0] is None
    assert all(left == pytest.approx(40 - now) for now, left in found.items() if now >= 1)


@pytest.mark.parametrize("expected", [20, 40, 80])
def test_expected_time_is_told_first_and_progress_corrects_it_without_jumps(expected):
    found = told(EVEN, expected)
    assert found[0.0] == expected
    assert found[20.0] == pytest.approx(20, rel=0.25)
    assert found[35.0] == pytest.approx(5, rel=0.15)
    rises = [found[now + 0.5] - found[now] for now in list(found)[:-1]]
    assert max(rises) <= (1.5 if expected < 40 else 1e-9), "an estimate that was long enough only falls"


def test_no_job_is_at_zero_seconds_for_long():
    stalled = told([(1, 1, 40), (2, 2, 40)], until=300)
    assert stalled[2.0] == pytest.approx(38)
    assert stalled[300.0] is None
    at_zero = [now for now, left in stalled.items() if left is not None and left < 1]
    assert len(at_zero) <= 1
    assert told([(1, 40, 40)], until=60)[30.0] is None, "all is counted, yet the job has not ended"
