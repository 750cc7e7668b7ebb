"""Hugging Face's library and Planetoid: folders, caches, no network, and pickles that ask for more than
arrays.
"""

import pickle
import socket
from collections import defaultdict

import datasets
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from relcore.base.errors import SpaceError
from relcore.encoders import datasets as hub_datasets
from relcore.encoders.datasets import columns_of, load_dataset
from relcore.encoders.encoder import DatasetSpec

QUESTIONS = pd.DataFrame({"text": ["who?", "where?", "why?"], "label": ["HUM", "LOC", "DESC"]})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "hub-cache"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(folder))
    return folder


@pytest.fixture
def questions(tmp_path):
    folder = tmp_path / "questions"
    (folder / "data").mkdir(parents=True)
    QUESTIONS.to_parquet(folder / "data" / "train-00000-of-00001.parquet", index=False)
    QUESTIONS.iloc[:2].to_parquet(folder / "data" / "test-00000-of-00001.parquet", index=False)
    return folder


def test_a_folder_in_the_hubs_layout(questions):
    train = load_dataset(DatasetSpec("huggingface", str(questions), "train"))
    assert (train.name, train.items(0, 3)) == ("questions/train", QUESTIONS["text"].tolist())
    assert train.labels.tolist() == QUESTIONS["label"].tolist()
    assert len(load_dataset(DatasetSpec("huggingface", str(questions), "test"))) == 2
    assert columns_of(DatasetSpec("huggingface", str(questions), "test")).items == ("text", "label")
    with pytest.raises(SpaceError, match=r"split: expected one of '(train|test)', '(train|test)', got ''"):
        load_dataset(DatasetSpec("huggingface", str(questions)))
    with pytest.raises(SpaceError, match=r"load_dataset can load, got .*dev"):
        load_dataset(DatasetSpec("huggingface", str(questions), "dev"))


def test_no_network_is_said_at_once(monkeypatch):
    monkeypatch.setattr(hub_datasets, "hub_answers", lambda: False)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: pytest.fail("the library was asked"))
    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("the network was asked"))
    with pytest.raises(
        SpaceError, match=r"nobody/nothing: expected it on this machine, or the network.*save_to_disk"
    ):
        load_dataset(DatasetSpec("huggingface", "nobody/nothing", "train"))
    with pytest.raises(SpaceError, match=r"expected a folder or the hub's name.*'/no/such/folder'"):
        load_dataset(DatasetSpec("huggingface", "/no/such/folder"))


@pytest.fixture
def small_cora(tmp_path):
    """A made-up graph of 600 nodes in Cora's raw layout: a ring; the last two nodes are tested, in the
    other order.
    """
    raw = tmp_path / "graphs" / "Cora" / "raw"
    raw.mkdir(parents=True)
    x, y = np.eye(600, 12, dtype=np.float32), np.eye(3, dtype=np.int32)[np.arange(600) % 3]
    parts = {"x": x[:6], "allx": x[:598], "tx": x[598:]}
    parts = {name: scipy.sparse.csr_matrix(part) for name, part in parts.items()} | {
        "y": y[:6],
        "ally": y[:598],
        "ty": y[598:],
    }
    ring = defaultdict(list, {node: [(node - 1) % 600, (node + 1) % 600] for node in range(600)})
    for name, part in {**parts, "graph": ring}.items():
        (raw / f"ind.cora.{name}").write_bytes(pickle.dumps(part, protocol=3))
    (raw / "ind.cora.test.index").write_text("599\n598\n")
    return raw


def spec_of(raw):
    return DatasetSpec("planetoid", "cora", options=(("folder", str(raw.parent.parent)),))


def listing(folder):
    return sorted((path.relative_to(folder), path.stat().st_mtime_ns) for path in folder.rglob("*"))


def test_a_graph_is_read_and_its_folder_left_alone(small_cora):
    before = listing(small_cora.parent)
    graph = load_dataset(spec_of(small_cora))
    assert listing(small_cora.parent) == before
    assert (graph.name, graph.kind, len(graph), graph.items(2, 4)) == ("Cora", "graph", 600, [2, 3])
    assert graph.labels.tolist() == [str(node % 3) for node in [*range(598), 599, 598]]
    assert graph.graph().edge_index.shape == (2, 1200)
    assert graph.digest == load_dataset(spec_of(small_cora)).digest
    with pytest.raises(SpaceError, match="a graph is encoded whole; expected no limit, got 5"):
        load_dataset(DatasetSpec("planetoid", "Cora", limit=5))


class _Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('unpickled')",)


@pytest.mark.parametrize("protocol", [0, 4])
def test_pickles_that_ask_for_more_are_refused_before_they_run(small_cora, protocol):
    for name in hub_datasets.PARTS[1:-1]:
        path = small_cora / f"ind.cora.{name}"
        usual = path.read_bytes()
        path.write_bytes(pickle.dumps(_Evil(), protocol=protocol))
        with pytest.raises(
            SpaceError, match=rf"ind.cora.{name}: .* asks for \w+\.exec, which this format never needs"
        ):
            load_dataset(spec_of(small_cora))
        path.write_bytes(usual)
    assert len(load_dataset(spec_of(small_cora))) == 600


def test_edges_to_nodes_that_are_none_and_numbers_of_other_rows_are_refused(small_cora):
    for name, content in (("graph", pickle.dumps({0: [600]})), ("test.index", b"597\n598\n")):
        path = small_cora / f"ind.cora.{name}"
        usual = path.read_bytes()
        path.write_bytes(content)
        with pytest.raises(SpaceError, match=r"ind.cora.x: expected .* got (an edge|2 nodes)"):
            load_dataset(spec_of(small_cora))
        path.write_bytes(usual)
