"""Errors in the page's words: the core names arguments that scripts and commands take, and a page has choosers for them."""

from __future__ import annotations

import re

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
    """The text with the names of choosers and switches in place of arguments; names in quotes are the user's and stay.

    Examples
    --------
    >>> in_page_words("t.csv: ids must be distinct; make them distinct, or load the file with duplicates='first'")
    't.csv: ids must be distinct; make them distinct, or switch on “Keep only the first of duplicate ids”'
    >>> in_page_words("t.csv: label_column expects one of 'id_column', got 'x'")
    "t.csv: “Labels” expects one of 'id_column', got 'x'"
    """
    shown = str(text)
    for phrase, words in PHRASES:
        shown = re.sub(phrase, words, shown)
    return _COLUMN.sub(lambda found: f"“{_CHOOSERS[found[1]]}”", shown)
