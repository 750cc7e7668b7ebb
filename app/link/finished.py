"""The links of finished jobs: pages that need paired rows offer to use them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app import compute, results, session
from app.link.links import known_source_ids, use, use_label
from app.link.setup import BootstrapSetup
from relcore.catalog.catalog import SpaceSpec
from relcore.linking.link import BootstrapSpec, Outcome

_LINKED = "relscope.bootstrap-linked"  # state key: a pair → the settings of its jobs, the latest first


def remember_job(setup: BootstrapSetup) -> None:
    """Remember the settings of a job that links rows, so that other pages find its links."""
    linked = st.session_state.setdefault(_LINKED, {})
    pair = (setup.source_spec, setup.target_spec)
    linked[pair] = tuple(dict.fromkeys((setup.spec, *linked.get(pair, ()))))


def finished_links(pair: Sequence[SpaceSpec]) -> tuple[BootstrapSetup, Outcome] | None:
    """The links of a pair that the latest finished job of this session found, with its settings. None if no
    job found any."""
    source, target = pair
    settings: tuple[BootstrapSpec, ...] = st.session_state.get(_LINKED, {}).get((source, target), ())
    if not settings:
        return None
    spaces = (compute.load_space(source), compute.load_space(target))
    for spec in settings:
        outcome = results.finished_result(spec, spaces)
        if outcome is not None and outcome.linked:
            return BootstrapSetup(source, target, *spaces, spec), outcome
    return None


def draw_finished_links(pair: Sequence[SpaceSpec], place: str) -> bool:
    """Draw a button that uses the links of a finished job on all pages. Its key begins with `place`. Returns
    whether there are such links."""
    found = finished_links(pair)
    if found is None:
        return False
    setup, outcome = found
    st.button(
        use_label(outcome),
        key=f"{place}.use-finished",
        icon=":material/hub:",
        type="primary",
        help="Link has found them. All pages then use them. Undo takes this back.",
        on_click=session.guarded,
        args=(use, setup, outcome, known_source_ids(outcome)),
    )
    return True
