"""What a job over shards will take: bytes and rows are known, and a trial leaves the result as it is."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from relcore.cli import main
from relcore.runs.store import Store
from relcore.sharded import passes
from relcore.sharded.operations import compare_shards
from relcore.sharded.passes import Forecast, PassResult, Runner, ShardRun, estimate, trial_shards
from relcore.sharded.space import ShardedSpace
from tests.relcore.sharded.folders import X, write_npy


@pytest.mark.parametrize(
    ("shards", "rows", "workers", "asked", "tried"),
    [
        (40, 10**7, 2, False, 2),
        (400, 10**8, 2, False, 4),
        (19, 10**7, 2, False, 0),
        (3, 100, 2, True, 3),
        (4000, 999_999, 64, False, 0),
        (4000, 10**9, 64, False, 128),
    ],
)
def test_a_trial_takes_a_twentieth_at_most_unless_it_is_asked_for(shards, rows, workers, asked, tried):
    assert trial_shards(shards, rows, workers, asked) == tried


def test_seconds_grow_with_the_rows_and_gathered_rows_do_not(tmp_path, monkeypatch):
    """Two warm shards of 25 rows take 2 s each; the first two, which start cold, take 9 s."""
    space = ShardedSpace.open(str(write_npy(tmp_path / "a", X, [25] * 4)))
    ran = tuple(
        ShardRun(f"w{at % 2}", "s", 25, 1.0, seconds, 300.0) for at, seconds in enumerate([9, 9, 2, 2])
    )
    monkeypatch.setattr(passes, "MERGE_SECONDS", 0)

    def trial(runner, first):
        runner.done.append(("compare", PassResult({}, {}, ran, 4, 11.0)))
        runner.done.append(("gather rows", PassResult({}, {}, ran, 0, 0.0)))
        return SimpleNamespace(width=5)

    found = estimate(trial, Runner(Store(tmp_path / "store")), [space], 4, 2)
    assert found.seconds == pytest.approx(100 * (2 / 25) / 2 * 2)  # both passes: all rows were tried
    size = sum(path.stat().st_size for path in (tmp_path / "a").glob("*.npy"))
    assert (found.read_bytes, found.written_bytes, found.worker_mb) == (size, 4 * 100 * 5, 300)
    told = Forecast(10**9, 4000, 64, 4000.0, 412.0, 512 * 10**9, 0, 500_000, 2).sentence()
    assert told.startswith("Estimate for 1,000,000,000 rows: 67 min with 64 workers, 412 MB a worker, 512 GB")


def test_the_result_is_the_same_after_a_trial(tmp_path):
    rng = np.random.default_rng(0)
    pair = [
        ShardedSpace.open(str(write_npy(tmp_path / name, X + noise * rng.normal(size=X.shape), [10] * 10)))
        for name, noise in (("a", 0), ("b", 0.5))
    ]
    plain = compare_shards(*pair, 12, Runner(Store(tmp_path / "one")))
    runner = Runner(Store(tmp_path / "two"))
    found = estimate(lambda run, *first: compare_shards(*first, 8, run), runner, pair, 3, 1)
    assert (found.rows, found.trial_rows, found.shards, found.trial_shards) == (100, 30, 10, 3)
    assert found.seconds > 0
    assert compare_shards(*pair, 12, runner).scores == plain.scores


@pytest.mark.slow
def test_the_commands_only_estimate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    for name in ("a", "b"):
        write_npy(tmp_path / name, X, [25] * 4)
    assert main(["compare", "a", "b", "--anchors", "12", "--estimate", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["estimate"]
    assert (found["rows"], found["workers"], found["read_bytes"]) == (100, 2, 2 * 2 * 4 * (128 + 25 * 24))
    assert main(["project", "a", "--anchors", "12", "--estimate", "-o", "out"]) == 0
    assert "4.8 kB to write; from 100 rows in 4 shards" in capsys.readouterr().out
    assert main(["invert", "a", "b", "--anchors", "12", "--estimate", "-o", "out"]) == 0
    assert not (tmp_path / "out").exists()
    np.save("x.npy", X)
    assert main(["compare", "x.npy", "x.npy", "--estimate"]) == 2
    assert "--estimate: expected folders of shards" in capsys.readouterr().err
