"""Columns of the tables that came with a space: which can colour, and whose cells belong to which row."""

import json

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.row_tables import TableColumns
from relcore.encoders.datasets import with_options
from relcore.encoders.encoder import DatasetSpec


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(4, 3)))
    lines = ["code,genre,year,note,text", "r1,jazz,1959,,one long line of words here"]
    lines += [
        "r2,rock,1971,x,another long line of words",
        "r3,jazz,NA,x,and one more long line of words",
        "r4,rock,1975,y,the last line of many words",
    ]
    (tmp_path / "meta.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_columns_of_metadata_without_a_role_are_on_offer_and_belong_to_their_rows(files):
    spec = SpaceSpec("file", str(files / "a.npy"), options=(("metadata", str(files / "meta.csv")),))
    assert TableColumns(spec).names == ("year", "note")
    year = TableColumns(spec).read("year", load(spec))
    assert year.to_dict() == {"r1": "1959", "r2": "1971", "r3": None, "r4": "1975"}
    with pytest.raises(SpaceError, match="column: expected one of 'year', 'note' for 'a', got 'genre'"):
        TableColumns(spec).read("genre", load(spec))


def test_a_table_of_vectors_offers_what_it_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("word,x,y,era\nriver,1,2,old\nsea,3,4,new\nhill,3,5,new\n")
    spec = SpaceSpec("file", str(path))
    assert TableColumns(spec).names == ("era",)
    assert TableColumns(spec).read("era", load(spec)).to_dict() == {
        "river": "old",
        "sea": "new",
        "hill": "new",
    }


def test_an_encoding_offers_the_other_columns_of_its_table(tmp_path, make_space):
    path = tmp_path / "news.csv"
    path.write_text("text,label,year\nfirst words,a,1990\nmore words,b,1991\n")
    dataset = DatasetSpec("file", str(path), column="text", label_column="label")
    encoder = {"kind": "tfidf"}
    options = {
        "dataset": json.dumps(dataset.to_json()),
        "encoder": json.dumps(encoder),
        "key": "k",
        "output": "latent",
    }
    spec = SpaceSpec("encoding", "news", options=tuple(options.items()))
    assert TableColumns(spec).names == ("year",)
    space = make_space(np.eye(2), ids=["news/1", "news/0"])
    assert TableColumns(spec).read("year", space).to_dict() == {"news/1": "1991", "news/0": "1990"}
    options["dataset"] = json.dumps(with_options(dataset, id_column="text").to_json())
    spec, space = (
        SpaceSpec("encoding", "news", options=tuple(options.items())),
        space.with_columns(ids=["more words", "first words"]),
    )
    assert TableColumns(spec).read("year", space).to_dict() == {"more words": "1991", "first words": "1990"}
    with pytest.raises(SpaceError, match="expected the ids that were encoded"):
        TableColumns(spec).read("year", space.with_columns(ids=["more words", "x"]))
