"""Word vectors as text and binary: exactly a word and d numbers per row, or an error that names the line."""

import gzip

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.files.reading import load_space, shape_of

ROWS = [("the", [1.0, 2.0]), ("1984", [3.0, -0.5])]
BOM = b"\xef\xbb\xbf"


def read(tmp_path, content, name="x.vec", **options):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return load_space(path, **options)


def rows_of(space):
    return list(zip(space.ids.tolist(), space.vectors.tolist(), strict=True))


@pytest.mark.parametrize("header", [b"", b"6 2\n"])
def test_words_that_hold_spaces_or_are_no_ascii(tmp_path, header):
    words = [
        ",",
        ". . .",
        "at name@domain.com",
        "a\u00a0b",
        "\u3000",
        "\x85",
    ]  # GloVe's 840B and Twitter have such
    content = header + "".join(f"{word} {i} {i + 0.5}\n" for i, word in enumerate(words)).encode()
    assert rows_of(read(tmp_path, content)) == [(word, [i, i + 0.5]) for i, word in enumerate(words)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"2 3\na 1 2\nb 3 4\n", r"line 2: expected a word and 3 numbers, got 'a 1 2'.*line 1"),
        (b"2 2\na 1 2\nb 1_000 2\n", r"line 3: expected a word and 2 numbers, got 'b 1_000 2'"),
        ("2 2\nn\u00e9 1 2\nb 3 4\n".encode("latin-1"), r"line 2: expected UTF-8 text.*save it as UTF-8"),
        (b"1 2\na 1 2\nb 3 4\n", r"promises 1 rows, but more follow"),
        (b"2 2\na 1 nan\nb 3 4\n", r"1 of 2 rows hold NaN or infinite values, first 'a'; .*invalid='drop'"),
    ],
)
@pytest.mark.parametrize("many", [1])
def test_text_that_is_no_row_names_its_line(tmp_path, content, message, many, monkeypatch):
    monkeypatch.setattr("relcore.files.arrays._LINES_AT_ONCE", 1 if many else 2_000)
    with pytest.raises(SpaceError, match=message):
        read(tmp_path, content)


def test_a_byte_order_mark_hides_no_shape(tmp_path):
    for content, shape in ((BOM + b"2 2\nthe 1 2\n1984 3 4\n", (2, 2)), (BOM + b"the 1 2\n", (None, 2))):
        (tmp_path / "x.vec").write_bytes(content)
        assert shape_of(tmp_path / "x.vec") == shape


def binary(*rows, header=None, between=b"\n"):
    header = b"%d %d\n" % (len(rows), len(rows[0][1])) if header is None else header
    return header + between.join(word.encode() + b" " + np.array(row, "<f4").tobytes() for word, row in rows)


@pytest.mark.parametrize("between", [b"\n", b""])
def test_binary_with_and_without_line_ends(tmp_path, between):
    assert rows_of(read(tmp_path, binary(*ROWS, between=between), "x.bin")) == ROWS
