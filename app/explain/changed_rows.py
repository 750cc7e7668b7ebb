"""The rows whose neighbours changed most between two spaces."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import compute, session
from app.glossary.card import caption
from app.items import items_of, with_items
from app.tables import brushing_table
from app.workspace import Workspace
from relcore.base.numbers import counted
from relcore.maps.pane_maps import View
from relcore.spaces.matching import Match

_LISTED = 200  # maximum number of rows at each end of the table, which is sorted by change
_NEIGHBOURS = 50  # number of neighbours of a row that `compute.agreement` compares


def draw(workspace: Workspace, pair: Match, drawn: View) -> None:
    st.markdown("### Rows that changed most")
    table = compute.agreement(pair, drawn).rename(columns={"overlap": "neighbours kept"}).drop(columns="row")
    if len(table) == len(drawn.rows):
        part = "all"
    else:
        part = f"{len(table):,} of the"
    if len(table) > 2 * _LISTED:  # the table would be too long for the page
        table = pd.concat([table.head(_LISTED), table.tail(_LISTED)], ignore_index=True)
    shown, look = with_items(items_of(workspace), table)
    shown = shown.assign(**{"neighbours kept": 100 * shown["neighbours kept"]})
    look["column_config"]["neighbours kept"] = st.column_config.ProgressColumn(
        min_value=0, max_value=100, format="%.0f %%"
    )
    brushing_table(shown, "explain.rows", height=300, **look)
    caption(
        "The rows that changed most stand first, then the rows that changed least. Click a column's head to"
        f" sort. Neighbours kept: Jaccard overlap of a row's {min(_NEIGHBOURS, len(pair) - 1)} nearest"
        f" neighbours in the two absolute spaces (mutual kNN, centred), for {part}"
        f" {counted(len(drawn.rows), 'row')} shown. Select rows to mark them in the panes."
    )
    st.button(
        "Colour the panes by agreement",
        icon=":material/palette:",
        on_click=session.edit_spec,
        args=("colour by agreement", "view"),
        kwargs={"color_by": "agreement"},
        key="explain.colour",
        disabled=workspace.view.color_by == "agreement",
    )
