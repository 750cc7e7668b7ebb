"""Find hundreds of parallel anchors from a few known pairs, or from none."""

from __future__ import annotations

import streamlit as st

from app import session
from app.bootstrap import bootstrap_panel, bootstrap_setup

st.caption(
    "Two relative spaces need parallel anchors: rows whose partners in the other space are known. This page finds hundreds of "
    "them from a few known pairs, or from none."
)
workspace = session.workspace()
if (used := bootstrap_panel.in_use(workspace)) is not None:
    bootstrap_setup.tell_in_use()
    bootstrap_panel.draw(used, used=True)
elif (setup := bootstrap_setup.choose(workspace)) is not None:
    bootstrap_panel.draw(setup)
