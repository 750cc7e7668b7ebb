"""Commands on folders of shards: the same numbers as on the rows in one file."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.relcore.sharded.folders import X, write_npy, write_parquet

SIZES = (30, 50, 20)
IDS = [f"row-{row}" for row in range(100)]


@pytest.fixture
def folders(tmp_path):
    rng = np.random.default_rng(8)
    Y = (X @ rng.normal(size=(6, 6)) + 0.3 * rng.normal(size=X.shape)).astype(np.float32)
    for name, rows, write in (("a", X, write_npy), ("b", Y, write_parquet)):
        write(tmp_path / name, rows, SIZES, ids=IDS)
        np.save(f"{name}.npy", rows)
        (tmp_path / f"{name}.ids.txt").write_text("\n".join(IDS) + "\n")


def test_compare_prints_the_same_scores(folders, one_queue, run, refuse):
    settings = "--anchors 15 --random-state 3 -k 4 --json"
    by_shard, whole = (json.loads(run("compare", pair, settings)) for pair in ("a b", "a.npy b.npy"))
    assert by_shard["anchors"] == whole["anchors"]
    names = ["metric", "form", "n", "queries", "score", "chance", "null_low", "null_high"]
    rows, expected = (pd.DataFrame(one["rows"])[names] for one in (by_shard, whole))
    assert len(rows) == 16
    pd.testing.assert_frame_equal(rows, expected, rtol=1e-5, atol=1e-5)
    assert by_shard["passes"][0].startswith("survey: 3 shards")
    assert "got folders of shards" in refuse("compare a b --recipe x.json")
    assert "--metrics: expected no choice for folders of shards" in refuse("compare a b --metrics rsa")
    assert "expected one space, got a folder that may hold several" in refuse("compare a b.npy")
    assert "--sample: expected a whole number from 1, got 0" in refuse("migrate a b --sample 0")
