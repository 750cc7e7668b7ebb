import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from relcore.base.errors import SpaceError
from relcore.sharded.space import ShardedSpace, is_sharded, paired
from tests.relcore.sharded.folders import X, write_arrow, write_feather, write_npy, write_parquet

SIZES = (30, 50, 20)


@pytest.mark.parametrize("write", [write_npy, write_parquet, write_arrow, write_feather])
def test_a_folder_is_the_rows_of_its_shards(tmp_path, write):
    names = [f"row-{row}" for row in range(100)]
    labels = ["ab"[row % 2] for row in range(100)]
    write(tmp_path / "s", X, SIZES, ids=names, labels=labels)
    space = ShardedSpace.open(tmp_path / "s")
    assert (space.n, space.width, [shard.n for shard in space.shards]) == (100, X.shape[1], list(SIZES))
    whole = space.whole()
    np.testing.assert_array_equal(whole.vectors, X)
    assert whole.ids.tolist() == names
    assert whole.labels.tolist() == labels
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
    np.testing.assert_array_equal(space.whole().vectors, X)
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
    write_npy(tmp_path / "half", X, SIZES, ids=[str(row) for row in range(100)])
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
    (tmp_path / "ids.parquet").unlink(missing_ok=True)
    write_parquet(tmp_path / "p", X, SIZES)
    path = tmp_path / "p" / "part-00002.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SpaceError, match=r"part-00002\.parquet: expected a table"):
        ShardedSpace.open(tmp_path / "p")


def test_as_many_ids_as_rows(tmp_path):
    write_npy(tmp_path, X, SIZES, ids=[str(row) for row in range(100)])
    path = tmp_path / "part-00001.ids.txt"
    for text, got in ((path.read_text() + "one\n", "more"), (path.read_text()[:-3], "fewer")):
        path.write_text(text)
        with pytest.raises(
            SpaceError, match=f"part-00001.npy: expected 50 ids or labels beside it, one per row, got {got}"
        ):
            list(ShardedSpace.open(tmp_path).shards[1].blocks(7))


def test_pairs_need_the_same_rows_per_shard(tmp_path):
    write_npy(tmp_path / "a", X, SIZES)
    write_npy(tmp_path / "b", X, (30, 40, 30))
    write_npy(tmp_path / "c", X[:80], SIZES[:2])
    a, b, c = (ShardedSpace.open(tmp_path / name) for name in "abc")
    with pytest.raises(
        SpaceError,
        match=r"50 rows in 'part-00001.npy' of 'a' and 40 rows in 'part-00001.npy' of 'b'; write both",
    ):
        paired(a, b)
    with pytest.raises(
        SpaceError, match=r"got none of 'c' and 20 rows in 'part-00002.npy' of 'a'; write both"
    ):
        paired(c, a)


def test_an_arrow_file_that_was_cut_behind_a_batch_is_no_shorter_shard(tmp_path):
    (tmp_path / "s").mkdir()
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])})
    for number in range(2):
        with pa.ipc.new_file(tmp_path / "s" / f"part-{number}.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=40)
    assert ShardedSpace.open(str(tmp_path / "s")).n == 200
    path = tmp_path / "s" / "part-1.arrow"
    content = path.read_bytes()
    for size in range(16, len(content), 8):
        path.write_bytes(content[:size])
        with pytest.raises(SpaceError, match=r"part-1\.arrow: expected a table"):
            ShardedSpace.open(str(tmp_path / "s"))


def test_a_name_with_two_colons_is_no_chain_of_file_systems(tmp_path):
    import fsspec

    write_npy(tmp_path / "old", X, SIZES)
    write_npy(tmp_path / "old::v2", 2 * X, SIZES)
    np.testing.assert_array_equal(ShardedSpace.open(str(tmp_path / "old::v2")).whole().vectors, 2 * X)
    with fsspec.filesystem("memory").open("/colons/a::b.npy", "wb") as stream:
        np.save(stream, X)
    with pytest.raises(SpaceError, match="without '::'"):
        ShardedSpace.open("memory://colons")


@pytest.mark.parametrize("write", [write_npy, write_parquet, write_arrow])
def test_a_shard_that_is_written_again_is_not_read_under_the_digest_before(tmp_path, write):
    ids = [f"{row:03}" for row in range(100)]
    write(tmp_path / "s", X, SIZES, ids=ids)
    before = ShardedSpace.open(tmp_path / "s")
    reading = before.shards[1].blocks(10)
    next(reading)
    write(tmp_path / "s", X + 1, SIZES, ids=ids)
    for read in (before.whole, lambda: before.shards[0].take(np.arange(1)), lambda: list(reading)):
        with pytest.raises(SpaceError, match="that was written again; run the command again"):
            read()
    after = ShardedSpace.open(tmp_path / "s")
    assert after.digest != before.digest
    np.testing.assert_array_equal(after.whole().vectors, X + 1)
    if write is write_npy:
        (tmp_path / "s" / "part-00001.ids.txt").write_text("\n".join(map(str, range(1000, 1050))))
        with pytest.raises(SpaceError, match=r"part-00001\.npy: .* that was written again"):
            after.whole()
