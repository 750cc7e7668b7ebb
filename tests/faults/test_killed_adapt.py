"""relscope adapt, killed with SIGKILL while it maps: the same command continues, and the target is whole
and right.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from relcore.migrate import adapters as adapter_file
from relcore.migrate.adapters import card_of
from tests.relcore.migrate.adapters import NEW, Made, pairs
from tests.waiting import until

ROOT = Path(__file__).parents[2]
N = 200_000


def staged(folder):
    state = folder / "mapped.npy.adapting" / "state.json"
    return json.loads(state.read_text())["done"] if state.exists() else 0


def start(folder):
    command = [sys.executable, "-m", "relcore", "adapt", "bridge", "rows.npy", "mapped.npy", "--quiet"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "RELSCOPE_STORE": str(folder / "store")}
    return subprocess.Popen(command, cwd=folder, env=environment)


def test_a_killed_command_continues(tmp_path):
    adapter = Made("affine").fit(*pairs())
    adapter_file.export(adapter, card_of(adapter, *pairs(), method="made"), tmp_path / "bridge")
    rows = np.random.default_rng(0).normal(size=(N, NEW)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    killed = start(tmp_path)
    until(lambda: staged(tmp_path) >= 1 or killed.poll() is not None)
    killed.kill()
    assert killed.wait() == -9
    assert not (tmp_path / "mapped.npy").exists()
    assert staged(tmp_path) >= 1
    assert start(tmp_path).wait() == 0
    np.testing.assert_allclose(np.load(tmp_path / "mapped.npy"), adapter.transform(rows), atol=1e-6)
    assert not (tmp_path / "mapped.npy.adapting").exists()
