"""Which rows belong together? From a handful of known pairs, or none, to hundreds of parallel anchors."""

from __future__ import annotations

import streamlit as st

from app import session
from app.bootstrap import bootstrap_panel, bootstrap_setup

st.html(
    '<p class="relscope-lead">Relative spaces need anchors that both encoders know. Here a few known pairs, or none at all, '
    "grow to hundreds: the spaces are turned onto each other until their rows find each other.</p>"
)
setup = bootstrap_setup.choose(session.workspace())
if setup is not None:
    bootstrap_panel.draw(setup)
