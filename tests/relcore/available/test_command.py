"""`relscope available NAME` tells what a file, a store or a bundled space holds."""

import json
from pathlib import Path

import numpy as np
import pytest

from relcore.cli import main
from relcore.stores.index import StoredRows, StorePlace, Target, write_index


@pytest.fixture
def told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(name):
        assert main(["available", name, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_every_matrix_of_file_is_named_as_commands_take_it(told):
    np.savez("two.npz", a=np.eye(3), b=np.ones((4, 2)))
    spaces = told("two.npz")["spaces"]
    assert [(one["name"], one["n"], one["dimension"]) for one in spaces] == [
        ("two.npz#matrix=a", 3, 3),
        ("two.npz#matrix=b", 4, 2),
    ]
    (chosen,) = told("two.npz#matrix=b")["spaces"]
    assert (chosen["n"], chosen["dimension"]) == (4, 2)


def test_table_that_is_no_space_as_it_is_shows_its_columns_and_why(told):
    Path("texts.csv").write_text("title,body,year\na,hello there,3\nb,bye now,4\n")
    found = told("texts.csv")
    assert found["is_space"] is False
    assert "choose ids with id_column" in found["notes"][0]
    assert [one["column"] for one in found["columns"]] == ["title", "body", "year"]
    found = told("texts.csv#id_column=title#ignore=body")
    assert (found["is_space"], found["notes"], found["n"]) == (True, [], 2)


def test_store_and_bundled_space_have_rows_and_dimensions(told):
    rows = StoredRows(["a", "b"], np.ones((2, 3), np.float32))
    write_index(StorePlace("lancedb", "base", "words"), [rows], Target(2, 3))
    for name, n, d in (("lancedb:base#words", 2, 3), ("word2vec-novels", 20_000, 100)):
        (space,) = told(name)["spaces"]
        assert (space["name"], space["n"], space["dimension"]) == (name, n, d)
