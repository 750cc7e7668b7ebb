"""Word vectors as text: exactly a word and d numbers per row, or an error that names the line."""

import pytest

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.files.reading import shape_of

BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize("header", [b"", b"6 2\n", BOM + b"6 2\n"])
def test_words_that_hold_spaces_or_are_no_ascii(tmp_path, header):
    # GloVe's 840B and Twitter have such words.
    words = [",", ". . .", "at name@domain.com", "a\u00a0b", "\u3000", "\x85"]
    content = header + "".join(f"{word} {i} {i + 0.5}\n" for i, word in enumerate(words)).encode()
    path = tmp_path / "x.vec"
    path.write_bytes(content)
    space = load_space(path)
    assert space.ids.tolist() == words
    assert space.vectors.tolist() == [[i, i + 0.5] for i in range(6)]
    assert shape_of(path) == (6 if header else None, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"2 3\na 1 2\nb 3 4\n", r"line 2: expected a word and 3 numbers, got 'a 1 2'.*line 1"),
        (b"2 2\na 1 2\nb 1_000 2\n", r"line 3: expected a word and 2 numbers, got 'b 1_000 2'"),
        ("2 2\nn\u00e9 1 2\nb 3 4\n".encode("latin-1"), r"line 2: expected UTF-8 text.*save it as UTF-8"),
        (b"1 2\na 1 2\nb 3 4\n", r"promises 1 rows, but more follow"),
    ],
)
def test_text_that_is_no_row_names_its_line(tmp_path, content, message, monkeypatch):
    monkeypatch.setattr("relcore.files.word_vectors._LINES_AT_ONCE", 1)
    (tmp_path / "x.vec").write_bytes(content)
    with pytest.raises(SpaceError, match=message):
        load_space(tmp_path / "x.vec")
