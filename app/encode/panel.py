"""From a dataset to spaces: choose items and encoders, see the cost, follow the jobs, and compare the
results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from app import messages, session, sources
from app.encode import forms, jobs
from app.jobs import cost_in_words, follow
from app.places import EXPLORE, go
from app.plain_text import plain_name
from app.widgets import space_name
from relcore.catalog.catalog import SpaceSpec
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import Encoder

_SENDING = {"Encode": "Send and encode", "Encode and compare": "Send, encode and compare"}


def draw(choose: Callable[[], tuple[DatasetSpec, forms.Preview] | None]) -> None:
    """Let the user choose a dataset and encode it. When all its spaces have joined the session, open Explore
    with two of them."""
    if not jobs.pending_jobs():
        _go_on()
    chosen = choose()
    encoders = st.container()
    if chosen:
        items, encoders = st.columns([5, 6], gap="large")
        with items:
            forms.show_preview(chosen[1])
    with encoders:
        if chosen:
            _encode(*chosen)
        running = _follow()
    specs = [] if running else jobs.new_spaces()
    if specs and not jobs.pending_jobs():
        _offer_comparison(specs)


def _go_on() -> None:
    """If there are new spaces to compare, open Explore with them, but only once."""
    if st.session_state.get(session.COMPARE_ENCODED) and (pair := jobs.pair_to_compare()):
        _compare(pair)
    st.session_state.pop(session.COMPARE_ENCODED, None)


def _compare(pair: tuple[SpaceSpec, SpaceSpec]) -> None:
    begun = st.session_state.pop(session.COMPARE_ENCODED, None)
    if others := [space_name(spec) for spec in jobs.new_spaces() if spec not in pair]:
        if len(others) < 3:
            more = " and ".join(others)
        else:
            more = f"{len(others)} others"
        session.announce(f"“Add model” shows {more}, too.")
    encoded = session.workspace().spaces
    history = session.history()
    # One click started both encoding and comparing, so one undo must take back both.
    while begun and len(history.steps[0]) >= begun and history.undo_step.startswith("encode "):
        history.undo()
    session.compare(f"compare {space_name(pair[0])} and {space_name(pair[1])}", *pair, encoded)
    go(EXPLORE)


def _start(*given: Any) -> None:
    # The next run submits the jobs, because a click would stop a long callback.
    begun = len(session.history().steps[0]) + 1  # number of the first undo step that adds encodings
    st.session_state.update({session.COMPARE_ENCODED: begun, session.ENCODE: given})
    sources.forget()


def draw_elsewhere() -> None:
    """Draw the progress on any page other than Data. When all spaces have joined, offer to compare them."""
    with st.container(key="encoding"):
        if jobs.pending_jobs():
            follow(jobs.pending_jobs(), dismiss=jobs.forget)
        elif (pair := jobs.pair_to_compare()) and st.session_state.get(session.COMPARE_ENCODED):
            names = " and ".join(plain_name(space_name(spec)) for spec in pair)
            st.markdown(f"{names} are encoded.")
            with st.container(horizontal=True):
                later = {"args": (session.COMPARE_ENCODED, None), "key": "encode.later", "type": "tertiary"}
                if _compare_button(pair, "them"):
                    _compare(pair)
                st.button("Later", on_click=st.session_state.pop, **later)


def _encode(dataset: DatasetSpec, preview: forms.Preview) -> None:
    encoders = forms.choose_encoders(preview, own=dataset.source in ("file", "folder"))
    encoders = forms.show_what_is_sent(encoders, preview)
    costs = {encoder: forms.cost(encoder, preview) for encoder in encoders}
    missing = [cost for cost in costs.values() if cost != 0.0]
    expected = {encoder: cost for encoder, cost in costs.items() if cost}
    sends_to = [one.sends_to for one, cost in costs.items() if one.sends_to and cost != 0.0]
    with st.container(horizontal=True, vertical_alignment="center"):
        several = sum(len(encoder.outputs) for encoder in encoders) > 1
        st.button(
            _start_label(several, bool(missing), bool(sends_to)),
            type="primary",
            icon=":material/play_arrow:",
            key="encode.start",
            disabled=not encoders or any(not job.status().ended for job in jobs.pending_jobs()),
            on_click=session.guarded,
            # The click is the consent to what is shown above.
            args=(_start, dataset, preview.digest, preview.name, encoders, expected, tuple(sends_to)),
        )
        text = "Choose one encoder or more."
        if encoders:
            text = f"{_cost_of_all(missing)} {_what_follows(encoders, several)}"
        st.caption(text)
    if missing and (stored := [plain_name(one.title) for one, cost in costs.items() if cost == 0]):
        st.caption(f"Encoded before: {', '.join(stored)}.")


def _start_label(several: bool, missing: bool, sends: bool) -> str:
    """The label of the button that starts. `several` is whether there will be two spaces or more, `missing`
    whether some of them must still be encoded, and `sends` whether items go to a provider."""
    if several and missing:
        label = "Encode and compare"
    elif missing:
        label = "Encode"
    elif several:
        label = "Compare"
    else:
        label = "Add to the session"
    return _SENDING[label] if sends else label


def _cost_of_all(missing: Sequence[float | None]) -> str:
    """The expected time of two encodings or more; "" for fewer. Unknown times (None) are left out."""
    known = [cost for cost in missing if cost]
    if len(known) < 2:
        return ""
    # These seconds are an upper limit, because some jobs may run at the same time.
    whole = sum(max(1, round(seconds)) for seconds in known)
    return f"{cost_in_words(whole).capitalize()} in all."


def _what_follows(encoders: Sequence[Encoder], several: bool) -> str:
    """Which two spaces Explore compares after encoding; "" if there is only one space."""
    if not several:
        return ""
    two = "them"
    if len(encoders) == 2:
        two = plain_name(" and ".join(encoder.title for encoder in encoders))
    if len(encoders) > 2:
        two = "the last two of them"
    return f"Explore then compares {two}."


def _follow() -> bool:
    """Draw progress bars. Returns True while a job runs."""
    awaited = jobs.pending_jobs()
    running = any(not job.status().ended for job in awaited)
    if awaited:
        state = "**Not finished**"
        if running:
            state = "**In progress**"
        st.markdown(state)
        follow(awaited, dismiss=jobs.forget)
    return running


def _offer_comparison(specs: Sequence[SpaceSpec]) -> None:
    if pair := jobs.pair_to_compare():
        messages.success(f"{', '.join(map(space_name, specs))} joined the session.")
        if _compare_button(pair):
            _compare(pair)


def _compare_button(pair: tuple[SpaceSpec, SpaceSpec], called: str = "") -> bool:
    names = " with ".join(plain_name(space_name(spec)) for spec in pair)
    return st.button(
        f"Compare {called or names}",
        key="encode.compare",
        icon=":material/join_inner:",
        type="primary",
        help=f"Makes {names} source and target, with anchors from their shared rows.",
    )
