"""Does a head understand an encoder that it was not trained on? Every encoder with every head, live."""

from __future__ import annotations

import streamlit as st

from app import session, stitch_panel, stitch_setup

setup = stitch_setup.choose(session.workspace())
(pairs,) = st.tabs(["Every pair"], key="stitch.tab", on_change="rerun")
with pairs:
    if pairs.open:
        stitch_panel.draw(setup)
