"""Words: bundled, from gensim-data's folder, or said to be out of reach at once."""

import gzip
import runpy
from collections import Counter
from pathlib import Path

import gensim.downloader
import numpy as np
import pytest
from gensim.test.utils import datapath

from relcore.base.errors import SpaceError
from relcore.encoders import network, words
from relcore.encoders.words import BUNDLED, categorise, load_words, word_categories


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_words_are_whole(name):
    space = load_words(name)
    assert (len(space), space.dimension, space.name) == (20_000, 100, name)
    assert (np.diff(space.counts) <= 0).all()  # by falling frequency
    assert not len(space.zero_rows)
    assert BUNDLED[name].stat().st_size <= 5_000_000


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_words_carry_categories(name):
    labels = Counter(load_words(name).labels)
    del labels[""]
    assert labels.total() > 300
    assert set(labels) == set(word_categories().values())
    assert len(labels) == 13
    assert min(labels.values()) >= 10


def test_bundled_words_mean_something():
    space = load_words("word2vec-novels")
    directions = space.vectors / space.norms[:, None]
    cosines = directions @ directions[space.rows(["king"])[0]]
    nearest = space.ids[np.argsort(-cosines)[1:30]]
    assert {"queen", "prince"} & set(nearest)


def test_limit_keeps_the_most_frequent():
    whole, few = load_words("word2vec-novels"), load_words("word2vec-novels", limit=50)
    np.testing.assert_array_equal(few.vectors, whole.vectors[:50])
    assert list(few.labels) == list(whole.labels[:50])


def test_a_bundled_file_that_is_gone(tmp_path, monkeypatch):
    monkeypatch.setitem(words.BUNDLED, "word2vec-novels", tmp_path / "gone.safetensors")
    with pytest.raises(SpaceError, match=r"comes with the project, got no such file; .*train_words\.py"):
        load_words("word2vec-novels")


@pytest.mark.parametrize(
    ("word", "category"),
    [
        ("Paris", "city"),
        ("chicago", "city"),
        ("france", "country or state"),
        ("georgia", "country or state"),
        ("french", "nationality"),
        ("man", "family"),
        ("possibly", "adverb"),
        ("slow", "adjective"),
        ("unhappy", ""),
        ("bigger", "comparative"),
        ("biggest", "superlative"),
        ("read", "verb"),
        ("dancing", "participle"),
        ("danced", "past tense"),
        ("mice", "plural noun"),
        ("mouse", "noun"),
        ("won", ""),
        ("zyzzyva", ""),
    ],
)
def test_categories(word, category):
    assert categorise([word]) == [category]


def test_the_bundled_categories_are_those_of_the_questions():
    script = Path(__file__).parents[3] / "assets" / "words" / "word_categories.py"
    assert word_categories() == runpy.run_path(str(script))["word_categories"]()


def test_every_section_of_the_questions_gives_words():
    with open(datapath("questions-words.txt"), encoding="utf-8") as file:
        asked = {word for line in file if not line.startswith(":") for word in line.lower().split()}
    known = set(word_categories())
    assert known <= asked
    assert len(asked - known) < 40  # the currencies alone


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GENSIM_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(gensim.downloader, "BASE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("form", ["text", "binary"])
def test_gensim_data_on_this_machine_needs_no_network(folder, monkeypatch, form):
    rows = [("the", [1.0, 2.25]), ("cat", [3.5, -4.0])]
    if form == "text":
        content = "2 2\n" + "".join(f"{word} {x} {y}\n" for word, (x, y) in rows)
        content = content.encode()
    else:
        content = b"2 2\n" + b"".join(word.encode() + b" " + np.float32(row).tobytes() for word, row in rows)
    (folder / "glove-twitter-25").mkdir()
    (folder / "glove-twitter-25" / "glove-twitter-25.gz").write_bytes(gzip.compress(content))
    monkeypatch.setattr(words, "answers", lambda url: pytest.fail("asked the network"))
    space = load_words("glove-twitter-25", limit=1)
    assert (space.name, list(space.ids)) == ("glove-twitter-25", ["the"])
    np.testing.assert_array_equal(load_words("glove-twitter-25").vectors, [[1, 2.25], [3.5, -4]])


def test_gensim_data_is_fetched_by_gensim_as_a_path_only(folder, monkeypatch):
    asked = []

    def load(name, return_path=False):
        asked.append((name, return_path))
        (folder / "other.gz").write_bytes(gzip.compress(b"1 2\nthe 1 2\n"))
        return str(folder / "other.gz")

    monkeypatch.setattr(words, "answers", lambda url: True)
    monkeypatch.setattr(gensim.downloader, "load", load)
    assert list(load_words("glove-twitter-25").ids) == ["the"]
    assert asked == [("glove-twitter-25", True)]


def test_without_a_network_it_says_so_at_once(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(words, "answers", lambda url: asked.append(url) or network.answers(url))
    monkeypatch.setattr(gensim.downloader, "DATA_LIST_URL", "http://127.0.0.1:9/list.json")
    monkeypatch.setattr(gensim.downloader, "load", lambda *_, **__: pytest.fail("the download was begun"))
    with pytest.raises(
        SpaceError, match=r"or the network to download it .110 MB., got neither; .*bundled space"
    ):
        load_words("glove-twitter-25")
    assert asked == ["http://127.0.0.1:9/list.json"]  # once, with the patience that `network` has


def test_a_download_that_fails(folder, monkeypatch):
    def load(name, return_path=False):
        raise Exception("Checksum comparison failed, try again")

    monkeypatch.setattr(words, "answers", lambda url: True)
    monkeypatch.setattr(gensim.downloader, "load", load)
    with pytest.raises(SpaceError, match="expected to download 110 MB, got Checksum comparison failed"):
        load_words("glove-twitter-25")


def test_paths_and_names_that_are_neither(tmp_path):
    (tmp_path / "mine.vec").write_text("1 2\nthe 1 2\n")
    assert load_words(tmp_path / "mine.vec").name == "mine"
    assert load_words(str(tmp_path / "mine.vec")).name == "mine"
    with pytest.raises(
        SpaceError, match=r"expected 'word2vec-novels', 'fasttext-novels', a path, .*got 'word2vec-noevls'"
    ):
        load_words("word2vec-noevls")
    with pytest.raises(SpaceError, match=r"got 'missing\.bin', where there is none"):
        load_words("missing.bin")
