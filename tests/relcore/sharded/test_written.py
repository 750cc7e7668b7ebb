import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.migrate.adapters import card_of, export, load
from relcore.represent.similarity import select_anchors
from relcore.represent.translation import ProjectionSpec
from relcore.runs.store import Store
from relcore.sharded.operations import Runner, adapt_shards, project_shards
from relcore.sharded.space import ShardedSpace
from tests.relcore.sharded.folders import X, write_arrow, write_npy, write_parquet

SIZES = (30, 50, 20)
IDS = [f"row-{row}" for row in range(100)]


@pytest.fixture
def runner(tmp_path):
    return Runner(Store(tmp_path / "store"))


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize(("write", "form"), [(write_npy, ""), (write_parquet, "npy"), (write_arrow, "")])
def test_projection_by_shard_is_that_of_the_whole(tmp_path, runner, write, form, whiten):
    rows = X.copy() + 2
    rows[17] = 0
    labels = ["ab"[row % 2] for row in range(100)]
    write(tmp_path / "s", rows, SIZES, ids=IDS, labels=labels)
    source = ShardedSpace.open(tmp_path / "s")
    spec = ProjectionSpec("cosine" if whiten else "angular")
    written = project_shards(
        source, 9, str(tmp_path / "goal"), runner, spec, whiten=whiten, form=form, random_state=3
    )
    whole = source.whole()
    ids = select_anchors(whole, 9, random_state=3)
    anchors = whole.rows(ids)
    expected = spec.projection(whiten).fit(whole.vectors, anchors=anchors).transform(whole.vectors)
    found = ShardedSpace.open(tmp_path / "goal")
    assert (written.n, written.width, written.anchors.tolist()) == (100, 9, anchors.tolist())
    assert [shard.n for shard in found.shards] == list(SIZES)
    np.testing.assert_allclose(found.whole().vectors, expected, atol=1e-6)
    assert found.whole().ids.tolist() == IDS
    assert found.whole().labels.tolist() == labels
    by_id = project_shards(source, list(ids), str(tmp_path / "again"), runner, spec, whiten=whiten)
    np.testing.assert_array_equal(by_id.anchors, anchors)


def test_a_file_that_is_gone_costs_its_shard(tmp_path, runner):
    write_npy(tmp_path / "s", X, SIZES)
    source, goal = ShardedSpace.open(tmp_path / "s"), tmp_path / "goal"
    project_shards(source, 5, str(goal), runner)
    kept = ShardedSpace.open(goal).whole().vectors
    (goal / "part-00001.npy").unlink()
    project_shards(source, 5, str(goal), runner)
    assert runner.done[-1][1].computed == 1
    np.testing.assert_array_equal(ShardedSpace.open(goal).whole().vectors, kept)
    with pytest.raises(SpaceError, match="expected a new or empty folder"):
        project_shards(source, 6, str(goal), runner)
    assert any("project: 3 shards, 2 of them found in the store" in line for line in runner.describe())


def test_an_adapter_by_shard_maps_as_it_maps_the_whole(tmp_path, runner):
    old = X @ np.random.default_rng(2).normal(size=(6, 5)).astype(np.float32)
    for name in ("ridge", "whitened"):
        adapter = ADAPTERS[name].load()().fit(X[:60], old[:60])
        export(adapter, card_of(adapter, X[:60], old[:60], method=name), tmp_path / name)
        loaded = load(tmp_path / name)
        write_parquet(tmp_path / "new", X, SIZES, ids=IDS)
        goal = tmp_path / f"goal-{name}"
        written = adapt_shards(loaded, ShardedSpace.open(tmp_path / "new"), str(goal), runner)
        assert (written.n, written.width) == (100, 5)
        np.testing.assert_allclose(ShardedSpace.open(goal).whole().vectors, loaded.transform(X), atol=1e-6)
    with pytest.raises(SpaceError, match="of the old model, of width 5, got 6"):
        adapt_shards(
            loaded, ShardedSpace.open(tmp_path / "new"), str(tmp_path / "other"), runner, side="corpus"
        )


def test_anchors_must_be_rows(tmp_path, runner):
    rows = X.copy()
    rows[4] = 0
    write_npy(tmp_path / "s", rows, SIZES)
    source = ShardedSpace.open(tmp_path / "s")
    for anchors, said in (
        (["3", "100"], "1 unknown: '100'"),
        (["03"], "1 unknown: '03'"),
        (["3", "3"], "2, 1 of them distinct"),
        (["4"], "'4' are zero vectors"),
        ([], "got 0"),
        (100, "1 … 99"),
    ):
        with pytest.raises(SpaceError, match=said):
            project_shards(source, anchors, str(tmp_path / "goal"), runner)
    with pytest.raises(SpaceError, match="got 'quantised'"):
        project_shards(source, 5, str(tmp_path / "goal"), runner, ProjectionSpec("quantised"))
    assert not (tmp_path / "goal").exists()
