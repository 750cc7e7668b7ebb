"""What colours the rows: pivots, labels, numbers of the spaces, and the columns of the tables that came with them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app import session
from app.map_looks import colors_of
from app.widgets import bound
from app.workspace import Workspace
from relcore.comparing.map_look import LOWER, RIGHT
from relcore.spaces import Match
from relcore.views import COLUMN

_HELP = (
    "Columns of the tables that came with the spaces are on offer, too. Numbers get a colour bar, columns of classes a legend: "
    "of more than 20 classes the most frequent. Agreement: the share of a row's neighbours that the other space keeps."
)


def color_chooser(workspace: Workspace, pair: Match) -> None:
    """What the panes are coloured by."""
    bound(
        st.selectbox,
        "Colour by",
        "view.color_by",
        workspace.view.color_by,
        lambda value: session.edit_spec(f"colour by {color_name(value)}", "view", color_by=value),
        options=colors_of(workspace, pair),
        format_func=color_name,
        width=170,
        help=_HELP,
    )


def second_color_chooser(workspace: Workspace, pair: Match) -> None:
    """What the right or the lower panes are coloured by, where that is not the same."""
    look, edit = workspace.look, partial(session.edit_spec, field="look")
    bound(
        st.selectbox,
        f"Colour of the {look.second_panes} panes",
        "look.second",
        look.second,
        lambda value: edit(f"colour of the {look.second_panes} panes", second=value),
        options=["", *colors_of(workspace, pair)],
        format_func=lambda value: color_name(value) if value else "Same",
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


def color_name(color_by: str) -> str:
    """What a chooser calls it: the column's own name, or "Source norm"."""
    return color_by.removeprefix(COLUMN) if color_by.startswith(COLUMN) else color_by.capitalize()
