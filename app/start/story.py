"""The first screen."""

from __future__ import annotations

import streamlit as st

from app import messages
from app.places import EXPLORE


def page() -> None:
    messages.lead("An interactive explorer for latent spaces, absolute and relative to anchors.")
    st.page_link(EXPLORE.file)
