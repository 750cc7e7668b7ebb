"""csv and tsv: the roles of columns before a row is read, no guess where they are ambiguous, every byte
read as pandas does.
"""

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
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        b'"word","x","y"\n"river","1","-2.5"\n"sea","3e2",".5"\n',
        b"word,x,y,\nriver,1,-2.5,\nsea,3e2,.5,\n",  # as spreadsheets end lines
        b"word,x,note,y\nriver,1,a,-2.5\nsea,3e2,b,.5\n",
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
        (GOOD, {"id_column": "word", "ignore": ("x",)}, "ids 'left out' dimension"),
        ("x,y\n1,2\n", {}, "dimension dimension"),
        (",x\nthe,1\n1984,2\n", {}, "ids dimension"),
        (",id,x\n0,7,1\n1,8,2\n", {}, "'left out' ids dimension"),
        ("id,label,count,x\na,p,3,1\n", {}, "ids labels counts dimension"),
        ("a,b,x\np,q,1\n", {"id_column": "b"}, "'left out' ids dimension"),
        ("a,b,x\np,q,1\n", {}, "unclear unclear dimension"),
        ("w,x\na,1\nb,oops\n", {}, "ids unclear"),
        ("w,class,x\na,1,1\nb,0,2\n", {}, "ids unclear dimension"),
        ("w,x,z\na,1,NaN\nb,2,\n", {}, "ids dimension dimension"),
    ],
)
def test_roles_before_reading(tmp_path, text, choices, expected):
    found = column_roles(table(tmp_path, text), Choices(**choices))
    assert " ".join(repr(one.role) if " " in one.role else one.role for one in found.columns) == expected
    assert all(column.reason for column in found.columns)
    assert found.n == text.count("\n") - 1


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
        (
            "w,x\nthe,1\nof,3\n1984,2\n",
            r"line 4, column 'w': expected text as in other rows, got the number '1984'",
        ),
        ("a,b,x\np,q,1\n", r"t\.csv: expected one column of ids, got 'a', 'b'; choose it with id_column"),
        (
            "w,x,x\na,1,2\n",
            r"expected distinct column names, got 'x' more than once \(columns 2, 3\); rename",
        ),
        ("w,x\na,10%\n", r"got '10%'"),
        (
            "w;x;y\na;1,5;2\n",
            (
                r"line 1: expected columns of numbers, got 'w;x;y' .* separated by a comma, and these by a"
                r" semicolon"
            ),
        ),
        (
            "a,5,17\nb,1,2\n",
            r"line 1: expected the names of the columns, got numbers: 'a', '5', '17'; add a line",
        ),
        ("word,x\n,1\nb,2\n", r"t\.csv, row 1: expected an id, got an empty one"),
        ("id,x,count\na,1,\n", r"row 1: expected whole numbers as counts, .* got ''"),
    ],
)
def test_no_guess_names_place_and_remedy(tmp_path, text, message):
    with pytest.raises(SpaceError, match=message):
        load_space(table(tmp_path, text))


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
