"""Files that are exchanged while they are read: the check of one never lets another one in."""

import os
import pickle
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from relcore.base.environment import CONFINED
from relcore.base.errors import SpaceError
from relcore.files import confined
from relcore.files.reading import load_space
from relcore.stores.index import StoredRows, StorePlace, Target, open_index, write_index
from tests.relcore.files import pickled

CASES = pickled.CASES | pickled.SLOW
SECONDS = float(os.environ.get("RELSCOPE_TEST_SWAPS", "10"))
CHANGED = "expected a file that stays as it was when it was opened"


def written(path, value, n=40):
    vectors = np.full((n, 4), value, np.float32)
    if path.suffix == ".csv":
        frame = pd.DataFrame(vectors, columns=list("abcd"))
        frame.insert(0, "id", [f"w{row}" for row in range(n)])
        frame.to_csv(path, index=False)
    elif path.suffix == ".npy":
        np.save(path, vectors)
    else:
        write_index(
            StorePlace(path.suffix[1:], str(path)),
            [StoredRows(list(map(str, range(n))), vectors)],
            Target(n, 4),
        )
    return path


@pytest.fixture(params=["replaced", "written again"])
def exchange(request, tmp_path):
    """A function that puts another file of the same form in the place of one."""

    def exchange(path):
        other = written(tmp_path / f"other{path.suffix}", 2.0, n=80)
        if request.param == "replaced":
            os.replace(other, path)
        else:
            path.write_bytes(other.read_bytes())

    return exchange


@pytest.mark.parametrize(
    ("name", "map_from"), [("x.npy", 1), ("x.npy", 1 << 30), ("x.parquet", 1), ("x.csv", 1)]
)
def test_a_file_that_is_exchanged_between_two_steps_of_reading_is_refused(
    name, map_from, exchange, tmp_path, monkeypatch
):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    path, usual, steps = written(tmp_path / name, 1.0), confined.stream, []

    def stream(*given, **named):
        value = yield from usual(*given, **named)
        if not steps:
            exchange(path)
        steps.append(given)
        return value

    monkeypatch.setattr(confined, "stream", stream)
    with pytest.raises(SpaceError, match=CHANGED):
        load_space(path, map_from=map_from)
    assert len(load_space(path, map_from=map_from)) == 80


@pytest.mark.parametrize("kind", ["npy", "parquet", "faiss"])
def test_an_index_that_is_exchanged_after_it_was_opened_is_refused(kind, exchange, tmp_path):
    path = written(tmp_path / f"x.{kind}", 1.0)
    with open_index(StorePlace(kind, str(path))) as index:
        exchange(path)
        with pytest.raises(SpaceError, match=CHANGED):
            list(index.blocks())


SWAPPER = """
import os, random, shutil, sys, time
target, usual, bad, in_place = sys.argv[1:]
print("started", flush=True)
while True:
    for source in (usual, bad):
        if in_place == "True":
            shutil.copyfile(source, target)
            time.sleep(random.choice((0, 0.02, 0.5)))
        shutil.copyfile(source, usual + ".copy")
        os.replace(usual + ".copy", target)
        time.sleep(random.choice((0, 0.02, 0.5)))
"""


class Touch:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.slow
@pytest.mark.parametrize("confines", ["1", "0"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_runs_while_a_file_and_one_with_code_are_exchanged(name, confines, tmp_path, monkeypatch):
    """For RELSCOPE_TEST_SWAPS seconds in all. Without the confined process no file is cut while it is read: maps
    would end this process."""
    monkeypatch.setenv(CONFINED, confines)
    case, canary, seen = CASES[name], tmp_path / "canary", Counter()
    code = pickle.dumps(Touch(canary), protocol=2)
    pickle.loads(code).close()  # the control
    canary.unlink()
    path = case.write(tmp_path, None)
    usual, bad = tmp_path / "usual", tmp_path / "bad"
    usual.write_bytes(path.read_bytes())
    bad.write_bytes(case.write(tmp_path, code).read_bytes())
    assert code in bad.read_bytes()
    places = map(str, (path, usual, bad, confines == "1" and not case.mapped))
    with subprocess.Popen([sys.executable, "-c", SWAPPER, *places], stdout=subprocess.PIPE) as swapper:
        swapper.stdout.readline()
        end = time.monotonic() + SECONDS / (2 * len(CASES))
        while time.monotonic() < end or len(seen) < 2:
            try:
                case.load(tmp_path)
                seen["read"] += 1
            except SpaceError:
                seen["refused"] += 1
        swapper.kill()
    print(f"{name}, {dict(seen)}")
    assert not canary.exists()
