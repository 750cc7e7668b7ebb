"""What lies beside a file of vectors: lists of ids and labels, and the vocabulary of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.records import read_file
from relcore.base.text import read_lines
from relcore.files.rows import readable, usable_bytes


def lines_beside(path: Path, suffix: str, what: str, n: int, limit: int | None) -> list[str] | None:
    """The lines of `<stem>.ids.txt` or `<stem>.labels.txt` for the n rows that were read, where there is such
    a file.

    UTF-8; the byte order mark, the line ends of other systems and empty lines after the last row belong to no
    line.
    """
    beside = path.with_name(f"{path.name[: -len(suffix)]}.{what}.txt")
    if beside == path or not access.beside(path, beside) or not beside.is_file():
        return None
    size = beside.stat().st_size
    if 4 * size > usable_bytes():
        raise SpaceError(f"{beside.name}: expected {what} that fit into memory, got {readable(size)}; cut it")
    try:
        text = beside.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpaceError(
            f"{beside.name}, byte {error.start}: expected UTF-8 text, got {error.reason}; save it as UTF-8"
        ) from None
    if "\0" in text:
        raise SpaceError(f"{beside.name}: expected UTF-8 text, got a zero byte; save it as UTF-8")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    while len(lines) > n and (limit is not None or not lines[-1]):
        lines.pop()
    if len(lines) != n:
        raise SpaceError(
            f"{beside.name}: expected {n:,} {what}, one per row of {path.name}, got {len(lines):,}; write"
            f" {what} and vectors from the same rows"
        )
    return lines


def token_ids(path: Path, n: int) -> list[str] | None:
    """The tokens of the n rows of a model's embeddings, from tokenizer.json, vocab.json or vocab.txt beside
    the file; None where none is there.

    Rows without a token, which models add to round a size, are called "[row 30522]".

    Raises
    ------
    SpaceError
        A vocabulary that cannot be read, or of another model: it has more tokens than the matrix has rows.
    """
    for name in ("tokenizer.json", "vocab.json", "vocab.txt"):
        beside = path.with_name(name)
        if beside.is_file() and access.beside(path, beside):
            return _in_order(_numbered(beside), beside, path, n)
    return None


def _numbered(path: Path) -> dict[Any, Any]:
    """Tokens by their numbers."""
    if path.name == "vocab.txt":
        return dict(enumerate(read_lines(path, "one token per line")))
    content = read_file(path, "a vocabulary")
    try:
        words, added = content, ()
        if path.name == "tokenizer.json":
            words, added = content["model"]["vocab"], content.get("added_tokens") or ()
        if isinstance(words, list):
            words = {one[0]: number for number, one in enumerate(words)}
        numbered = {number: token for token, number in words.items()}
        return numbered | {one["id"]: one["content"] for one in added}
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise SpaceError(
            f"{path.name}: expected tokens with their numbers, got another file; copy it again"
        ) from error


def _in_order(tokens: dict[Any, Any], beside: Path, path: Path, n: int) -> list[str]:
    if not all(type(number) is int and isinstance(token, str) for number, token in tokens.items()):
        raise SpaceError(
            f"{beside.name}: expected tokens with their whole numbers, got others; copy it again"
        )
    if tokens and (min(tokens) < 0 or max(tokens) >= n):
        raise SpaceError(
            f"{beside.name}: expected at most {n:,} tokens, one per row of {path.name}, got number"
            f" {max(tokens):,}; it belongs to another model: remove it, or copy the right one there"
        )
    named = (tokens.get(row, "") for row in range(n))
    return [token if token.strip(" \t\r\n") else f"[row {row}]" for row, token in enumerate(named)]
