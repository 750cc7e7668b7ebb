"""Choosers of what the panes show: the rows (examples or all), the representation, and the reduction to a
map."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from app import session
from app.compute import colors_of
from app.glossary.terms import term
from app.page_settings import menu
from app.widgets import bound
from app.workspace import Workspace
from relcore.base.errors import SpaceError, quote
from relcore.base.names import REDUCTIONS
from relcore.base.numbers import counted
from relcore.compare.scene import AXES, LOWER, RIGHT
from relcore.figures.colorings import column_title
from relcore.maps.pane_maps import COLUMN, MOST_PIVOTS, OWN, TWO, drawn_panes
from relcore.maps.principal_axes import is_tsne
from relcore.maps.reduction import offered_methods
from relcore.spaces.matching import Match, distinct_names, short_names

_SEEN = "relscope.relative-seen"
EXAMPLES = "Example rows"  # links, recipes and code call them pivots
_HELP = (
    "You can also choose a column of the tables that came with the spaces. Numbers get a colour bar, classes"
    " a legend of at most the 20 most frequent. Agreement: the share of a"
    " row's neighbours"
    " that the other space keeps."
)


def color_chooser(workspace: Workspace, pair: Match) -> None:
    bound(
        st.selectbox,
        "Colour",
        "view.color_by",
        workspace.view.color_by,
        lambda value: session.edit_spec(f"colour by {color_name(value, pair)}", "view", color_by=value),
        options=colors_of(workspace, pair),
        format_func=lambda value: f"Colour: {color_name(value, pair)}",
        label_visibility="collapsed",
        width=205,
        help=_HELP,
    )


def second_color_chooser(workspace: Workspace, pair: Match) -> None:
    look = workspace.look
    edit = partial(session.edit_spec, field="look")
    bound(
        st.selectbox,
        f"Colour of the {look.second_panes} panes",
        "look.second",
        look.second,
        lambda value: edit(f"colour of the {look.second_panes} panes", second=value),
        options=["", *colors_of(workspace, pair)],
        format_func=lambda value: color_name(value, pair) if value else "Same",
        help="Two colourings side by side, such as labels at the left and a number at the right.",
    )
    bound(
        st.segmented_control,
        "Panes with this colour",
        "look.second_panes",
        look.second_panes,
        lambda value: edit(f"colour the {value} panes", second_panes=value),
        options=[RIGHT, LOWER],
        format_func=str.capitalize,
        required=True,
        label_visibility="collapsed",
        disabled=not look.second and look.second_panes == RIGHT and not workspace.anchors,
    )


def color_name(color_by: str, pair: Match) -> str:
    models = short_names(distinct_names((pair.source, pair.target)))[0]
    if color_by == "pivots":
        title = EXAMPLES
    else:
        title = column_title(color_by, models)
    if color_by.startswith(COLUMN):
        return title
    return f"{title[0].upper()}{title[1:]}"


_POSITIONS = {
    OWN: ("Each in its own axes", "A map for each model: do the shapes agree?"),
    "absolute": ("Shared axes", "One map for both: do the coordinates agree?"),
    "relative": ("Relative to anchors", "Similarities to ★: do the spaces agree?"),
    "whitened": ("Relative, whitened", "Similarities to ★, decorrelated over the anchors."),
    TWO: ("By two anchors", "The axes are the similarities to ★1 and ★2."),
}
_SWITCH = (OWN, "absolute", "relative")
_NO_AXES = "The spaces have different dimensions, so they share no axes."


def switch(workspace: Workspace, pair: Match) -> None:
    """Draw the switch for the representation in the first row of panes: own axes, shared axes, or
    similarities to anchors."""
    widths = [space.dimension for space in pair.spaces]
    (shown,) = drawn_panes(workspace.panes[:1], widths, workspace.reduction)
    captions = {name: caption for name, (_, caption) in _POSITIONS.items() if name in (shown, *_SWITCH)}
    known = {OWN: "own-axes", "absolute": "absolute"}  # option → the glossary term that it links to
    if len(set(widths)) > 1:
        captions = {OWN: _NO_AXES} | {name: captions[name] for name in captions if name not in AXES}
    with st.container(key="idea"):
        bound(
            st.radio,
            "What the panes show",
            "view.position",
            shown,
            lambda representation: _show(workspace, representation, *workspace.panes[1:]),
            options=list(captions),
            format_func=lambda representation: _POSITIONS[representation][0],
            captions=[
                f"{caption} {term(known.get(representation, 'relative'), ':material/help:')}"
                for representation, caption in captions.items()
            ],
            horizontal=True,
            label_visibility="collapsed",
            width="stretch",
        )
        if shown not in AXES:
            st.session_state[_SEEN] = True
        elif workspace.anchors and _SEEN not in st.session_state:
            st.html('<i class="relscope-invites"></i>')  # lets the style sheet animate the last option


def map_chooser(workspace: Workspace) -> None:
    """Draw the choosers of the map's method and of its number of dimensions."""
    reduction = workspace.reduction
    methods = dict.fromkeys([*offered_methods(), reduction.method])

    def choose(name: str) -> None:
        method, dimensions = name.split()
        session.edit_spec(
            f"map by {_map_name(name)}", "reduction", method=method, n_components=int(dimensions)
        )

    bound(
        st.selectbox,
        "Map",
        "view.map",
        f"{reduction.method} {reduction.n_components}",
        choose,
        options=[f"{method} {dimensions}" for dimensions in (2, 3) for method in methods],
        format_func=lambda name: f"Map: {_map_name(name)}",
        label_visibility="collapsed",
        width=165,
        help="PCA is computed at once. UMAP and t-SNE run in the background; the maps show PCA until then.",
    )


