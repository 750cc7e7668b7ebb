"""A space of a float16 map gives the numbers of the same values held in memory as float32, and is never
read as a whole.
"""

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import SIMILARITIES, STRATEGIES
from relcore.compare.exact import ExactScores
from relcore.compare.neighbours import neighbour_agreement, neighbours_of
from relcore.maps.pane_maps import pca_pair
from relcore.maps.reduction import ReductionSpec, reduce_spaces
from relcore.represent.anchors import diagnose_anchors, select_anchors
from relcore.represent.projection import RelativeProjection
from relcore.represent.similarity import mean_row, unit_rows
from relcore.scores.comparison import (
    REPRESENTATIONS,
    ProjectionSpec,
    cautions,
    held_out,
    represent,
    score_pair,
    score_table,
)
from relcore.scores.scoring import score_forms
from relcore.spaces.rows import MappedRows
from relcore.spaces.space import LatentSpace, RowNumbers, match

N, D = 1500, 12
LABELS = [f"class {row % 5}" for row in range(N)]


@pytest.fixture(scope="module")
def halves():
    """Two related spaces as float16, with a zero row in the second."""
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


def test_a_float32_map_is_the_array_itself(halves, tmp_path):
    np.save(tmp_path / "x.npy", halves[0].astype(np.float32))
    there = np.load(tmp_path / "x.npy", mmap_mode="r")
    space = LatentSpace(there, list(map(str, range(N))))
    assert np.shares_memory(space.vectors, there)
    assert space.digest == LatentSpace(halves[0].astype(np.float32), list(map(str, range(N)))).digest


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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_anchors_are_the_same(on_disk, in_memory, strategy):
    found, held = (
        select_anchors(spaces[0], 20, strategy, random_state=3).tolist() for spaces in (on_disk, in_memory)
    )
    assert found == held


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_projections_are_the_same(on_disk, in_memory, similarity):
    made = [
        RelativeProjection(similarity).fit(space.vectors, anchors=np.arange(10)).transform(space.vectors)
        for space in (on_disk[0], in_memory[0])
    ]
    np.testing.assert_array_equal(*made)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_scores_are_the_same(on_disk, in_memory, representation):
    anchors = [str(row) for row in range(20, 60)]
    scores = []
    for spaces in (on_disk, in_memory):
        pair = match(*spaces)
        made = represent(pair, representation, anchors, ProjectionSpec())
        split = held_out(pair, anchors, representation)
        scores.append(score_table({"made": score_pair(*made, split, labels=pair.source.labels)}))
    pd.testing.assert_frame_equal(*scores, rtol=1e-6)


def test_absolute_scores_of_maps_that_were_not_cut_are_the_same(on_disk, in_memory):
    """Both spaces without the zero row, so that `match` hands the maps themselves on."""
    made = []
    for spaces in (on_disk, in_memory):
        pair = match(spaces[0], spaces[0])
        split = held_out(pair, (), "absolute")
        made.append(score_table({"absolute": score_pair(pair.source.vectors, pair.target.vectors, split)}))
    pd.testing.assert_frame_equal(*made, rtol=1e-6)


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


def test_exact_scores_are_the_same(on_disk, in_memory):
    anchors = tuple(str(row) for row in range(20, 60))
    task = ExactScores("relative", anchors, ProjectionSpec(), 5, "mutual", ("jaccard", "cka"))
    found = [task.run([spaces[0], spaces[0]]).scores for spaces in (on_disk, in_memory)]
    pd.testing.assert_frame_equal(*(score_table({"relative": scores}) for scores in found), rtol=1e-6)


def test_neighbours_cautions_and_diagnoses_are_the_same(on_disk, in_memory):
    anchors = [str(row) for row in range(20, 60)]
    tables, lists, found, told = [], [], [], []
    for spaces in (on_disk, in_memory):
        pair = match(spaces[0], spaces[0])
        tables.append(neighbour_agreement(pair, np.arange(50), k=5))
        lists.append(neighbours_of(pair, "3"))
        found.append(diagnose_anchors(spaces[0], anchors))
        told.append(cautions(pair, anchors))
    assert tables[0].equals(tables[1])
    assert lists[0].equals(lists[1])
    assert told[0] == told[1]
    np.testing.assert_array_equal(found[0].singular_values, found[1].singular_values)
    assert found[0].coverage == found[1].coverage


def test_means_directions_and_pictures_are_the_same(on_disk, in_memory):
    pairs = [
        (mean_row(one.vectors), unit_rows(one.vectors), unit_rows(one.vectors, mean_row(one.vectors)))
        for one in (on_disk[0], in_memory[0])
    ]
    for found, held in zip(*pairs, strict=True):
        np.testing.assert_array_equal(found, held)
    maps = [reduce_spaces([space.vectors], ReductionSpec("pca"))[0] for space in (on_disk[0], in_memory[0])]
    np.testing.assert_allclose(*maps, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_named(halves, tmp_path, wrong):
    rows = halves[0].copy()
    rows[[3, 1400], 2] = wrong
    np.save(tmp_path / "x.npy", rows)
    with pytest.raises(SpaceError, match="2 of 1500 rows hold NaN or infinite values, first '3', '1400'"):
        LatentSpace(np.load(tmp_path / "x.npy", mmap_mode="r"), RowNumbers(N))


def test_another_number_of_row_numbers_is_refused(halves):
    with pytest.raises(SpaceError, match="expected 1500 ids, one per row, got 1499"):
        LatentSpace(halves[0], RowNumbers(N - 1))


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
