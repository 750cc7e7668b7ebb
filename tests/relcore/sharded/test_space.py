import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from relcore.base.errors import SpaceError
from relcore.sharded import shard
from relcore.sharded.space import ShardedPair, ShardedSpace, is_sharded
from tests.relcore.sharded.folders import X, write_arrow, write_feather, write_npy, write_parquet

SIZES = (30, 50, 20)


@pytest.mark.parametrize("write", [write_npy, write_parquet, write_arrow, write_feather])
@pytest.mark.parametrize("ids", [False, True])
def test_a_folder_is_the_rows_of_its_shards(tmp_path, write, ids):
    names = [f"row-{row}" for row in range(100)] if ids else None
    labels = ["ab"[row % 2] for row in range(100)]
    write(tmp_path / "s", X, SIZES, ids=names, labels=labels)
    space = ShardedSpace.open(tmp_path / "s")
    assert (space.n, space.width, [shard.n for shard in space.shards]) == (100, X.shape[1], list(SIZES))
    whole = space.whole()
    np.testing.assert_array_equal(whole.vectors, X)
    assert whole.ids.tolist() == (names or [str(row) for row in range(100)])
    assert whole.labels.tolist() == labels
    rows = np.array([49, 0, 31, 31])
    np.testing.assert_array_equal(space.shards[1].take(rows), X[30 + rows])
    np.testing.assert_array_equal(space.shards[1].take(rows[:0]), X[:0])


@pytest.mark.parametrize("write", [write_npy, write_parquet, write_arrow, write_feather])
def test_blocks_have_the_rows_that_were_asked_for(tmp_path, write):
    write(tmp_path / "s", X, SIZES, groups=7)
    for part in ShardedSpace.open(tmp_path / "s").shards:
        sizes = [len(block.vectors) for block in part.blocks(12)]
        assert sizes[:-1] == [12] * (len(sizes) - 1)
        assert sum(sizes) == part.n
        assert [block.first for block in part.blocks(12)] == list(range(0, part.n, 12))


def test_shards_are_in_natural_order_and_empty_ones_are_left_out(tmp_path):
    for number in (10, 2, 1):
        np.save(tmp_path / f"part-{number}.npy", np.full((2, 3), number, np.float16))
    np.save(tmp_path / "part-5.npy", np.empty((0, 3), np.float32))
    (tmp_path / "notes.txt").write_text("how it was made")
    space = ShardedSpace.open(tmp_path)
    assert space.whole().vectors[:, 0].tolist() == [1, 1, 2, 2, 10, 10]
    assert [shard.start for shard in space.shards] == [0, 2, 4]


def test_the_digest_changes_when_a_shard_is_written_again(tmp_path):
    write_npy(tmp_path, X, SIZES)
    before = ShardedSpace.open(tmp_path)
    assert before.digest == ShardedSpace.open(tmp_path).digest
    np.save(tmp_path / "part-00001.npy", X[:50] + 1)
    after = ShardedSpace.open(tmp_path)
    assert before.digest != after.digest
    assert [one.stamp == two.stamp for one, two in zip(before.shards, after.shards, strict=True)] == [
        True,
        False,
        True,
    ]


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


def test_a_first_row_without_a_vector_is_named(tmp_path):
    for number, rows in enumerate(([[1.0, 2.0]], [None, [1.0, 2.0]])):
        parquet.write_table(
            pa.table({"vector": pa.array(rows, pa.list_(pa.float32()))}), tmp_path / f"part-{number}.parquet"
        )
    with pytest.raises(SpaceError, match=r"part-1\.parquet, row 1: expected a vector, got none"):
        ShardedSpace.open(tmp_path)


@pytest.mark.parametrize("write", [write_parquet, write_arrow])
def test_rows_by_number_are_looked_for_in_small_blocks(tmp_path, monkeypatch, write):
    """Of wide rows, too: 65,536 rows of 4,096 numbers would be 1 GB."""
    read = []
    real = shard.matrix_of
    monkeypatch.setattr(
        shard, "matrix_of", lambda name, column, *rest: read.append(len(column)) or real(name, column, *rest)
    )
    monkeypatch.setattr("relcore.sharded.shard.BLOCK_BYTES", 10 * 4 * X.shape[1])
    space = ShardedSpace.open(write(tmp_path, X, SIZES))
    np.testing.assert_array_equal(space.shards[0].take(np.arange(30)), X[:30])
    assert max(read) == 10


def test_names_that_differ_in_zeros_are_in_one_order(tmp_path, monkeypatch):
    names = ["part-1.npy", "part-01.npy", "part-001.npy"]
    for number, name in enumerate(names):
        np.save(tmp_path / name, np.full((1, 2), number))
    found = []
    for order in (names, names[::-1]):
        facts = {name: {"size": (tmp_path / name).stat().st_size} for name in order}
        monkeypatch.setattr("relcore.sharded.space.listed", lambda place, facts=facts: facts)
        found.append([shard.name for shard in ShardedSpace.open(tmp_path).shards])
    assert found[0] == found[1]


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
        SpaceError, match=r"50 rows in 'part-00001.npy' of 'a' and 40 in 'part-00001.npy' of 'b'; write both"
    ):
        ShardedPair(a, b)
    with pytest.raises(
        SpaceError, match=r"got 2 in 'c' and 3 in 'a': 'c' has no partner for 'part-00002.npy'; add it"
    ):
        ShardedPair(c, a)


def test_without_fsspec_files_are_files_and_a_folder_of_shards_says_what_to_install(tmp_path, monkeypatch):
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.eye(3, dtype=np.float32))
    other = tmp_path / "notes"
    other.mkdir()
    (other / "a.txt").write_text("no shard")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert not is_sharded(str(tmp_path / "a.npy"))
    assert not is_sharded(str(other))
    assert not is_sharded("word2vec-novels")
    with pytest.raises(SpaceError, match=r"relscope\[cluster\]"):
        is_sharded(str(tmp_path))


def test_an_empty_id_is_refused(tmp_path):
    ids = [f"row-{row}" for row in range(100)]
    ids[41] = ""
    write_npy(tmp_path, X, SIZES, ids=ids)
    with pytest.raises(SpaceError, match=r"part-00001\.npy, row 12: expected an id, got an empty line"):
        list(ShardedSpace.open(tmp_path).shards[1].blocks(7))


@pytest.mark.parametrize("other", ["a.NPY", "A.npy"])
def test_shards_whose_names_differ_in_case_alone_are_refused(tmp_path, other):
    for name in ("a.npy", other, "b.npy"):
        with (tmp_path / name).open("wb") as stream:
            np.save(stream, np.ones((3, 2), np.float32))
    if len(list(tmp_path.iterdir())) < 3:
        pytest.skip("this disk takes names that differ in case for one")
    with pytest.raises(SpaceError, match=r"names differ, not only in case, got .*; rename one"):
        ShardedSpace.open(tmp_path)
