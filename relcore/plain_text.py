"""Texts that users and files bring, made safe to show: without what steers a terminal, breaks a line or turns the order."""

from __future__ import annotations

import re

LONGEST = 2000  # characters of a text that is shown
# Controls, halves of characters, marks that override the order of the letters beside them, and characters without a shape. What
# scripts and emoji need stays: the joiners U+200C and U+200D, and the marks U+200E, U+200F and U+061C, which cannot override.
_STEERING = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u180e\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_BLANK = re.compile(r"\s+")
_RETURN = re.compile("[\r\v\f]")


def harmless(text: str) -> str:
    """The text, line breaks and columns kept, with � in place of each character that steers or hides."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", _RETURN.sub(" ", text))


def visible(text: object, most: int = LONGEST) -> str:
    """`harmless` on one line, at most `most` characters long.

    Examples
    --------
    >>> visible("a\\x1b[2Jb\\n c")
    'a�[2Jb c'
    >>> visible("embedding", most=4)
    'emb…'
    """
    shown = str(text)
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return harmless(_BLANK.sub(" ", shown))
