"""Show text of users exactly as it is. Names, ids, labels, paths and errors never become Markdown, HTML,
LaTeX or an icon.

Streamlit reads Markdown in messages, captions, help texts, labels, tabs, metrics, bars, spinners, and the
options of radio buttons, pills and segmented controls. It does not read Markdown in the options of a
selectbox, in placeholders and in cells.
"""

from __future__ import annotations

import re
from html import escape

from relcore.base.text import LONGEST, visible

NAME = 120  # maximum number of characters of a name within a sentence or on a button
_JOINER = "\N{WORD JOINER}"  # splits words that extensions of Markdown find even if escaped
_SIGNS = re.compile(r"[\\`*\[\]{<>~$|]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)|^[#+=-]|^\d+(?=[.)](?:\s|$))")
_ARROWS = re.compile(r"(?<!\S)([<>~-])(?=[=>-])(?=\S{1,2}(?!\S))")
_WORDS = re.compile(r":(?=[\w:/+-])|@(?=[\w-])|(?i:\bwww)(?=\.)")

_ENDING = re.compile(r"(?<![\w-])-(?=\w)")
_NUMBERS = re.compile(r"(?<![\w&#])−?(?:\d[\d,]*)?\.\d+(?: %)?|(?<![\w&#.])\d+ %")


def plain(text: object, most: int = LONGEST) -> str:
    """The text as Markdown that shows exactly its characters, on one line of at most `most` characters.

    Even in escaped text, Streamlit finds icons, emoji, colours, web addresses and arrows, so a zero-width
    joiner splits them.
    """
    shown = _ARROWS.sub(rf"\1{_JOINER}", visible(text, most).strip())
    shown = _SIGNS.sub(_escape, shown)
    return _WORDS.sub(rf"\g<0>{_JOINER}", shown)


def _escape(match: re.Match[str]) -> str:
    if match[0].isdecimal():
        return f"{match[0]}{_JOINER}"
    return f"\\{match[0]}"


def plain_name(text: object) -> str:
    return plain(text, NAME)


def plain_html(text: object, most: int = LONGEST) -> str:
    """The text, escaped for an HTML fragment or attribute. Line breaks are kept."""
    lines = str(text)[:most].split("\n")
    return escape("\n".join(map(visible, lines)))


def bold_numbers(sentence: str) -> str:
    """The sentence of a report as HTML. Its numbers are bold."""
    return _NUMBERS.sub(r"<b>\g<0></b>", plain_html(sentence))


def unbroken(shown: str) -> str:
    """Text that `plain` or `plain_html` returned, in which no line ends after the hyphen of an ending, such
    as -ing."""
    return _ENDING.sub(f"-{_JOINER}", shown)
