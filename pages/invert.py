"""From a relative space back to an absolute one, its own or another's: how much comes through?"""

from __future__ import annotations

import streamlit as st

from app import invert_grid_panel, invert_norms_panel, invert_panel, invert_setup, session

workspace = session.workspace()
invert_setup.choosers(workspace)
rows, grid, norms = st.tabs(["Rows", "δ × ω", "Norms"], key="invert.tab", on_change="rerun")
with rows:
    if rows.open:
        invert_panel.draw(workspace)
with grid:
    if grid.open:
        invert_grid_panel.draw(workspace)
with norms:
    if norms.open:
        invert_norms_panel.draw(workspace)
