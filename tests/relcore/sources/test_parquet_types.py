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
from relcore.files.columns import Choices
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
        (pa.array([Decimal("1.25"), Decimal("-3.50")], pa.decimal256(60, 2)), [1.25, -3.5]),
        (pa.array([1.5, 2.5]).dictionary_encode(), [1.5, 2.5]),
        (pa.array([7, 7], pa.int8()).dictionary_encode(), [7, 7]),
        (pa.array(np.array([1.5, 2.5], np.float16)), [1.5, 2.5]),
        (pa.array([2**63, 1], pa.uint64()), [2.0**63, 1]),
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
        (pa.array([b"w0", b"w1"], pa.binary(2)), ["w0", "w1"]),
        (pa.array([b"w0", b"w1"], pa.large_binary()), ["w0", "w1"]),
        (pa.array([2**53 + 1, 2**63 - 1]), ["9007199254740993", "9223372036854775807"]),
        (pa.array([2**64 - 1, 0], pa.uint64()), ["18446744073709551615", "0"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
        (pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
        (pa.array([Decimal("7"), Decimal("8")]), ["7", "8"]),
        (pa.array([datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)]), ["2020-01-02", "2020-01-03"]),
        (pa.array(["a\nb", "a\tb\0"]), ["a\nb", "a\tb\0"]),
        (pa.array(["é", "e\u0301"]), ["é", "e\u0301"]),
        (pa.array(["a", "A"]), ["a", "A"]),
    ],
)
def test_ids_of_any_type(written, ids, expected):
    space = load_space(written({"id": ids, "x": X, "label": ids}))
    assert space.ids.tolist() == space.labels.tolist() == expected


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (pa.array([0.5, 1.0]), "row 1: expected an id as text or a whole number, got 0.5"),
        (pa.array([None, 1.0]), "row 1: expected an id, got an empty one"),
        (pa.array([float("nan"), 1.0]), "row 1: expected an id, got an empty one"),
        (pa.array([b"\xff", b"a"]), "row 1: expected an id as text or a whole number, got b'.xff'"),
        (pa.array([True, False]), "row 1: expected an id as text or a whole number, got True"),
        (pa.array([["a"], ["b"]]), r"row 1: expected an id as text or a whole number, got \['a'\]"),
        (pa.array([{"a": 1}, {"a": 2}]), "row 1: expected an id as text or a whole number, got {'a': 1}"),
        (pa.nulls(2), "row 1: expected an id, got an empty one"),
    ],
)
def test_ids_that_are_none(written, ids, message):
    with pytest.raises(SpaceError, match=rf"t\.parquet, {message}"):
        load_space(written({"id": ids, "x": X}))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pa.array([1.0, None]), ["1", ""]),
        (pa.array([float("nan"), 2.0]), ["", "2"]),
        (pa.array(["NaN", None]), ["NaN", ""]),
        (pa.array([True, False]), ["True", "False"]),
        (pa.array(["p", None]).dictionary_encode(), ["p", ""]),
    ],
)
def test_missing_labels_are_no_class(written, labels, expected):
    assert load_space(written({"id": ["a", "b"], "x": X, "label": labels})).labels.tolist() == expected


