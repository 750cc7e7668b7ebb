"""Folders of shards: the rows they are, samples of them, and what is written by shard."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import load, need_access
from relcore.represent.representations import ProjectionSpec
from relcore.represent.strategies import select_anchors
from relcore.runs.store import Store
from relcore.runs.work import Context
from relcore.sharded.runner import Runner
from relcore.sharded.space import ShardedSpace, is_sharded, shard_pairs
from relcore.sharded.survey import sample_job, sample_shards, sample_spec
from relcore.sharded.writing import project_shards
from relcore.spaces.split import row_keys
from tests.relcore.sharded.folders import X, whole, write_arrow, write_feather, write_npy, write_parquet

SIZES = (30, 50, 20)
IDS = np.array([f"row-{row}" for row in range(100)])
LABELS = np.array([f"class {row % 7}" for row in range(100)])


@pytest.mark.parametrize("write", [write_npy, write_parquet, write_arrow, write_feather])
def test_a_folder_is_the_rows_of_its_shards(tmp_path, write):
    write(tmp_path / "s", X, SIZES, ids=IDS, labels=LABELS)
    space = ShardedSpace.open(tmp_path / "s")
    assert (space.n, space.width, [shard.n for shard in space.shards]) == (100, X.shape[1], list(SIZES))
    in_memory = whole(space)
    np.testing.assert_array_equal(in_memory.vectors, X)
    assert in_memory.ids.tolist() == IDS.tolist()
    assert in_memory.labels.tolist() == LABELS.tolist()
    rows = np.array([49, 0, 31, 31])
    np.testing.assert_array_equal(space.shards[1].take(rows), X[30 + rows])
    np.testing.assert_array_equal(space.shards[1].take(rows[:0]), X[:0])


def test_an_address_that_fsspec_opens(tmp_path):
    import fsspec

    memory = fsspec.filesystem("memory")
    for number, rows in enumerate((X[:40], X[40:])):
        with memory.open(f"/shards-in-memory/part-{number}.npy", "wb") as stream:
            np.save(stream, rows)
    space = ShardedSpace.open("memory://shards-in-memory")
    np.testing.assert_array_equal(whole(space).vectors, X)
    assert is_sharded("memory://shards-in-memory")
    assert not is_sharded("memory://nothing-here")


def test_what_a_folder_must_not_be(tmp_path):
    with pytest.raises(SpaceError, match="expected a folder of shards"):
        ShardedSpace.open(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpaceError, match=r"expected a folder with shards \(\.npy"):
        ShardedSpace.open(tmp_path / "empty")
    write_npy(tmp_path / "mixed", X, SIZES)
    parquet.write_table(pa.table({"id": ["a"]}), tmp_path / "mixed" / "more.parquet")
    with pytest.raises(SpaceError, match=r"one format, got \.npy, \.parquet"):
        ShardedSpace.open(tmp_path / "mixed")
    write_npy(tmp_path / "wide", X, SIZES)
    np.save(tmp_path / "wide" / "part-00003.npy", np.ones((4, 5)))
    with pytest.raises(SpaceError, match=r"one width, got 6 in 'part-00000.npy' and 5 in 'part-00003.npy'"):
        ShardedSpace.open(tmp_path / "wide")
    assert not is_sharded(str(tmp_path / "wide"))
    write_npy(tmp_path / "half", X, SIZES, ids=IDS)
    (tmp_path / "half" / "part-00001.ids.txt").unlink()
    with pytest.raises(SpaceError, match=r"ids in all shards or in none, 'part-00001.npy' has none"):
        ShardedSpace.open(tmp_path / "half")


def test_a_shard_that_was_cut_short_is_named(tmp_path):
    write_npy(tmp_path, X, SIZES)
    path = tmp_path / "part-00001.npy"
    space = ShardedSpace.open(tmp_path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(SpaceError, match=r"part-00001\.npy.*cut short"):
        ShardedSpace.open(tmp_path)
    with pytest.raises(SpaceError, match=r"part-00001\.npy"):
        list(space.shards[1].blocks())
    write_parquet(tmp_path / "p", X, SIZES)
    path = tmp_path / "p" / "part-00002.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SpaceError, match=r"part-00002\.parquet: expected a table"):
        ShardedSpace.open(tmp_path / "p")


def test_pairs_need_the_same_rows_per_shard(tmp_path):
    write_npy(tmp_path / "a", X, SIZES)
    write_npy(tmp_path / "b", X, (30, 40, 30))
    write_npy(tmp_path / "c", X[:80], SIZES[:2])
    a, b, c = (ShardedSpace.open(tmp_path / name) for name in "abc")
    with pytest.raises(
        SpaceError,
        match=r"50 rows in 'part-00001.npy' of 'a' and 40 rows in 'part-00001.npy' of 'b'; write both",
    ):
        shard_pairs(a, b)
    with pytest.raises(
        SpaceError, match=r"got none of 'c' and 20 rows in 'part-00002.npy' of 'a'; write both"
    ):
        shard_pairs(c, a)


def test_arrow_file_that_was_cut_behind_batch_is_no_shorter_shard(tmp_path):
    (tmp_path / "s").mkdir()
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])})
    for number in range(2):
        with pa.ipc.new_file(tmp_path / "s" / f"part-{number}.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=40)
    assert ShardedSpace.open(str(tmp_path / "s")).n == 200
    path = tmp_path / "s" / "part-1.arrow"
    content = path.read_bytes()
    for size in range(16, len(content), 64):
        path.write_bytes(content[:size])
        with pytest.raises(SpaceError, match=r"part-1\.arrow: expected a table"):
            ShardedSpace.open(str(tmp_path / "s"))


def test_name_with_two_colons_is_no_chain_of_file_systems(tmp_path):
    import fsspec

    write_npy(tmp_path / "old", X, SIZES)
    write_npy(tmp_path / "old::v2", 2 * X, SIZES)
    np.testing.assert_array_equal(whole(ShardedSpace.open(str(tmp_path / "old::v2"))).vectors, 2 * X)
    with fsspec.filesystem("memory").open("/colons/a::b.npy", "wb") as stream:
        np.save(stream, X)
    with pytest.raises(SpaceError, match="without '::'"):
        ShardedSpace.open("memory://colons")


@pytest.mark.parametrize("write", [write_npy, write_arrow])
def test_shard_that_is_written_again_is_not_read_under_digest_before(tmp_path, write):
    write(tmp_path / "s", X, SIZES, ids=IDS)
    before = ShardedSpace.open(tmp_path / "s")
    reading = before.shards[1].blocks(10)
    next(reading)
    write(tmp_path / "s", X + 1, SIZES, ids=IDS)
    for read in (lambda: whole(before), lambda: before.shards[0].take(np.arange(1)), lambda: list(reading)):
        with pytest.raises(SpaceError, match="that was written again; run the command again"):
            read()
    after = ShardedSpace.open(tmp_path / "s")
    assert after.digest != before.digest
    np.testing.assert_array_equal(whole(after).vectors, X + 1)
    if write is write_npy:
        (tmp_path / "s" / "part-00001.ids.txt").write_text("\n".join(map(str, range(1000, 1050))))
        with pytest.raises(SpaceError, match=r"part-00001\.npy: .* that was written again"):
            whole(after)


ROWS = X.copy()
ROWS[[4, 50]] = 0


def sample(folder, n_rows=40, also=()):
    return sample_shards(ShardedSpace.open(folder), n_rows, Runner(Store(folder.parent / "store")), also)


@pytest.mark.parametrize("sizes", [(30, 50, 20), (1, 99)])
def test_it_does_not_depend_on_how_rows_are_cut_into_shards(tmp_path, sizes):
    found = sample(write_npy(tmp_path / "cut", ROWS, sizes, ids=IDS, labels=LABELS))
    kept = np.delete(np.arange(100), [4, 50])  # zero rows have no direction
    wanted = np.sort(kept[np.argsort(row_keys(IDS[kept], "sample"))[:40]])
    assert found.ids.tolist() == IDS[wanted].tolist()
    assert found.labels.tolist() == LABELS[wanted].tolist()
    np.testing.assert_array_equal(found.vectors, ROWS[wanted])
    one = sample(write_npy(tmp_path / "one shard", ROWS, (100,), ids=IDS, labels=LABELS))
    assert found.digest == one.digest  # which is all that a task knows of its spaces, beside their names


def test_seeds_are_in_it(tmp_path):
    folder = write_npy(tmp_path / "a", ROWS, (30, 50, 20), ids=IDS)
    without = sample(folder)
    absent = [one for one in IDS[5:] if one not in without.index and one != "row-50"][:3]
    found = sample(folder, also=absent)
    assert set(found.ids) == set(without.ids) | set(absent)


N = 3000
RNG = np.random.default_rng(5)
A, B = (RNG.normal(size=(N, width)).astype(np.float32) for width in (6, 4))
WORDS = [f"w{row * 7919 % N:05}" for row in range(N)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    return Store()


def kept(store, space, n_rows):
    spec = sample_spec(space, n_rows)
    sample_job(Context(spec.option("key"), store), place=space.place, n_rows=n_rows)
    return spec


def test_sample_is_loaded_from_store_until_shard_changes(tmp_path, store):
    folder = write_npy(tmp_path / "a", A, [1000, 2000], WORDS)
    space = ShardedSpace.open(str(folder))
    spec = kept(store, space, 500)
    found = load(spec, store)
    assert (len(found), found.name) == (500, "a")
    np.testing.assert_array_equal(found.vectors, sample_shards(space, 500, Runner(store)).vectors)
    assert sample_spec(ShardedSpace.open(str(folder)), 500) == spec  # the second opening finds it
    assert dict(spec.options) == {"key": spec.option("key"), "rows": "500", "of": "3000"}
    np.save(folder / "part-00001.npy", 2 * A[1000:])
    with pytest.raises(
        SpaceError, match="expected the shards that its sample was drawn from, got others; draw it again"
    ):
        load(spec, store)
    again = sample_spec(ShardedSpace.open(str(folder)), 500)
    assert again.option("key") != spec.option("key")


def test_shared_app_opens_samples_of_open_folders_only(tmp_path, store, monkeypatch):
    spec, secret = (
        kept(store, ShardedSpace.open(str(write_npy(tmp_path / place, rows, [1000, 2000], WORDS))), 500)
        for place, rows in (("data/a", A), ("secret", B))
    )
    monkeypatch.setenv(access.ENVIRONMENT, "1")
    monkeypatch.setenv(access.DATA, str(tmp_path / "data"))
    assert len(load(spec, store)) == 500
    with pytest.raises(SpaceError, match="is not open to this session"):
        need_access(secret)
    stolen = type(spec)(
        "sample", spec.name, options=(("key", secret.option("key")), ("rows", "500"), ("of", "3000"))
    )
    with pytest.raises(SpaceError, match="got another result"):
        load(stolen, store)


@pytest.fixture
def runner(tmp_path):
    return Runner(Store(tmp_path / "store"))


@pytest.mark.parametrize(("write", "whiten"), [(write_npy, True), (write_parquet, False)])
def test_projection_by_shard_is_that_of_the_whole(tmp_path, runner, write, whiten):
    rows = X.copy() + 2
    rows[17] = 0
    write(tmp_path / "s", rows, SIZES, ids=IDS, labels=LABELS)
    source = ShardedSpace.open(tmp_path / "s")
    spec = ProjectionSpec("cosine" if whiten else "angular")
    written = project_shards(source, 9, str(tmp_path / "goal"), runner, spec, whiten=whiten, random_state=3)
    in_memory = whole(source)
    ids = select_anchors(in_memory, 9, random_state=3)
    anchors = in_memory.rows(ids)
    expected = spec.projection(whiten).fit(in_memory.vectors, anchors=anchors).transform(in_memory.vectors)
    found = ShardedSpace.open(tmp_path / "goal")
    assert (written.n, written.width, written.anchors.tolist()) == (100, 9, anchors.tolist())
    assert [shard.n for shard in found.shards] == list(SIZES)
    np.testing.assert_allclose(whole(found).vectors, expected, atol=1e-6)
    assert whole(found).ids.tolist() == IDS.tolist()
    assert whole(found).labels.tolist() == LABELS.tolist()
    by_id = project_shards(source, list(ids), str(tmp_path / "again"), runner, spec, whiten=whiten)
    np.testing.assert_array_equal(by_id.anchors, anchors)


def test_a_file_that_is_gone_costs_its_shard(tmp_path, runner):
    write_npy(tmp_path / "s", X, SIZES)
    source = ShardedSpace.open(tmp_path / "s")
    goal = tmp_path / "goal"
    project_shards(source, 5, str(goal), runner)
    kept = whole(ShardedSpace.open(goal)).vectors
    (goal / "part-00001.npy").unlink()
    project_shards(source, 5, str(goal), runner)
    assert runner.done[-1][1].computed == 1
    np.testing.assert_array_equal(whole(ShardedSpace.open(goal)).vectors, kept)
    with pytest.raises(SpaceError, match="expected a new or empty folder"):
        project_shards(source, 6, str(goal), runner)
    assert any("project: 3 shards, 2 of them found in the store" in line for line in runner.describe())
