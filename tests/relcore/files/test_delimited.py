"""csv and tsv: the roles of columns before a row is read, no guess where they are ambiguous, every byte
read as pandas does.
"""

import io
import re

import numpy as np
import pandas as pd
import pytest

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.files.columns import Choices
from relcore.files.reading import column_roles

GOOD = "word,x,y\nriver,1,-2.5\nsea,3e2,.5\n"


def table(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        b"word,x,y,\nriver,1,-2.5,\nsea,3e2,.5,\n",
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
        (",x\nthe,1\n1984,2\n", {}, "ids dimension"),
        ("id,label,count,x\na,p,3,1\n", {}, "ids labels counts dimension"),
        ("a,b,x\np,q,1\n", {"id_column": "b"}, "'left out' ids dimension"),
        ("a,b,x\np,q,1\n", {}, "unclear unclear dimension"),
        ("w,class,x\na,1,1\nb,0,2\n", {}, "ids unclear dimension"),
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
        ("w,x\na,1\nb,oops\nc,2\n", r"t\.csv, row 2, column 'x': expected a number, got 'oops'; .*ignore"),
        ("w,x,z\na,1,p\nb,2,q\nc,3,5\n", r"row 3, column 'z': expected text .*, got the number '5'; mend"),
        ("a,b,x\np,q,1\n", r"t\.csv: expected one column of ids, got 'a', 'b'; choose ids with id_column"),
        ("w,x,x\na,1,2\n", r"expected distinct column names, got 'x' .* \(columns 2, 3\); rename"),
        ("a,5,17\nb,1,2\n", r"line 1: expected the names .*, got numbers: 'a', '5', '17'; add a line"),
        ("id,x,count\na,1,\n", r"row 1: expected whole numbers as counts, .* got ''"),
    ],
)
def test_no_guess_names_place_and_remedy(tmp_path, text, message):
    with pytest.raises(SpaceError, match=message):
        load_space(table(tmp_path, text))


def test_ids_that_are_mostly_numbers_further_down_are_not_guessed(tmp_path):
    lines = "".join(f"{f'w{row}' if row < 120 else row},{row}\n" for row in range(400))
    path = table(tmp_path, f"w,x\n{lines}")
    with pytest.raises(SpaceError, match=r"row 1, column 'w': expected a number, got 'w0'; .*id_column"):
        load_space(path)
    assert load_space(path, id_column="w").ids[-1] == "399"
    lines = "".join(f"{f'w{row}' if row != 300 else 1984},{row}\n" for row in range(400))
    assert load_space(table(tmp_path, f"w,x\n{lines}")).ids[300] == "1984"


@pytest.mark.parametrize(
    ("content", "chosen", "ids", "note"),
    [
        (
            "Wört;x;y\nBär;1,5;2\nKühe;0,123;-3\n".encode("cp1252"),
            "",
            ["Bär", "Kühe"],
            "Windows-1252.*semicolons.*commas",
        ),
        ("word|x|y\nВесна|1.5|2\nлето|.123|-3\n".encode("cp1251"), "cp1251", ["Весна", "лето"], "1251.*bars"),
        ("word\tx\ty\nöl\t1.5\t2\nb\t.123\t-3\n".encode("utf-16"), "", ["öl", "b"], "UTF-16.*tabs"),
        ("word,x,y\nßa,1.5,2\nb,.123,-3\n".encode(), "", ["ßa", "b"], ""),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_encoding_delimiter_and_decimal_comma_are_found_and_told(tmp_path, content, chosen, ids, note):
    space = load_space(table(tmp_path, content), encoding=chosen)
    assert space.ids.tolist() == ids
    np.testing.assert_allclose(space.vectors, [[1.5, 2], [0.123, -3]], rtol=1e-6)
    assert re.search(note, space.note)
    assert bool(space.note) == bool(note)


NUMBERED = "id,price,label,v0,v1,v2,year\na,10,p,1,2,3,1990\nb,20,q,4,5,6,1991\n"


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_numbers_outside_numbered_run_are_left_out_and_named(tmp_path, suffix):
    frame = pd.read_csv(io.StringIO(NUMBERED))
    path = tmp_path / f"t{suffix}"
    {
        ".csv": lambda: frame.to_csv(path, index=False),
        ".parquet": lambda: frame.to_parquet(path),
        ".jsonl": lambda: frame.to_json(path, orient="records", lines=True),
    }[suffix]()
    with pytest.warns(UserWarning, match=rf"t\{suffix}: 'price', 'year' left out, numbers beside v0 … v2"):
        space = load_space(path)
    assert space.vectors.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert space.note.endswith("left out, numbers beside v0 … v2")
    assert (space.ids.tolist(), space.labels.tolist()) == (["a", "b"], ["p", "q"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", 'id,v\na,"[1, 2.5]"\nb,"[-3, 4e1]"\n'),
        ("t.jsonl", '{"id": "a", "v": [1, 2.5]}\n{"id": "b", "v": [-3, 40]}\n'),
    ],
)
def test_vectors_as_lists_are_read(tmp_path, name, text):
    path = table(tmp_path, text, name)
    space = load_space(path)
    assert (space.ids.tolist(), space.vectors.tolist()) == (["a", "b"], [[1, 2.5], [-3, 40]])
    with pytest.raises(SpaceError, match=r"row 2: expected a vector of 2 numbers, got 1"):
        load_space(table(tmp_path, text.replace("-3, ", ""), name))


def test_texts_of_objects_that_look_like_times_stay_as_they_are(tmp_path):
    days = ["1999-01-01", "2000-12-31T10:00:00Z"]
    row = '{"id": "%s", "label": "1999-01-01", "v": [%d, 1.5], "more": {"on": ["%s"]}}\n'
    lines = "".join(row % (day, at, day) for at, day in enumerate(days))
    space = load_space(table(tmp_path, lines, "t.jsonl"))
    assert (space.ids.tolist(), space.labels.tolist()) == (days, days[:1] * 2)
    assert space.vectors.tolist() == [[0, 1.5], [1, 1.5]]


def test_text_of_no_likely_encoding_is_refused_until_it_is_chosen(tmp_path):
    path = table(tmp_path, "слово,x,y\nвесна,1,2\n".encode("cp1251"))
    with pytest.raises(SpaceError, match=r"t\.csv, line 1: expected text in UTF-8.*'cp1251'"):
        load_space(path)
    with pytest.raises(SpaceError, match=r"encoding: expected one of .*'rot13'"):
        load_space(path, encoding="rot13")


def test_vectors_as_numpy_prints_them_are_read(tmp_path):
    (tmp_path / "v.csv").write_text('id,vector\na,"[ 1.5  2. ]"\nb,"[0.123\n -3e-1]"\n')
    space = load_space(tmp_path / "v.csv")
    np.testing.assert_allclose(space.vectors, [[1.5, 2], [0.123, -0.3]], rtol=1e-6)


@pytest.mark.parametrize("cell", ["[1.5, x]", "[1 ... 2]", "nothing", ""])
def test_a_cell_that_is_no_vector_among_vectors_is_named_with_its_row(cell, tmp_path):
    """Before, the error said that there are no columns of numbers."""
    cells = ["[1, 2]"] * 5
    cells[3] = cell
    lines = [f'w{row},"{one}"' for row, one in enumerate(cells)]
    (tmp_path / "v.csv").write_text("\n".join(["id,vector", *lines]))
    with pytest.raises(SpaceError, match=r"row 4, column 'vector': expected a list of numbers"):
        load_space(tmp_path / "v.csv")
