"""How a session begins: with the bundled words, a permalink, or the files given to `relscope app`."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace

import streamlit as st

from app import compute, session, sharing
from app.session import fit_to_pair
from app.spaces import unpaired
from app.widgets import space_name
from app.workspace import BUNDLED, OPENING_INVERSION, Workspace, from_query
from relcore.base import records
from relcore.base.access import OPENED
from relcore.base.errors import NoCommonId, SpaceError
from relcore.base.records import parse
from relcore.catalog.catalog import SpaceSpec
from relcore.invert.recovery import InversionSpec

DEFAULT_ANCHORS = "random 300 0"


def first_workspace() -> Workspace:
    """The workspace of the address bar; anchors are chosen as it says, or 300 at random."""
    sharing.sweep()
    query = st.query_params.to_dict()
    # A link leaves out what is usual. Inversion without "inverse" in a link means the published method, as it
    # always did.
    inversion = InversionSpec() if query else OPENING_INVERSION
    default = _with_opened_spaces(Workspace(anchors_from=DEFAULT_ANCHORS, inversion=inversion))
    try:
        return _with_chosen_anchors(from_query(query, default))
    except SpaceError as error:  # a mangled link must not keep the app from opening
        session.notify(f"The link has invalid settings, so the session starts with the defaults. {error}")
        return _with_chosen_anchors(default)


def plain_workspace() -> Workspace:
    """The workspace of a new session without a link; the run that follows chooses the anchors."""
    opened, _ = _opened()
    ends = opened if len(opened) >= 2 else BUNDLED
    return Workspace(
        tuple(dict.fromkeys((*opened, *BUNDLED))), ends[0], ends[1], anchors_from=DEFAULT_ANCHORS
    )


def _opened() -> tuple[list[SpaceSpec], bool]:
    """The spaces that `relscope app` was given, and whether the first two are paired by row order."""
    opened = [records.from_json(SpaceSpec, one) for one in parse(os.environ.get(OPENED, "[]"), OPENED)]
    paired = unpaired.likely_by_rows(*opened[:2]) if len(opened) > 1 else None
    opened[:2] = paired or opened[:2]
    return opened, bool(paired)


def _with_chosen_anchors(workspace: Workspace) -> Workspace:
    with suppress(NoCommonId):  # the page offers to pair them
        return fit_to_pair(workspace, compute.matched(workspace.source, workspace.target))
    return workspace


def _with_opened_spaces(workspace: Workspace) -> Workspace:
    """The spaces that `relscope app` was given, before the bundled ones; the first two are compared.

    They pair by row order where just one of them has ids, and equally many rows.
    """
    opened, by_rows = _opened()
    if by_rows:
        session.announce("The first two spaces are paired by row order, because only one of them has ids.")
    workspace = replace(workspace, spaces=tuple(dict.fromkeys((*opened, *BUNDLED))))
    if len(opened) < 2:
        if opened:
            session.announce(f"Loaded {space_name(opened[0])}. Choose it as source or target in the sidebar.")
        return workspace
    try:
        return _with_chosen_anchors(replace(workspace, source=opened[0], target=opened[1]))
    except SpaceError as error:
        session.notify(f"The first two spaces cannot be compared; choose others in the sidebar. {error}")
        return workspace
