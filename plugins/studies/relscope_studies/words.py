"""Words of a corpus in the data folder, and pairs of basic words."""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from relcore.base.access import data_folder
from relcore.base.errors import SpaceError
from relcore.runs.digest import digest_of
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace

WIDTH, EPOCHS, WINDOW = 100, 5, 5
TOKENS = 4_000_000
MOST_WORDS = 6_000
_VERSION = 1


def corpus_words(path: Path, store: Store, report: Callable[..., None], tokens: int = TOKENS) -> LatentSpace:
    """The 6,000 most frequent words of a corpus (.xz, one sentence per line), with counts; 100 d.

    Gensim's skip-gram on about `tokens` words spread evenly over the corpus, with one thread so that equal
    settings give equal vectors. Kept in the store.
    """
    key = digest_of(
        "corpus words", _VERSION, path.name, path.stat().st_size, tokens, WIDTH, EPOCHS, WINDOW, MOST_WORDS
    )
    entry = store.get(key)
    if entry is None:
        from gensim.models import Word2Vec

        report(0, 1, f"training word vectors on {path.name}")
        try:
            sentences = list(_sentences(path, tokens))
        except (lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
            raise SpaceError(
                f"{path}: expected UTF-8 text in xz, got a damaged file ({error}); copy it again"
            ) from error
        settings = {"vector_size": WIDTH, "epochs": EPOCHS, "window": WINDOW, "max_final_vocab": MOST_WORDS}
        words = Word2Vec(
            sentences, sg=1, negative=5, sample=1e-4, min_count=5, workers=1, seed=0, **settings
        ).wv
        counts = np.array([words.get_vecattr(word, "count") for word in words.index_to_key])
        store.put(
            key,
            {"vectors": words.vectors.astype(np.float32), "counts": counts},
            {"ids": list(words.index_to_key)},
        )
        entry = store.get(key)
    name = path.name.partition(".")[0]
    return LatentSpace(
        entry.arrays["vectors"], entry.metadata["ids"], name=name, counts=entry.arrays["counts"]
    )


def swadesh_pairs(source: Path, target: Path) -> list[tuple[str, str]]:
    """Words in the same line of two Swadesh lists: the first of variants, each word once per language.

    Raises a SpaceError for other text than UTF-8, and lists of different lengths.
    """
    try:
        lists = [path.read_text(encoding="utf-8-sig").splitlines() for path in (source, target)]
    except UnicodeDecodeError as error:
        raise SpaceError(
            f"{source}, {target}: expected UTF-8 text, got {error.reason}; copy the list again"
        ) from None
    columns = [[re.split(r"[,/(]", line)[0].strip().lower() for line in lines] for lines in lists]
    if len(columns[0]) != len(columns[1]):
        raise SpaceError(
            f"{target}: expected {len(columns[0]):,} lines as in {source.name}, got {len(columns[1]):,}; line"
            " i means the same in both, so copy the lists again"
        )
    kept: dict[str, str] = {}
    for word, other in zip(*columns, strict=True):
        if word.isalpha() and other.isalpha() and word not in kept and other not in kept.values():
            kept[word] = other
    return list(kept.items())


def in_data_folder(*parts: str) -> Path:
    """A file of the data folder; raises a SpaceError if RELSCOPE_DATA is not set or lacks it."""
    data = data_folder()
    path = (data or Path()).joinpath(*parts)
    if not data or not path.is_file():
        got = "none" if data else "no data folder"
        raise SpaceError(
            f"expected {'/'.join(parts)} in the data folder, got {got}; set RELSCOPE_DATA to a folder that"
            " has it"
        )
    return path


def _sentences(path: Path, tokens: int) -> Iterator[list[str]]:
    """Every n-th line as words, because a corpus changes from its beginning to its end."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        total = sum(line.count(" ") + 1 for line in lines)
    step = max(1, round(total / tokens))
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % step == 0 and (
                words := [word for word in line.replace("'", " ").split() if word.isalpha()]
            ):
                yield words
