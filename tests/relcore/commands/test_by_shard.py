import json
import os

import numpy as np
import pandas as pd
import pytest

from relcore.base.names import ADAPTERS
from relcore.cli import main
from relcore.migrate.adapter_files import card_of, export
from tests.faults.test_scheduler import cluster
from tests.relcore.sharded.folders import X, write_npy, write_parquet

pytestmark = pytest.mark.usefixtures("own_store")

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
    assert "got folders that are read by shard" in refuse("compare a b --shards --recipe x.json")
    assert "--metrics: expected no choice for folders" in refuse("compare a b --shards --metrics rsa")
    assert "--strategy: expected 'random' for folders" in refuse("compare a b --shards --strategy k-means")
    assert "expected one space, got a folder that may hold several" in refuse("compare a b.npy")
    assert "--sample: expected a whole number from 1, got 0" in refuse("migrate a b --sample 0")


@pytest.mark.parametrize(
    "option",
    [
        "--metrics rsa,procrustes",
        "--strategy k-means",
        "--links links.csv",
        "--queries all",
        "--pair-by-row",
        "--recipe scores.json",
    ],
)
def test_folders_of_this_machine_are_spaces_for_options_that_need_all_rows(
    folders, one_queue, run, option, tmp_path
):
    links = "".join(f"{mine},{other}\n" for mine, other in zip(IDS, [*IDS[1:], IDS[0]], strict=True))
    (tmp_path / "links.csv").write_text(f"source,target\n{links}")
    settings = f"--anchors 15 --random-state 3 -k 4 --json {option}"
    by_folder, whole = (json.loads(run("compare", pair, settings)) for pair in ("a b", "a.npy b.npy"))
    assert by_folder["anchors"] == whole["anchors"]
    pd.testing.assert_frame_equal(pd.DataFrame(by_folder["rows"]), pd.DataFrame(whole["rows"]), rtol=1e-6)
    assert "passes" not in by_folder


def test_recipe_of_folders_draws_the_same_figure(folders, one_queue, run, tmp_path):
    run("compare", "a b", "--anchors 15 --recipe scores.json")
    recipe = json.loads((tmp_path / "scores.json").read_text())
    assert recipe["source"]["options"] == {"parts": "all"}
    run("figure", "scores.json", "-o scores.csv")
    assert (tmp_path / "scores.csv").exists()


@pytest.fixture
def scheduler(tmp_path):
    from distributed import Client

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with cluster(tmp_path / "workers", cwd=elsewhere) as address:
        with Client(address, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            assert set(client.run(os.getcwd).values()) == {str(elsewhere)}
        yield address


@pytest.mark.slow
def test_what_is_read_and_written_is_here(scheduler, tmp_path, capsys, own_store):
    ids = [f"row-{row}" for row in range(100)]
    rng = np.random.default_rng(8)
    Y = (X @ rng.normal(size=(6, 6))).astype(np.float32)
    for name, rows in (("a", X), ("b", Y)):
        write_npy(tmp_path / name, rows, (60, 40), ids=ids)
    adapter = ADAPTERS["ridge"].load()().fit(X, Y)
    export(adapter, card_of(adapter, X, Y, method="ridge"), tmp_path / "bridge")
    texts = "".join(f'{row},"the {word} sea"\n' for row, word in enumerate(["red", "deep", "old"] * 9))
    (tmp_path / "texts.csv").write_text(f"id,text\n{texts}")
    os.environ["RELSCOPE_STORE"] = str(own_store.root)
    commands = {
        "projected": "project a --anchors 12 -o",
        "inverted.npz": "invert a b --anchors 12 -o",
        "adapted": "adapt bridge a",
        "encoded.npz": "encode texts.csv --encoder tfidf --dimensions 2 -o",
        "links.jsonl": "link a b --hide --pairs 20 -o",
        "runs.csv": "study anchor-count --table -o",
    }
    for made, command in commands.items():
        if made == "runs.csv":
            on = []
        else:
            on = ["--scheduler", scheduler]
        assert main([*command.split(), made, *on]) == 0, (command, capsys.readouterr().err)
        assert (tmp_path / made).exists()
    assert os.listdir(tmp_path / "elsewhere") == []
