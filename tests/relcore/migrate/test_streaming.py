"""Rows through an adapter from store to store; a run that ends early leaves nothing under the final name."""

import numpy as np
import pyarrow as pa
import pytest

from relcore.base.errors import SpaceError
from relcore.migrate.adapt import adapt
from relcore.stores.index import StoredRows, StorePlace, Target, open_index, write_index
from tests.lazily import Lazily
from tests.relcore.migrate.planted import NEW, OLD, Made, pairs
from tests.relcore.stores.adding import check_adding, check_table_without_record, rows_in
from tests.relcore.stores.stores import KINDS, WITH_PAYLOAD, in_blocks, place_of, whole

lancedb = Lazily("lancedb")
N = 40


@pytest.fixture
def adapter():
    return Made(projected=True).fit(*pairs())


@pytest.fixture
def source(tmp_path):
    ids = [f"q{row:03}" for row in range(N)]
    payload = tuple({"title": f"t{row}"} for row in range(N))
    place = StorePlace("parquet", str(tmp_path / "new.parquet"))
    write_index(place, in_blocks(StoredRows(ids, pairs(N)[0], payload), 16), Target(N, NEW))
    return place


def read(place):
    with open_index(place) as index:
        return whole(index)


class Killed(BaseException):
    """An error that no code catches, as when a process is killed."""


@pytest.mark.parametrize("kind", ["npy", "lancedb"])
def test_mapped_rows_arrive_whole_or_not_at_all(kind, adapter, source, tmp_path):
    goal = place_of(kind, tmp_path)
    before = set(tmp_path.iterdir())
    rounds = []

    def report(*progress):
        rounds.append(progress)
        if len(rounds) == 3:
            raise Killed

    with pytest.raises(Killed):
        adapt(adapter, source, goal, report=report, block=7)
    assert set(tmp_path.iterdir()) == before
    target = adapt(adapter, source, goal, block=7)
    assert (target.n, target.width) == (N, 7)
    given = read(source)
    found = read(goal)
    assert found.ids == given.ids
    assert found.payload == (given.payload if kind in WITH_PAYLOAD else ())
    np.testing.assert_allclose(found.vectors, adapter.transform(given.vectors), atol=1e-5)


def test_rows_of_another_width_and_too_large_numbers_are_refused(adapter, source, tmp_path):
    goal = place_of("npy", tmp_path)
    other = StorePlace("npy", str(tmp_path / "other.npy"))
    with pytest.raises(SpaceError, match=f"rows of the old model, of width {OLD}, got {NEW}"):
        adapt(adapter, source, goal, side="corpus")
    np.save(other.path, pairs()[1])
    with pytest.raises(SpaceError, match=f"rows of the new model, of width {NEW}, got {OLD}.*use --corpus"):
        adapt(adapter, other, goal)
    with pytest.raises(SpaceError, match="a target other than the source"):
        adapt(adapter, source, source)
    np.save(other.path, np.where(np.eye(5), 1e39, 1.0))
    with pytest.raises(SpaceError, match="other, row 1: expected finite float32 numbers"):
        adapt(None, other, goal)


def copied(ids, folder, kind):
    rows = StoredRows(ids, np.eye(len(ids), NEW, dtype=np.float32) + 1, ())
    source = StorePlace("parquet", str(folder / "copied.parquet"))
    goal = place_of(kind, folder)
    write_index(source, in_blocks(rows, 3), Target(len(ids), NEW))
    adapt(None, source, goal, block=2)
    return goal


@pytest.mark.parametrize("kind", KINDS)
def test_ids_arrive_as_they_were_or_are_refused(kind, tmp_path):
    last = "a\0" if kind in WITH_PAYLOAD else "y"
    odd = ["\ufeffking", "king", "\ufeff", "5", "05", " x", "x ", last]
    assert read(copied(odd, tmp_path, kind)).ids == sorted(odd)
    refused = {
        "twice": (["a", "b", "c", "a"], r"ids must be distinct, 1 occur more than once, first 'a'"),
        "empty": (["a", "b", "c", " "], "expected an id, got an empty one"),
    }
    if kind not in WITH_PAYLOAD:  # the list of ids could not be read again
        refused |= {str(n): ([one, "b"], r"write \.parquet") for n, one in enumerate(("a\0", "a\rb", "a\nb"))}
    for name, (ids, told) in refused.items():
        folder = tmp_path / name
        folder.mkdir()
        with pytest.raises(SpaceError, match=told):
            copied(ids, folder, kind)
        assert not place_of(kind, folder).path.exists()


@pytest.mark.parametrize("check", [check_adding, check_table_without_record])
def test_rows_are_added_under_their_ids_and_by_one_adapter(check, tmp_path):
    check(place_of("lancedb", tmp_path), tmp_path)


def test_rows_are_added_to_a_table_of_other_columns(tmp_path):
    place = place_of("lancedb", tmp_path)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6, dtype=np.float16)), 3)
    table = pa.table({"embedding": vectors, "key": pa.array([7, 8]), "title": ["x", "y"]})
    lancedb.connect(place.where).create_table(place.table, table)
    rows = StoredRows(["8", "9"], np.ones((2, 3), np.float32), ({"title": "new"}, {}))
    write_index(place, [rows], Target(2, 3, add=True))
    found = rows_in(place)
    assert found.ids == ["7", "8", "9"]
    assert [item["title"] for item in found.payload] == ["x", "new", None]
    assert found.vectors.tolist() == [[0, 1, 2], [1, 1, 1], [1, 1, 1]]
    with pytest.raises(SpaceError, match="ids that are whole numbers, as those that are there"):
        write_index(place, [StoredRows(["b"], np.ones((1, 3), np.float32))], Target(1, 3, add=True))


def test_adding_that_fails_records_no_adapter(tmp_path):
    place = place_of("lancedb", tmp_path)
    write_index(place, [StoredRows(["a"], np.ones((1, 3), np.float32))], Target(1, 3))
    strange = StoredRows(["b"], np.ones((1, 3), np.float32), ({"title": "unknown column"},))
    with pytest.raises(SpaceError, match="'title' not in the rows before"):
        write_index(place, [strange], Target(1, 3, add=True, adapter="1234"))
    with open_index(place) as index:
        assert (index.n, index.adapter) == (1, "")
