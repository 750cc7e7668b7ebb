"""Words: bundled, from gensim-data's folder, or said to be out of reach at once."""

import gzip

import gensim.downloader
import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.encoders import dataset, words
from relcore.encoders.words import BUNDLED, load_words, word_categories


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_words_are_whole(name):
    space = load_words(name)
    assert (len(space), space.dimension, space.name) == (20_000, 100, name)
    assert (np.diff(space.counts) <= 0).all()  # by falling frequency
    assert not len(space.zero_rows)
    assert BUNDLED[name].stat().st_size <= 5_000_000


def test_categories():
    known = {
        "chicago": "city",
        "france": "country or state",
        "french": "nationality",
        "bigger": "comparative",
    }
    known |= {"read": "verb", "danced": "past tense", "won": "", "zyzzyva": ""}
    assert {word: word_categories().get(word, "") for word in known} == known


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GENSIM_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(gensim.downloader, "BASE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("form", ["text", "binary"])
def test_gensim_data_on_this_machine_needs_no_network(folder, monkeypatch, form):
    rows = [("the", [1.0, 2.25]), ("cat", [3.5, -4.0])]
    content = b"2 2\n"
    for word, (x, y) in rows:
        if form == "text":
            row = f"{x} {y}\n".encode()
        else:
            row = np.float32([x, y]).tobytes()
        content += word.encode() + b" " + row
    (folder / "glove-twitter-25").mkdir()
    (folder / "glove-twitter-25" / "glove-twitter-25.gz").write_bytes(gzip.compress(content))
    monkeypatch.setattr(words, "answers", lambda url: pytest.fail("asked the network"))
    space = load_words("glove-twitter-25", limit=1)
    assert (space.name, list(space.ids)) == ("glove-twitter-25", ["the"])
    np.testing.assert_array_equal(load_words("glove-twitter-25").vectors, [[1, 2.25], [3.5, -4]])


def test_without_a_network_it_says_so_at_once(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(words, "answers", lambda url: asked.append(url) or dataset.answers(url))
    monkeypatch.setattr(gensim.downloader, "DATA_LIST_URL", "http://127.0.0.1:9/list.json")
    monkeypatch.setattr(gensim.downloader, "load", lambda *_, **__: pytest.fail("the download was begun"))
    with pytest.raises(
        SpaceError, match=r"or the network to download it .110 MB., got neither; .*bundled space"
    ):
        load_words("glove-twitter-25")
    assert asked == ["http://127.0.0.1:9/list.json"]  # once, with the patience that `network` has
