"""The edges that the panes draw while a reason is open: lines from its typical rows to their neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app import session
from app.selection import rows_of
from relcore.explain.reason import ExampleRow
from relcore.spaces.matching import Match

_SHOWN = "explain.edges"


def show_edges(selected: tuple[str, ...], examples: Sequence[ExampleRow]) -> None:
    """Draw the edges of these rows as long as the rows `selected` stay selected."""
    st.session_state[_SHOWN] = selected, tuple(examples)


def edges_of(models: Match) -> tuple[np.ndarray, ...]:
    """For each model, the numbers of a row and of its neighbour, and 1 if they share the feature, (m, 3).
    Returns () if no reason is open, or if other rows were selected since."""
    selected, examples = st.session_state.get(_SHOWN, ((), ()))
    if not examples or session.selection() != selected:
        return ()
    listed: list[np.ndarray] = []
    for side in range(len(models.spaces)):
        joined = [_joined(models, example, side) for example in examples]
        listed.append(np.concatenate(joined))
    return tuple(listed)


def _joined(models: Match, example: ExampleRow, side: int) -> np.ndarray:
    """The edges (k, 3) of a row in one model; none if the result has fewer models, or other rows."""
    if side >= len(example.neighbours):
        return np.empty((0, 3), dtype=int)
    row = rows_of(models, [example.id])[0]
    neighbours = rows_of(models, example.neighbours[side])
    edges = np.column_stack([np.full(len(neighbours), row), neighbours, example.sharing[side]])
    return edges[(edges >= 0).all(axis=1)]
