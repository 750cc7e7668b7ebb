"""Tables and what holds for every format: types, ids, labels, counts, rows that are left out."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.files import table_formats, text_tables
from relcore.files.formats import checked_ids
from relcore.spaces.ids import checked_counts


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_batches_join_without_seam_and_stop_at_limit(tmp_path, suffix, monkeypatch):
    for module in (table_formats, text_tables):
        monkeypatch.setattr(module, "BLOCK_BYTES", 2_000)
    monkeypatch.setattr(table_formats, "BATCH_ROWS", 70)
    frame = pd.DataFrame({"x": np.arange(1_000.0), "y": -np.arange(1_000.0)})
    path = tmp_path / f"t{suffix}"
    frame.insert(0, "w", [f"w{i}" for i in range(1_000)])
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path, index=False)
    for limit in (None, 69, 70, 71, 500):
        space = load_space(path, limit=limit)
        np.testing.assert_array_equal(space.vectors[:, 1], -np.arange(limit or 1_000))
        assert space.ids[-1] == f"w{len(space) - 1}"
    with pytest.raises(SpaceError, match="more than max_bytes = 4 kB"):
        load_space(path, max_bytes=4_000)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pa.array([True, False]),
            "column 'y': expected numbers or text, got true and false; mend or rename this column, .*ignore",
        ),
        (
            pa.ExtensionArray.from_storage(
                pa.fixed_shape_tensor(pa.float32(), (2, 1)),
                pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)),
            ),
            r"got an array of shape \(2, 1\)",
        ),
    ],
)
def test_types_that_might_be_dimensions_are_not_dropped(tmp_path, column, message):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"id": ["a", "b"], "x": [1.0, 2.0], "y": column}), path)
    with pytest.raises(SpaceError, match=rf"t\.parquet, .*{message}"):
        load_space(path)
    assert load_space(path, ignore=["y"]).dimension == 1


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (["a", "A", "é", "e\u0301", "a\nb", "a\tb", "NA", "nan", "\x85"], None),
        ([7, 2**53 + 1, -1], ["7", "9007199254740993", "-1"]),
        ([Decimal("2.00"), np.int64(4), np.str_("x")], ["2", "4", "x"]),
        ([datetime.date(2020, 1, 2), "é".encode()], ["2020-01-02", "é"]),
    ],
)
def test_ids_as_they_were_meant(given, ids):
    assert checked_ids(given, "t") == (ids or given)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "expected an id, got an empty one; fill it"),
        (0.5, "expected an id as text or a whole number, got 0.5; save the column as text"),
        (True, "whole number, got True"),
        ("\ud800x", "expected Unicode text"),
    ],
)
def test_ids_that_are_none_name_their_row(bad, message):
    with pytest.raises(SpaceError, match=f"t.csv, row 2: .*{message}"):
        checked_ids(["a", bad], "t.csv")


@pytest.mark.parametrize("bad", [-1, 2.5, 2**63, "many"])
def test_counts_that_are_none_name_their_row(bad):
    with pytest.raises(
        SpaceError, match=r"t\.csv, row 2: expected whole numbers as counts, 0 to 2⁶³ − 1, got .*; mend"
    ):
        checked_counts([1, bad], "t.csv")


@pytest.fixture
def table(tmp_path):
    def write(*rows):
        (tmp_path / "t.csv").write_text("\n".join(["id,x,y,label,count", *rows]) + "\n")
        return tmp_path / "t.csv"

    return write


@pytest.mark.parametrize("bad", ["nan,1", "1e300,1"])
def test_nan_and_infinite_rows_are_error_or_dropped_and_counted(table, bad):
    path = table("a,1,2,p,9", f"b,{bad},q,8", "c,3,4,p,7")
    with pytest.raises(
        SpaceError, match=r"1 of 3 rows hold NaN or infinite values, first 'b'; .*invalid='drop'"
    ):
        load_space(path)
    with pytest.warns(UserWarning, match="t: left out 1 of 3 rows with NaN or infinite values"):
        space = load_space(path, invalid="drop")
    assert (list(space.ids), list(space.labels), list(space.counts)) == (["a", "c"], ["p", "p"], [9, 7])
    np.testing.assert_array_equal(space.vectors, [[1, 2], [3, 4]])


def test_duplicate_ids_are_error_or_first_is_kept(table):
    path = table("a,1,2,p,9", "b,3,4,q,8", "a,5,6,r,7")
    with pytest.raises(SpaceError, match=r"1 occur more than once, first 'a'; .*duplicates='first'"):
        load_space(path)
    with pytest.warns(UserWarning, match="left out 1 of 3 rows with ids seen before"):
        space = load_space(path, duplicates="first")
    assert (list(space.ids), list(space.labels)) == (["a", "b"], ["p", "q"])
