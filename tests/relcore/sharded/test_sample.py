"""The sample that `bootstrap` takes of folders of shards."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.runs.store import Store
from relcore.sharded.operations import Runner, sample_shards
from relcore.sharded.space import ShardedSpace
from relcore.spaces.split import row_keys
from tests.relcore.sharded.folders import X, write_npy

IDS = np.array([f"row-{row}" for row in range(100)])
LABELS = np.array([f"class {row % 7}" for row in range(100)])
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


def test_a_sample_has_rows(tmp_path):
    folder = write_npy(tmp_path / "a", ROWS, (30, 50, 20), ids=IDS)
    with pytest.raises(SpaceError, match="n_rows: expected 1 row or more, got 0"):
        sample(folder, 0)
