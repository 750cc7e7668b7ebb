"""Find hundreds of parallel anchors from a few known pairs, or from none."""

from __future__ import annotations

import streamlit as st

from app import session
from app.bootstrap import panel

st.caption(
    "Two relative spaces need parallel anchors: rows whose partners in the other space are known. This page"
    " finds hundreds of them from a few known pairs, or from none."
)
workspace = session.workspace()
if (used := panel.in_use(workspace)) is not None:
    panel.tell_in_use()
    panel.draw(used, used=True)
elif (setup := panel.choose(workspace)) is not None:
    panel.draw(setup)
