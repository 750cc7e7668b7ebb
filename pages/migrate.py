"""Change the embedding model: keep the old one, bridge, query both models or re-embed."""

from __future__ import annotations

import streamlit as st

from app import messages, session
from app.drift import panel as drift_panel
from app.migrate import judge, panel, tabs
from relcore.base.errors import SpaceError

_TABS = {
    "Judge": judge.draw,
    "Thresholds": tabs.thresholds,
    "Queries that get worse": tabs.queries_that_get_worse,
    "Export adapter": tabs.export_adapter,
}

setup = result = None
try:
    setup = panel.choose(session.workspace())
    result = panel.measured(setup) if setup else None
except SpaceError as error:
    messages.error(error)
    st.caption("Choose other vectors or settings above. Load your own on the Spaces page.")
if result is not None:
    result = judge.judged(setup, result)
    panel.draw(setup, result)
*measured, drift = st.tabs([*_TABS, "Drift"], key="migrate.tab", on_change="rerun")
for tab, draw in zip(measured, _TABS.values(), strict=True):
    with tab:
        if tab.open and result is None:
            st.caption("This needs the comparison above.")
        elif tab.open:
            draw(setup, result)
with drift:
    if drift.open:
        drift_panel.draw(session.workspace())