def _map_name(name: str) -> str:
    method, dimensions = name.split()
    in_3d = ""
    if dimensions == "3":
        in_3d = ", 3-D"
    return f"{REDUCTIONS[method].title}{in_3d}"


def _second_row_chooser(workspace: Workspace) -> None:
    second = ""
    if len(workspace.panes) > 1:
        second = workspace.panes[1]

    def show(representation: str) -> None:
        first = workspace.panes[0]
        if representation:
            _show(workspace, first, representation)
        else:
            _show(workspace, first)

    bound(
        st.selectbox,
        "Second row",
        "view.second_row",
        second,
        show,
        options=["", *_POSITIONS],
        format_func=lambda representation: _POSITIONS[representation][0] if representation else "None",
        help="Four panes: two positions of the switch, one above the other.",
    )


def _show(workspace: Workspace, *panes: str) -> None:
    shown = tuple(dict.fromkeys(panes))
    reduction = replace(workspace.reduction, fit="first")
    title = " above ".join(_POSITIONS[name][0].lower() for name in shown)
    session.edit(f"show {title}", panes=shown, reduction=reduction)


def view_choosers(workspace: Workspace, pair: Match) -> None:
    with menu("View", "view-choosers", icon=":material/tune:") as is_open:
        if not is_open:
            st.space(320)  # room for the menu to open below
            return
        if workspace.view.color_by == "pivots" or not workspace.view.everything:
            _pivot_chooser(workspace, pair)
        shown = "pivots"
        if workspace.view.everything:
            shown = "all"
        bound(
            st.segmented_control,
            "Show",
            "view.everything",
            shown,
            lambda value: session.edit_spec(
                "show all" if value == "all" else "show examples", "view", everything=value == "all"
            ),
            options=["pivots", "all"],
            format_func={"pivots": EXAMPLES, "all": "All"}.get,
            help=f"Draw only the examples and their neighbourhoods, or all {counted(len(pair), 'row')}",
            required=True,
        )
        _second_row_chooser(workspace)
        with st.expander("More", icon=":material/more_horiz:"):
            _further_choosers(workspace)
            second_color_chooser(workspace, pair)


def _pivot_chooser(workspace: Workspace, pair: Match) -> None:
    are_words = pair.source.counts is not None
    title = EXAMPLES
    if are_words:
        title = "Example words"
    placeholder = "Type an id"
    if are_words:
        placeholder = "Type a word"
    bound(
        st.multiselect,
        title,
        "view.pivots",
        list(workspace.view.pivots),
        lambda value: _choose_pivots(pair, value),
        options=list(workspace.view.pivots),
        accept_new_options=True,
        placeholder=placeholder,
        help="Each example has a colour, and its nearest neighbours share it. Examples never change a score.",
        max_selections=MOST_PIVOTS,
    )


def _further_choosers(workspace: Workspace) -> None:
    view = workspace.view
    reduction = workspace.reduction

    def change(label: str, field: str, name: str) -> Any:
        return lambda value: session.edit_spec(label, field, **{name: value})

    def number(
        label: str, name: str, low: float, high: float, step: float | None = None, of: str = "reduction"
    ) -> None:
        value = getattr(getattr(workspace, of), name)
        limits = {"min_value": low, "max_value": high}
        title = f"{label[0].upper()}{label[1:]}"
        bound(st.number_input, title, f"view.{name}", value, change(label, of, name), **limits, step=step)

    number("neighbours of each example", "n_nearest", 1, 2000, 50, of="view")
    bound(
        st.toggle,
        "Show all anchors",
        "view.show_anchors",
        view.show_anchors,
        change("show anchors", "view", "show_anchors"),
    )
    bound(
        st.toggle,
        "Keep the orientation",
        "view.oriented",
        workspace.oriented,
        _set_oriented,
        help=(
            "Turns and mirrors the maps so that they agree with the absolute map of the first space. Off:"
            " maps as computed. Changes the display only."
        ),
    )
    bound(
        st.toggle,
        "Align the second picture",
        "view.align",
        reduction.align,
        change("align", "reduction", "align"),
        help=(
            "Rotates, mirrors and scales the second picture onto the first (Procrustes). It changes the"
            " display only."
        ),
    )
    if reduction.method in ("umap", "umap-gpu"):
        number("UMAP neighbours", "n_neighbors", 2, 200)
        number("UMAP minimum distance", "min_dist", 0.0, 1.0, 0.05)
    if is_tsne(reduction):
        number("perplexity", "perplexity", 2.0, 200.0)


def _set_oriented(value: bool) -> None:
    step = "orientation as computed"
    if value:
        step = "keep the orientation"
    session.edit(step, oriented=value)


def _choose_pivots(pair: Match, pivots: list[str]) -> None:
    wanted = tuple(dict.fromkeys(pair.source.as_written([pivot.strip() for pivot in pivots])))
    unknown = [pivot for pivot in wanted if pivot not in pair.source.index]
    if unknown:
        raise SpaceError(f"examples: expected ids of rows that both spaces have, got {quote(unknown)}")
    session.edit_spec("choose examples", "view", pivots=wanted)
