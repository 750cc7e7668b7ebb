import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.runs.store import Store
from relcore.sharded import stitch
from relcore.sharded.passes import Runner
from relcore.sharded.space import ShardedSpace
from relcore.sharded.stitch import stitch_shards
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from tests.relcore.sharded.folders import write_npy, write_parquet

N, SIZES = 900, (250, 400, 150, 100)
IDS = [f"row-{row}" for row in range(N)]
METHODS = ("relative", "procrustes", "absolute")


def folders(tmp_path, alike=True, unlabelled=3):
    rng = np.random.default_rng(6)
    numbers = rng.integers(0, 4, N)
    labels = [("red", "green", "blue", "grey")[number] for number in numbers]
    labels[5 : 5 + unlabelled] = [""] * unlabelled
    X = rng.normal(size=(N, 7)) + 2 * rng.normal(size=(4, 7))[numbers]
    Y = X @ rng.normal(size=(7, 5)) if alike else rng.normal(size=(N, 5))
    write_npy(tmp_path / "a", X.astype(np.float32), SIZES, ids=IDS, labels=labels)
    write_parquet(tmp_path / "b", Y.astype(np.float32), SIZES, ids=IDS)
    return [ShardedSpace.open(tmp_path / name) for name in "ab"]


def test_answers_by_shard_are_those_of_one_machine(tmp_path):
    spaces = folders(tmp_path)
    spec = StitchSpec(METHODS, n_anchors=25, random_states=(3,))
    found = stitch_shards(spaces, spec, Runner(Store(tmp_path / "store")))
    wanted = stitch_matrix([space.whole() for space in spaces], spec)
    assert (found.n_test, found.encoders, found.classes) == (wanted.n_test, wanted.encoders, wanted.classes)
    assert found.n_trained == found.n_train == N - 3 - found.n_test
    for method in METHODS:
        for metric in ("accuracy", "f1"):
            np.testing.assert_allclose(
                found.matrix(method, metric), wanted.matrix(method, metric)[0], atol=1e-6
            )
            assert found.chance(metric) == pytest.approx(wanted.chance(metric), abs=1e-6)
        np.testing.assert_array_equal(found.confusion[method][0, 1], wanted.confusion(method, 0, 1))
    assert np.isnan(found.matrix("absolute")[0, 1])  # of other widths


def test_heads_of_a_sample_know_the_classes_and_unrelated_spaces_do_not(tmp_path):
    spec = StitchSpec(("relative",), n_anchors=25)
    (tmp_path / "far").mkdir()
    found = stitch_shards(folders(tmp_path), spec, Runner(Store(tmp_path / "store")), most_trained=200)
    assert (found.n_trained, found.n_train > 600) == (200, True)
    assert found.matrix("relative").min() > found.chance() + 0.2
    apart = stitch_shards(folders(tmp_path / "far", alike=False), spec, Runner(Store(tmp_path / "store")))
    assert apart.matrix("relative")[1, 0] < apart.chance() + 4 * np.sqrt(0.25 / apart.n_test)


def test_what_cannot_be_stitched(tmp_path):
    spaces, runner = folders(tmp_path), Runner(Store(tmp_path / "store"))
    with pytest.raises(SpaceError, match="expected logistic heads"):
        stitch_shards(spaces, StitchSpec(METHODS, "mlp"), runner)
    with pytest.raises(SpaceError, match="two encoders or more"):
        stitch_shards(spaces[:1], StitchSpec(METHODS), runner)
    with pytest.raises(SpaceError, match="expected labels to train heads on"):
        stitch_shards(spaces[1:] * 2, StitchSpec(METHODS), runner)
    other = (["red"] * N, "row-0")
    write_parquet(tmp_path / "b", np.ones((N, 5), np.float32), SIZES, ids=IDS, labels=other[0])
    with pytest.raises(SpaceError, match=r"part-00000.npy: expected the same labels in all spaces"):
        stitch_shards([spaces[0], ShardedSpace.open(tmp_path / "b")], StitchSpec(METHODS), runner)


def test_labels_of_the_second_space_alone(tmp_path):
    """Or of the first one in some shards, and of the second in the others."""
    first, _ = folders(tmp_path)
    labels = first.whole().labels.tolist()
    vectors = [
        np.concatenate([block.vectors for shard in space.shards for block in shard.blocks()])
        for space in folders(tmp_path)
    ]
    spec, found = StitchSpec(("relative",), n_anchors=25), []
    for name, half in (("plain", False), ("half", True)):
        one = write_npy(tmp_path / name, vectors[0], SIZES, ids=IDS, labels=labels if half else None)
        other = write_parquet(tmp_path / f"{name}-b", vectors[1], SIZES, ids=IDS, labels=labels)
        if half:
            (one / "part-00001.labels.txt").unlink()
        spaces = [ShardedSpace.open(one), ShardedSpace.open(other)]
        found.append(stitch_shards(spaces, spec, Runner(Store(tmp_path / "store"))))
    wanted = stitch_matrix(
        [ShardedSpace.open(tmp_path / name).whole() for name in ("plain", "plain-b")], spec
    )
    for one in found:
        np.testing.assert_allclose(
            one.matrix("relative"), wanted.matrix("relative", "accuracy")[0], atol=1e-6
        )


def test_classes_and_rows_that_no_heads_can_be_tested_on(tmp_path, monkeypatch):
    spaces, runner = folders(tmp_path), Runner(Store(tmp_path / "store"))
    with pytest.raises(SpaceError, match="rows to test on, got none of 897 labelled rows"):
        stitch_shards(spaces, StitchSpec(METHODS, n_anchors=25, test_fraction=1e-9), runner)
    monkeypatch.setattr(stitch, "_MOST_COUNTS", 2**2 * 3 * 4**2 - 1)  # of two spaces and three methods
    with pytest.raises(SpaceError, match="at most 3 classes to count answers by shard, got 4"):
        stitch_shards(spaces, StitchSpec(METHODS, n_anchors=25), runner)
    write_npy(tmp_path / "a", np.ones((N, 7), np.float32), SIZES, ids=IDS, labels=IDS)
    with pytest.raises(
        SpaceError, match="at most 6 classes to count answers by shard, got 250"
    ):  # of the first shard
        stitch_shards([ShardedSpace.open(tmp_path / "a"), spaces[1]], StitchSpec(METHODS), runner)


def test_rows_that_were_written_in_two_shards_are_refused(tmp_path):
    spaces, ids = folders(tmp_path), [*IDS[:890], *IDS[:10]]
    for name, space in zip("ab", spaces, strict=True):
        write_npy(tmp_path / f"{name}2", space.whole().vectors, SIZES, ids=ids, labels=["x", "y"] * 450)
    spaces = [ShardedSpace.open(tmp_path / name) for name in ("a2", "b2")]
    with pytest.raises(
        SpaceError, match=r"occurs more than once, in 'part-00000.npy' and in 'part-00003.npy'"
    ):
        stitch_shards(spaces, StitchSpec(METHODS, n_anchors=25), Runner(Store(tmp_path / "store")))
