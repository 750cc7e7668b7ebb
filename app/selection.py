"""The selected rows of a pair. The session keeps their ids, so a selection stays when the pair changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
import pandas as pd
import streamlit as st

from app import session
from relcore.spaces.matching import Match

_KEPT = "relscope.selected-rows"


def selected_rows(pair: Match) -> tuple[tuple[str, ...], np.ndarray]:
    """The selected ids that the pair contains, and their row numbers (m,)."""
    ids = session.selection()
    key = pair.source.digest
    kept = st.session_state.get(_KEPT)
    if kept is None or kept[0] is not ids or kept[1] != key:
        rows = rows_of(pair, ids)
        there = rows >= 0
        if there.all():
            known = ids
        else:
            known = tuple(compress(ids, there))
        kept = (ids, key, known, rows[there])
        st.session_state[_KEPT] = kept
    return kept[2:]


def rows_of(pair: Match, ids: Sequence[str]) -> np.ndarray:
    """Row numbers (m,) of these ids; −1 for an id that the pair lacks."""
    return pair.source.index.get_indexer(pd.Index(ids, dtype=object))


def select(pair: Match, rows: np.ndarray) -> None:
    ids = tuple(pair.ids[rows])
    session.select(ids)
    st.session_state[_KEPT] = ids, pair.source.digest, ids, rows


def anchors_among(pair: Match, rows: np.ndarray, anchors: Sequence[str]) -> list[str]:
    """The anchors that are among these rows (m,)."""
    return list(compress(anchors, np.isin(rows_of(pair, anchors), rows)))


def places_of_selected(pair: Match, drawn: np.ndarray) -> np.ndarray:
    """The positions (s,) of the selected rows within `drawn` (m,), in ascending order."""
    _, rows = selected_rows(pair)
    return np.flatnonzero(np.isin(drawn, rows))
