"""The choosers of the Invert page: one row in the tabs that need them; their values are in the workspace."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import session
from app.widgets import bound
from app.workspace import Workspace
from relcore.inverting.recovery import MOST_OMEGA, InversionSpec
from relcore.inverting.tuning import Choice
from relcore.names import INVERSES, ROUTES
from relcore.numbers import general

_HELP = (
    "Pruned: Maiorca et al. 2024. Near-duplicate anchors are left out, the rest is inverted, and ω such inverses are "
    "averaged. Ridge and whitened are our additions: they keep all anchors, and λ stabilises the inverse."
)

_BY = {True: "Auto", False: "By hand"}
_BY_HELP = (
    "Auto: quarters of the anchors are held out in turn. Each setting of a grid is fitted on the other anchors, and the best "
    "on the held-out ones is fitted on all anchors. The rows that are scored are not used for this. By hand: your own numbers."
)
_CHOSEN = "relscope.invert-chosen"  # the numbers of the last choice by held-out anchors, to begin with by hand

_NUMBERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "delta": (
        "Distance δ",
        "Anchors closer to a kept anchor than this, by 1 − |cos|, are left out. 0 keeps all. The paper uses .65 to .8.",
        {"min_value": 0.0, "max_value": 1.0, "step": 0.05},
    ),
    "omega": (
        "Prunings ω",
        "Number of prunings to average, each from another first anchor. The paper uses 8 and 16.",
        {"min_value": 1, "max_value": MOST_OMEGA},
    ),
    "random_state": ("Random state", "Draws the first anchor of each pruning.", {"min_value": 0, "step": 1}),
    "ridge": (
        "Ridge λ",
        "Larger values are more stable and less accurate. λ = 1 counts as much as one average anchor.",
        {"min_value": 0.001, "max_value": 1000.0, "step": 0.5},
    ),
}


def choosers(workspace: Workspace) -> None:
    """The direction, the method and its settings."""
    spec = workspace.inversion
    with st.container(horizontal=True, vertical_alignment="bottom", key="invert-choosers"):
        bound(
            st.selectbox,
            "Invert",
            "invert.route",
            spec.route,
            lambda route: _change(f"invert {ROUTES[route].title}", "route", route),
            options=list(ROUTES),
            format_func=lambda route: ROUTES[route].title,
            width=200,
            help="Source and target are chosen in the sidebar.",
        )
        bound(
            st.segmented_control,
            "Method",
            "invert.method",
            spec.method,
            lambda method: _change(f"invert by {INVERSES[method].title}", "method", method),
            options=list(INVERSES),
            format_func=lambda name: INVERSES[name].title.capitalize(),
            required=True,
            help=_HELP,
        )
        bound(
            st.segmented_control,
            "Settings",
            "invert.tuned",
            spec.tuned,
            _tune,
            options=list(_BY),
            format_func=_BY.get,
            required=True,
            help=_BY_HELP,
        )
        if not spec.tuned:
            _draw(spec, ("delta", "omega", "random_state") if spec.method == "pruned" else ("ridge",))
        published = InversionSpec(spec.route)
        if spec != published:
            st.button(
                "As published",
                key="invert.published",
                icon=":material/menu_book:",
                help=f"Pruned, {published.settings()}: what Maiorca et al. 2024 use.",
                on_click=session.edit,
                args=("invert as published",),
                kwargs={"inversion": published},
            )


def remember(choice: Choice | None) -> None:
    """Begin with these numbers when the user sets them by hand."""
    if choice:
        st.session_state[_CHOSEN] = choice.numbers()


def _tune(tuned: bool) -> None:
    numbers = {} if tuned else st.session_state.get(_CHOSEN, {})
    session.edit_spec(f"settings {_BY[tuned].lower()}", "inversion", tuned=tuned, **numbers)


def numbers(workspace: Workspace, fields: tuple[str, ...]) -> None:
    """These settings only, for tabs that run every method."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="invert-numbers"):
        _draw(workspace.inversion, fields)


def _draw(spec: InversionSpec, fields: tuple[str, ...]) -> None:
    for field in fields:
        label, explanation, limits = _NUMBERS[field]
        bound(
            st.number_input,
            label,
            f"invert.{field}",
            getattr(spec, field),
            lambda given, label=label, field=field: _change(f"{label} = {general(given)}", field, given),
            width=135,
            help=explanation,
            **limits,
        )


def _change(step: str, field: str, value: Any) -> None:
    session.edit_spec(step, "inversion", **{field: value})
