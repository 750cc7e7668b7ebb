"""Word vectors: those that come with Relscope, and those of gensim-data."""

from __future__ import annotations

import os
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from relcore.base.access import expand_home
from relcore.base.arguments import need_whole
from relcore.base.errors import SpaceError, extra, quote
from relcore.base.kinds import takes_kinds
from relcore.encoders.dataset import answers
from relcore.files.formats import readable, suffix_of
from relcore.files.reading import ReadOptions, read_space
from relcore.spaces.space import LatentSpace

# Word spaces. Two are bundled; others come from gensim-data or from files.

# Categories of words, used as labels. They come from the analogy questions of Mikolov et al. (2013).


@cache
def word_categories() -> dict[str, str]:
    """A dictionary from each word, in lower case, to its category. ``assets/words/word_categories.py`` writes
    the file."""
    from relcore.files.table_formats import table_of

    table = table_of(Path(str(files("relcore") / "data" / "words" / "categories.tsv")))
    n = table.n
    assert n is not None
    words = table.read("word", 0, n)
    categories = table.read("category", 0, n)
    return dict(zip(words, categories, strict=True))


_WIKI = "GloVe, Wikipedia 2014 and Gigaword 5"
_TWITTER = "GloVe, two billion tweets"
# Name → compressed size in bytes, number of rows, number of dimensions, training data.
MODELS = {
    "word2vec-google-news-300": (1_743_563_840, 3_000_000, 300, "Word2Vec, 100 billion words of Google News"),
    "glove-wiki-gigaword-50": (69_182_535, 400_000, 50, _WIKI),
    "glove-wiki-gigaword-100": (134_300_434, 400_000, 100, _WIKI),
    "glove-wiki-gigaword-200": (264_336_934, 400_000, 200, _WIKI),
    "glove-wiki-gigaword-300": (394_362_229, 400_000, 300, _WIKI),
    "glove-twitter-25": (109_885_004, 1_193_514, 25, _TWITTER),
    "glove-twitter-50": (209_216_938, 1_193_514, 50, _TWITTER),
    "glove-twitter-100": (405_932_991, 1_193_514, 100, _TWITTER),
    "glove-twitter-200": (795_373_100, 1_193_514, 200, _TWITTER),
    "fasttext-wiki-news-subwords-300": (1_005_007_116, 999_999, 300, "FastText, Wikipedia 2017 and news"),
    "conceptnet-numberbatch-17-06-300": (
        1_225_497_562,
        1_917_247,
        300,
        "ConceptNet Numberbatch, multilingual",
    ),
    "word2vec-ruscorpora-300": (
        208_427_381,
        184_973,
        300,
        "Word2Vec, Russian National Corpus, lemmas with tags",
    ),
}


def folder() -> Path:
    return Path(os.environ.get("GENSIM_DATA_DIR") or Path.home() / "gensim-data")


def downloaded_file(name: str) -> Path | None:
    """The model's file on this machine; None if it is not downloaded."""
    path = folder() / name / f"{name}.gz"
    return path if path.is_file() else None


def fetch(name: str) -> Path:
    """The model's file, which is downloaded if needed. Raises a SpaceError if the download fails."""
    here = downloaded_file(name)
    if here is not None:
        return here
    with extra():
        import gensim.downloader

    size = readable(MODELS[name][0])
    if not answers(gensim.downloader.DATA_LIST_URL):
        raise SpaceError(
            f"{name}: expected it in {folder()}, or the network to download it ({size}), got neither; on a"
            f" machine with a network run 'python -m gensim.downloader --download {name}' and copy its folder"
            f" {name} to {folder()}, or choose a bundled space"
        )
    try:
        # Get only the path, because otherwise gensim would run code from the download.
        return Path(gensim.downloader.load(name, return_path=True))
    except Exception as error:  # a wrong checksum raises a bare Exception
        raise SpaceError(
            f"{name}: expected to download {size}, got {error}; try again, or choose a bundled space"
        ) from error


_FOLDER = files("relcore") / "data" / "words"
BUNDLED = {
    "word2vec-novels": _FOLDER / "word2vec-novels.safetensors",
    "fasttext-novels": _FOLDER / "fasttext-novels.safetensors",
}


@takes_kinds
def load_words(name_or_path: str | Path, *, limit: int | None = None) -> LatentSpace:
    """Load a word space that is bundled, in a file, or in gensim-data. A bundled space has categories as
    labels, and counts of the corpus.

    Parameters
    ----------
    name_or_path : str or Path
        ``"word2vec-novels"``, ``"fasttext-novels"``, a name in `sentences.MODELS`, or a path.
    limit : int, optional
        The number of words to load. The first words are the most frequent ones.

    Raises
    ------
    SpaceError
        The name is unknown, the download fails, or the file is invalid.

    Examples
    --------
    >>> from relcore import load_words
    >>> space = load_words("word2vec-novels", limit=1000)
    >>> len(space), space.dimension
    (1000, 100)
    >>> space.labels[space.rows(["king", "london"])].tolist()
    ['family', 'city']
    """
    if limit is not None:
        need_whole("limit", limit)
    name = str(name_or_path)
    if name in BUNDLED:
        return read_bundled(BUNDLED[name], name, limit)
    if name in MODELS:
        return read_space(fetch(name), ReadOptions(duplicates="first"), name=name, limit=limit)
    path = expand_home(name_or_path)
    if isinstance(name_or_path, Path) or path.exists() or suffix_of(path) or path.name != name:
        return read_space(path, limit=limit)
    raise SpaceError(
        f"expected {quote(BUNDLED)}, a path, or one of gensim-data's {quote(MODELS)}; got {name!r}"
    )


@lru_cache(maxsize=4)
def read_bundled(path: Path, name: str, limit: int | None) -> LatentSpace:
    space = read_space(path, name=name, limit=limit)
    categories = word_categories()
    labels = [categories.get(word.lower(), "") for word in space.ids]
    return LatentSpace(space.vectors, space.ids, name=name, labels=labels, counts=space.counts)
