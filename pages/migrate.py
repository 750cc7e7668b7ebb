"""Change the embedding model without embedding everything again: keep, bridge, ask twice or re-embed."""

from __future__ import annotations

import streamlit as st

from app import messages, session
from app.drift import drift_panel
from app.migrate import (
    costs_panel,
    losers_panel,
    migrate_panel,
    migrate_setup,
    pairs_panel,
    partial_panel,
    take_away_panel,
    threshold_panel,
)
from relcore.spaces import SpaceError

_TABS = {
    "More pairs": pairs_panel,
    "Thresholds": threshold_panel,
    "Partial re-embedding": partial_panel,
    "Costs": costs_panel,
    "Losers": losers_panel,
    "Take away": take_away_panel,
}

setup = result = None
try:
    setup = migrate_setup.choose(session.workspace())
    result = migrate_panel.measured(setup) if setup else None
except SpaceError as error:
    messages.error(error)
    st.caption("Choose other vectors or settings above. Load your own on the Spaces page.")
if result is not None:
    migrate_panel.draw(setup, result)
*measured, drift = st.tabs([*_TABS, "Drift"], key="migrate.tab", on_change="rerun")
for tab, panel in zip(measured, _TABS.values(), strict=True):
    with tab:
        if tab.open and result is None:
            st.caption("This needs the comparison above.")
        elif tab.open:
            panel.draw(setup, result)
with drift:
    if drift.open:
        drift_panel.draw(session.workspace())
