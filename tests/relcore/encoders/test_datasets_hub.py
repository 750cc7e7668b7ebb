"""Hugging Face's library: folders, caches, no network."""

import socket

import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.encoders import datasets as hub_datasets
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import columns_of, load_dataset
from tests.lazily import Lazily

datasets = Lazily("datasets")

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
