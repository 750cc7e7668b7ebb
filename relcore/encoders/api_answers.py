"""Read the answer of a provider: vectors from JSON that may be anything."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.text import visible

MOST_DIMENSIONS = 16_384
_BYTES_PER_NUMBER = 32  # of JSON; float64 needs up to 25 with its comma
_MOST_BYTES = 256 * 1024 * 1024
_NOT_FINITE = re.compile(
    rb"[\[,]\s*-?(NaN|Infinity)\s*[,\]]"
)  # Python writes them, though JSON has no such numbers
_MESSAGE = 300  # maximum number of characters of a provider's message


class _Row(msgspec.Struct):
    index: int
    embedding: msgspec.Raw


class _Rows(msgspec.Struct):
    data: list[_Row]


def most_bytes(n_texts: int) -> int:
    """The maximum size of the answer for n texts."""
    return min(n_texts * MOST_DIMENSIONS * _BYTES_PER_NUMBER + 65_536, _MOST_BYTES)


def read_rows(content: bytes, n_texts: int, dimensions: int | None) -> np.ndarray:
    """The vectors (n, d) float32 in an answer, in the order of the texts. `dimensions` is the expected d;
    None if it is unknown.

    Raises
    ------
    SpaceError
        The answer is not JSON, has other rows than one for each text, rows of different or other width, or
        values that are not finite numbers.
    """
    try:
        rows = msgspec.json.decode(content, type=_Rows).data
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        rows = None
    if rows is None and _NOT_FINITE.search(content):
        raise SpaceError("expected finite numbers, got NaN or infinity")
    if rows is None:
        raise SpaceError(f"expected vectors as JSON, got {described(content)}")
    if len(rows) != n_texts:
        raise SpaceError(f"expected {n_texts:,} vectors, one for each text, got {len(rows):,}")
    places = [row.index for row in rows]
    if sorted(places) != list(range(n_texts)):
        raise SpaceError(
            f"expected the indices 0 to {n_texts - 1:,}, each once, got {min(places)} to {max(places)},"
            f" {len(set(places)):,} of them different"
        )
    rows.sort(key=lambda row: row.index)
    vectors = [_vector(row) for row in rows]
    width = dimensions or len(vectors[0])
    for place, vector in enumerate(vectors):
        if len(vector) != width:
            raise SpaceError(
                f"expected {width:,} numbers for each text, got {len(vector):,} for text {place + 1:,} of the"
                " batch"
            )
        if not np.isfinite(vector).all():
            raise SpaceError(f"expected finite numbers, got others for text {place + 1:,} of the batch")
    return np.stack(vectors)


def _vector(row: _Row) -> np.ndarray:
    if len(row.embedding) > MOST_DIMENSIONS * _BYTES_PER_NUMBER:
        raise SpaceError(f"expected at most {MOST_DIMENSIONS:,} numbers, got more for index {row.index}")
    if bytes(row.embedding)[:1] == b'"':
        return _base64_vector(row)
    try:
        numbers = msgspec.json.decode(row.embedding, type=list[float])
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        numbers = []
    if not numbers or len(numbers) > MOST_DIMENSIONS:
        raise SpaceError(
            f"expected a list of numbers for index {row.index}, got {described(bytes(row.embedding))}"
        )
    with np.errstate(over="ignore"):
        return np.array(numbers).astype(np.float32)


def _base64_vector(row: _Row) -> np.ndarray:
    """The vector of a server that writes it as base64 of float32, as OpenAI does if it is asked to, also
    where numbers were asked for."""
    content = b""
    with suppress(msgspec.MsgspecError, UnicodeError):
        content = msgspec.json.decode(row.embedding, type=bytes)
    if not content or len(content) % 4 or len(content) > 4 * MOST_DIMENSIONS:
        raise SpaceError(
            f"expected a list of numbers, or float32 in base64, for index {row.index}, got"
            f" {described(bytes(row.embedding))}"
        )
    return np.frombuffer(content, "<f4").astype(np.float32)


def described(content: bytes) -> str:
    """What an answer says, in one line without control characters: its own message if it has one, else its
    beginning."""
    if not content.strip():
        return "nothing"
    message = ""
    with suppress(msgspec.MsgspecError, RecursionError, UnicodeError):
        message = _message(msgspec.json.decode(content))
    text = message or content[: 4 * _MESSAGE].decode("utf-8", "replace")
    short = " ".join(visible(text[: 4 * _MESSAGE]).split())[:_MESSAGE]
    if message:
        return f"the message {short!r}"
    return f"{len(content):,} bytes that begin with {short[:80]!r}"


def _message(answer: Any) -> str:
    """The message in an answer that is an error. Providers put it under “error”, “message” or “detail”."""
    for name in ("error", "message", "detail"):
        if isinstance(answer, dict) and name in answer:
            answer = answer[name]
    return answer if isinstance(answer, str) else ""
