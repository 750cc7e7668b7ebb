"""A space of a float16 map gives the numbers of the same values held in memory as float32, and is never
read as a whole.
"""

import numpy as np
import pandas as pd
import pytest

from relcore.maps.pane_maps import pca_pair
from relcore.maps.principal_axes import ReductionSpec
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec
from relcore.scores.comparison import score_representations
from relcore.scores.score_report import score_table
from relcore.spaces.ids import RowNumbers
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N = 1500
D = 12
LABELS = [f"class {row % 5}" for row in range(N)]


@pytest.fixture(scope="module")
def halves():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) + 1.5
    Y = X @ np.linalg.qr(rng.standard_normal((D, D)))[0] + 0.3 * rng.standard_normal((N, D))
    Y[7] = 0
    return X.astype(np.float16), Y.astype(np.float16)


@pytest.fixture(scope="module")
def on_disk(halves, tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    spaces = []
    for name, rows in zip("XY", halves, strict=True):
        np.save(folder / f"{name}.npy", rows)
        there = np.load(folder / f"{name}.npy", mmap_mode="r")
        spaces.append(LatentSpace(there, RowNumbers(N), name=name, labels=LABELS))
    return spaces


@pytest.fixture(scope="module")
def in_memory(halves):
    ids = list(map(str, range(N)))
    return [
        LatentSpace(rows.astype(np.float32), ids, name=name, labels=LABELS)
        for name, rows in zip("XY", halves, strict=True)
    ]


def test_equal_ids_pair_without_a_copy_or_an_index(on_disk, in_memory):
    pair = match(on_disk[0], on_disk[0])
    assert pair.source.vectors is on_disk[0].vectors
    assert "index" not in on_disk[0].__dict__
    found = match(*on_disk)
    held = match(*in_memory)
    assert (found.n_zero, len(found), found.ids.tolist()) == (1, N - 1, held.ids.tolist())
    mixed = match(on_disk[0], in_memory[1])
    assert mixed.target.digest == held.target.digest


def test_scores_by_block_and_pictures_of_panes_are_same(on_disk, in_memory):
    anchors = [str(row) for row in range(20, 60)]
    scores = []
    pictures = []
    rows = np.arange(0, N, 3)
    spec = ProjectionSpec()
    for spaces in (on_disk, in_memory):
        pair = match(spaces[0], spaces[0])
        scores.append(score_table(score_representations(pair, REPRESENTATIONS, anchors, spec, n_queries=200)))
        drawn = pca_pair(pair, rows, "relative", anchors, spec, ReductionSpec("pca"))
        pictures.append(np.concatenate(drawn[0]))
    pd.testing.assert_frame_equal(*scores, rtol=1e-6)
    np.testing.assert_allclose(*pictures, rtol=1e-5, atol=1e-6)
