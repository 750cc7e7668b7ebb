"""Change the embedding model without embedding everything again: keep, bridge, ask twice or re-embed."""

from __future__ import annotations

import streamlit as st

from app import messages, session
from app.drift import panel as drift_panel
from app.migrate import costs, export_adapter, losers, pairs, partial, thresholds
from app.migrate import panel as migrate_panel
from app.migrate import panel as migrate_setup
from relcore.base.errors import SpaceError

_TABS = {
    "More pairs": pairs,
    "Thresholds": thresholds,
    "Partial re-embedding": partial,
    "Costs": costs,
    "Losers": losers,
    "Take away": export_adapter,
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
