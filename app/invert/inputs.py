"""The choosers of Invert, and what they choose."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, messages, session
from app.compare.choosers import color_name
from app.invert.inversions import inversion_of
from app.items import Items, items_of
from app.link.unpaired import draw_unconfirmed_links
from app.page_settings import remembered
from app.plain_text import plain
from app.widgets import bound, choose_anchors, edit_setting, fitting
from app.workspace import MOST_ANCHORS, Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import STRATEGIES
from relcore.base.numbers import counted, general
from relcore.base.settings import settings_of
from relcore.invert.inversion import InversionSpec, side_names
from relcore.invert.recovery import COLORS, NEARBY, RecoveredRows
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import Match

_SETTINGS = settings_of(InversionSpec)
_BY = {True: "Auto", False: "By hand"}
_BY_HELP = (
    "Auto: each setting of a grid is cross-validated on the anchors (four folds), and the best is fitted on"
    " all anchors. No scored row is used. By hand: you set the numbers, as soon as you move their slider. The"
    " map follows it; colours and scores follow when you release it."
)
_COLORS = {"nearby": "Error nearby", "error": "Error of each row"}
_NUMBERS_OF_ANCHORS = (10, 20, 50, 100, 150, 200, 300, 400, 600, 800, 1000, 1200)
_RIDGES = tuple(float(f"{10**power:.2g}") for power in np.arange(-3, 3.01, 0.125))
WIDTHS = (2.7, 1)  # of the maps and of what is beside them
CHOSEN = "relscope.invert-chosen"  # the values that Auto found last


@dataclass(frozen=True)
class Places:
    """The places of the page that the result fills, from top to bottom. `side` is to the right of `maps`."""

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
        n_confirmed = compute.n_held_out(pair, workspace.anchors)
        counts = (len(pair), n_confirmed, compute.LEAST_HELD_OUT)
        draw_unconfirmed_links((workspace.source, workspace.target), counts, "Invert")
        return None
    found = st.container()
    st.caption(_idea(pair, workspace.inversion.route, len(workspace.anchors)))
    if not pair.others and compute.is_paired_by_order(workspace.source, workspace.target):
        st.caption(":material/link: Paired by row order. If that is wrong, Link finds the pairs.")
    with found, st.spinner(f"Recovering {counted(len(pair), 'row')} …"):
        spec = _with_numbers(pair, workspace)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="invert-controls"):
        edit_setting("inversion", _SETTINGS["method"], "invert.method")
        numbers(workspace.inversion, spec)
        _anchors_slider(pair, workspace)
        color_by = _color_chooser(pair, workspace.view.color_by)
        details = method_details(workspace.inversion)
    maps, side = st.columns(WIDTHS, gap="medium")
    recipe = RecoveredRows.of(workspace.recipe(pair), inversion=workspace.inversion, color_by=color_by)
    return InvertInputs(
        pair,
        recipe,
        items_of(workspace),
        session.anchors_origin(workspace),
        workspace.look.named,
        Places(found, details, maps, side),
    )


def _with_numbers(pair: Match, workspace: Workspace) -> InversionSpec:
    """The settings with the numbers that Auto chooses. Where it can choose none, the panel shows the error
    later."""
    spec = workspace.inversion
    with suppress(SpaceError):
        return inversion_of(pair, workspace.anchors, spec).spec
    return spec


def _color_chooser(pair: Match, color_of_view: str) -> str:
    colors = dict(_COLORS)
    for name in COLORS:
        if name not in colors and (name != "labels" or pair.source.labels is not None):
            colors[name] = color_name(name, pair)
    usual = "nearby"
    if "labels" in colors and color_of_view == "labels":
        usual = "labels"
    if st.session_state.setdefault("invert.color", usual) not in colors:
        st.session_state["invert.color"] = "nearby"
    return remembered(
        st.selectbox,
        "Colour by",
        list(colors),
        format_func=colors.get,
        key="invert.color",
        width=190,
        help=(
            f"Error nearby: mean error of the held-out rows nearest on the original map, {NEARBY} or a tenth"
            " of all, so that regions can be compared. Error of each row: 1 − cosine of recovered and"
            " true row. The example rows are those of Explore."
        ),
    )


def _anchors_slider(pair: Match, workspace: Workspace) -> None:
    n = len(workspace.anchors)
    most = min(MOST_ANCHORS, len(pair) // 2)
    options = sorted({n, *(number for number in _NUMBERS_OF_ANCHORS if number <= most)})
    if len(options) < 2:
        return
    strategy, _, state = session.anchors_origin(workspace)
    bound(
        st.select_slider,
        "Anchors",
        "invert.anchors",
        n,
        lambda number: choose_anchors(pair, strategy, number, state),
        options=options,
        format_func=lambda number: f"{number:,}",
        width=210,
        help=(
            f"More anchors recover more, and leave fewer rows to score. A change chooses all anchors again"
            f" ({STRATEGIES[strategy].title.lower()}); pinned ones stay. All pages use the new anchors."
        ),
    )


def method_details(spec: InversionSpec) -> DeltaGenerator:
    """Draw the choosers of the method that are seldom changed. Returns the place below them."""
    published = InversionSpec(spec.route)
    with st.popover("Method details", icon=":material/tune:", key="invert.details"):
        edit_setting("inversion", _SETTINGS["route"], "invert.route", widget=st.selectbox)
        if spec.method == "pruned":
            edit_setting("inversion", _SETTINGS["omega"], "invert.omega", widget=st.slider)
            edit_setting("inversion", _SETTINGS["random_state"], "invert.random_state")
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


def numbers(spec: InversionSpec, effective: InversionSpec) -> None:
    """Draw the choice between automatic settings and settings by hand, and the slider of δ or λ. It shows the
    value that is used (`effective`), also an automatic one. While it moves, the panes show its effect, and
    the settings are those of the hand from then on."""
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
    if spec.method == "pruned":
        _slider("delta", effective, widget=st.slider, step=0.01)
        return
    ridges = ridges_of(effective)
    ends = {ridges[0]: f"{general(ridges[0])}, weak", ridges[-1]: f"{general(ridges[-1])}, strong"}
    _slider(
        "ridge",
        effective,
        widget=st.select_slider,
        options=ridges,
        format_func=lambda ridge: ends.get(ridge, general(ridge)),
    )


def _slider(name: str, spec: InversionSpec, **own: Any) -> None:
    declared = _SETTINGS[name]
    widget, given = fitting(declared, width=230, **own)
    others = {number: getattr(spec, number) for number in ("delta", "omega", "ridge")}

    def change(value: float) -> None:
        step = f"{declared.label[0].lower()}{declared.label[1:]}"
        session.slide_spec(step, "inversion", **(others | {name: value, "tuned": False}))

    bound(widget, declared.label, f"invert.{name}", getattr(spec, name), change, **given)


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
