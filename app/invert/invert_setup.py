"""What the Invert page inverts and how: one row of choosers in the tabs that ask for them, all of them in the workspace."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import session
from app.widgets import bound
from app.workspace import Workspace
from relcore.inverting.inverted import METHOD_TITLES, MOST_OMEGA, ROUTES, InversionSpec

_HELP = (
    "Pruned: Maiorca et al. 2024. Anchors that say the same are left out, what is left is inverted, ω times, and averaged. "
    "Ridge and whitened are ours: all anchors stay, and λ keeps the inverse steady."
)

_NUMBERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "delta": (
        "Distance δ",
        "Anchors nearer to each other than this, by 1 − |cos|, are left out. 0 keeps all; the paper takes .65 to .8.",
        {"min_value": 0.0, "max_value": 1.0, "step": 0.05},
    ),
    "omega": (
        "Prunings ω",
        "How many prunings are averaged, each begun at another anchor. The paper takes 8 and 16.",
        {"min_value": 1, "max_value": MOST_OMEGA},
    ),
    "random_state": ("Random state", "Draws the first anchor of each pruning.", {"min_value": 0, "step": 1}),
    "ridge": (
        "Ridge λ",
        "Larger is steadier and blurs more. 1 weighs as one anchor.",
        {"min_value": 0.001, "max_value": 1000.0, "step": 0.5},
    ),
}


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
        _draw(spec, ("delta", "omega", "random_state") if spec.method == "pruned" else ("ridge",))


def numbers(workspace: Workspace, fields: tuple[str, ...]) -> None:
    """These settings alone, where every method is asked at once."""
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
            lambda given, label=label, field=field: _change(f"{label} = {given:g}", field, given),
            width=135,
            help=explanation,
            **limits,
        )


def _change(step: str, field: str, value: Any) -> None:
    session.edit_spec(step, "inversion", **{field: value})
