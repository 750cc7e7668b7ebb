"""Search of rows by id, label and text, with matches while one types."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest

import streamlit as st

from app import compute, session
from app.components.rows import SearchAnswer, row_search
from app.items import Items, cut, items_of
from relcore.base.numbers import counted
from relcore.spaces.space import Match

SHOWN = 12
_NOTE = 120  # characters of a text in the list


class SearchableRows:
    """The rows of a pair, ready to be searched: ids, labels and texts without case."""

    def __init__(self, ids: Sequence[str], labels: Sequence[str], texts: Sequence[str]) -> None:
        self.ids, self.labels, self.texts = list(ids), list(labels), list(texts)
        self._folded = [
            (identifier.casefold(), label.casefold(), text.casefold())
            for identifier, label, text in zip(self.ids, self.labels, self.texts, strict=True)
        ]

    def find(self, query: str, n_most: int = SHOWN) -> tuple[list[int], int]:
        """The best rows, best first, and how many match: an equal id, its beginning, its inside, the label,
        the text.

        Among equals the shorter id comes first, then the earlier row.
        """
        wanted = " ".join(query.casefold().split())
        if not wanted:
            return [], 0
        found = [
            (rank, len(identifier), row)
            for row, (identifier, label, text) in enumerate(self._folded)
            if (rank := _rank(wanted, identifier, label, text)) is not None
        ]
        return [row for _, _, row in nsmallest(n_most, found)], len(found)


def _rank(wanted: str, identifier: str, label: str, text: str) -> int | None:
    if wanted in identifier:
        return 0 if identifier == wanted else 1 if identifier.startswith(wanted) else 2
    if wanted in label:
        return 3 if label.startswith(wanted) else 4
    return 5 if wanted in text else None


@st.fragment
def search_box(pair: Match, key: str) -> None:
    """The box above the inspector; a picked row is selected on every page."""
    items = items_of(session.workspace())
    rows = _rows(pair, items)

    def find(query: str) -> tuple[list[SearchAnswer], str]:
        best, n = rows.find(query)
        told = f"{SHOWN} of {n:,} matches; type more." if n > len(best) else "" if n else "No row matches."
        return [SearchAnswer(rows.ids[row], *_shown(rows, row)) for row in best], told

    def pick(identifier: str) -> None:
        if identifier in pair.source.index:
            session.select((identifier,))

    if row_search(key, f"Search {counted(len(pair), 'row')}", find, pick):
        st.rerun()  # the whole page shows the selection


def _shown(rows: SearchableRows, row: int) -> tuple[str, str]:
    """The first line of a match, and its small print."""
    identifier, label, text = rows.ids[row], rows.labels[row], rows.texts[row]
    note = "" if label and identifier.startswith(f"{label}/") else label
    return (cut(text, _NOTE), identifier) if text else (identifier, note)


@compute.cached(4)
def _rows(pair: Match, items: Items | None) -> SearchableRows:
    labels = pair.source.labels if pair.source.labels is not None else [""] * len(pair)
    texts = items.texts(pair.ids) if items is not None and items.has_texts else [""] * len(pair)
    return SearchableRows(pair.ids, labels, texts)
