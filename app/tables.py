"""A table of which rows can be chosen."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st


def chosen_rows(table: pd.DataFrame, key: str, *, several: bool = False, hide_index: bool = True, **look: Any) -> list[int]:
    """Draw a table of which a row can be chosen, or several, and give their numbers; `look` is for `st.dataframe`."""
    mode = "multi-row" if several else "single-row"
    state = st.dataframe(table, key=key, on_select="rerun", selection_mode=mode, hide_index=hide_index, **look)
    return [row for row in state.selection.rows if row < len(table)]  # a longer table may have stood here
