"""The selected row of Invert: its nearest rows before and after, and where it lands on the maps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app.compare.inspector import (
    STYLE,
    anchor_button,
    describe_row,
    example_row,
    inspector,
    neighbours_html,
    row_search,
)
from app.compare.search import found_by
from app.items import Items
from app.plain_text import plain
from app.selection import selected_rows
from relcore.base.numbers import short
from relcore.invert.inversion import Inversion
from relcore.invert.recovery import nearest_before_and_after
from relcore.spaces.matching import Match

_K = 8  # number of nearest rows in each list
MOST_TRAILS = 24  # number of selected rows whose places in both maps are joined


def rows_with_trails(pair: Match, result: Inversion) -> list[int]:
    """Positions in `Inversion.rows` of the selected rows or, if none is selected, of the example."""
    chosen, rows = selected_rows(pair)
    if not chosen:
        rows = pair.source.rows([example_row(pair)])
    if len(rows) > MOST_TRAILS:
        return []
    return np.flatnonzero(np.isin(result.rows, rows)).tolist()


def draw_selected(pair: Match, items: Items | None, result: Inversion) -> None:
    """Draw the selected row with its nearest rows before and after; of many rows, what Explore tells of
    them."""
    chosen, _ = selected_rows(pair)
    if len(chosen) > 1 or found_by(pair) is not None:
        inspector(pair)
        return
    st.html(STYLE)
    if chosen:
        identifier = chosen[0]
    else:
        identifier = example_row(pair)
        st.caption("An example. Click a point to see another row.")
    _before_and_after(pair, items, result, identifier)
    anchor_button(identifier)
    row_search(pair)


def _before_and_after(pair: Match, items: Items | None, result: Inversion, identifier: str) -> None:
    """Draw the rows nearest to a row and to its recovered vector, side by side."""
    row = int(pair.source.rows([identifier])[0])
    position = int(np.searchsorted(result.rows, row))
    describe_row(pair, identifier, row, items)
    if position == len(result.rows) or result.rows[position] != row:
        st.caption(
            f"This row is not among the {len(result.rows):,} that were recovered. Select one on a map."
        )
        return
    kind = ""
    if not result.scored[position]:
        kind = " It is an anchor, so it is not scored."
    error = short(float(result.errors[result.spec.title][position]), 2)
    before, after = nearest_before_and_after(result, position, _K)
    table = pd.DataFrame(
        {
            "source": pair.ids[result.rows[before[0]]],
            "source cosine": before[1],
            "source shared": np.isin(before[0], after[0]),
            "target": pair.ids[result.rows[after[0]]],
            "target cosine": after[1],
            "target shared": np.isin(after[0], [*before[0], position]),
        }
    )
    itself = "is not"
    if len(after[0]) and after[0][0] == position:
        itself = "is"
    st.caption(
        f"Error {error} (1 − cosine). “{plain(identifier)}” {itself} the row nearest to its recovered"
        f" vector.{kind} Shaded: in both lists, or the row itself."
    )
    st.html(neighbours_html(pair, table, ("Nearest before", "Nearest after")))
