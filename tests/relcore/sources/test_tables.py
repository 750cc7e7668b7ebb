"""csv, tsv and parquet: what is a dimension, what an id, and the line at which a table goes wrong."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from relcore.base.errors import SpaceError
from relcore.files import tables
from relcore.files.reading import load_space

FRAME = pd.DataFrame({"word": ["a", "b, b", "ç"], "x": [1.5, 2, 3], "kind": ["p", "q", "p"], "y": [4, 5, 6]})


def write(frame, path, index=False):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=index)
    else:
        frame.to_csv(path, index=index, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("limit", [None, 2])
def test_number_columns_are_dimensions_and_the_first_text_the_ids(tmp_path, suffix, limit):
    space = load_space(write(FRAME, tmp_path / f"t{suffix}"), limit=limit, label_column="kind")
    np.testing.assert_array_equal(space.vectors, [[1.5, 4], [2, 5], [3, 6]][:limit])
    assert list(space.ids) == ["a", "b, b", "ç"][:limit]
    assert list(space.labels) == ["p", "q", "p"][:limit]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_usual_names_are_known_and_options_override_them(tmp_path, suffix):
    frame = pd.DataFrame(
        {"x": [1.0, 2], "ID": [7, 8], "y": [3.0, 4], "label": [0, 1], "count": [9, 5], "other": ["m", "n"]}
    )
    path = write(frame, tmp_path / f"t{suffix}")
    space = load_space(path)
    assert (list(space.ids), list(space.labels), list(space.counts)) == (["7", "8"], ["0", "1"], [9, 5])
    np.testing.assert_array_equal(space.vectors, [[1, 3], [2, 4]])
    other = load_space(path, id_column="other", ignore=["ID", "count"], count_column="y")
    assert (list(other.ids), other.dimension, list(other.counts)) == (["m", "n"], 1, [3, 4])
    with pytest.raises(
        SpaceError,
        match="column 'ID': expected a dimension, got numbers that may be none, judged by the name",
    ):
        load_space(path, id_column="other")
    with pytest.raises(SpaceError, match=r"id_column expects one of 'x', 'ID'.*got 'nope'"):
        load_space(path, id_column="nope")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_index_without_a_name_is_no_dimension(tmp_path, suffix):
    path = write(FRAME[["x", "y"]].iloc[::-1], tmp_path / f"t{suffix}", index=True)
    space = load_space(path)
    assert list(space.ids) == ["2", "1", "0"]
    np.testing.assert_array_equal(space.vectors, [[3, 6], [2, 5], [1.5, 4]])


@pytest.mark.parametrize(
    "arrow_type", [pa.list_(pa.float32()), pa.list_(pa.float64(), 2), pa.large_list(pa.int16())]
)
def test_parquet_with_a_column_of_vectors(tmp_path, arrow_type):
    vectors = [[1, 2], [3, 4], [5, 6]]
    table = pa.table({"text": ["a", "b", "c"], "year": [1, 2, 3], "embedding": pa.array(vectors, arrow_type)})
    parquet.write_table(table, tmp_path / "t.parquet")
    space = load_space(tmp_path / "t.parquet", limit=2)
    np.testing.assert_array_equal(space.vectors, vectors[:2])
    assert list(space.ids) == ["a", "b"]


@pytest.mark.parametrize("second", [[3], None])
def test_parquet_with_vectors_of_unequal_length(tmp_path, second):
    parquet.write_table(pa.table({"v": pa.array([[1.0, 2], second])}), tmp_path / "t.parquet")
    with pytest.raises(SpaceError, match=r"row 2: expected a vector of 2 numbers, got [01]"):
        load_space(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("w,x,y\na,1,2\nb,3\n", r"t\.csv, line 3: expected 3 cells as in line 1, got 2"),
        ("w,x,y\na,1,2\n\nb,3,4,5\n", r"line 4: expected 3 cells as in line 1, got 4"),
        ("w,x,y\na,1,2\nb,oops,3\n", r"line 3, column 'x': expected a number, got 'oops'; mend or rename it"),
        ("x,y\n1,2\noops,3\n", r"line 3, column 'x': expected a number, got 'oops'"),
        ('w,x,y\n"two\nlines",1,2\nb,3,oops\n', r"line 4, column 'y': expected a number, got 'oops'"),
        ("the,0.1,0.2\na,1.5,2\n", r"line 1: expected the names of the columns, got numbers: 'the', '0.1'"),
        ("w;x;y\na;1;2\n", r"expected columns of numbers, got 'w;x;y' without one; is the delimiter right"),
        ("w,v\na,b\n", r"expected columns of numbers, got 'w', 'v' without one"),
        ("w,x\n", r"expected at least one row below the column names, got none"),
        ("\n\n", r"expected a line of column names"),
        ("w,x,count\na,1,many\n", r"expected whole numbers as counts"),
    ],
)
def test_broken_text_names_line_and_column(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SpaceError, match=message):
        load_space(tmp_path / "t.csv")


def test_numbered_columns_byte_order_mark_and_quoted_line_breaks(tmp_path):
    (tmp_path / "t.csv").write_text('\ufeffword,0,1\n"two\nlines", 1 ,2e0\nNA,-3,4\n', encoding="utf-8")
    space = load_space(tmp_path / "t.csv")
    assert list(space.ids) == ["two\nlines", "NA"]
    np.testing.assert_array_equal(space.vectors, [[1, 2], [-3, 4]])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_batches_join_without_a_seam_and_stop_at_the_limit(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 2_000)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 70)
    frame = pd.DataFrame(
        {"w": [f"w{i}" for i in range(1_000)], "x": np.arange(1_000.0), "y": -np.arange(1_000.0)}
    )
    path = write(frame, tmp_path / f"t{suffix}")
    for limit in (None, 69, 70, 71, 500):
        space = load_space(path, limit=limit)
        np.testing.assert_array_equal(space.vectors[:, 1], -np.arange(limit or 1_000))
        assert space.ids[-1] == f"w{len(space) - 1}"
    with pytest.raises(SpaceError, match="more than max_bytes = 4 kB"):
        load_space(path, max_bytes=4_000)
