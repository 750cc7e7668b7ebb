"""Tables with selectable rows."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from app import session
from relcore.store import digest_of


def chosen_rows(table: pd.DataFrame, key: str, *, several: bool = False, hide_index: bool = True, **look: Any) -> list[int]:
    """Draw a table and return the numbers of the selected rows; `look` is passed to `st.dataframe`."""
    mode = "multi-row" if several else "single-row"
    state = st.dataframe(table, key=key, on_select="rerun", selection_mode=mode, hide_index=hide_index, **look)
    return [row for row in state.selection.rows if row < len(table)]  # a longer table may have stood here


def brushing_table(table: pd.DataFrame, key: str, **look: Any) -> None:
    """Draw a table with a column "id"; its selected rows are selected in the panes. New rows start unselected."""
    place = f"{key}-{digest_of(table['id'].tolist())[:8]}"

    def brush() -> None:
        session.select(tuple(table["id"].iloc[st.session_state[place].selection.rows]))

    st.dataframe(table, key=place, hide_index=True, on_select=brush, selection_mode="multi-row", **look)
