"""Properties of every store when mapped rows are added to a collection or a table."""

from dataclasses import dataclass

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.migrate.adapt import adapt, adapter_digest
from relcore.migrate.adapters import Adapter, AffineStep
from relcore.stores.index import StoredRows, StorePlace, Target, open_index, write_index
from tests.relcore.stores.stores import in_blocks, whole

N = 30


@dataclass(eq=False)
class Random(Adapter):
    seed: int = 0

    def _solve(self, new, old):
        rng = np.random.default_rng(self.seed)
        return (AffineStep(*(rng.normal(size=size).astype(np.float32) for size in ((4, 3), 3))),), ()


def adapter_of(seed):
    rng = np.random.default_rng(seed)
    return Random(seed).fit(rng.normal(size=(9, 4)), rng.normal(size=(9, 3)))


class Killed(BaseException):
    """An error that no code catches, as when a process is killed."""


def source_of(folder, name, first, n=N):
    rows = np.random.default_rng(first).normal(size=(n, 4)).astype(np.float32)
    place = StorePlace("parquet", str(folder / name))
    write_index(place, in_blocks(StoredRows([f"d{first + row}" for row in range(n)], rows)), Target(n, 4))
    return place


def rows_in(place):
    with open_index(place) as index:
        return whole(index)


def check_adding(goal, folder):
    """Rows are added, a run that was killed is repeated, and another adapter is refused."""
    first = adapter_of(1)
    old = source_of(folder, "old.parquet", 0)
    more = source_of(folder, "more.parquet", N - 5)  # five of its ids are those of old rows
    adapt(first, old, goal, block=7)
    calls = []

    def killed(*progress):
        calls.append(progress)
        if len(calls) == 3:
            raise Killed

    with pytest.raises(Killed):
        adapt(first, more, goal, add=True, report=killed, block=7)
    for _ in range(2):  # a kill between commit and end, and a rerun
        adapt(first, more, goal, add=True, block=7)
    found = rows_in(goal)
    assert found.ids == sorted(f"d{row}" for row in range(2 * N - 5))
    with open_index(more) as index:
        given = whole(index)
    rows = [found.ids.index(one) for one in given.ids]  # with those of old ids, which are replaced
    np.testing.assert_allclose(found.vectors[rows], first.transform(given.vectors), atol=1e-5)

    unknown = StorePlace("npy", str(folder / "unknown.npy"))
    np.save(unknown.path, np.ones((2, 3), np.float32))
    for other in (adapter_of(2), None):
        with pytest.raises(SpaceError, match=f"rows of the adapter {adapter_digest(first)[:8]}, as those"):
            adapt(other, more if other else unknown, goal, add=True)
    copy = StorePlace("parquet", str(folder / "copy.parquet"))
    adapt(None, goal, copy)  # a copy keeps the record of the adapter
    adapt(None, copy, goal, add=True)
    again = rows_in(goal)
    assert again.ids == found.ids
    np.testing.assert_allclose(again.vectors, found.vectors, atol=1e-6)


def check_table_without_record(goal, folder):
    """A table that records no adapter takes the rows of one, and then of no other."""
    write_index(goal, in_blocks(StoredRows(["a", "b"], np.eye(2, 3, dtype=np.float32))), Target(2, 3))
    source = source_of(folder, "rows.parquet", 0)
    adapt(adapter_of(1), source, goal, add=True)
    assert len(rows_in(goal).ids) == N + 2
    with pytest.raises(SpaceError, match="expected rows of the adapter"):
        adapt(adapter_of(2), source, goal, add=True)
