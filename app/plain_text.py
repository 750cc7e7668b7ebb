"""User text as it is: names, ids, labels, paths and errors are never Markdown, HTML, LaTeX or an icon.

Streamlit takes messages, captions, help texts, labels, options of radio, pills and segmented controls, tabs,
metrics, bars and spinners for Markdown, but not options of selectbox, placeholders and cells.
"""

from __future__ import annotations

import re
from html import escape

from relcore.base.text import LONGEST, visible

NAME = 120  # characters of a name within a sentence or on a button
_JOINER = "\N{WORD JOINER}"  # Markdown's extensions look for words after escapes are resolved
_SIGNS = re.compile(r"[\\`*\[\]{<>~$|]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)|^[#+=-]|^\d+(?=[.)](?:\s|$))")
_ARROWS = re.compile(r"(?<!\S)([<>~-])(?=[=>-])(?=\S{1,2}(?!\S))")
_WORDS = re.compile(r":(?=[\w:/+-])|@(?=[\w-])|(?i:\bwww)(?=\.)")

_NUMBERS = re.compile(r"(?<![\w&#])−?(?:\d[\d,]*)?\.\d+(?: %)?|(?<![\w&#.])\d+ %")


def plain(text: object, most: int = LONGEST) -> str:
    """Markdown that shows exactly these characters on one line, cut to `most`.

    Streamlit finds icons, emoji, colours, web addresses and arrows even in escaped text, so a zero-width
    joiner splits them.
    """
    shown = _ARROWS.sub(rf"\1{_JOINER}", visible(text, most).strip())
    shown = _SIGNS.sub(_escape, shown)
    return _WORDS.sub(rf"\g<0>{_JOINER}", shown)


def _escape(match: re.Match[str]) -> str:
    return f"{match[0]}{_JOINER}" if match[0].isdecimal() else f"\\{match[0]}"


def plain_name(text: object) -> str:
    return plain(text, NAME)


def plain_html(text: object, most: int = LONGEST) -> str:
    """The text for an HTML fragment or attribute; line breaks are kept."""
    lines = str(text)[:most].split("\n")
    return escape("\n".join(map(visible, lines)))


def bold_numbers(sentence: str) -> str:
    """The sentence of a report as HTML, its numbers in bold."""
    return _NUMBERS.sub(r"<b>\g<0></b>", plain_html(sentence))
