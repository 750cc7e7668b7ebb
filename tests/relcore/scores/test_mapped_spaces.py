"""A space of a float16 map gives the numbers of the same values held in memory as float32, and is never
read as a whole.
"""

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.base.rows import MappedRows
from relcore.maps.pane_maps import pca_pair
from relcore.maps.reduction import ReductionSpec
from relcore.represent.translation import REPRESENTATIONS, ProjectionSpec
from relcore.scores.comparison import score_forms, score_table
from relcore.spaces.ids import RowNumbers
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N, D = 1500, 12
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
    folder, spaces = tmp_path_factory.mktemp("maps"), []
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


def test_vectors_stay_on_disk_and_digests_are_of_the_values(on_disk, in_memory):
    for mapped, held in zip(on_disk, in_memory, strict=True):
        assert isinstance(mapped.vectors, MappedRows)
        assert mapped.digest == held.digest
        np.testing.assert_array_equal(mapped.norms, held.norms)
        assert (len(mapped), mapped.dimension, mapped.zero_rows.tolist()) == (N, D, held.zero_rows.tolist())
        assert mapped.rows(["7", "1499", "0"]).tolist() == [7, 1499, 0]
        assert mapped.ids.tolist() == held.ids.tolist()


def test_part_of_a_map_is_in_memory(on_disk, in_memory):
    rows = np.array([5, 0, 7])
    part, held = (spaces[1].take(rows) for spaces in (on_disk, in_memory))
    assert part.digest == held.digest
    assert part.ids.tolist() == ["5", "0", "7"]
    mask = in_memory[0].vectors[:, 0] > 0
    assert on_disk[0].take(mask).digest == in_memory[0].take(mask).digest


def test_equal_ids_pair_without_a_copy_or_an_index(on_disk, in_memory):
    pair = match(on_disk[0], on_disk[0])
    assert pair.source.vectors is on_disk[0].vectors
    assert "index" not in on_disk[0].__dict__
    found, held = match(*on_disk), match(*in_memory)
    assert (found.n_zero, len(found), found.ids.tolist()) == (1, N - 1, held.ids.tolist())
    mixed = match(on_disk[0], in_memory[1])
    assert mixed.target.digest == held.target.digest


def test_scores_by_block_and_pictures_of_panes_are_the_same(on_disk, in_memory):
    anchors = [str(row) for row in range(20, 60)]
    scores, pictures = [], []
    for spaces in (on_disk, in_memory):
        pair = match(spaces[0], spaces[0])
        scores.append(
            score_table(score_forms(pair, REPRESENTATIONS, anchors, ProjectionSpec(), n_queries=200))
        )
        drawn = pca_pair(
            pair, np.arange(0, N, 3), "relative", anchors, ProjectionSpec(), ReductionSpec("pca")
        )
        pictures.append(np.concatenate(drawn[0]))
    pd.testing.assert_frame_equal(*scores, rtol=1e-6)
    np.testing.assert_allclose(*pictures, rtol=1e-5, atol=1e-6)


def test_numbers_that_are_not_finite_are_named(halves, tmp_path):
    rows = halves[0].copy()
    rows[[3, 1400], 2] = np.nan
    np.save(tmp_path / "x.npy", rows)
    with pytest.raises(SpaceError, match="2 of 1500 rows hold NaN or infinite values, first '3', '1400'"):
        LatentSpace(np.load(tmp_path / "x.npy", mmap_mode="r"), RowNumbers(N))


@pytest.mark.parametrize("view", [lambda rows: rows, lambda rows: rows[10:], np.asarray])
def test_a_map_whose_file_is_written_again_is_refused_and_a_replaced_file_is_not(halves, tmp_path, view):
    path = tmp_path / "x.npy"
    np.save(path, halves[0])
    space = LatentSpace(view(np.load(path, mmap_mode="r")), RowNumbers(len(view(halves[0]))))
    first = space.vectors[:2]
    np.save(tmp_path / "y.npy", halves[0] + 1)
    (tmp_path / "y.npy").rename(path)
    np.testing.assert_array_equal(space.vectors[:2], first)
    again = LatentSpace(view(np.load(path, mmap_mode="r")), RowNumbers(len(view(halves[0]))))
    np.save(path, halves[0][:700])
    with pytest.raises(SpaceError, match=r"x\.npy: expected a file that stays as it was"):
        _ = again.vectors
