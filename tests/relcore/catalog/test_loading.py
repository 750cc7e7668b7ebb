"""`load_space` takes the names that the commands take."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from relcore import LatentSpace, SpaceSpec, load_space, save_space
from relcore.base.errors import SpaceError
from relcore.stores.index import StoredRows, StorePlace, Target, write_index


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("two.npz", a=np.eye(3), b=2 * np.eye(4))
    Path("t.csv").write_text("word,year,x,y\na,1999,1,2\nb,2000,3,4\n")
    return tmp_path


def test_matrix_and_columns_are_chosen_after_name_or_as_arguments(folder):
    assert load_space("two.npz#matrix=b").digest == load_space("two.npz", matrix="b").digest
    assert load_space("two.npz#matrix=b", limit=2, name="few").name == "few"
    chosen = load_space("t.csv#id_column=word#ignore=year", limit=1)
    assert (chosen.ids.tolist(), chosen.vectors.tolist()) == (["a"], [[1, 2]])
    with pytest.raises(SpaceError, match="'matrix' once"):
        load_space("two.npz#matrix=b", matrix="a")
    with pytest.raises(SpaceError, match="after '#', got 'matrx'"):
        load_space("two.npz#matrx=b")


def test_message_of_file_with_two_matrices_is_followed(folder):
    with pytest.raises(SpaceError, match=r"matrix") as refused:
        load_space("two.npz")
    assert "#matrix=" in str(refused.value)


def test_file_whose_name_looks_like_options_is_that_file(folder):
    save_space(np.eye(2), "x#matrix=b.npz")
    assert len(load_space("x#matrix=b.npz")) == 2
    with pytest.raises(SpaceError, match=r"two\.npz#matrix=b"):
        load_space(Path("two.npz#matrix=b"))


def test_store_and_bundled_space_have_names(folder):
    rows = StoredRows(["a", "b"], np.eye(2, dtype=np.float32))
    write_index(StorePlace("lancedb", "base", "words"), [rows], Target(2, 2))
    assert load_space("lancedb:base#words").ids.tolist() == ["a", "b"]
    bundled = load_space("word2vec-novels", limit=10, name="novels")
    assert bundled.digest == SpaceSpec("bundled", "word2vec-novels", limit=10).load().digest
    assert bundled.name == "novels"
    with pytest.raises(SpaceError, match="expected 'ids' only for a vector file, got a space from 'bundled'"):
        load_space("word2vec-novels", ids="rows")
    with pytest.raises(SpaceError, match="did you mean 'word2vec-novels'"):
        load_space("word2vec-novel")


def test_warning_points_to_line_of_caller(folder):
    save_space(LatentSpace(np.eye(2)), "rows.npz")
    Path("twice.csv").write_text("id,x\na,1\na,2\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_space("twice.csv", duplicates="first")
    assert [one.filename for one in caught] == [__file__]


def test_rows_in_memory_lead_to_the_class_of_spaces():
    with pytest.raises(SpaceError, match=r"got DataFrame of shape \(2, 1\); .* by relcore.LatentSpace"):
        load_space(pd.DataFrame({"x": [1.0, 2.0]}))
