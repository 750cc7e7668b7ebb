"""The choosers of Invert, and what they choose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, messages, session
from app.compare.choosers import color_name
from app.items import Items, items_of
from app.page_settings import remembered
from app.plain_text import plain
from app.widgets import bound, edit_setting
from app.workspace import Workspace
from relcore.base.numbers import counted, general
from relcore.base.settings import settings_of
from relcore.invert.inversion import InversionSpec, side_names
from relcore.invert.recovery import COLORS, RecoveredRows
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import Match

_SETTINGS = settings_of(InversionSpec)
_BY = {True: "Auto", False: "By hand"}
_BY_HELP = (
    "Auto: each setting of a grid is cross-validated on the anchors (four folds), and the best is fitted on"
    " all anchors. No scored row is used. By hand: you set the numbers. The map follows the slider; colours"
    " and scores follow when you release it."
)
_RIDGES = tuple(float(f"{10**power:.2g}") for power in np.arange(-3, 3.01, 0.125))
CHOSEN = "relscope.invert-chosen"  # the values that Auto found last


@dataclass(frozen=True)
class Places:
    """The places of the page that the result fills, from top to bottom. `side` is beside `maps`."""

    found: DeltaGenerator
    details: DeltaGenerator
    maps: DeltaGenerator
    side: DeltaGenerator


@dataclass(frozen=True, eq=False)
class InvertInputs:
    """A pair with its texts and pictures, the settings of the figure of its recovered rows, and where the
    result is drawn. `anchors_from` is how the anchors were chosen: strategy, number and random state. `named`
    says whether the maps show names."""

    pair: Match
    recipe: RecoveredRows
    items: Items | None
    anchors_from: tuple[str, int, int]
    named: bool
    places: Places


def inputs(workspace: Workspace) -> InvertInputs | None:
    if not workspace.anchors:
        messages.no_anchors()
        return None
    pair = compute.matched_models(workspace.source, workspace.target)
    if isinstance(pair.ids, GuessedIds) and not compute.can_be_scored(pair, workspace.anchors):
        messages.info(compute.too_few_held_out(pair, workspace.anchors), ":material/hub:")
        return None
    st.caption(_idea(pair, workspace.inversion.route, len(workspace.anchors)))
    if not pair.others and compute.is_paired_by_order(workspace.source, workspace.target):
        st.caption(":material/link: Paired by row order. If that is wrong, Link finds the pairs.")
    found = st.container()
    maps, side = st.columns([2.9, 1], gap="medium")
    with maps, st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        color_by = _color_chooser(pair, workspace.view.color_by)
        details = method_details(workspace.inversion)
        numbers(workspace.inversion)
    recipe = RecoveredRows.of(workspace.recipe(pair), inversion=workspace.inversion, color_by=color_by)
    return InvertInputs(
        pair,
        recipe,
        items_of(workspace),
        session.anchors_origin(workspace),
        workspace.look.named,
        Places(found, details, maps, side),
    )


def _color_chooser(pair: Match, color_of_view: str) -> str:
    colors = {
        name: color_name(name, pair) for name in COLORS if name != "labels" or pair.source.labels is not None
    }
    usual = "error"
    if "labels" in colors and color_of_view == "labels":
        usual = "labels"
    if st.session_state.setdefault("invert.color", usual) not in colors:
        st.session_state["invert.color"] = "error"
    return remembered(
        st.segmented_control,
        "Colour by",
        list(colors),
        format_func=colors.get,
        key="invert.color",
        required=True,
        help="Error: 1 − cosine of recovered and true row. The example rows are those of Explore.",
    )


def method_details(spec: InversionSpec) -> DeltaGenerator:
    """Draw the choosers of the method. Returns the place below them."""
    published = InversionSpec(spec.route)
    with st.popover("Method details", icon=":material/tune:", key="invert.details"):
        edit_setting("inversion", _SETTINGS["route"], "invert.route", widget=st.selectbox)
        edit_setting("inversion", _SETTINGS["method"], "invert.method")
        if spec != published:
            st.button(
                "As published",
                key="invert.published",
                icon=":material/menu_book:",
                help=f"Pruned, {published.settings()}: the settings of Maiorca et al. 2024.",
                on_click=session.edit,
                args=("invert as published",),
                kwargs={"inversion": published},
            )
        return st.container()


def numbers(spec: InversionSpec) -> None:
    """Draw the choice between automatic settings and settings by hand and, by hand, the widgets that set
    them. While a slider moves, the panes show its effect."""
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
    if spec.tuned:
        return
    ridges = ridges_of(spec)
    ends = {ridges[0]: f"{general(ridges[0])}, weak", ridges[-1]: f"{general(ridges[-1])}, strong"}
    widgets = {
        "delta": {"widget": st.slider, "step": 0.01, "width": 210},
        "omega": {"widget": st.slider, "width": 210},
        "random_state": {"width": 130},
        "ridge": {
            "widget": st.select_slider,
            "options": ridges,
            "format_func": lambda ridge: ends.get(ridge, general(ridge)),
            "width": 300,
        },
    }
    names = ["ridge"]
    if spec.method == "pruned":
        names = ["delta", "omega", "random_state"]
    for name in names:
        edit_setting("inversion", _SETTINGS[name], f"invert.{name}", **widgets[name])


def setting_label(name: str) -> str:
    return _SETTINGS[name].label


def ridges_of(spec: InversionSpec) -> list[float]:
    return sorted({*_RIDGES, spec.ridge})


def _tune(tuned: bool) -> None:
    if tuned:
        chosen = {}
    else:
        chosen = st.session_state.get(CHOSEN, {})
    session.edit_spec(f"settings {_BY[tuned].lower()}", "inversion", tuned=tuned, **chosen)


def _idea(pair: Match, route: str, n_anchors: int) -> str:
    """A sentence on what this page does, for the time until the result is computed."""
    source, target = map(plain, side_names(pair, route))
    row = "word"
    if pair.source.counts is None:
        row = "row"
    vector = f"a vector of {target}"
    place = "there"
    if source == target:
        vector = "a vector"
        place = "in its space"
    anchors = counted(n_anchors, "anchor")
    return (
        f"Take only the similarities of each {row} to {anchors} in {source}, and turn them back into"
        f" {vector}. Is it the vector that this {row} has {place}?"
    )
