"""Train two networks in the page, which takes seconds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import streamlit as st

from app import messages, session
from app.page_settings import remembered
from app.plain_text import plain_html
from relcore.base.access import is_shared
from relcore.training.two_networks import TASKS, TwoNetworks

_FOLDER = "relscope.trained-here"
_CONCLUSION = "relscope.training-conclusion"


def choosers() -> bool:
    """Draw the choosers and the button. Returns whether the button was clicked."""
    titles = {name: task.title for name, task in TASKS.items()}
    remembered(
        st.selectbox, "They learn", list(TASKS), format_func=titles.get, key="training.task", width=340
    )
    told = "It draws the first weights and the order of the digits."
    remembered(st.number_input, "Random state", 0, 9999, 0, key="training.state", width=140, help=told)
    help_text = "Ten networks learn at once: the two that are drawn, and four more pairs for the interval."
    if is_shared():
        help_text = "In a shared app, no network is trained."
    return st.button(
        "Train",
        key="training.train",
        icon=":material/play_arrow:",
        type="primary",
        disabled=is_shared(),
        help=help_text,
    )


def train() -> None:
    """Train the networks that are chosen, with a progress bar."""
    uploads = session.member().uploads_folder()
    uploads.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="training-", dir=uploads)) / "runs"
    bar = st.progress(0.0, text="The networks learn …")
    networks = TwoNetworks(place, st.session_state["training.task"], int(st.session_state["training.state"]))
    for epoch in networks.train():
        bar.progress(epoch / networks.epochs, text=f"Epoch {epoch} of {networks.epochs}")
    bar.progress(1.0, text="Comparing five pairs …")
    st.session_state[_CONCLUSION] = networks.conclusion().sentence()
    st.session_state[_FOLDER] = str(place)
    bar.empty()


def folder() -> str:
    """The folder of the runs that were trained last in this session; "" if there are none."""
    return st.session_state.get(_FOLDER, "")


def say_conclusion() -> None:
    """Draw what the pairs of networks show."""
    messages.lead(f"<b>{plain_html(st.session_state[_CONCLUSION])}</b>")
