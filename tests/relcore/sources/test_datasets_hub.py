"""Hugging Face's library and Planetoid: folders, caches, no network, and pickles that ask for more than
arrays.
"""

import pickle
import shutil
import socket
from collections import defaultdict

import datasets
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.encoders import datasets as hub_datasets
from relcore.encoders import planetoid
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import columns_of, load_dataset
from relcore.runs.store import Store

QUESTIONS = pd.DataFrame({"text": ["who?", "where?", "why?"], "label": ["HUM", "LOC", "DESC"]})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The library's cache in a folder of the test's own."""
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


def test_images_and_class_names_from_a_folder_that_the_library_saved(tmp_path):
    features = datasets.Features({"img": datasets.Image(), "fine": datasets.ClassLabel(names=["cat", "dog"])})
    rows = {"img": [Image.new("L", (4, 4), 9), Image.new("RGB", (2, 3), (1, 2, 3))], "fine": [1, 0]}
    datasets.DatasetDict({"only": datasets.Dataset.from_dict(rows, features=features)}).save_to_disk(
        tmp_path / "saved"
    )
    dataset = load_dataset(DatasetSpec("huggingface", str(tmp_path / "saved"), label_column="fine"))
    assert (dataset.name, dataset.kind, dataset.labels.tolist()) == ("saved/only", "images", ["dog", "cat"])
    assert [image.mode for image in dataset.items(0, 2)] == ["L", "RGB"]
    assert dataset.item(1).getpixel((1, 1)) == (1, 2, 3)


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


def test_without_network_the_cache_is_used(questions, cache, monkeypatch):
    monkeypatch.setattr(hub_datasets, "hub_answers", lambda: False)
    datasets.load_dataset(str(questions))
    (version,) = {path.parent for path in cache.rglob("*.arrow")}
    shutil.copytree(version, cache / "owner___questions" / "default" / "0.0.0" / version.name)
    dataset = load_dataset(DatasetSpec("huggingface", "owner/questions", "test"))
    assert dataset.items(0, 2) == QUESTIONS["text"].tolist()[:2]
    assert not datasets.config.HF_HUB_OFFLINE


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


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_pickles_that_ask_for_more_are_refused_before_they_run(small_cora, protocol):
    (small_cora / "ind.cora.graph").write_bytes(pickle.dumps(_Evil(), protocol=protocol))
    for name in planetoid._PARTS[:-1]:
        if name != "graph":
            (small_cora / f"ind.cora.{name}").write_bytes(pickle.dumps([], protocol=2))
    with pytest.raises(
        SpaceError, match=r"ind.cora.graph: refused, the pickle asks for '(__builtin__ exec|STACK_GLOBAL)'"
    ):
        load_dataset(spec_of(small_cora))


def test_damaged_and_missing_graphs(small_cora, tmp_path, monkeypatch):
    (small_cora / "ind.cora.x").write_bytes(b"\x80\x02]")
    with pytest.raises(
        SpaceError, match=r"ind.cora.x: expected one of Planetoid's raw files, got a damaged one"
    ):
        load_dataset(spec_of(small_cora))
    (small_cora / "ind.cora.x").write_bytes(pickle.dumps([], protocol=2))
    monkeypatch.setattr(planetoid, "answers", lambda url: False)
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    with pytest.raises(
        SpaceError, match=r"PubMed: expected ind.pubmed.x .*RELSCOPE_DATA is not set.*got neither"
    ):
        load_dataset(DatasetSpec("planetoid", "PubMed"), Store(tmp_path / "store"))
    with pytest.raises(
        SpaceError, match="planetoid: expected one of 'Cora', 'CiteSeer', 'PubMed', got 'Corsa'"
    ):
        load_dataset(DatasetSpec("planetoid", "Corsa"))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n", "n_edges", "n_words", "n_classes"),
    [("Cora", 2708, 10556, 1433, 7), ("CiteSeer", 3327, 9104, 3703, 6)],
)
def test_the_graphs_are_planetoids(data_folder, name, n, n_edges, n_words, n_classes):
    dataset = load_dataset(
        DatasetSpec("planetoid", name, options=(("folder", str(data_folder / "planetoid")),))
    )
    graph = dataset.graph()
    assert (len(dataset), graph.edge_index.shape[1], graph.x.shape[1]) == (n, n_edges, n_words)
    assert len(set(dataset.labels)) == n_classes
    assert int(graph.train_mask.sum()) == 20 * n_classes
