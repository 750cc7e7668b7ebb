"""Commands on folders of shards: the same numbers as on the rows in one file."""

import json
from pathlib import Path

import numpy as np
import pytest

from relcore.base.names import ADAPTERS
from relcore.cli import main
from relcore.migrate import adapters as adapter_file
from relcore.migrate.adapters import card_of
from relcore.sharded.space import ShardedSpace
from tests.relcore.sharded.folders import X, write_npy, write_parquet

SIZES = (30, 50, 20)
IDS = [f"row-{row}" for row in range(100)]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    rng = np.random.default_rng(8)
    Y = (X @ rng.normal(size=(6, 6)) + 0.3 * rng.normal(size=X.shape)).astype(np.float32)
    for name, rows, write in (("a", X, write_npy), ("b", Y, write_parquet)):
        write(tmp_path / name, rows, SIZES, ids=IDS)
        np.save(f"{name}.npy", rows)
        (tmp_path / f"{name}.ids.txt").write_text("\n".join(IDS) + "\n")
    return Y


@pytest.mark.slow
def test_project_writes_a_folder(folders, capsys):
    arguments = ["--anchors", "12", "--random-state", "2", "--whiten"]
    assert main(["project", "a", *arguments, "-o", "by-shard", "--save-anchors", "anchors.txt"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("100 rows × 12 anchors in 3 shards, whitened cosine, centred\n")
    assert "survey: 3 shards" in told
    assert "Most memory of a worker: " in told
    assert main(["project", "a.npy", *arguments, "-o", "whole.npz", "--save-anchors", "whole.txt"]) == 0
    assert Path("anchors.txt").read_text() == Path("whole.txt").read_text()
    np.testing.assert_allclose(
        ShardedSpace.open("by-shard").whole().vectors, np.load("whole.npz")["vectors"], atol=1e-6
    )
    assert main(["project", "a", "--anchors", "anchors.txt", "-o", "by-id"]) == 0
    assert main(["project", "a", "--strategy", "k-means", "-o", "other"]) == 2
    assert "--strategy: expected 'random'" in capsys.readouterr().err


@pytest.mark.slow
def test_adapt_writes_a_folder(folders, tmp_path, capsys):
    adapter = ADAPTERS["ridge"].load()().fit(X[:60], folders[:60])
    adapter_file.export(adapter, card_of(adapter, X[:60], folders[:60], method="ridge"), tmp_path / "bridge")
    assert main(["adapt", "bridge", "a", "adapted"]) == 0
    assert capsys.readouterr().out.startswith("adapted: 100 rows × 6 in 3 shards, queries mapped by ")
    np.testing.assert_allclose(ShardedSpace.open("adapted").whole().vectors, adapter.transform(X), atol=1e-6)
    assert main(["adapt", "none", "a", "copied"]) == 2
    assert "expected an adapter" in capsys.readouterr().err


def test_compare_prints_the_same_scores(folders, capsys):
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
    assert "--metrics: expected none for folders of shards" in capsys.readouterr().err
    assert main(["compare", "a", "b.npy"]) == 2
    assert "expected one space, got a folder that may hold several" in capsys.readouterr().err


@pytest.mark.slow
def test_samples_of_all_rows_say_what_one_machine_says(folders, capsys):
    migrate = ["migrate", "--no-curve", "--adapter", "ridge", "--sample", "100"]
    invert = ["invert", "--anchors", "30", "--method", "whitened", "--sample", "100"]
    for command in (migrate, invert, ["link", "--hide", "--anchors", "20", "--pairs", "seeds.txt"]):
        Path("seeds.txt").write_text("".join(f"row-{row}\trow-{row}\n" for row in range(0, 60, 4)))
        name, *arguments = command
        assert main([name, "a", "b", *arguments, "--json"]) == 0
        by_shard = json.loads(capsys.readouterr().out)
        assert main([name, "a.npy", "b.npy", *arguments, "--json"]) == 0
        whole = json.loads(capsys.readouterr().out)
        assert by_shard.pop("sample")[0] == "On a sample: 100 of 100 rows of a, 100 of 100 rows of b."
        assert whole.pop("sample") == []
        assert by_shard == whole


@pytest.mark.parametrize("command", ["migrate a b"])
@pytest.mark.parametrize("rows", ["0", "-5"])
def test_a_sample_of_no_rows_is_refused(capsys, command, rows):
    assert main([*command.split(), "--sample", rows]) == 2
    assert f"--sample: expected a whole number from 1, got {rows}" in capsys.readouterr().err
