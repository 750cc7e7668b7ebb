"""The bundled everyday sentences, the same ones in several languages: parallel anchors for text encoders."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from relcore.base.errors import SpaceError, quote
from relcore.encoders.dataset import Dataset

LANGUAGES = {"en": "English", "es": "Spanish", "fr": "French", "ja": "Japanese"}
N_SENTENCES = 438
_FILE = files("relcore") / "data" / "parallel" / "everyday.tsv"


def load_parallel(languages: Sequence[str] = ("en", "es")) -> dict[str, tuple[str, ...]]:
    """Language → its sentences; sentence i means the same in every language. The sentences are in random
    order.

    Raises
    ------
    SpaceError
        A language that is not among `LANGUAGES`, or the file that comes with the project is gone.
    """
    unknown = [language for language in languages if language not in LANGUAGES]
    if unknown:
        raise SpaceError(f"languages: expected some of {quote(LANGUAGES)}, got {quote(unknown)}")
    columns = _columns()
    return {language: columns[language] for language in languages}


def parallel_dataset(language: str, limit: int | None = None) -> Dataset:
    """The sentences of one language, or the first of them; ids are the same in every language, so that
    spaces match.
    """
    if language not in LANGUAGES:
        raise SpaceError(f"language: expected one of {quote(LANGUAGES)}, got {language!r}")
    columns = _columns()
    sentences = columns[language][:limit]
    ids = columns["id"][:limit]
    return Dataset(
        lambda start, stop: list(sentences[start:stop]), ids, name=f"everyday/{language}", kind="texts"
    )


def _columns() -> dict[str, tuple[str, ...]]:
    if not _FILE.is_file():
        raise SpaceError(
            f"expected {_FILE}, which comes with the project, got no such file; check it out again"
        )
    header, *rows = (line.split("\t") for line in _FILE.read_text(encoding="utf-8").splitlines())
    return dict(zip(header, zip(*rows, strict=True), strict=True))
