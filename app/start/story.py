"""The first screen."""

from __future__ import annotations

import streamlit as st

from app import messages


def page() -> None:
    messages.lead("An interactive explorer for latent spaces, absolute and relative to anchors.")
    st.page_link("pages/explore.py")
