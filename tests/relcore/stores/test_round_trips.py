"""Every kind of store gives back what was written to it: vectors, ids, payload. None is mocked."""

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from relcore.base.environment import CONFINED
from relcore.base.errors import SpaceError
from relcore.files import formats
from relcore.stores.index import StoredRows, StorePlace, Target, find_rows, load_rows, open_index, write_index
from tests.lazily import Lazily
from tests.relcore.stores.stores import KINDS, WIDTH, WITH_PAYLOAD, N, ids_of, made, whole, written

lancedb = Lazily("lancedb")


def in_order(rows):
    order = sorted(range(len(rows.ids)), key=rows.ids.__getitem__)
    return StoredRows(
        [rows.ids[row] for row in order],
        rows.vectors[order],
        tuple(rows.payload[row] for row in order if rows.payload),
    )


@pytest.fixture(scope="module", params=KINDS)
def there(request, tmp_path_factory):
    """The kind of a store, its place and the rows that were written to it."""
    rows = made(payload=request.param in WITH_PAYLOAD)
    return request.param, written(request.param, tmp_path_factory.mktemp(request.param), rows), rows


def test_rows_come_back_as_they_were_written_from_any_row_on(there):
    _, place, rows = there
    with open_index(place) as index:
        assert (index.n, index.width) == (N, WIDTH)
        every = ids_of(index)
        found = whole(index)
        truth = in_order(rows)
        assert sorted(whole(index, start=33).ids) == sorted(every[33:])
    assert (sorted(every), found.ids, found.payload) == (truth.ids, truth.ids, truth.payload)
    np.testing.assert_allclose(found.vectors, truth.vectors, atol=1e-6)


def test_rows_are_found_by_their_ids_and_few_others_are_read(there):
    kind, place, rows = there
    wanted = [rows.ids[row] for row in (40, 3, 17)]
    found = find_rows(place, [*wanted, "not 'there'", "7"])
    assert sorted(found.ids) == sorted(wanted)
    truth = [rows.ids.index(one) for one in found.ids]
    np.testing.assert_allclose(found.vectors, rows.vectors[truth], atol=1e-6)
    with pytest.raises(SpaceError, match="expected rows of the ids 'a', 'b', …, got none"):
        find_rows(place, ["a", "b"])
    with open_index(place) as index:
        n_read = sum(len(one.ids) for one in index.holding(rows.ids[3:5]))
    assert n_read == {"npy": N, "parquet": 20}.get(kind, 2)  # parquet: a row group


def test_bounded_number_of_rows_is_loaded_as_space(there):
    kind, place, rows = there
    space = load_rows(place, limit=21)
    assert (len(space), space.payload is not None) == (21, kind in WITH_PAYLOAD)
    truth = [rows.ids.index(one) for one in space.ids]
    np.testing.assert_allclose(space.vectors, rows.vectors[truth], atol=1e-6)
    with pytest.raises(SpaceError, match=r"more than max_bytes.*\(limit\)"):
        load_rows(place, max_bytes=1000)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_added_only_to_databases(kind, tmp_path):
    place = written(kind, tmp_path, made())
    more = StoredRows(["a", "b", "c"], made(3).vectors, ())
    if kind != "lancedb":
        with pytest.raises(SpaceError, match=r"choose another name"):
            write_index(place, [more], Target(3, WIDTH, add=True))
        return
    write_index(place, [more], Target(3, WIDTH, add=True))
    with open_index(place) as index:
        assert index.n == N + 3
        assert {"a", "b", "c", "doc-0"} <= set(ids_of(index))
    with pytest.raises(SpaceError, match=f"rows of width {WIDTH}, as those that are there, got 4"):
        write_index(place, [made(3, 4)], Target(3, 4, add=True))


@pytest.mark.parametrize("kind", ["npy", "faiss"])
def test_ids_that_a_stopped_run_left_are_replaced_by_the_same_only(kind, tmp_path):
    """The ids are put in place before the vectors. Other ids may be somebody's file."""
    rows = made()
    place = written(kind, tmp_path, rows)
    beside = place.path.with_name(f"{place.path.stem}.ids.txt")
    ids = beside.read_text()
    place.path.unlink()
    beside.write_text("mine")
    with pytest.raises(SpaceError, match="got others; choose another name"):
        written(kind, tmp_path, rows)
    assert (beside.read_text(), place.path.exists()) == ("mine", False)
    beside.write_text(ids)
    written(kind, tmp_path, rows)
    assert (beside.read_text(), place.path.exists()) == (ids, True)


