"""word2vec, fastText and GloVe files, with gensim as the oracle; streamed, and precise about where they
are broken.
"""

import gzip
import tracemalloc

import numpy as np
import pytest
from gensim.models import KeyedVectors

from relcore.base.errors import SpaceError
from relcore.files import word_vectors
from relcore.files.reading import load_space

WORDS = ["the", "naïve", "猫", "New_York", "x"]
VECTORS = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)


@pytest.fixture
def written(tmp_path):
    """The same vectors as gensim writes them."""
    model = KeyedVectors(7)
    model.add_vectors(WORDS, VECTORS)
    model.save_word2vec_format(str(tmp_path / "x.bin"), binary=True)
    model.save_word2vec_format(str(tmp_path / "x.vec"), binary=False)
    model.save_word2vec_format(str(tmp_path / "glove.txt"), binary=False, write_header=False)
    for name in ("x.bin", "x.vec"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        (tmp_path / f"{name[2:]}-form.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    return tmp_path


@pytest.mark.parametrize(
    "name", ["x.bin", "x.vec", "glove.txt", "x.bin.gz", "x.vec.gz", "bin-form.gz", "vec-form.gz"]
)
@pytest.mark.parametrize("limit", [None, 1, 3, 5, 9])
def test_what_gensim_wrote_comes_back(written, name, limit):
    space = load_space(written / name, limit=limit)
    assert list(space.ids) == WORDS[:limit]
    np.testing.assert_allclose(space.vectors, VECTORS[:limit], rtol=1e-6)


def test_limit_keeps_the_rest_of_three_million_rows_unread(tmp_path):
    n, d, limit = 3_000_000, 300, 2_000
    row = np.ones(d, dtype=np.float32).tobytes()
    with (tmp_path / "big.bin").open("wb") as file:
        file.write(f"{n} {d}\n".encode())
        file.writelines(f"w{i} ".encode() + row + b"\n" for i in range(limit))
        file.truncate(n * (4 * d + 9))  # a sparse file: 3.6 GB to read, a few MB on disk
    tracemalloc.start()
    space = load_space(tmp_path / "big.bin", limit=limit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(space), space.ids[-1]) == (limit, f"w{limit - 1}")
    assert peak < 20e6  # the vectors are 2.4 MB


@pytest.mark.parametrize("name", ["x.bin", "x.vec"])
def test_cut_short_is_an_error_that_names_the_row_unless_the_limit_stops_before(written, name):
    whole = (written / name).read_bytes()
    cut = whole[: whole.rindex(b"New_York")]
    (written / name).write_bytes(cut)
    with pytest.raises(SpaceError, match=r"promises 5 rows, but the file ends within row 4; .*limit=3"):
        load_space(written / name)
    assert list(load_space(written / name, limit=3).ids) == WORDS[:3]
    (written / name).write_bytes(whole + b"more 1 2 3 4 5 6 7\n")
    with pytest.raises(SpaceError, match=r"promises 5 rows, but more follow; .*limit=5"):
        load_space(written / name)
    assert len(load_space(written / name, limit=4)) == 4


def test_bin_cut_inside_a_row(written):
    whole = (written / "x.bin").read_bytes()
    (written / "x.bin").write_bytes(whole[:-3])
    with pytest.raises(SpaceError, match="ends within row 5"):
        load_space(written / "x.bin")


def test_gzip_cut_short(written):
    whole = (written / "x.vec.gz").read_bytes()
    (written / "x.vec.gz").write_bytes(whole[:-20])
    with pytest.raises(SpaceError, match="compressed file is damaged or cut short"):
        load_space(written / "x.vec.gz")


@pytest.mark.parametrize("first", [b"five 7\n", b"the 0.1 0.2\n", b"\x00\x01\x02\x03", b"5 0\n"])
def test_wrong_header_of_a_bin(tmp_path, first):
    (tmp_path / "x.bin").write_bytes(first)
    with pytest.raises(SpaceError, match=r"expected a first line 'n d'.*got .*a text file in .vec or .txt"):
        load_space(tmp_path / "x.bin")


def test_header_that_promises_more_than_memory(tmp_path):
    for name in ("x.bin", "x.vec"):
        (tmp_path / name).write_bytes(b"999999999999 300\nthe ")
        with pytest.raises(SpaceError, match="more than max_bytes"):
            load_space(tmp_path / name)


def test_a_whole_fasttext_model_is_told_from_vectors(tmp_path):
    (tmp_path / "cc.bin").write_bytes((793712314).to_bytes(4, "little") + b"\x0c\0\0\0" * 10)
    with pytest.raises(SpaceError, match=r"whole fastText model; load its .vec"):
        load_space(tmp_path / "cc.bin")


def test_bin_that_is_noise_after_its_header(tmp_path):
    (tmp_path / "x.bin").write_bytes(b"5 7\n" + b"\xff" * 200_000)
    with pytest.raises(SpaceError, match="expected a word at row 1 of 5"):
        load_space(tmp_path / "x.bin")


def test_words_with_spaces_and_blank_lines_in_text(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"the 1 2\n. . . 3 4 \n\nend 5 6\n\n")
    space = load_space(tmp_path / "x.txt")
    assert list(space.ids) == ["the", ". . .", "end"]
    np.testing.assert_array_equal(space.vectors, [[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"2 2\na 1 2\nb 1\n", "line 3: expected a word and 2 numbers, got 'b 1'"),
        (b"a 1 2\n\nb 1 two\n", "line 3: expected a word and 2 numbers, got 'b 1 two'"),
        (b"a 1 2\nb 1 NA\n", "line 2: expected a word and 2 numbers"),
        (b"alone\n", "line 1: expected 'n d' or a word and its numbers, got 'alone'"),
    ],
)
def test_text_that_is_broken_names_the_line(tmp_path, text, message):
    (tmp_path / "x.vec").write_bytes(text)
    with pytest.raises(SpaceError, match=message):
        load_space(tmp_path / "x.vec")


def test_text_in_batches_is_text_at_once(tmp_path, monkeypatch):
    lines = [f"w{i} {i} {-i}\n" for i in range(10)]
    (tmp_path / "x.vec").write_text("10 2\n" + "".join(lines))
    monkeypatch.setattr(word_vectors, "_LINES_AT_ONCE", 3)
    space = load_space(tmp_path / "x.vec")
    np.testing.assert_array_equal(space.vectors[:, 0], np.arange(10))
    assert space.ids[-1] == "w9"
