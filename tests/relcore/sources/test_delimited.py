"""csv and tsv: the roles of columns before a row is read, no guess where they are ambiguous, every byte
read as pandas does.
"""

import csv
import io

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.files.columns import Choices
from relcore.files.reading import column_roles, load_space

GOOD = "word,x,y\nriver,1,-2.5\nsea,3e2,.5\n"


def table(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def roles(path, **choices):
    return [(column.name, column.role) for column in column_roles(path, Choices(**choices)).columns]


@pytest.mark.parametrize(
    "content",
    [
        GOOD.encode(),
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.rstrip().encode(),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("\n", "\r").encode(),
        GOOD.replace("\n", "\n\n").encode(),
        b'"word","x","y"\n"river","1","-2.5"\n"sea","3e2",".5"\n',
        b"word , x,y \nriver, 1 ,-2.5\nsea,3e2, .5\n",
        b"word,x,y,\nriver,1,-2.5,\nsea,3e2,.5,\n",  # as spreadsheets end lines
        b"word,x,note,y\nriver,1,a,-2.5\nsea,3e2,b,.5\n",
        b"word,x,y,note\nriver,1,-2.5,a\nsea,3e2,.5," + b"long " * 40_000 + b"\n",
    ],
)
def test_forms_of_one_table_are_as_pandas_reads_them(tmp_path, content):
    frame = pd.read_csv(io.BytesIO(content), skipinitialspace=True).rename(columns=str.strip)
    space = load_space(table(tmp_path, content))
    np.testing.assert_array_equal(space.vectors, frame[["x", "y"]].to_numpy(np.float32))
    assert space.ids.tolist() == frame["word"].tolist()
    tabs = content.replace(b",", b"\t")
    np.testing.assert_array_equal(load_space(table(tmp_path, tabs, "t.tsv")).vectors, space.vectors)


@pytest.mark.parametrize(
    ("text", "choices", "expected"),
    [
        (GOOD, {}, "ids dimension dimension"),
        (GOOD, {"id_column": "word", "ignore": ("x",)}, "ids 'left out' dimension"),
        ("name,x\na,1\n", {}, "ids dimension"),
        ("x,y\n1,2\n", {}, "dimension dimension"),
        (",x\n5,1.5\n7,2.5\n", {}, "ids dimension"),
        (",x\nthe,1\n1984,2\n", {}, "ids dimension"),
        (",id,x\n0,7,1\n1,8,2\n", {}, "'left out' ids dimension"),
        ("word,x\nthe,1\n1984,2\nnan,3\n", {}, "ids dimension"),
        ("id,word,x\n1,the,1\n2,of,2\n", {}, "ids 'left out' dimension"),
        ("id,label,count,x\na,p,3,1\n", {}, "ids labels counts dimension"),
        (
            "id,label,count,x\na,p,3,1\n",
            {"label_column": None, "ignore": ("label",)},
            "ids 'left out' counts dimension",
        ),
        ("a,b,x\np,q,1\n", {"id_column": "b"}, "'left out' ids dimension"),
        ("a,b,x\np,q,1\n", {"label_column": "a"}, "labels ids dimension"),
        ("a,b,x\np,q,1\n", {}, "unclear unclear dimension"),
        (",kind,x\n0,p,1\n1,q,2\n", {}, "unclear unclear dimension"),
        (",kind,x\n0,p,1\n1,q,2\n", {"id_column": ""}, "ids 'left out' dimension"),
        ("w,x\na,1\nb,oops\n", {}, "ids unclear"),
        ("w,class,x\na,1,1\nb,0,2\n", {}, "ids unclear dimension"),
        ("w,user_id,x\na,1,1\nb,0,2\n", {"ignore": ("user_id",)}, "ids 'left out' dimension"),
        ("w,x,z\na,1,\nb,2,\n", {}, "ids dimension unclear"),
        ("w,x,z\na,1,NaN\nb,2,\n", {}, "ids dimension dimension"),
        ("word,0,1,2\nthe,1,2,3\n", {}, "ids dimension dimension dimension"),
    ],
)
def test_roles_before_reading(tmp_path, text, choices, expected):
    found = column_roles(table(tmp_path, text), Choices(**choices))
    assert " ".join(repr(one.role) if " " in one.role else one.role for one in found.columns) == expected
    assert all(column.reason for column in found.columns)
    assert found.n == text.count("\n") - 1


def test_the_number_of_rows_is_known_only_where_the_sample_ends_the_file(tmp_path):
    path = table(tmp_path, "w,x\n" + "".join(f"w{row},{row}\n" for row in range(101)))
    found = column_roles(path)
    assert (found.n, found.dimension) == (None, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "w,x\na,1\nb,oops\nc,2\n",
            r"t\.csv, line 3, column 'x': expected a number, got 'oops'; mend or rename it, .*ignore",
        ),
        (
            "w,x,z\na,1,p\nb,2,q\nc,3,5\n",
            r"line 4, column 'z': expected text as in other rows, got the number '5'; mend",
        ),
        ("w,x,y\na,1,'-'\nb,2,1.5\nc,2,1.5\n", r"line 2, column 'y': expected a number, got \"'-'\""),
        ("the,1984,x\n1984,1,1\nof,2,2\n", r"expected the names of the columns, got numbers"),
        (
            "w,x\nthe,1\nof,3\n1984,2\n",
            r"line 4, column 'w': expected text as in other rows, got the number '1984'",
        ),
        ("a,b,x\np,q,1\n", r"t\.csv: expected one column of ids, got 'a', 'b'; choose it with id_column"),
        (",kind,x\n0,p,1\n1,q,2\n", r"expected one column of ids, got '', 'kind'; choose it with id_column"),
        (",x,y\n0.5,1,2\n", r"column '': expected a name, got none above numbers"),
        ("w,,x\na,1,2\n", r"expected a name for each column, got none for column 2"),
        (
            "w,x,x\na,1,2\n",
            r"expected distinct column names, got 'x' more than once \(columns 2, 3\); rename",
        ),
        ("w,x, x\na,1,2\n", r"expected distinct column names, got 'x' more than once"),
        ("id,ID,x\na,1,2\n", r"expected one column of ids, got 'id', 'ID'; choose one with id_column"),
        (
            "w,count,counts,x\na,1,2,3\n",
            r"expected one column of counts, got 'count', 'counts'; choose one with count_column",
        ),
        (
            'w,x\na,"1,5"\nb,"2,5"\n',
            r"line 2, column 'x': expected a number, with a decimal point and no .*, got '1,5'",
        ),
        (
            'w,x\na,"1,234.5"\nb,2\n',
            r"line 2, column 'x': expected a number, with a decimal point .*, got '1,234.5'",
        ),
        ("w,x\na,1 234\n", r"got '1 234'"),
        ("w,x\na,1_000\n", r"got '1_000'"),
        ("w,x\na,\u0661\n", r"got '\u0661'"),
        (
            "w,x\na,\u22121.5\n",
            r"line 2, column 'x': expected a number, with a decimal point .*, got '\u22121.5'",
        ),
        ("w,x\na,0x1p3\n", r"got '0x1p3'"),
        ("w,x\na,10%\n", r"got '10%'"),
        ("w,x\na,$5\n", r"got '\$5'"),
        (
            "w;x;y\na;1,5;2\n",
            (
                r"line 1: expected columns of numbers, got 'w;x;y' .* separated by a comma, and these by a"
                r" semicolon"
            ),
        ),
        ("w\tx\na\t1\n", r"line 1: .* separated by a comma, and these by a tab"),
        (
            "w,class,x\na,1,1\nb,0,2\n",
            r"column 'class': expected a dimension, got numbers that may be none, .*ignore",
        ),
        ("w,x,z\na,1,\nb,2,\n", r"column 'z': expected numbers or text, got empty cells in the first rows"),
        ("w,x\na,1\nb,2,3\n", r"line 3: expected 2 cells as in line 1, got 3"),
        ("w,x\na,1\nb\n", r"line 3: expected 2 cells as in line 1, got 1"),
        ("x\n1\n2 3\n", r"line 3, column 'x': expected a number, got '2 3'"),
        (
            "a,5,17\nb,1,2\n",
            r"line 1: expected the names of the columns, got numbers: 'a', '5', '17'; add a line",
        ),
        ("w,x\na\0b,1\n", r"a zero byte"),
        ("w,x\na,1\n".encode("utf-16"), r"save it as UTF-8"),
        ("w,x\na,1\n".encode("utf-16-le"), r"a zero byte"),
        ("w,x\nn\u00e9,1\n".encode("latin-1"), r"save it as UTF-8"),
        ("w,x\n", r"expected at least one row below the column names, got none"),
        ("word,x\n,1\nb,2\n", r"t\.csv, row 1: expected an id, got an empty one"),
        ("id,x,count\na,1,-2\n", r"t\.csv, row 1: expected whole numbers as counts, 0 to 2⁶³ − 1, got '-2'"),
        ("id,x,count\na,1,2.5\n", r"row 1: expected whole numbers as counts"),
        ("id,x,count\na,1,\n", r"row 1: expected whole numbers as counts, .* got ''"),
        ("id,x,count\na,1,9223372036854775808\n", r"row 1: expected whole numbers as counts"),
        ("id,x\na,nan\n", r"1 of 1 rows hold NaN or infinite values, first 'a'"),
        ("id,x\na,-inf\nb,1\n", r"1 of 2 rows hold NaN or infinite values, first 'a'"),
    ],
)
def test_no_guess_names_place_and_remedy(tmp_path, text, message):
    with pytest.raises(SpaceError, match=message):
        load_space(table(tmp_path, text))


