"""Search rows by their ids, labels and texts, or by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest

import numpy as np
import streamlit as st

from app import compute, messages, session
from app.components.rows import SearchAnswer, row_search
from app.encode.ready import encoders
from app.items import Items, cut, items_of
from app.page_settings import menu, save_value, saved_value
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.search import Ranking, TextIndex, rank_rows, vector_in, words_row
from relcore.spaces.matching import Match

_FOUND = "relscope.found"
_WAITING = "relscope.query"

SHOWN = 12
NOTE = 120  # maximum number of characters of a text in the list


class SearchableRows:
    def __init__(self, ids: Sequence[str], labels: Sequence[str], texts: Sequence[str]) -> None:
        self.ids = list(ids)
        self.labels = list(labels)
        self.texts = list(texts)
        self._folded = [
            (identifier.casefold(), label.casefold(), text.casefold())
            for identifier, label, text in zip(self.ids, self.labels, self.texts, strict=True)
        ]

    @cached_property
    def index(self) -> TextIndex:
        return TextIndex(self.texts)

    def find(self, query: str, n_most: int = SHOWN) -> tuple[list[int], int]:
        """The best rows, best first, and the number of all matches.

        The row whose id equals the query comes first. Then come rows whose id begins with the query, rows
        whose id contains it, rows whose label contains it, and rows whose text contains it. Within each
        group, shorter ids come first, then earlier rows.
        """
        wanted = " ".join(_unquoted(query).casefold().split())
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
        if identifier == wanted:
            return 0
        if identifier.startswith(wanted):
            return 1
        return 2
    if wanted in label:
        return 3 if label.startswith(wanted) else 4
    return 5 if wanted in text else None


@dataclass(frozen=True, eq=False)
class Found:
    """A query of a search by meaning, and the rows that it found."""

    query: str
    pair: str
    ids: tuple[str, ...]
    ranking: Ranking


def found_by(pair: Match) -> Found | None:
    """The last search by meaning. Returns None unless all of its rows, or exactly one of them, are selected
    now."""
    found = st.session_state.get(_FOUND)
    chosen = session.selection()
    # After a reload of the page, repeat the saved search.
    if found is None and len(chosen) > 1 and (query := saved_value(_FOUND)):
        save_value(_FOUND, None)
        with suppress(SpaceError):
            found = _search(pair, session.workspace(), query, _rows(pair, items_of(session.workspace())))
    if found is None or found.pair != compute.pair_key(pair):
        return None
    if chosen == found.ids or (len(chosen) == 1 and chosen[0] in found.ids):
        return found
    return None


def found_by_one_model(pair: Match) -> np.ndarray:
    """The numbers (m,) of the rows that a search by meaning found in only one of the two spaces."""
    found = found_by(pair)
    if found:
        return found.ranking.rows[~found.ranking.found.all(axis=1)]
    return np.empty(0, dtype=np.int64)


@st.fragment
def search_box(pair: Match, key: str) -> None:
    """The box in which a user types a query. A row that the user picks, or the rows that a search by meaning
    finds, become the selection."""
    workspace = session.workspace()
    rows = _rows(pair, items_of(workspace))

    def find(query: str) -> tuple[list[SearchAnswer], str]:
        return _answers(pair, workspace, rows, query)

    def pick(identifier: str, query: str) -> None:
        if identifier in pair.source.index:
            session.select((identifier,))
        elif not identifier:
            # The next run searches, because a click can stop a long callback.
            st.session_state[_WAITING] = query

    picked = row_search(key, _box_label(pair, workspace), find, pick)
    query = st.session_state.pop(_WAITING, "")
    if query:
        try:
            session.select(_search(pair, workspace, query.strip(), rows).ids)
        except SpaceError as error:  # shown beside the search box, not above the page
            messages.warning(error)
            picked = ""
            query = ""
    _ask_with_a_file(f"{key}.file")
    if picked or query:
        st.rerun()  # draw the whole page with the new selection


def _box_label(pair: Match, workspace: Workspace) -> str:
    if _how(workspace, pair, str(pair.ids[0])):
        return "Search by name or meaning"
    return f"Search {counted(len(pair), 'row')}"


def _answers(
    pair: Match, workspace: Workspace, rows: SearchableRows, query: str
) -> tuple[list[SearchAnswer], str]:
    """The answers to list below a query, and a note if rows that match are not listed, or if nothing is."""
    (best, n) = rows.find(query)
    matches = [SearchAnswer(rows.ids[row], *_result_lines(rows, row)) for row in best]
    by_meaning = _answer_by_meaning(pair, workspace, query)
    note = ""
    if n > len(best):
        note = f"{SHOWN} of {n:,} matches; type more."
    if by_meaning is None:
        if not n:
            note = "No row matches."
        return matches, note
    # If the id of the best match begins with the query, list the matches before the search by meaning.
    if best and rows.ids[best[0]].casefold().startswith(_unquoted(query).casefold()):
        return [*matches, by_meaning], note
    return [by_meaning, *matches], note


def _answer_by_meaning(pair: Match, workspace: Workspace, query: str) -> SearchAnswer | None:
    """The answer that starts a search by meaning, or None if nothing can encode the query."""
    vector = vector_in(query, _widths(pair))
    if vector is not None:
        return SearchAnswer("", "Nearest rows", f"In both models, by a vector of {len(vector)} numbers")
    how = _how(workspace, pair, query)
    if not how:
        return None
    return SearchAnswer("", f"“{cut(query, 40)}” by meaning", f"In both models, by {how}")


def _ask_with_a_file(key: str) -> None:
    def ask() -> None:
        if uploaded := st.session_state.get(f"{key}.npy"):
            path = session.keep_upload(uploaded)
            vectors = compute.load_space(SpaceSpec("file", str(path))).vectors
            if len(vectors) != 1:
                raise SpaceError(f"{path.name}: expected one row, got {len(vectors):,}; save it as (1, d)")
            st.session_state[_WAITING] = str(vectors[0].tolist())

    with menu("Search with a vector", key, icon=":material/upload_file:", type="tertiary") as is_open:
        if is_open:
            label = "A .npy file with one row, as wide as one of the spaces"
            st.file_uploader(label, type="npy", key=f"{key}.npy", on_change=session.guarded, args=(ask,))


def _search(pair: Match, workspace: Workspace, query: str, rows: SearchableRows) -> Found:
    ranking = _ranking(pair, workspace.source, workspace.target, query, rows)
    ids = tuple(pair.ids[np.sort(ranking.rows)])
    vector = vector_in(query, _widths(pair))
    if vector is None:
        asked = query
    else:
        asked = f"a vector of {len(vector)} numbers"
    found = Found(asked, compute.pair_key(pair), ids, ranking)
    st.session_state[_FOUND] = found
    save_value(_FOUND, query)
    return found


def _widths(pair: Match) -> tuple[int, int]:
    return (pair.source.dimension, pair.target.dimension)


def _unquoted(query: str) -> str:
    """The query without the quotes around it, which say that its numbers are words."""
    text = query.strip()
    if len(text) > 2 and text[0] in '"“' and text[-1] in '"”':
        return text[1:-1]
    return text


def _how(workspace: Workspace, pair: Match, query: str) -> str:
    """The name of what encodes the query, such as the title of a model. Returns "" if nothing can encode
    it."""
    ends = (workspace.source, workspace.target)
    if any(_encodes_texts(spec) for spec in ends):
        return " and ".join(dict.fromkeys(spec.encoder.title for spec in ends if _encodes_texts(spec)))
    if any(words_row(space, query) is not None for space in (pair.source, pair.target)):
        return "the mean of its words’ vectors"
    items = items_of(workspace)
    if items is not None and items.has_texts:
        return "the words of the texts"
    return ""


def _encodes_texts(spec: SpaceSpec) -> bool:
    return spec.source == "encoding" and spec.encoder.kind == "texts"


def _key(pair: Match, source: SpaceSpec, target: SpaceSpec, query: str, rows: SearchableRows) -> tuple:
    return pair, source, target, query


@compute.cached(16, "Searching …", key=_key)
def _ranking(pair: Match, source: SpaceSpec, target: SpaceSpec, query: str, rows: SearchableRows) -> Ranking:
    spaces = (pair.source, pair.target)
    ends = (source, target)
    widths = _widths(pair)
    if (vector := vector_in(query, widths)) is not None:
        if len(vector) not in widths:
            wanted = " or ".join(map(str, dict.fromkeys(widths)))
            raise SpaceError(
                f"query: expected a vector of {wanted} numbers, got {len(vector)}; give the vector of one of"
                " the models, or put the query in quotes to search for words"
            )
        queries = [None, None]
        queries[widths.index(len(vector))] = vector
        return rank_rows(pair, tuple(queries), SHOWN, how=("this vector", "this vector"))
    query = _unquoted(query)
    ready, _ = encoders([spec for spec in ends if _encodes_texts(spec)])
    queries = []
    how = []
    for spec, space in zip(ends, spaces, strict=True):
        if spec in ready:
            row = ready[spec].rows([query])[0]
        else:
            row = words_row(space, query)
        queries.append(row if row is not None and row.any() else None)
        if spec in ready:
            how.append("its encoder")
        else:
            how.append("the mean of the words’ vectors")
    words = None
    if not any(row is not None for row in queries):
        words = rows.index.similarities(query)
    return rank_rows(pair, tuple(queries), SHOWN, words=words, how=tuple(how))


def _result_lines(rows: SearchableRows, row: int) -> tuple[str, str]:
    identifier = rows.ids[row]
    label = rows.labels[row]
    text = rows.texts[row]
    note = label
    if label and identifier.startswith(f"{label}/"):
        note = ""
    if text:
        return (cut(text, NOTE), identifier)
    return (identifier, note)


@compute.cached(4)
def _rows(pair: Match, items: Items | None) -> SearchableRows:
    if pair.source.labels is not None:
        labels = pair.source.labels
    else:
        labels = [""] * len(pair)
    if items is not None and items.has_texts:
        texts = items.texts(pair.ids)
    else:
        texts = [""] * len(pair)
    return SearchableRows(pair.ids, labels, texts)
