"""Data of the papers' runs: encoders that are independent of each other, classes counted, what is missing."""

import pytest

from relcore.papers.counted import classes
from relcore.papers.local import labels_of, picture_spec, text_encoders
from relcore.sources.pooled_words import PooledWords
from relcore.spaces import SpaceError
from relcore.store import Store


def test_encoders_of_texts_are_trained_apart_and_give_one_space_each():
    encoders = text_encoders()
    trained_on = {(type(one), one.words if isinstance(one, PooledWords) else "") for one in encoders}
    assert len(trained_on) == len(encoders) == 4
    assert all(len(one.outputs) == 1 for one in encoders)


def test_classes_are_counted_over_all_parts_and_rows_without_one_left_out(tmp_path, monkeypatch):
    (tmp_path / "trec").mkdir()
    (tmp_path / "trec" / "train.csv").write_text("text,coarse_label,fine_label\nwho,HUM,HUM:ind\nwhere,LOC,LOC:city\nwhen,,\n")
    (tmp_path / "trec" / "test.csv").write_text("text,coarse_label,fine_label\nwhose,HUM,HUM:gr\nwhither,LOC,LOC:city\n")
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    store = Store(tmp_path / "store")
    assert labels_of("TREC, coarse", store) == {"HUM": 2, "LOC": 2}
    assert labels_of("TREC, fine", store) == {"HUM:ind": 1, "LOC:city": 2, "HUM:gr": 1}
    found = {(one.label, one.metric): one for one in classes({"datasets": ["TREC, fine"]}, store, lambda *told: None).numbers}
    assert (found["TREC, fine", "classes"].value, found["TREC, fine", "classes"].n) == (3, 4)
    assert found["TREC, fine", "share of the largest class"].value == 0.5


def test_what_the_data_folder_lacks_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    with pytest.raises(
        SpaceError, match="mnist: expected a folder mnist in the data folder, which RELSCOPE_DATA names, got none"
    ):
        picture_spec("mnist")
    assert picture_spec("digits", 50).dataset.source == "digits"
