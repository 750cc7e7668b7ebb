"""What a process keeps between its shards, while another thread of it works for another pass."""

import numpy as np
import pytest

from relcore.comparison import ProjectionSpec
from relcore.sharded import block_work, row_maps
from relcore.store import Store, digest_of


class ClearedBetween(dict):
    """As if another thread cleared it right after each look and each write."""

    def __contains__(self, key):
        found = super().__contains__(key)
        self.clear()
        return found

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.clear()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_a_map_is_returned_though_another_thread_clears_what_is_kept(store, rng, monkeypatch):
    anchors = rng.standard_normal((5, 3)).astype(np.float32)
    key = row_maps.put_projection(store, anchors, np.zeros(3, dtype=np.float32), ProjectionSpec())
    for kept in ({}, {key: row_maps.row_map(store, key)}):
        monkeypatch.setattr(row_maps, "_made", ClearedBetween(kept))
        assert row_maps.row_map(store, key)(anchors).shape == (5, 5)


def test_a_plan_is_returned_though_another_thread_clears_what_is_kept(store, monkeypatch):
    key = digest_of("a plan")
    store.put(key, {"dropped": np.arange(2)}, {})
    monkeypatch.setattr(block_work, "_plan", lambda entry: "the plan")
    for kept in ({}, {key: ("the plan", np.arange(2))}):
        monkeypatch.setattr(block_work, "_plans", ClearedBetween(kept))
        plan, dropped = block_work.stored_plan(store, key)
        assert plan == "the plan"
        assert dropped.tolist() == [0, 1]
