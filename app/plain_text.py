"""User text as it is: names, ids, labels, paths and errors are never Markdown, HTML, LaTeX or an icon on a
page.

Streamlit takes most of its texts for Markdown: messages, captions, help texts, labels of widgets, options of
radio, pills and segmented controls, tabs, metrics with their values, bars and spinners. Options of selectbox
and multiselect, placeholders and cells of tables are plain already.
"""

from __future__ import annotations

import re
from html import escape

from relcore.base.text import LONGEST, visible

NAME = 120  # characters of a name within a sentence or on a button
_JOINER = (  # without width: Markdown's extensions look for words in the text after its escapes are resolved
    "\N{WORD JOINER}"
)
_SIGNS = re.compile(r"[\\`*\[\]{<>~$|]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)|^[#+=-]|^\d+(?=[.)](?:\s|$))")
_ARROWS = re.compile(r"(?<!\S)([<>~-])(?=[=>-])(?=\S{1,2}(?!\S))")
_WORDS = re.compile(r":(?=[\w:/+-])|@(?=[\w-])|(?i:\bwww)(?=\.)")


def plain(text: object, most: int = LONGEST) -> str:
    """Markdown that shows these characters as they are, on one line, cut to `most`; see `visible` for those
    without a shape.

    A backslash stands before what Markdown reads. Icons (``:material/star:``), emoji, colours (``:red[…]``),
    web addresses and arrows are found after that, so a joiner without width parts them.
    """
    shown = _ARROWS.sub(rf"\1{_JOINER}", visible(text, most).strip())
    shown = _SIGNS.sub(_escaped, shown)
    return _WORDS.sub(rf"\g<0>{_JOINER}", shown)


def _escaped(found: re.Match[str]) -> str:
    return f"{found[0]}{_JOINER}" if found[0].isdecimal() else f"\\{found[0]}"


def plain_name(text: object) -> str:
    """`plain`, cut to the length of a name."""
    return plain(text, NAME)


def plain_html(text: object, most: int = LONGEST) -> str:
    """The text in a fragment or an attribute of HTML; line breaks stay."""
    lines = str(text)[:most].split("\n")
    return escape("\n".join(map(visible, lines)))


# Errors in the page's words: the core names arguments that scripts and commands take, and a page has choosers
# for them.

_CHOOSERS = {"id": "Ids", "label": "Labels", "count": "Counts", "text": "Text", "picture": "Pictures"}
_FEWER_ROWS = "lower “Maximum number of rows”"
# In this order: whole remedies before the single words in them.
PHRASES: tuple[tuple[str, str], ...] = (
    (r" \(id_column, label_column, count_column\)", ""),
    (r" \(ignore\)", ""),
    (r"choose it with id_column, and labels with label_column", "choose it as Ids, and labels as Labels"),
    (r"pass limit=… to read fewer rows, or a larger max_bytes if you trust the file", _FEWER_ROWS),
    (r"pass limit=… to read fewer( rows)?", _FEWER_ROWS),
    (r", or pass a larger max_bytes if you trust the file", ""),
    (r"more than max_bytes = ([\d.,]+ \w+)", r"more than the \1 of memory that may be used"),
    (
        r"load the file with invalid='drop'( \(in a command FILE#invalid=drop\))?",
        "switch on “Leave out rows with NaN or infinite values”",
    ),
    (
        r"load the file with duplicates='first'( \(in a command FILE#duplicates=first\))?",
        "switch on “Keep only the first of duplicate ids”",
    ),
    (r"(?<!['\w])ignore: expected", "“Leave out”: expected"),
    (r"choose one with the option matrix, as FILE#matrix=\w+", "choose one as “Matrix” on the Spaces page"),
)
_COLUMN = re.compile(rf"(?<!['\w])({'|'.join(_CHOOSERS)})_column(?!['\w])")


def in_page_words(text: object) -> str:
    """The text with the names of choosers and switches in place of arguments; names in quotes are the user's
    and stay.

    Examples
    --------
    >>> in_page_words("t.csv: ids must be distinct; make them distinct, or load the file with
    duplicates='first'") 't.csv: ids must be distinct; make them distinct, or switch on “Keep only the first
    of duplicate ids”'
    >>> in_page_words("t.csv: label_column expects one of 'id_column', got 'x'")
    "t.csv: “Labels” expects one of 'id_column', got 'x'"
    """
    shown = str(text)
    for phrase, words in PHRASES:
        shown = re.sub(phrase, words, shown)
    return _COLUMN.sub(lambda found: f"“{_CHOOSERS[found[1]]}”", shown)
