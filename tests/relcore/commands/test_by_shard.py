"""Commands on folders of shards: the same numbers as on the rows in one file."""

import json

import numpy as np
import pytest

from relcore.cli import main
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


def test_compare_prints_the_same_scores(folders, one_queue, capsys):
    arguments = ["--anchors", "15", "--random-state", "3", "-k", "4", "--json"]
    assert main(["compare", "a", "b", *arguments]) == 0
    by_shard = json.loads(capsys.readouterr().out)
    assert main(["compare", "a.npy", "b.npy", *arguments]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert by_shard["anchors"] == whole["anchors"]
    assert len(by_shard["rows"]) == len(whole["rows"]) == 16
    for one, other in zip(by_shard["rows"], whole["rows"], strict=True):
        assert (one["metric"], one["form"], one["n"], one["queries"]) == (
            other["metric"], other["form"], other["n"], other["queries"],
        )  # fmt: skip
        for name in ("score", "chance", "null_low", "null_high"):
            assert one[name] == pytest.approx(other[name], abs=1e-5, rel=1e-5)
    assert by_shard["passes"][0].startswith("survey: 3 shards")
    assert main(["compare", "a", "b", "--recipe", "x.json"]) == 2
    assert "got folders of shards" in capsys.readouterr().err
    assert main(["compare", "a", "b", "--metrics", "rsa"]) == 2
    assert "--metrics: expected no choice for folders of shards" in capsys.readouterr().err
    assert main(["compare", "a", "b.npy"]) == 2
    assert "expected one space, got a folder that may hold several" in capsys.readouterr().err


def test_a_sample_of_no_rows_is_refused(capsys):
    assert main(["migrate", "a", "b", "--sample", "0"]) == 2
    assert "--sample: expected a whole number from 1, got 0" in capsys.readouterr().err
