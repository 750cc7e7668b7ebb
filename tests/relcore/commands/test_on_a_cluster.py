"""On a cluster whose workers have another working folder, relative paths are those of the user."""

import os

import numpy as np
import pytest

from relcore.base.names import ADAPTERS
from relcore.cli import main
from relcore.migrate.adapters import card_of, export
from tests.faults.test_scheduler import cluster
from tests.relcore.sharded.folders import X, write_npy


@pytest.fixture
def scheduler(tmp_path):
    """The address of one worker, which was started elsewhere."""
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
    on = f"--scheduler {scheduler}"
    for command in (
        f"project a --anchors 12 {on} -o projected",
        f"invert a b --anchors 12 {on} -o inverted.npz",
        f"adapt bridge a {on} adapted",
        f"encode texts.csv --encoder tfidf --dimensions 2 {on} -o encoded.npz",
        f"link a b --hide --pairs 20 {on} -o links.jsonl",
        "study anchor-count --table -o runs.csv",
    ):
        assert main(command.split()) == 0, (command, capsys.readouterr().err)
        assert (tmp_path / command.split()[-1]).exists()
    assert os.listdir(tmp_path / "elsewhere") == []
