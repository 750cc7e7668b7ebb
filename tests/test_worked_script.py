"""The worked script: from two files to a stitched model, its numbers those of the core."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relcore.files.reading import load_space
from relcore.stitch.stitching import StitchSpec, stitch_matrix

SCRIPT = Path(__file__).parents[1] / "assets" / "examples" / "two_files_to_a_stitched_model.py"


def run(folder, *paths):
    return subprocess.run([sys.executable, SCRIPT, *paths], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def files(tmp_path):
    """Four classes in 10 dimensions, and the same rows rotated and in another order."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 4, 300)
    vectors = rng.normal(size=(300, 10)) + 2 * rng.normal(size=(4, 10))[labels]
    rotation, _ = np.linalg.qr(rng.normal(size=(10, 10)))
    ids, order = np.array([f"i{row}" for row in range(300)]), rng.permutation(300)
    names = np.array(["a", "b", "c", "d"])[labels]
    np.savez(tmp_path / "one.npz", vectors=vectors, ids=ids, labels=names)
    np.savez(tmp_path / "two.npz", vectors=(vectors @ rotation)[order], ids=ids[order], labels=names[order])
    return "one.npz", "two.npz"


def test_the_script_stitches_two_files_as_the_core_does(files, tmp_path):
    ran = run(tmp_path, *files)
    assert ran.returncode == 0, ran.stderr
    told = re.search(r"not stitched (\S+); stitched: absolute (\S+), relative (\S+), 128 anchors", ran.stdout)
    spec = StitchSpec(("absolute", "relative"), n_anchors=128)
    result = stitch_matrix([load_space(tmp_path / name) for name in files], spec)
    absolute, relative = (result.matrix(method)[0] for method in spec.methods)
    assert told.groups() == tuple(
        f"{score:.3f}" for score in (absolute[0, 0], absolute[1, 0], relative[1, 0])
    )
    assert relative[1, 0] > absolute[1, 0] + 0.2
