"""Train two networks in the page, which takes seconds."""

from __future__ import annotations

import tempfile
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import streamlit as st

from app import messages, session
from app.page_settings import remembered
from app.plain_text import plain_html
from relcore.base.access import is_shared
from relcore.training.two_networks import TASKS, TwoNetworks

_EPOCHS_SHOWN = 5
_FOLDER = "relscope.trained-here"
_CONCLUSION = "relscope.training-conclusion"
_UNSEEN = "relscope.training-unseen"
_WHAT_COMES = """\
### Do two networks learn the same thing?

1. **Guess.** Two networks start from different random weights and read the same digits. Will they agree?
2. **Press Train.** Both learn in a few seconds. Then their maps play from the first step to the last.
3. **Compare.** Do their own axes match? Do their similarities to anchors? Then let them learn random labels.
"""


@cache
def _import_torch() -> None:
    """Import PyTorch once, in another thread, while the user reads the choosers: it takes seconds."""
    if find_spec("torch"):
        Thread(target=import_module, args=("torch",), daemon=True).start()


def choosers() -> bool:
    """Draw the choosers and the button. Returns whether the button was clicked."""
    if not is_shared():
        _import_torch()
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
        if epoch % _EPOCHS_SHOWN == 0:  # each message takes the browser longer than an epoch
            bar.progress(epoch / networks.epochs, text=f"Epoch {epoch} of {networks.epochs}")
    bar.progress(1.0, text="Comparing five pairs …")
    st.session_state[_CONCLUSION] = networks.conclusion().sentence()
    st.session_state[_FOLDER] = str(place)
    st.session_state[_UNSEEN] = str(place)
    bar.empty()


def folder() -> str:
    """The folder of the runs that were trained last in this session; "" if there are none."""
    return st.session_state.get(_FOLDER, "")


def film() -> str:
    """The name of the film of a training that has just ended; "" once the user has seen it."""
    return st.session_state.get(_UNSEEN, "")


def end_film() -> None:
    st.session_state.pop(_UNSEEN, None)


def say_conclusion() -> None:
    """Draw what the pairs of networks show."""
    messages.lead(f"<b>{plain_html(st.session_state[_CONCLUSION])}</b>")


def say_what_comes() -> None:
    """Draw what will be seen."""
    st.markdown(_WHAT_COMES)
