"""Caches around inversion, by the rules of `compute`: keys are digests and frozen specs, results are shared and read-only."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import compute
from app.workspace import Workspace
from relcore.charts.scene import Scene
from relcore.inverting.figures import inversion_scene
from relcore.inverting.recovery import Inversion, InversionSpec, invert_pair
from relcore.spaces import Match
from relcore.store import digest_of
from relcore.views import View, ViewSpec


def inverted(pair: Match, workspace: Workspace) -> Inversion:
    """The pair's rows, inverted with the workspace's settings."""
    anchors = workspace.anchors
    return _inverted(compute.pair_key(pair), digest_of(anchors), workspace.inversion, pair, anchors)


# Original and recovered rows are the large part: 20,000 rows of 300 dimensions are 48 MB.
@st.cache_resource(max_entries=6, show_spinner="Inverting …")
def _inverted(key: str, anchors_key: str, spec: InversionSpec, _pair: Match, _anchors: tuple[str, ...]) -> Inversion:
    return invert_pair(_pair, _anchors, spec)


def scene(pair: Match, found: Inversion, workspace: Workspace, color_by: str) -> Scene:
    """Both panes, coloured."""
    view = workspace.view if color_by != "error" else ViewSpec()
    key = digest_of(compute.pair_key(pair), workspace.anchors, found.spec)
    return _scene(key, color_by, view, pair, found)


@st.cache_resource(max_entries=12, show_spinner=False)
def _scene(key: str, color_by: str, view: ViewSpec, _pair: Match, _found: Inversion) -> Scene:
    return inversion_scene(_pair, _found, color_by, view)


def drawn_rows(found: Inversion) -> View:
    """The rows of the panes, for hovers and pictures."""
    return View(found.rows, np.full(len(found.rows), -1), ())