@pytest.mark.parametrize(
    ("counts", "good"),
    [
        (pa.array([2.0, 3.0]), True),
        (pa.array([Decimal("2.00"), Decimal("3.00")]), True),
        (pa.array([2, 3]).dictionary_encode(), True),
        (pa.array([2, -3]), False),
        (pa.array([2, 2**63], pa.uint64()), False),
        (pa.array([2.0, 2.5]), False),
        (pa.array([2.0, None]), False),
        (pa.array([2.0, float("nan")]), False),
        (pa.array([Decimal("2.00"), Decimal("2.50")]), False),
        (pa.array([True, False]), False),
    ],
)
def test_counts_of_any_type(written, counts, good):
    path = written({"id": ["a", "b"], "x": X, "count": counts})
    if good:
        assert load_space(path).counts.tolist() == [2, 3]
    else:
        with pytest.raises(
            SpaceError, match=r"t\.parquet, row [12]: expected whole numbers as counts, 0 to 2⁶³ − 1"
        ):
            load_space(path)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pa.array([True, False]),
            "column 'y': expected numbers or text, got true and false; mend or rename it, .*ignore",
        ),
        (pa.array([[[1.0]], [[2.0]]]), "expected numbers or one list of numbers per row, got list"),
        (pa.array([[True], [False]]), "expected numbers or one list of numbers per row, got list"),
        (
            pa.array(["1.5", "2.5"]),
            "row 1, column 'y': expected text as in other rows, got the number '1.5'; mend or rename",
        ),
        (pa.array(["1", "2"]), "row 1, column 'y': expected text as in other rows, got the number '1'"),
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


@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime.datetime(2020, 1, 1)] * 2),
        pa.array([{"bytes": b"x"}] * 2),
        pa.array([b"\xff\xd8", b"\xff\xd8"]),
        pa.array([["a"], ["b"]]),
        pa.array(["some", "text 1.5"]),
        pa.nulls(2),
    ],
)
def test_types_that_can_be_no_dimension_are_left_out_with_the_reason(written, column):
    path = written({"id": ["a", "b"], "x": X, "y": column})
    found = column_roles(path).columns[2]
    assert (found.role, bool(found.reason)) == ("left out", True)
    assert load_space(path).dimension == 1


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.list_(pa.float32(), 2),
        pa.large_list(pa.float16()),
        pa.list_view(pa.float64()),
    ],
)
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


def test_a_tensor_per_row_and_numbers_missing_in_lists(written):
    tensor = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), (2,)), pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2))
    )
    assert load_space(written({"id": ["a", "b"], "v": tensor})).vectors.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(SpaceError, match=r"1 of 2 rows hold NaN or infinite values, first 'b'"):
        load_space(written({"id": ["a", "b"], "v": [[1, 2], [None, 4]]}))


def test_whole_numbers_as_text_are_fit_for_ids(written):
    assert load_space(written({"key": ["7", "8"], "x": X})).ids.tolist() == ["7", "8"]
    with pytest.raises(
        SpaceError, match=r"column 'key': expected text as in other rows, got the number '7\.5'"
    ):
        load_space(written({"key": ["a", "7.5"], "x": X}))


def test_bytes_of_utf8_are_text(written):
    assert load_space(written({"word": pa.array([b"a", b"\xc3\xa9"]), "x": X})).ids.tolist() == ["a", "é"]
    assert load_space(written({"key": pa.array([b"a", b"b"], pa.binary(1)), "x": X})).ids.tolist() == [
        "a",
        "b",
    ]
    assert load_space(written({"picture": pa.array([b"\xff\xd8", b"a"]), "x": X})).ids.tolist() == ["0", "1"]
    with pytest.raises(
        SpaceError, match="expected one column of ids, got 'key', 'kind'; choose it with id_column"
    ):
        load_space(written({"key": pa.array([b"a", b"b"]), "kind": ["p", "q"], "x": X}))


def test_no_rows_two_columns_of_vectors_and_a_choice_between_them(written):
    with pytest.raises(SpaceError, match="expected at least one row"):
        load_space(written({"id": pa.array([], pa.string()), "x": pa.array([], pa.float32())}))
    path = written({"id": ["a", "b"], "v": [[1.0], [2.0]], "w": [[3.0], [4.0]]})
    assert [one.role for one in column_roles(path).columns] == ["ids", "unclear", "unclear"]
    assert [one.role for one in column_roles(path, Choices(ignore=("v",))).columns] == [
        "ids",
        "left out",
        "dimension",
    ]
    assert load_space(path, ignore=["v"]).vectors.tolist() == [[3], [4]]
    assert column_roles(path).n == 2
