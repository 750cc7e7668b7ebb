"""Files beside the vectors: lists of ids and labels, and the vocabulary of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.records import read_file
from relcore.base.text import lines_of, read_lines
from relcore.files.formats import readable, suffix_of, usable_bytes

# Files beside the vectors: lists of ids and labels, and the vocabulary of a model


_WITH_TOKENS = (".safetensors", ".pt", ".pth", ".bin")
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt")


def files_beside(path: Path) -> list[Path]:
    """The files beside the vectors that may be read with them, if the session may read these."""
    places = [_sidecar(path, what) for what in ("ids", "labels")]
    if suffix_of(path) in _WITH_TOKENS:
        places += map(path.with_name, _VOCABULARIES)
    return [place for place in places if place != path and place.is_file() and access.beside(path, place)]


def _sidecar(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name[: -len(suffix_of(path))]}.{what}.txt")


def sidecar_lines(path: Path, what: str, n: int, limit: int | None) -> list[str] | None:
    """The n lines of `<stem>.ids.txt` or `<stem>.labels.txt`, without empty lines at the end. None if there
    is no such file."""
    sidecar = _sidecar(path, what)
    if sidecar == path or not sidecar.is_file() or not access.beside(path, sidecar):
        return None
    size = sidecar.stat().st_size
    if 4 * size > usable_bytes():
        raise SpaceError(
            f"{sidecar.name}: expected {what} that fit into memory, got {readable(size)}; cut it"
        )
    lines = lines_of(sidecar.read_bytes(), sidecar.name, what)
    while len(lines) > n and (limit is not None or not lines[-1]):
        lines.pop()
    if len(lines) != n:
        raise SpaceError(
            f"{sidecar.name}: expected {n:,} {what}, one per row of {path.name}, got {len(lines):,}; write"
            f" {what} and vectors from the same rows"
        )
    return lines


def token_ids(path: Path, n: int) -> list[str] | None:
    """The tokens of the n rows of token embeddings. They are read from tokenizer.json, vocab.json or
    vocab.txt beside the file. None if there is no such file.

    A row without a token, which only pads the number of rows, gets an id such as "[row 30522]". Raises a
    SpaceError if the vocabulary cannot be read, or has more tokens than there are rows.
    """
    places = map(path.with_name, _VOCABULARIES)
    vocabulary = next((item for item in places if item.is_file() and access.beside(path, item)), None)
    if vocabulary is None:
        return None
    tokens = _numbered(vocabulary)
    if not all(type(number) is int and isinstance(token, str) for number, token in tokens.items()):
        raise SpaceError(
            f"{vocabulary.name}: expected tokens with their whole numbers, got others; copy it again"
        )
    if tokens and (min(tokens) < 0 or max(tokens) >= n):
        raise SpaceError(
            f"{vocabulary.name}: expected at most {n:,} tokens, one per row of {path.name}, got number"
            f" {max(tokens):,}; this file is another model's: remove it, or copy the right one there"
        )
    ids = []
    for row in range(n):
        token = tokens.get(row, "")
        if not token.strip(" \t\r\n"):
            token = f"[row {row}]"
        ids.append(token)
    return ids


def _numbered(path: Path) -> dict[Any, Any]:
    if path.name == "vocab.txt":
        return dict(enumerate(read_lines(path, "one token per line")))
    content = read_file(path, "a vocabulary")
    try:
        vocabulary = content
        added = ()
        if path.name == "tokenizer.json":
            vocabulary = content["model"]["vocab"]
            added = content.get("added_tokens") or ()
        if isinstance(vocabulary, list):  # pairs of token and score
            numbered = {number: item[0] for number, item in enumerate(vocabulary)}
        else:
            numbered = {number: token for token, number in vocabulary.items()}
        return numbered | {item["id"]: item["content"] for item in added}
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise SpaceError(
            f"{path.name}: expected tokens with their numbers, got another file; copy it again"
        ) from error
