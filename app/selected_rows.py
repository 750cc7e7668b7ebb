"""The selected rows of a pair, looked up once for each selection: a lasso may hold half a million ids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, session
from relcore.spaces import Match

_KEPT = "relscope.selected-rows"


def selected(pair: Match) -> tuple[tuple[str, ...], np.ndarray]:
    """The selected ids that the pair has, in their order, and their row numbers (m,)."""
    ids, key = session.selection(), compute.pair_key(pair)
    kept = st.session_state.get(_KEPT)
    if kept is None or kept[0] is not ids or kept[1] != key:
        rows = pair.source.index.get_indexer(pd.Index(ids, dtype=object)) if ids else np.empty(0, dtype=np.int64)
        there = rows >= 0
        st.session_state[_KEPT] = kept = (ids, key, ids if there.all() else tuple(compress(ids, there)), rows[there])
    return kept[2:]


def select(pair: Match, rows: np.ndarray) -> None:
    """Select these rows (m,) of the pair."""
    ids = tuple(pair.ids[rows])
    session.select(ids)
    st.session_state[_KEPT] = ids, compute.pair_key(pair), ids, rows


def anchors_among(pair: Match, rows: np.ndarray, anchors: Sequence[str]) -> list[str]:
    """Those of the anchors, in their order, that are among these rows (m,) of the pair."""
    chosen = np.zeros(len(pair), dtype=bool)
    chosen[rows] = True
    places = pair.source.index.get_indexer(pd.Index(anchors, dtype=object))
    return list(compress(anchors, (places >= 0) & chosen[places]))


def places_of_selected(pair: Match, drawn: np.ndarray) -> np.ndarray:
    """The places (s,), ascending, of the selected rows among the `drawn` row numbers (m,)."""
    _, rows = selected(pair)
    if not len(rows):
        return rows
    chosen = np.zeros(len(pair), dtype=bool)
    chosen[rows] = True
    return np.flatnonzero(chosen[drawn])
