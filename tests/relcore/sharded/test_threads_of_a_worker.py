"""What a process keeps between its shards, while another thread of it works for another pass."""

import numpy as np
import pytest

from relcore.runs.digest import digest_of
from relcore.runs.store import Store
from relcore.scores.comparison import ProjectionSpec
from relcore.sharded import compare, project


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
    key = project.put_projection(store, anchors, np.zeros(3, dtype=np.float32), ProjectionSpec())
    for kept in ({}, {key: project.row_map(store, key)}):
        monkeypatch.setattr(project, "_made", ClearedBetween(kept))
        assert project.row_map(store, key)(anchors).shape == (5, 5)


def test_a_plan_is_returned_though_another_thread_clears_what_is_kept(store, monkeypatch):
    key = digest_of("a plan")
    store.put(key, {"dropped": np.arange(2)}, {})
    monkeypatch.setattr(compare, "_plan", lambda entry: "the plan")
    for kept in ({}, {key: ("the plan", np.arange(2))}):
        monkeypatch.setattr(compare, "_plans", ClearedBetween(kept))
        plan, dropped = compare.stored_plan(store, key)
        assert plan == "the plan"
        assert dropped.tolist() == [0, 1]
