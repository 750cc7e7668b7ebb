"""The maps of the original and the recovered rows, in linked panes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from app import compute, live, session
from app.components.linked_scatter import linked_scatter
from app.glossary.card import caption
from app.invert.inputs import InvertInputs, ridges_of, setting_label
from app.invert.inversions import inversion_of, paired_rows
from app.invert.selected_row import rows_with_trails
from app.items import hover_columns, sheet_of
from app.selection import places_of_selected, select
from relcore.base.numbers import short
from relcore.figures.scene import Scene
from relcore.invert.inversion import Inversion, InversionSpec
from relcore.invert.recovery import ERRORS, RecoveredRows, error_edges, errors_to_color, inversion_scene
from relcore.invert.sliders import LiveInversion, SlidAnswers
from relcore.maps.pane_maps import View, ViewSpec
from relcore.panes.payload import PaneEvent, PaneSettings, trails_between
from relcore.spaces.matching import Match

_HIDDEN = "invert.hidden"  # widget key: the classes that the legend hides
_EDGES = "relscope.invert-edges"


def scene_of(pair: Match, recipe: RecoveredRows, inversion: Inversion) -> Scene:
    """The scene of the maps, with the colours that the recipe names."""
    view = ViewSpec()
    if recipe.color_by not in ERRORS:
        view = recipe.view
    edges = _edges(pair, recipe, inversion)
    return _scene_of(pair, recipe.anchors, recipe.inversion, recipe.color_by, view, edges)


@compute.cached(12)
def _scene_of(
    pair: Match,
    anchors: tuple[str, ...],
    spec: InversionSpec,
    color_by: str,
    view: ViewSpec,
    edges: tuple[float, ...],
) -> Scene:
    return inversion_scene(pair, inversion_of(pair, anchors, spec), color_by, view, edges)


def _edges(pair: Match, recipe: RecoveredRows, inversion: Inversion) -> tuple[float, ...]:
    """The bounds between the error classes that colour the rows. They stay fixed while the numbers of one
    method change, so that colours can be compared. Another method has errors of another size."""
    color_by = recipe.color_by
    if color_by not in ERRORS:
        return ()
    spec = inversion.spec
    of = compute.pair_key(pair), recipe.anchors, spec.route, spec.method, color_by
    if st.session_state.get(_EDGES, ((), ()))[0] != of:
        errors = errors_to_color(inversion, color_by)[inversion.scored]
        st.session_state[_EDGES] = of, error_edges(errors)
    return st.session_state[_EDGES][1]


def draw_panes(asked: InvertInputs, result: Inversion, scene: Scene) -> None:
    """Draw the linked panes and, below them, what they show."""
    pair = asked.pair
    view = View(result.rows, np.full(len(result.rows), -1), ())
    texts, notes = hover_columns(pair, view, asked.items, asked.recipe.color_by != "labels")
    look = {"named": asked.named, "hidden": st.session_state.get(_HIDDEN, ())}

    def receive(event: PaneEvent) -> None:
        if event.hidden is not None:
            st.session_state[_HIDDEN] = event.hidden[0]
        elif event.named is not None:
            session.show_names(event.named)
        elif event.kind in ("select", "click", "clear"):
            select(pair, result.rows[event.rows])

    trails = trails_between(scene.panes, rows_with_trails(pair, result))
    offer = SliderOffer(pair=pair, anchors=asked.recipe.anchors, spec=result.spec)
    linked_scatter(
        replace(scene, texts=texts, notes=notes, **look),
        key="invert",
        selected=places_of_selected(pair, result.rows),
        sheet=sheet_of(pair, view, asked.items),
        settings=PaneSettings(height=520, live=live.channel_of("invert", offer), trails=trails),
        on_event=receive,
    )
    rows, columns = result.shape
    (source_pane, recovered_pane) = scene.panes
    original_axes = source_pane.coordinates[result.scored].T
    recovered_axes = recovered_pane.coordinates[result.scored].T
    correlations = [
        short(np.corrcoef(original, found)[0, 1], 2)
        for original, found in zip(original_axes, recovered_axes, strict=True)
    ]
    caption(
        f"A line leads from a selected row to the ring at its place on the other map. The maps show 2 of"
        f" {columns:,} dimensions, each pane to its own scale. The recovered coordinates"
        f" correlate with the original ones: {' and '.join(correlations)}. The scores use all"
        f" dimensions. The recovery is one matrix of {rows:,} × {columns:,}. It recovers directions, not"
        " lengths."
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class SliderOffer(live.Offer):
    """Offers the panes new maps of the recovered rows while the user moves a slider of the method."""

    pair: Match
    anchors: tuple[str, ...]
    spec: InversionSpec

    @property
    def content(self) -> tuple[Any, ...]:
        return compute.pair_key(self.pair), self.anchors, self.spec

    @property
    def header(self) -> dict[str, Any]:
        sliders = [{"key": f"st-key-invert-{name}", "label": setting_label(name)} for name in self._sliders()]
        return {"panes": [1], "many": 0, "sliders": sliders}

    def _sliders(self) -> dict[str, Sequence[float] | None]:
        return {"delta": None, "omega": None, "ridge": ridges_of(self.spec)}

    def answers(self) -> SlidAnswers:
        rows = paired_rows(self.pair, self.anchors, self.spec.route)
        return SlidAnswers(LiveInversion(rows, self.spec), self._sliders())
