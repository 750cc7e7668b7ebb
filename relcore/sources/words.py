"""load_words: word spaces by name. Two are bundled, more come from gensim-data or from files."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from relcore.access import expanded
from relcore.sources import gensim_data
from relcore.sources.categories import categorise
from relcore.sources.files import load_space
from relcore.sources.readers import suffix_of
from relcore.spaces import LatentSpace, SpaceError, quote

_FOLDER = files("relcore") / "data" / "words"
BUNDLED = {name: _FOLDER / f"{name}.safetensors" for name in ("word2vec-novels", "fasttext-novels")}


def load_words(name_or_path: str | Path, *, limit: int | None = None) -> LatentSpace:
    """A bundled word space, with categories as labels and corpus counts; a file; or a model of gensim-data.

    Parameters
    ----------
    name_or_path : str or Path
        ``"word2vec-novels"``, ``"fasttext-novels"``, a name in `relcore.sources.gensim_data.MODELS`, or a path.
    limit : int, optional
        Only the first words, which in all of these are the most frequent ones.

    Raises
    ------
    SpaceError
        An unknown name; a model that is not here when there is no network; whatever is wrong with the file.

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
        return _bundled(name, limit)
    if name in gensim_data.MODELS:
        return load_space(gensim_data.fetch(name), name=name, limit=limit, duplicates="first")
    path = expanded(name_or_path)
    if isinstance(name_or_path, Path) or path.exists() or suffix_of(path) or path.name != name:
        return load_space(path, limit=limit)
    raise SpaceError(f"expected {quote(BUNDLED)}, a path, or one of gensim-data's {quote(gensim_data.MODELS)}; got {name!r}")


def _bundled(name: str, limit: int | None) -> LatentSpace:
    if not BUNDLED[name].is_file():
        raise SpaceError(
            f"{name}: expected {BUNDLED[name]}, which comes with the project, got no such file; "
            "check it out again, or make it with assets/words/train_words.py"
        )
    return read_bundled(BUNDLED[name], name, limit)


@lru_cache(maxsize=4)  # they do not change; the app reads them before its first visitor comes
def read_bundled(path: Path, name: str, limit: int | None) -> LatentSpace:
    """A bundled word space; the same object for the same arguments."""
    space = load_space(path, name=name, limit=limit)
    return LatentSpace(space.vectors, space.ids, name=name, labels=categorise(space.ids), counts=space.counts)
