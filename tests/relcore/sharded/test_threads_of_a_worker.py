"""What a process keeps between its shards, while another thread of it works for another pass."""

import numpy as np
import pytest

from relcore.runs.store import Store
from relcore.scores.comparison import ProjectionSpec
from relcore.sharded import project


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
    of_rows = project.ProjectionMap(anchors, np.zeros(3, dtype=np.float32), ProjectionSpec())
    key = project.put_map(store, of_rows)
    for kept in ({}, {key: project.row_map(store, key)}):
        monkeypatch.setattr(project, "_made", ClearedBetween(kept))
        assert project.row_map(store, key)(anchors).shape == (5, 5)
