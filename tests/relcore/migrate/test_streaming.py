"""Rows through an adapter from store to store; what ends early leaves nothing under the final name."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.migrate.adapters import adapt
from relcore.stores.index import StoredRows, StorePlace, Target, open_index, write_index
from tests.relcore.migrate.adapters import NEW, OLD, Made, pairs
from tests.relcore.stores.stores import KINDS, WITH_PAYLOAD, in_blocks, place_of, whole

N = 40


@pytest.fixture
def adapter():
    return Made("projected").fit(*pairs())


@pytest.fixture
def source(tmp_path):
    new, _ = pairs(N)
    rows = StoredRows(
        [f"q{row:03}" for row in range(N)], new, tuple({"title": f"t{row}"} for row in range(N))
    )
    place = StorePlace("parquet", str(tmp_path / "new.parquet"))
    write_index(place, in_blocks(rows, 16), Target(N, NEW))
    return place


class Killed(BaseException):
    """What no code here catches, as a kill."""


def killed_after(times, watched):

    def report(*told):
        watched.append(told)
        if len(watched) == times:
            raise Killed

    return report


@pytest.mark.parametrize("kind", KINDS)
def test_mapped_rows_arrive_with_ids_and_payload(kind, adapter, source, tmp_path):
    goal = place_of(kind, tmp_path)
    target = adapt(adapter, source, goal, block=7)
    assert (target.n, target.width) == (N, 7)
    with open_index(goal) as index:
        found = whole(index)
    assert found.ids == [f"q{row:03}" for row in range(N)]
    np.testing.assert_allclose(found.vectors, adapter.transform(pairs(N)[0]), atol=1e-5)
    assert found.payload == (tuple({"title": f"t{row}"} for row in range(N)) if kind in WITH_PAYLOAD else ())


@pytest.mark.parametrize("kind", ["npy", "lancedb"])
def test_run_that_ends_early_leaves_nothing_and_can_be_repeated(kind, adapter, source, tmp_path):
    goal = place_of(kind, tmp_path)
    before = set(tmp_path.iterdir())
    with pytest.raises(Killed):
        adapt(adapter, source, goal, report=killed_after(3, []), block=7)
    assert set(tmp_path.iterdir()) == before
    adapt(adapter, source, goal, block=7)
    with open_index(goal) as index:
        np.testing.assert_allclose(whole(index).vectors, adapter.transform(pairs(N)[0]), atol=1e-5)


def test_rows_of_another_width_are_refused(adapter, source, tmp_path):
    goal = place_of("npy", tmp_path)
    with pytest.raises(SpaceError, match=f"rows of the old model, of width {OLD}, got {NEW}"):
        adapt(adapter, source, goal, side="corpus")
    np.save(tmp_path / "old.npy", pairs()[1])
    with pytest.raises(SpaceError, match=f"rows of the new model, of width {NEW}, got {OLD}.*use --corpus"):
        adapt(adapter, StorePlace("npy", str(tmp_path / "old.npy")), goal)
    with pytest.raises(SpaceError, match="a target other than the source"):
        adapt(adapter, source, source)


def copied(ids, folder, kind, vectors=None, payload=()):
    vectors = np.eye(len(ids), NEW, dtype=np.float32) + 1 if vectors is None else vectors
    rows = StoredRows(ids, vectors, payload)
    source, goal = StorePlace("parquet", str(folder / "copied.parquet")), place_of(kind, folder)
    write_index(source, in_blocks(rows, 3), Target(len(ids), NEW))
    adapt(None, source, goal, block=2)
    return goal


@pytest.mark.parametrize("kind", KINDS)
def test_ids_arrive_as_they_were_or_are_refused(kind, tmp_path):
    odd = ["\ufeffking", "king", "\ufeff", "5", "05", " x", "x ", "a\0" * (kind in WITH_PAYLOAD) or "y"]
    with open_index(copied(odd, tmp_path, kind)) as index:
        assert whole(index).ids == sorted(odd)
    for ids, told in (
        (["a", "b", "c", "a"], r"ids must be distinct, 1 occur more than once, first 'a'"),
        (["a", "b", "c", " "], "expected an id, got an empty one"),
    ):
        (tmp_path / told[:3]).mkdir()
        with pytest.raises(SpaceError, match=told):
            copied(ids, tmp_path / told[:3], kind)
        assert not place_of(kind, tmp_path / told[:3]).path.exists()


@pytest.mark.parametrize("kind", ["faiss"])
def test_numbers_that_float32_cannot_hold_are_not_copied(kind, tmp_path):
    np.save(tmp_path / "big.npy", np.where(np.eye(5), 1e39, 1.0))
    with pytest.raises(SpaceError, match="big, row 1: expected finite float32 numbers"):
        adapt(None, StorePlace("npy", str(tmp_path / "big.npy")), place_of(kind, tmp_path))


@pytest.mark.parametrize("name", ["npy", "faiss"])
def test_list_of_ids_that_could_not_be_read_again_is_not_written(name, tmp_path):
    for odd in ("a\0", "a\rb", "a\nb"):
        with pytest.raises(SpaceError, match=r"write \.parquet instead"):
            copied([odd, "b"], tmp_path, name)
        (tmp_path / "copied.parquet").unlink()