@pytest.mark.parametrize(
    ("built", "ids"),
    [("Flat", None), ("HNSW4,Flat", np.arange(N) * 5 + 2), ("IVF4,Flat", np.arange(N) * 5 + 2)],
)
def test_index_of_faiss_gives_its_vectors_and_ids(built, ids, tmp_path):
    rows = made()
    path = tmp_path / "old.faiss"
    index = faiss.index_factory(WIDTH, built, faiss.METRIC_INNER_PRODUCT)
    if ids is not None and "IVF" not in built:
        index = faiss.IndexIDMap(index)
    index.train(rows.vectors)
    index.add(rows.vectors) if ids is None else index.add_with_ids(rows.vectors, ids)
    faiss.write_index(index, str(path))
    before = path.read_bytes()
    with open_index(StorePlace("faiss", str(path))) as opened:
        blocks = list(opened.blocks(10))
        assert np.array_equal(np.concatenate([one.vectors for one in blocks]), rows.vectors)
        assert ids_of(opened) == [str(one) for one in (range(N) if ids is None else ids)]
    assert path.read_bytes() == before


def half(content):
    return content[: len(content) // 2]


def of_a_trillion_lists(content):
    at = 4 + 33  # behind the kind and the header: the number of lists
    assert content[at : at + 8] == (4).to_bytes(8, "little")
    return content[:at] + (10**12).to_bytes(8, "little") + content[at + 8 :]


@pytest.mark.parametrize("damage", [half, of_a_trillion_lists])
def test_a_damaged_ivf_index_ends_another_process(damage, tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_CONFINED", "1")
    index = faiss.index_factory(WIDTH, "IVF4,Flat")
    index.train(made().vectors)
    index.add(made().vectors)
    (tmp_path / "cut.faiss").write_bytes(damage(faiss.serialize_index(index).tobytes()))
    with pytest.raises(SpaceError, match=r"expected a \.faiss file that can be read"):
        open_index(StorePlace("faiss", str(tmp_path / "cut.faiss")))


def test_parquet_file_with_several_vectors_needs_choice(tmp_path):
    rows = made()
    path = tmp_path / "two.parquet"
    lists = [one.tolist() for one in rows.vectors]
    table = pa.table({"id": rows.ids, "old": lists, "new": [one[::-1] for one in lists], "title": ["x"] * N})
    parquet.write_table(table, path, row_group_size=10)
    with pytest.raises(SpaceError, match="one column with a vector per row, got 'old', 'new'; choose one"):
        open_index(StorePlace("parquet", str(path)))
    with open_index(StorePlace("parquet", str(path), "new")) as index:
        assert np.array_equal(whole(index).vectors[:, ::-1], in_order(rows).vectors)
    with pytest.raises(SpaceError, match="expected a column 'zz'"):
        open_index(StorePlace("parquet", str(path), "zz"))


def test_small_store_that_unpacks_to_much_is_refused(tmp_path, monkeypatch):
    rows = StoredRows(list(map(str, range(2_000))), np.zeros((2_000, 64), np.float32))
    place = written("parquet", tmp_path, rows)
    parquet.write_table(parquet.read_table(place.path), place.path, compression="zstd")
    monkeypatch.setattr(formats, "_FREE_BYTES", 1 << 10)
    monkeypatch.setattr(formats, "_MOST_TIMES", 2)
    with pytest.raises(SpaceError, match="more than max_bytes"):
        load_rows(place)


def test_the_confined_process_reads_the_same(there, monkeypatch):
    _, place, rows = there
    monkeypatch.setenv(CONFINED, "1")
    with open_index(place) as index:
        found = whole(index)
        truth = in_order(rows)
    assert (found.ids, found.payload) == (truth.ids, truth.payload)
    np.testing.assert_allclose(found.vectors, truth.vectors, atol=1e-6)


def test_table_of_lancedb_that_unpacks_to_gigabytes_ends_its_process(tmp_path, monkeypatch):
    place = StorePlace("lancedb", str(tmp_path / "base"), "news")
    n = 2000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array(["x" * (1 << 20)]))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(2 * n, np.float32)), 2)
    table = pa.table({"id": pa.array(map(str, range(n))), "text": text, "vector": vectors})
    lancedb.connect(place.where).create_table("news", table)
    monkeypatch.setenv(CONFINED, "1")
    with pytest.raises(SpaceError, match=r"too much memory|more memory than"):
        load_rows(place)


@pytest.mark.parametrize("kept", [None, 100])
def test_table_of_lancedb_without_part_of_its_data_is_refused(kept, tmp_path):
    place = written("lancedb", tmp_path, made())
    [path] = place.path.glob("*/data/*.lance")
    content = path.read_bytes()
    path.unlink()
    if kept is not None:
        path.write_bytes(content[:kept])
    with pytest.raises(SpaceError, match="expected a LanceDB table that can be used"):
        load_rows(place)


def test_rows_are_not_added_to_a_table_that_holds_an_id_twice(tmp_path):
    place = StorePlace("lancedb", str(tmp_path / "base"), "news")
    rows = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(8, np.float32)), 2)
    table = pa.table({"id": ["a", "b", "a", "c"], "vector": rows})
    lancedb.connect(place.where).create_table("news", table)
    with pytest.raises(
        SpaceError, match="expected each id once in the table, got 'a' more than once; delete"
    ):
        write_index(place, [StoredRows(["d"], np.ones((1, 2), np.float32))], Target(1, 2, add=True))
    with open_index(place) as index:
        assert index.n == 4
