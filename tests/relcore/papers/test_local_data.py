"""Data of the papers' runs: encoders that are independent of each other, classes counted, what is missing."""

import io

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.encoders.datasets import load_dataset
from relcore.encoders.sentences import PooledWords
from relcore.encoders.small_vision import held_out_rows
from relcore.papers.local import labelled, labels_of, picture_spec, text_encoders
from relcore.papers.measured import classes
from relcore.runs.store import Store
from relcore.stitch.autoencoders import load_pictures


def test_encoders_of_texts_are_trained_apart_and_give_one_space_each():
    encoders = text_encoders()
    trained_on = {(type(one), one.words if isinstance(one, PooledWords) else "") for one in encoders}
    assert len(trained_on) == len(encoders) == 4
    assert all(len(one.outputs) == 1 for one in encoders)


def test_classes_are_counted_over_all_parts_and_rows_without_one_left_out(tmp_path, monkeypatch):
    (tmp_path / "trec").mkdir()
    (tmp_path / "trec" / "train.csv").write_text(
        "text,coarse_label,fine_label\nwho,HUM,HUM:ind\nwhere,LOC,LOC:city\nwhen,,\n"
    )
    (tmp_path / "trec" / "test.csv").write_text(
        "text,coarse_label,fine_label\nwhose,HUM,HUM:gr\nwhither,LOC,LOC:city\n"
    )
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    store = Store(tmp_path / "store")
    assert labels_of("TREC, coarse", store) == {"HUM": 2, "LOC": 2}
    assert labels_of("TREC, fine", store) == {"HUM:ind": 1, "LOC:city": 2, "HUM:gr": 1}
    found = {
        (one.label, one.metric): one
        for one in classes({"datasets": ["TREC, fine"]}, store, lambda *told: None).numbers
    }
    assert (found["TREC, fine", "classes"].value, found["TREC, fine", "classes"].n) == (3, 4)
    assert found["TREC, fine", "share of the largest class"].value == 0.5


def test_what_the_data_folder_lacks_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    with pytest.raises(
        SpaceError,
        match="mnist: expected a folder mnist in the data folder, which RELSCOPE_DATA names, got none",
    ):
        picture_spec("mnist")
    assert picture_spec("digits", 50).dataset.source == "digits"


@pytest.fixture
def made_up_mnist(tmp_path, monkeypatch, rng):
    """A folder like MNIST's: 150 pictures of 28 × 28 pixels, a bright half each, two classes."""
    (tmp_path / "mnist").mkdir()
    rows, labels = [], [number % 2 for number in range(150)]
    for label in labels:
        pixels = rng.integers(0, 80, size=(28, 28), dtype=np.uint8)
        pixels[:, 14 * label : 14 * label + 14] += 150
        written = io.BytesIO()
        Image.fromarray(pixels).save(written, "PNG")
        rows.append({"bytes": written.getvalue(), "path": None})
    table = pyarrow.table({"image": rows, "label": labels})
    pyarrow.parquet.write_table(table, tmp_path / "mnist" / "train.parquet")
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))


def test_mnist_is_read_small_and_the_parts_are_apart(made_up_mnist):
    spec = picture_spec("mnist", 40, image_size=14)
    found = load_pictures(load_dataset(spec.dataset), spec)
    assert (found.train.shape, found.test.shape) == ((40, 14, 14), (30, 14, 14))
    assert not {one.tobytes() for one in found.train} & {one.tobytes() for one in found.test}


def test_networks_of_mnist_are_tested_on_what_none_of_them_was_trained_on(made_up_mnist, tmp_path):
    spaces, test_ids = labelled("mnist", Store(tmp_path / "store"), lambda *told: None)
    assert len({space.name for space in spaces}) == 4
    assert all((space.ids == spaces[0].ids).all() and space.dimension == 64 for space in spaces)
    assert set(test_ids) == set(spaces[0].ids[held_out_rows(150)])
