"""How a session begins: the bundled words, or what a permalink asks for, with anchors chosen."""

from __future__ import annotations

import streamlit as st

from app import compute, session
from app.widgets import fit_to_pair
from app.workspace import Workspace, from_query
from relcore.spaces import SpaceError

DEFAULT_ANCHORS = "random 300 0"


def first_workspace() -> Workspace:
    """The workspace of the address bar; anchors are chosen as it says, or 300 at random."""
    default = Workspace(anchors_from=DEFAULT_ANCHORS)
    try:
        return _with_chosen_anchors(from_query(st.query_params.to_dict(), default))
    except SpaceError as error:  # a mangled link must not keep the app from opening
        session.notify(f"The link asks for something that cannot be done, so here is the usual start. {error}")
        return _with_chosen_anchors(default)


def _with_chosen_anchors(workspace: Workspace) -> Workspace:
    return fit_to_pair(workspace, compute.matched(workspace.source, workspace.target))