def rows(cell, at=150, n=200, first="p"):
    """A table whose third column is text but for one row."""
    return "id,x,z\n" + "".join(f"w{row},{row},{cell if row == at else first}\n" for row in range(n))


def test_ids_that_are_mostly_numbers_further_down_are_not_guessed(tmp_path):
    path = table(
        tmp_path, "w,x\n" + "".join(f"{f'w{row}' if row < 120 else row},{row}\n" for row in range(400))
    )
    with pytest.raises(
        SpaceError, match=r"column 'w': expected text, got numbers in 280 of 400 rows; .*id_column"
    ):
        load_space(path)
    assert load_space(path, id_column="w").ids[-1] == "399"
    few = table(
        tmp_path, "w,x\n" + "".join(f"{f'w{row}' if row != 300 else 1984},{row}\n" for row in range(400))
    )
    assert load_space(few).ids[300] == "1984"


def test_missing_labels_are_no_class(tmp_path):
    path = table(tmp_path, "id,label,x\na,nan,1\nb,,2\nc,3,3\nd,NA,4\n")
    assert load_space(path).labels.tolist() == ["", "", "3", ""]


def test_choices_that_contradict_each_other(tmp_path):
    path = table(tmp_path, GOOD)
    for choices, message in [
        (
            {"id_column": "x", "label_column": "x"},
            r"label_column: expected a column that has no other role, got 'x'",
        ),
        ({"id_column": "x", "ignore": ["x"]}, r"ignore: expected columns without a role, got 'x'"),
        ({"ignore": ["nope"]}, r"ignore expects one of 'word', 'x', 'y', got 'nope'"),
        ({"count_column": "nope"}, r"count_column expects one of 'word', 'x', 'y', got 'nope'"),
    ]:
        with pytest.raises(SpaceError, match=message):
            load_space(path, **choices)


def test_one_cell_of_three_hundred_kilobytes_and_ten_thousand_columns(tmp_path):
    buffer = io.StringIO()
    csv.writer(buffer).writerows([["id", "text", "x"], ["a", "long, " * 50_000, 1], ["b", "short", 2]])
    assert load_space(table(tmp_path, buffer.getvalue())).vectors.tolist() == [[1], [2]]
    names = ",".join(map(str, range(10_000)))
    wide = table(tmp_path, f"id,{names}\na,{names}\n")
    assert load_space(wide).vectors.tolist() == [list(range(10_000))]
