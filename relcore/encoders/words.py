"""load_words: the two bundled word spaces by name, others from files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from relcore.base.access import expanded
from relcore.base.errors import SpaceError, quote
from relcore.files.formats import suffix_of
from relcore.files.reading import load_space
from relcore.spaces.space import LatentSpace

# Word categories, for colour, from the analogy questions of Mikolov et al. (2013).


@cache
def word_categories() -> dict[str, str]:
    """Lower-case word → category; ``assets/words/word_categories.py`` writes the file."""
    from relcore.files.tables import table_of

    table = table_of(Path(str(files("relcore") / "data" / "words" / "categories.tsv")))
    words, categories = (table.read(name, 0, table.n) for name in ("word", "category"))
    return dict(zip(words, categories, strict=True))


def categorise(words: Sequence[str]) -> list[str]:
    categories = word_categories()
    return [categories.get(word.lower(), "") for word in words]


# The spaces.

_FOLDER = files("relcore") / "data" / "words"
BUNDLED = {
    "word2vec-novels": _FOLDER / "word2vec-novels.safetensors",
    "fasttext-novels": _FOLDER / "fasttext-novels.safetensors",
}


def load_words(name_or_path: str | Path, *, limit: int | None = None) -> LatentSpace:
    """A word space: bundled (with categories as labels and corpus counts), or from a file.

    Parameters
    ----------
    name_or_path : str or Path
        ``"word2vec-novels"``, ``"fasttext-novels"``, or a path.
    limit : int, optional
        Load only the first words, which are the most frequent.

    Raises
    ------
    SpaceError
        An unknown name, an invalid file.

    Examples
    --------
    >>> from relcore import load_words
    >>> space = load_words("word2vec-novels", limit=1000)
    >>> len(space), space.dimension
    (1000, 100)
    >>> space.labels[space.rows(["king", "london"])].tolist()
    ['family', 'city']
    """
    name = str(name_or_path)
    if name in BUNDLED:
        return read_bundled(BUNDLED[name], name, limit)
    path = expanded(name_or_path)
    if isinstance(name_or_path, Path) or path.exists() or suffix_of(path) or path.name != name:
        return load_space(path, limit=limit)
    raise SpaceError(f"expected {quote(BUNDLED)}, or a path; got {name!r}")


@lru_cache(maxsize=4)
def read_bundled(path: Path, name: str, limit: int | None) -> LatentSpace:
    space = load_space(path, name=name, limit=limit)
    return LatentSpace(space.vectors, space.ids, name=name, labels=categorise(space.ids), counts=space.counts)
