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


@pytest.mark.parametrize("name", ["x.vec", "x.txt", "x.vec.gz", "x.gz"])
@pytest.mark.parametrize(
    "content",
    [
        b"2 2\nthe 1 2\n1984 3 -.5\n",
        b"the 1 2\n1984 3 -.5\n",
        BOM + b"2 2\nthe 1 2\n1984 3 -.5\n",
        BOM + b"the 1 2\n1984 3 -.5\n",
        b"2 2\r\nthe 1 2\r\n1984 3 -.5\r\n",
        b"2 2 \nthe 1 2 \n1984 3 -.5 \n",  # as fastText ends its lines
        b"2\t2\nthe\t1\t2\n1984\t3\t-.5",
        b"2 2\nthe  1.0   2.\n1984  3e0 -5E-1\n\n",
        b"2 2\nthe +1 2\n1984 3 -.5\n",
    ],
)
def test_forms_of_one_file(tmp_path, name, content):
    assert rows_of(read(tmp_path, content, name)) == ROWS


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
        (b"2 1\na 1 2\nb 3 4\n", r"x\.vec, line 2: expected a word and 1 number, got 'a 1 2'.*line 1"),
        (b"2 3\na 1 2\nb 3 4\n", r"line 2: expected a word and 3 numbers, got 'a 1 2'.*line 1"),
        (b"a 1 2\nb 3 4 5\n", r"line 2: expected a word and 2 numbers, got 'b 3 4 5'"),
        (b"a 1 2 3\nb 3 4\n", r"line 2: expected a word and 3 numbers, got 'b 3 4'"),
        (b"2 2\na 1 2\nb x 9 3 4\n", r"line 3: expected a word and 2 numbers, got 'b x 9 3 4'"),
        (b"2 2\na 1 2\n 3 4\n", r"line 3: expected a word and 2 numbers"),
        (b"2 2\na 1 2\nb 1_000 2\n", r"line 3: expected a word and 2 numbers, got 'b 1_000 2'"),
        (b"2 2\na 1 2\nb 0x1p3 2\n", r"line 3: expected a word and 2 numbers"),
        ("2 2\na 1 2\nb \u0661 2\n".encode(), r"line 3: expected a word and 2 numbers"),
        ("2 2\na 1 2\nb 1\u00a02 3\n".encode(), r"line 3: expected a word and 2 numbers"),
        (b"2 2\na 1 2\nb 1,5 2\n", r"line 3: expected a word and 2 numbers, got 'b 1,5 2'"),
        (b'2 2\na 1 2\nb "1" 2\n', r"line 3: expected a word and 2 numbers"),
        (b"2 2\ra 1 2\rb 3 4\r", r"line 1: .*line feeds, got a carriage return"),
        (b"2 2\na 1 2\nb 3\r4\n", r"line 3: .*line feeds, got a carriage return"),
        (
            "2 2\na 1 2\nb 3 4\n".encode("utf-16"),
            r"line 1: expected 'n d' or a word|save it as UTF-8",
        ),
        (b"2 2\na 1 2\nb\0b 3 4\n", r"line 3: .*got a zero byte"),
        (
            "2 2\nn\u00e9 1 2\nb 3 4\n".encode("latin-1"),
            r"line 2: expected UTF-8 text.*save it as UTF-8",
        ),
        (b"2 2\x0ea 1 2\nb 3 4\n", r"line 1: expected 'n d' or a word and its numbers, got"),
        (b"3 2\na 1 2\nb 3 4\n", r"promises 3 rows, but the file ends within row 3"),
        (b"1 2\na 1 2\nb 3 4\n", r"promises 1 rows, but more follow"),
        (b"0 2\na 1 2\n", r"expected at least one row"),
        (
            b"2 2\na 1 2\na 3 4\n",
            r"ids must be distinct, 1 occur more than once, first 'a'.*duplicates='first'",
        ),
        (b"2 2\na 1 nan\nb 3 4\n", r"1 of 2 rows hold NaN or infinite values, first 'a'; .*invalid='drop'"),
        (b"2 2\na 1 2\nb -inf 4\n", r"1 of 2 rows hold NaN or infinite values, first 'b'"),
        (b"2 2\na 1 2\nb 1e39 4\n", r"1 of 2 rows hold NaN or infinite values, first 'b'"),
    ],
)
@pytest.mark.parametrize("many", [0, 1])
def test_text_that_is_no_row_names_its_line(tmp_path, content, message, many, monkeypatch):
    monkeypatch.setattr("relcore.files.word_vectors._LINES_AT_ONCE", 1 if many else 2_000)
    with pytest.raises(SpaceError, match=message):
        read(tmp_path, content)


def test_a_byte_order_mark_hides_no_shape(tmp_path):
    for content, shape in ((BOM + b"2 2\nthe 1 2\n1984 3 4\n", (2, 2)), (BOM + b"the 1 2\n", (None, 2))):
        (tmp_path / "x.vec").write_bytes(content)
        assert shape_of(tmp_path / "x.vec") == shape


def test_a_line_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("relcore.files.word_vectors._LONGEST_LINE", 50)
    with pytest.raises(SpaceError, match=r"line 3: expected at most 50 bytes per line, got more"):
        read(tmp_path, b"2 2\na 1 2\nb" + b" 3" * 100)
    with pytest.raises(SpaceError, match=r"line 1: expected at most 50 bytes per line, got more"):
        read(tmp_path, b"a" + b" 3" * 100)


def binary(*rows, header=None, between=b"\n"):
    header = b"%d %d\n" % (len(rows), len(rows[0][1])) if header is None else header
    return header + between.join(word.encode() + b" " + np.array(row, "<f4").tobytes() for word, row in rows)


@pytest.mark.parametrize("between", [b"\n", b""])
def test_binary_with_and_without_line_ends(tmp_path, between):
    assert rows_of(read(tmp_path, binary(*ROWS, between=between), "x.bin")) == ROWS


def test_binary_that_lost_a_byte(tmp_path):
    whole = binary(*[(f"word{row}", [0.1 * row, 0.2, 0.3]) for row in range(6)])
    for place in range(whole.index(b"word2") + 6, whole.index(b"word3")):
        with pytest.raises(SpaceError, match=r"expected a word at row \d of 6|ends within row 6"):
            read(tmp_path, whole[:place] + whole[place + 1 :], "x.bin")


THREE = [("the", [0.1, -0.2, 0.3]), ("river", [1.1, 0.7, -0.6]), ("end", [0.4, 0.5, 0.6])]


@pytest.mark.parametrize("limit", [None, 1, 2])
@pytest.mark.parametrize("header", [b"3 2\n", b"3 4\n", b"3 1\n", BOM + b"3 3\n"])
def test_binary_with_a_header_that_lies(tmp_path, header, limit):
    with pytest.raises(
        SpaceError, match=r"expected a word at row \d of 3|ends within row \d|more follow|first line 'n d'"
    ):
        read(tmp_path, binary(*THREE, header=header), "x.bin", limit=limit)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (b"caf\xe9", r"x\.bin: expected a word at row 2 of 2, got b'caf\\xe9', which is not UTF-8"),
        (b"a\nb", r"expected a word at row 2 of 2"),
        (b"", r"expected a word at row 2 of 2, got b''"),
    ],
)
def test_binary_words_are_text(tmp_path, word, message):
    rest = np.array([1, 2], "<f4").tobytes()
    with pytest.raises(SpaceError, match=message):
        read(tmp_path, b"2 2\nfirst " + rest + b"\n" + word + b" " + rest, "x.bin")
