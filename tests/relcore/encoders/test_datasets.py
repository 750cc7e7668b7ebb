"""The specs, the bundled datasets, the list of what is there, and the promises that every dataset keeps."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from relcore.base.errors import SpaceError
from relcore.encoders import bundled_data
from relcore.encoders.bundled_data import LANGUAGES, N_SENTENCES, load_parallel
from relcore.encoders.dataset import Dataset, DatasetSpec, evenly
from relcore.encoders.datasets import available_datasets, load_dataset

ARTICLES = {"B": ["b one.", "b two.", "b three."], "A": ["a one."], "C": ["c one.", "c two."]}


@pytest.fixture
def small_wikipedia(monkeypatch):
    monkeypatch.setattr(bundled_data, "sentences_by_article", lambda store=None: ARTICLES)


def test_digits_are_scikit_learns():
    digits = load_dataset(DatasetSpec("digits"))
    known = load_digits()
    assert (len(digits), digits.kind) == (1797, "images")
    assert digits.labels.tolist() == [str(label) for label in known.target]
    images = digits.items(5, 8)
    assert [(image.mode, image.size) for image in images] == [("L", (8, 8))] * 3
    for image, scan in zip(images, known.images[5:8], strict=True):
        assert np.abs(np.asarray(image) / 255 * 16 - scan).max() <= 16 / 255 / 2
    assert load_dataset(DatasetSpec("digits", limit=3)).ids.tolist() == ["digits/0", "digits/1", "digits/2"]


def test_equal_content_equal_digest_and_every_part_counts():
    def digest(texts, ids="ab", labels=None, name="t"):
        return Dataset(
            lambda a, b: list(texts[a:b]), list(ids), name=name, kind="texts", labels=labels
        ).digest

    same = digest("xy")
    assert digest("xy", name="other") == same
    others = digest("xz"), digest(["xy", ""]), digest("xy", "ac"), digest("xy", labels="pq")
    assert len({same, *others}) == 5


def test_a_limit_takes_of_every_class():
    rows = {3: [0, 3, 4], 9: [0, 1, 2, 3, 4, 5], None: [0, 1, 2, 3, 4, 5]}
    assert {limit: evenly("pppqrr", limit).tolist() for limit in rows} == rows


@pytest.mark.usefixtures("small_wikipedia")
def test_longest_articles_and_so_many_sentences_each():
    def load(**options):
        return load_dataset(DatasetSpec("wikipedia", options=tuple(options.items())))

    dataset = load(articles=2, per_article=2)
    assert dataset.ids.tolist() == ["B/0", "B/1", "C/0", "C/1"]
    assert dataset.labels.tolist() == ["B", "B", "C", "C"]
    assert dataset.items(1, 3) == ["b two.", "c one."]
    assert load(articles=1, fewest=2, per_article=1).ids.tolist() == ["B/0"]
    with pytest.raises(SpaceError, match=r"expected at most the \d sentences of the longest article, got 9"):
        load(fewest=9)
    assert load_dataset(DatasetSpec("wikipedia", limit=4)).ids.tolist() == ["B/0", "B/1", "A/0", "C/0"]


def test_the_list_asks_no_network(monkeypatch):
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    monkeypatch.setattr("socket.socket", lambda *_, **__: pytest.fail("the network was asked"))
    entries = {entry.name: entry for entry in available_datasets()}
    assert (entries["digits"].kind, entries["digits"].n) == ("images", 1797)


def test_datasets_of_two_languages_match_by_id():
    sentences = load_parallel(tuple(LANGUAGES))
    parts = {}
    for name in LANGUAGES:
        parts[name] = load_dataset(DatasetSpec("parallel", name))
        assert (parts[name].ids[0], parts[name].kind, parts[name].labels) == ("s001", "texts", None)
        assert tuple(parts[name].items(0, N_SENTENCES)) == sentences[name]
        assert parts[name].ids.tolist() == parts["en"].ids.tolist()
    assert len({one.digest for one in parts.values()}) == len(LANGUAGES)
    first = load_dataset(DatasetSpec("parallel", "fr", limit=3))
    assert (first.ids.tolist(), first.items(0, 3)) == (["s001", "s002", "s003"], list(sentences["fr"][:3]))
