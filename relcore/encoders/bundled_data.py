"""Datasets that come with the packages: digits, sentences of Wikipedia, and pairs of sentences."""

from __future__ import annotations

import bz2
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path

import numpy as np

from relcore.base.earlier import refuse_look
from relcore.base.environment import package_folder
from relcore.base.errors import SpaceError
from relcore.encoders.dataset import Dataset, DatasetSpec, evenly
from relcore.files.table_formats import table_of
from relcore.runs.entries import StoreError, digest_of
from relcore.runs.store import Store

# Handwritten digits: 1,797 scans of 8 × 8 pixels.


def read_digits() -> tuple[np.ndarray, np.ndarray]:
    """The pixels (1797, 64), 0 to 16, and the digits (1797,), as ``sklearn.datasets.load_digits`` reads
    them."""
    # The reader of the package imports all of it, which takes seconds, so its file is read here.
    table = (package_folder("sklearn") or Path()) / "datasets" / "data" / "digits.csv.gz"
    if table.is_file():
        rows = np.loadtxt(table, delimiter=",")
        return rows[:, :-1], rows[:, -1].astype(int)
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def digits_dataset(spec: DatasetSpec) -> Dataset:
    """The digits as grey images (mode "L", 0 to 255) with labels "0" to "9"."""
    from PIL import Image

    refuse_look(spec.settings(look="plain")["look"])
    rows, digits = read_digits()
    pixels = np.round(rows[: spec.limit].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    return Dataset(
        lambda start, stop: [Image.fromarray(scan) for scan in pixels[start:stop]],
        [f"digits/{row}" for row in range(len(pixels))],
        name="digits",
        kind="images",
        labels=digits[: spec.limit].astype(str).tolist(),
        content=lambda: [pixels.tobytes()],
    )


# Everyday sentences in several languages. They are parallel anchors for text encoders.

LANGUAGES = {"en": "English", "es": "Spanish", "fr": "French", "ja": "Japanese"}
N_SENTENCES = 438
_EVERYDAY = files("relcore") / "data" / "parallel" / "everyday.tsv"


def load_parallel(languages: Sequence[str] = ("en", "es")) -> dict[str, tuple[str, ...]]:
    """A dictionary from each language to its sentences. Sentence i is the same in all languages. Under "id"
    are the ids of the sentences."""
    table = table_of(Path(str(_EVERYDAY)))
    return {language: tuple(table.read(language, 0, N_SENTENCES)) for language in languages}


# Sentences of the English Wikipedia articles that gensim's wheel contains. Their labels are the articles.

_ARTICLES = "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
# The default of classification tasks: 16 articles, each with enough sentences.
TASK = DatasetSpec("wikipedia", options=(("articles", 16), ("fewest", 250), ("per_article", 400)))
# This text is part of the store's key, so a change of the recipe must change it.
_RECIPE = "prose, 40 to 400 characters, 1"
_MARKED = tuple("=|!{}<*#:;")  # signs with which headings, tables and lists begin
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
# Remains of templates, which are empty brackets, and marks of bold and italics.
_HOLLOW = re.compile(r"\s*\(\s*[,;]?\s*\)|'{2,}")


def wikipedia_dataset(spec: DatasetSpec, store: Store | None = None) -> Dataset:
    """The sentences of the articles, in their order.

    The option `articles` is the number of articles to keep. By default these are the longest articles, whose
    topics are similar (countries, states). With the option `fewest`, they are the first articles that have at
    least `fewest` sentences; their topics differ more.
    """
    settings = spec.settings(articles=None, per_article=None, fewest=None)
    for option, value in settings.items():
        if value is not None and (not isinstance(value, int) or value < 1):
            raise SpaceError(f"{option}: expected a whole number, at least 1, got {value!r}")
    articles = sentences_by_article(store)
    fewest = settings["fewest"]
    titles = [title for title, sentences in articles.items() if len(sentences) >= (fewest or 1)]
    if not titles:
        longest = max(map(len, articles.values()))
        raise SpaceError(
            f"fewest: expected at most the {longest} sentences of the longest article, got {fewest}"
        )
    if fewest is None:
        titles.sort(key=lambda title: len(articles[title]), reverse=True)
    chosen = set(titles[: settings["articles"]])
    rows = [
        (f"{title}/{number}", title, sentence)
        for title in articles
        if title in chosen
        for number, sentence in enumerate(articles[title][: settings["per_article"]])
    ]
    rows = [rows[row] for row in evenly([title for _, title, _ in rows], spec.limit)]
    ids, labels, sentences = zip(*rows, strict=True)
    return Dataset(
        lambda start, stop: list(sentences[start:stop]), ids, name="wikipedia", kind="texts", labels=labels
    )


def sentences_by_article(store: Store | None = None) -> dict[str, list[str]]:
    """The sentences of each article, by its title. Parsing takes seconds, so they are kept in the store."""
    package = package_folder("gensim")
    if package is None or not (package / _ARTICLES).is_file():
        raise SpaceError(
            "wikipedia: expected the articles inside the package gensim, got none; run: pip install"
            ' "relscope[text]"'
        )
    path = package / _ARTICLES
    if store is None:
        try:
            store = Store()
        except StoreError:  # no place to keep them
            return _sentences_by_article(path)
    key = digest_of("wikipedia sentences", _RECIPE, path.stat().st_size)
    with suppress(StoreError):
        if entry := store.get(key):
            sentences = iter(entry.arrays["text"].tobytes().decode().split("\n"))
            sizes = zip(entry.metadata["titles"], entry.arrays["counts"].tolist(), strict=True)
            return {title: list(islice(sentences, n)) for title, n in sizes}
    articles = _sentences_by_article(path)
    arrays = {
        "text": np.frombuffer("\n".join(chain(*articles.values())).encode(), np.uint8),
        "counts": np.array(list(map(len, articles.values()))),
    }
    with suppress(StoreError):
        store.put(key, arrays, {"title": "Wikipedia's sentences", "titles": list(articles)})
    return articles


@cache
def _sentences_by_article(path: Path) -> dict[str, list[str]]:
    """The sentences of each article's paragraphs. Headings, lists and tables are left out."""
    from gensim.corpora.wikicorpus import extract_pages, filter_wiki

    articles = {}
    with bz2.open(path) as stream:
        for title, text, _ in extract_pages(stream, ("0",)):
            if not text or text.lstrip().lower().startswith("#redirect"):
                continue
            paragraphs = (line.strip() for line in filter_wiki(text).split("\n"))
            prose = (
                " ".join(_HOLLOW.sub("", line).split()) for line in paragraphs if line[:1] not in _MARKED
            )
            sentences = [part for line in prose for part in _END.split(line) if 40 <= len(part) <= 400]
            if sentences:
                articles[title] = sentences
    return articles
