"""The rows of two versions, before and after, coloured by how far each moved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from app import compute, exports, session
from app.components.linked_scatter import linked_scatter
from app.plain_text import plain
from relcore.catalog.catalog import SpaceSpec
from relcore.drift.check import DriftCheck
from relcore.drift.moved_rows import DriftMap, moved_scene
from relcore.figures.scene import Scene
from relcore.panes.payload import PaneEvent, PaneSettings
from relcore.spaces.space import LatentSpace

_HIDDEN = "relscope.drift-hidden"  # the parts of the colour bar that are not drawn
_HEIGHT = 430  # pixels


def draw_moved_rows(specs: tuple[SpaceSpec, SpaceSpec]) -> None:
    """Draw the map with the session's selected rows, and name the rows that moved most."""
    (old, new) = specs
    scene = _scene(compute.load_space(old), compute.load_space(new))

    def receive(event: PaneEvent) -> None:
        if event.hidden is not None:
            st.session_state[_HIDDEN] = event.hidden[0]
        elif event.kind in ("select", "click", "clear"):
            session.select(tuple(scene.ids[event.rows]))

    selected = np.flatnonzero(np.isin(scene.ids, session.selection()))
    linked_scatter(
        replace(scene, hidden=st.session_state.get(_HIDDEN, ())),
        selected=selected,
        key="drift-map",
        on_event=receive,
        settings=PaneSettings(height=_HEIGHT),
    )
    if len(scene.marked):
        farthest = scene.marked[np.argsort(-scene.values[scene.marked], kind="stable")]
        st.caption(plain(f"Moved most: {', '.join(map(str, scene.ids[farthest]))}."))
    recipe = DriftMap(old=old, new=new, digests=compute.digests(specs))
    exports.export_bar(recipe.draw(scene), "drift-map")


@compute.cached(4, "Drawing the rows …")
def _scene(old: LatentSpace, new: LatentSpace) -> Scene:
    return moved_scene((old, new), DriftCheck())
