"""Lists of pairs from files, right and wrong ones."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from relcore.base.errors import SpaceError
from relcore.encoders.datasets import read_pair_list


@pytest.fixture
def write(tmp_path):
    def write(content, name="list.tsv"):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write


def test_columns_of_text_in_their_order_whatever_else_there_is(write):
    found = read_pair_list(write("n\ten\tfr\n1\tGood  day\tBonjour\n2\tThanks\tMerci\n"))
    assert found.name == "list"
    assert len(found) == 2
    assert found.columns == {"en": ("Good day", "Thanks"), "fr": ("Bonjour", "Merci")}
    assert found.pairs("fr", "en")[0] == ("Bonjour", "Good day")


def test_ids_that_are_numbers_pair_too(write):
    assert read_pair_list(write("one,other\n1,9\n2,8\n", "ids.csv")).pairs("one", "other") == (
        ("1", "9"),
        ("2", "8"),
    )


def test_numbers_of_parquet_pair_as_they_were_meant(tmp_path):
    parquet.write_table(pa.table({"one": [0.0, 1.0], "other": [0, 7]}), tmp_path / "ids.parquet")
    assert read_pair_list(tmp_path / "ids.parquet").pairs("one", "other") == (("0", "0"), ("1", "7"))


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (
            "en\nhello\n",
            "a.tsv",
            r"a.tsv: expected two columns, one per language, got 'en'; .* separate cells by tabs",
        ),
        ("en,fr\n", "a.csv", "expected two pairs or more beneath the line of names, got 0"),
        ("en,fr\nhi,\nbye,adieu\n", "a.csv", "expected text in every cell of 'fr', got 1 empty, first row 0"),
        ("en,fr\nhi,salut,oups\n", "a.csv", "expected 2 cells"),
        ("en fr", "a.txt", "expected a list of pairs in a .csv, .tsv or .parquet file, got '.txt'"),
        ("", "a.csv", "expected distinct column names"),
    ],
)
def test_wrong_files_say_how_to_mend_them(write, content, name, message):
    with pytest.raises(SpaceError, match=message):
        read_pair_list(write(content, name))
