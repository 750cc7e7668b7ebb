"""Parquet: every Arrow type is read as what it holds, or refused with its column; the expected values are
Python's own.
"""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from relcore.base.errors import SpaceError
from relcore.files.reading import column_roles, load_space

X = pa.array([1.0, 2.0])


@pytest.fixture
def written(tmp_path):
    def write(columns, **options):
        path = tmp_path / "t.parquet"
        parquet.write_table(pa.table(columns), path, **options)
        return path

    return write


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array([Decimal("1.25"), Decimal("-3.50")], pa.decimal128(9, 2)), [1.25, -3.5]),
        (pa.array([1.5, 2.5]).dictionary_encode(), [1.5, 2.5]),
        (pa.array(np.array([1.5, 2.5], np.float16)), [1.5, 2.5]),
        (pa.array([2**39, 1], pa.uint64()), [2.0**39, 1]),
    ],
)
def test_types_of_numbers_are_dimensions(written, column, values):
    path = written({"id": ["a", "b"], "y": column})
    assert [one.role for one in column_roles(path).columns] == ["ids", "dimension"]
    assert load_space(path).vectors[:, 0].tolist() == values
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), column)
    if not pa.types.is_dictionary(column.type):
        assert load_space(written({"id": ["a", "b"], "y": lists})).vectors[:, 0].tolist() == values


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([0.0, 1.0]), ["0", "1"]),
        (pa.array([b"w0", b"\xc3\xa9"]), ["w0", "é"]),
        (pa.array([2**53 + 1, 2**63 - 1]), ["9007199254740993", "9223372036854775807"]),
        (pa.array([2**64 - 1, 0], pa.uint64()), ["18446744073709551615", "0"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array([datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)]), ["2020-01-02", "2020-01-03"]),
    ],
)
def test_ids_of_any_type(written, ids, expected):
    space = load_space(written({"id": ids, "x": X, "label": ids}))
    assert space.ids.tolist() == space.labels.tolist() == expected


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pa.array([True, False]),
            "column 'y': expected numbers or text, got true and false; mend or rename it, .*ignore",
        ),
        (
            pa.array(["1.5", "2.5"]),
            "row 1, column 'y': expected text as in other rows, got the number '1.5'; mend or rename",
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
def test_types_that_might_be_dimensions_are_not_dropped(written, column, message):
    path = written({"id": ["a", "b"], "x": X, "y": column})
    with pytest.raises(SpaceError, match=rf"t\.parquet, .*{message}"):
        load_space(path)
    assert load_space(path, ignore=["y"]).dimension == 1


@pytest.mark.parametrize("kind", [pa.list_(pa.float32(), 2), pa.large_list(pa.float16())])
def test_columns_of_vectors(written, kind):
    values = (
        [np.array([1, 2], np.float16), np.array([3, 4], np.float16)]
        if pa.types.is_large_list(kind)
        else [[1, 2], [3, 4]]
    )
    path = written({"text": ["a", "b"], "year": [1, 2], "v": pa.array(values, kind)})
    assert load_space(path).vectors.tolist() == [[1, 2], [3, 4]]
    assert [one.role for one in column_roles(path).columns] == ["ids", "left out", "dimension"]
    assert column_roles(path).dimension == (2 if pa.types.is_fixed_size_list(kind) else None)
