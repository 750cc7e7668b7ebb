"""What the Invert page inverts and how: one row of choosers over its tabs, all of them in the workspace."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import session
from app.widgets import bound
from app.workspace import Workspace
from relcore.inversion_study import METHOD_TITLES, MOST_OMEGA, ROUTES

_HELP = (
    "Pruned: Maiorca et al. 2024. Anchors that say the same are left out, what is left is inverted, ω times, and averaged. "
    "Ridge and whitened are ours: all anchors stay, and λ keeps the inverse steady."
)


def choosers(workspace: Workspace) -> None:
    """Which way, by which method, and its settings."""
    spec = workspace.inversion
    with st.container(horizontal=True, vertical_alignment="bottom", key="invert-choosers"):
        bound(
            st.selectbox,
            "Invert",
            "invert.route",
            spec.route,
            lambda route: _change(f"invert {ROUTES[route]}", "route", route),
            options=list(ROUTES),
            format_func=ROUTES.get,
            width=200,
            help="Source and target are chosen in the sidebar.",
        )
        bound(
            st.segmented_control,
            "Method",
            "invert.method",
            spec.method,
            lambda method: _change(f"invert by {METHOD_TITLES[method]}", "method", method),
            options=list(METHOD_TITLES),
            format_func=lambda name: METHOD_TITLES[name].capitalize(),
            required=True,
            help=_HELP,
        )
        if spec.method == "pruned":
            _number(
                "Distance δ",
                "delta",
                float(spec.delta),
                "Anchors nearer to each other than this, by 1 − |cos|, are left out. 0 keeps all; the paper takes .65 to .8.",
                min_value=0.0,
                max_value=1.0,
                step=0.05,
            )
            _number(
                "Prunings ω",
                "omega",
                spec.omega,
                "How many prunings are averaged, each begun at another anchor. The paper takes 8 and 16.",
                min_value=1,
                max_value=MOST_OMEGA,
            )
            _number(
                "Random state",
                "random_state",
                spec.random_state,
                "Draws the first anchor of each pruning.",
                min_value=0,
                step=1,
            )
        else:
            _number(
                "Ridge λ",
                "ridge",
                float(spec.ridge),
                "Larger is steadier and blurs more. 1 weighs as one anchor.",
                min_value=0.001,
                max_value=1000.0,
                step=0.5,
            )


def _number(label: str, field: str, value: float, explanation: str, **limits: Any) -> None:
    bound(
        st.number_input,
        label,
        f"invert.{field}",
        value,
        lambda given: _change(f"{label} = {given:g}", field, given),
        width=135,
        help=explanation,
        **limits,
    )


def _change(step: str, field: str, value: Any) -> None:
    session.edit_spec(step, "inversion", **{field: value})
