"""The English Wikipedia articles inside gensim's wheel, as sentences; the article is the label."""

from __future__ import annotations

import bz2
import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from relcore.base.errors import SpaceError
from relcore.encoders.dataset import Dataset, DatasetSpec, evenly
from relcore.runs.digest import StoreError, digest_of
from relcore.runs.store import Store

_FILE = "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
# A task for classifiers: the articles are far enough apart, and each has sentences enough to learn it.
TASK = DatasetSpec("wikipedia", options=(("articles", 16), ("fewest", 250), ("per_article", 400)))
_RECIPE = "prose, 40 to 400 characters, 1"  # says which sentences a stored reading holds
_MARKED = tuple("=|!{}<*#:;")  # how headings, tables and lists begin
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_HOLLOW = re.compile(r"\s*\(\s*[,;]?\s*\)")  # brackets that held only a template


def wikipedia_dataset(spec: DatasetSpec, store: Store | None = None) -> Dataset:
    """Sentences in the order of the articles.

    The option `articles` limits their number, to those with the most sentences, or, with the option `fewest`,
    to the first ones with at least that many. The longest articles are alike, mostly countries and states;
    the first ones differ more.
    """
    settings = spec.settings(articles=None, per_article=None, fewest=None)
    for option, value in settings.items():
        if value is not None and (not isinstance(value, int) or value < 1):
            raise SpaceError(f"{option}: expected a whole number, at least 1, got {value!r}")
    articles = sentences_by_article(store)
    long_enough = [title for title in articles if len(articles[title]) >= (settings["fewest"] or 1)]
    if not long_enough:
        longest = max(map(len, articles.values()))
        raise SpaceError(
            f"fewest: expected at most the {longest} sentences of the longest article, got"
            f" {settings['fewest']}"
        )
    if settings["fewest"] is None:
        long_enough.sort(key=lambda title: len(articles[title]), reverse=True)
    chosen = set(long_enough[: settings["articles"]])
    rows = [
        (f"{title}/{number}", title, sentence)
        for title in (title for title in articles if title in chosen)
        for number, sentence in enumerate(articles[title][: settings["per_article"]])
    ]
    rows = [rows[row] for row in evenly([title for _, title, _ in rows], spec.limit)]
    ids, labels, sentences = zip(*rows, strict=True)
    return Dataset(
        lambda start, stop: list(sentences[start:stop]), ids, name="wikipedia", kind="texts", labels=labels
    )


def sentences_by_article(store: Store | None = None) -> dict[str, list[str]]:
    """Title → sentences; parsed once (seconds), then read from the store, where there is one that can be
    written to.
    """
    path = _wheel_file()
    key = digest_of("wikipedia sentences", _RECIPE, path.stat().st_size)
    with suppress(StoreError):
        store = store or Store()
        if entry := store.get(key):
            sentences = entry.arrays["text"].tobytes().decode().split("\n")
            ends = np.cumsum(entry.arrays["counts"])
            pairs = zip(entry.metadata["titles"], [0, *ends[:-1]], ends, strict=True)
            return {title: sentences[start:end] for title, start, end in pairs}
    articles = _parsed(path)
    text = "\n".join(sentence for sentences in articles.values() for sentence in sentences)
    arrays = {
        "text": np.frombuffer(text.encode(), np.uint8),
        "counts": np.array([len(sentences) for sentences in articles.values()]),
    }
    if store is not None:
        with suppress(StoreError):
            store.put(key, arrays, {"title": "Wikipedia's sentences", "titles": list(articles)})
    return articles


def _wheel_file() -> Path:
    found = find_spec("gensim")  # importing gensim would take seconds
    path = Path(found.origin).parent / _FILE if found and found.origin else None
    if path is None or not path.is_file():
        raise SpaceError(
            "wikipedia: expected the articles inside the package gensim, got none; run: pip install"
            ' "relscope[text]"'
        )
    return path


def _parsed(path: Path) -> dict[str, list[str]]:
    from gensim.corpora.wikicorpus import extract_pages, filter_wiki

    with bz2.open(path) as stream:
        pages = [(title, text) for title, text, _ in extract_pages(stream, ("0",)) if text]
    found = {
        title: _sentences(filter_wiki(text))
        for title, text in pages
        if not text.lstrip().lower().startswith("#redirect")
    }
    return {title: sentences for title, sentences in found.items() if sentences}


def _sentences(article: str) -> list[str]:
    """Of the paragraphs only: headings, lists and tables are left out."""
    paragraphs = (line.strip() for line in article.split("\n"))
    return [
        sentence
        for paragraph in paragraphs
        if paragraph and not paragraph.startswith(_MARKED)
        for sentence in _END.split(" ".join(_HOLLOW.sub("", re.sub("'{2,}", "", paragraph)).split()))
        if 40 <= len(sentence) <= 400
    ]
