"""The word vectors of gensim-data: the list, the files on this machine, and downloads by gensim."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from relcore.extras import extra
from relcore.sources.network import answers
from relcore.sources.rows import readable
from relcore.spaces import SpaceError


@dataclass(frozen=True)
class GensimModel:
    """One model: its rows, dimensions, packed size in bytes, and what it was trained on."""

    name: str
    n: int
    dimension: int
    size_bytes: int
    description: str


_WIKI, _TWITTER = "GloVe, Wikipedia 2014 and Gigaword 5", "GloVe, two billion tweets"
MODELS = {
    model.name: model
    for model in (
        GensimModel("word2vec-google-news-300", 3_000_000, 300, 1_743_563_840, "Word2Vec, 100 billion words of Google News"),
        GensimModel("glove-wiki-gigaword-50", 400_000, 50, 69_182_535, _WIKI),
        GensimModel("glove-wiki-gigaword-100", 400_000, 100, 134_300_434, _WIKI),
        GensimModel("glove-wiki-gigaword-200", 400_000, 200, 264_336_934, _WIKI),
        GensimModel("glove-wiki-gigaword-300", 400_000, 300, 394_362_229, _WIKI),
        GensimModel("glove-twitter-25", 1_193_514, 25, 109_885_004, _TWITTER),
        GensimModel("glove-twitter-50", 1_193_514, 50, 209_216_938, _TWITTER),
        GensimModel("glove-twitter-100", 1_193_514, 100, 405_932_991, _TWITTER),
        GensimModel("glove-twitter-200", 1_193_514, 200, 795_373_100, _TWITTER),
        GensimModel("fasttext-wiki-news-subwords-300", 999_999, 300, 1_005_007_116, "FastText, Wikipedia 2017 and news"),
        GensimModel("conceptnet-numberbatch-17-06-300", 1_917_247, 300, 1_225_497_562, "ConceptNet Numberbatch, multilingual"),
        GensimModel(
            "word2vec-ruscorpora-300", 184_973, 300, 208_427_381, "Word2Vec, Russian National Corpus, lemmas with tags"
        ),
    )
}


def folder() -> Path:
    """Where gensim keeps its downloads: GENSIM_DATA_DIR, else ``~/gensim-data``."""
    return Path(os.environ.get("GENSIM_DATA_DIR") or Path.home() / "gensim-data")


def downloaded(name: str) -> Path | None:
    """The model's file on this machine, or None. Needs no network."""
    path = folder() / name / f"{name}.gz"
    return path if path.is_file() else None


def fetch(name: str) -> Path:
    """The model's file, downloaded where it is not here yet.

    Raises
    ------
    SpaceError
        No answer from the network within two seconds, or a download that failed.
    """
    here = downloaded(name)
    if here is not None:
        return here
    with extra():
        import gensim.downloader

    size = readable(MODELS[name].size_bytes)
    if not answers(gensim.downloader.DATA_LIST_URL):
        raise SpaceError(
            f"{name}: expected it in {folder()}, or the network to download it ({size}), got neither; where there is one run "
            f"'python -m gensim.downloader --download {name}' and copy its folder {name} there, or choose a bundled space"
        )
    try:
        # The path only: gensim would load the vectors by running code that comes with the download.
        return Path(gensim.downloader.load(name, return_path=True))
    except Exception as error:  # from urllib, the disk or gensim's checksum, which raises a bare Exception
        raise SpaceError(f"{name}: expected to download {size}, got {error}; try again, or choose a bundled space") from error
