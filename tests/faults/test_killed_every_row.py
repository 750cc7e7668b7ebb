"""Scores of every row, killed with SIGKILL while neighbours are searched: the next start searches what is
missing.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relcore.compare.scoring import ExactScores
from relcore.represent.representations import ProjectionSpec
from relcore.runs.store import Store
from relcore.scores import lists
from relcore.scores.lists import ExactSearch
from relcore.spaces.space import LatentSpace
from tests.waiting import until

N, BLOCK, KEPT = 2000, 10, 20
PROGRAM = """
import sys
from relcore.scores import lists
from relcore.runs.store import Store
import pytest

from tests.faults.test_killed_every_row import BLOCK, spaces, task
lists.QUERIES_PER_BLOCK = BLOCK
task().run(spaces(), Store(sys.argv[1]))
"""


def spaces():
    rng = np.random.default_rng(0)
    first = rng.standard_normal((N, 8))
    ids = [f"r{i}" for i in range(N)]
    return [
        LatentSpace(X, ids, name=name)
        for name, X in (("first", first), ("second", first + rng.standard_normal((N, 8))))
    ]


def task():
    return ExactScores.of("absolute", (), ProjectionSpec(), 5, "paper")


@pytest.mark.slow
def test_a_killed_run_resumes_after_its_last_block(tmp_path, monkeypatch):
    store, whole = Store(tmp_path), task().run(spaces()).scores
    arguments = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    killed = subprocess.Popen(arguments, cwd=Path(__file__).parents[2])
    until(lambda: len(store.entries()) >= KEPT or killed.poll() is not None)
    killed.kill()
    assert killed.wait() == -9
    kept, searched, nearest = len(store.entries()), [], ExactSearch.nearest
    assert kept >= KEPT
    monkeypatch.setattr(lists, "QUERIES_PER_BLOCK", BLOCK)
    monkeypatch.setattr(
        ExactSearch, "nearest", lambda self, *given: searched.append(1) or nearest(self, *given)
    )
    found = task().run(spaces(), store).scores
    assert len(searched) == 2 * N // BLOCK - kept
    assert found == whole
    assert not store.entries()
