"""What Invert asks for: the inversion of a pair, the rows that it recovers best and worst, and the scene of
its maps."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from app import compute
from app.invert.inputs import CHOSEN, InvertInputs
from app.invert.inversions import curve_of, inversion_of
from relcore.base.numbers import counted, short
from relcore.figures.scene import Scene
from relcore.invert.anchor_curve import AnchorCurve
from relcore.invert.inversion import Inversion, InversionSpec
from relcore.invert.recovery import (
    ERRORS,
    Recovery,
    error_edges,
    errors_to_color,
    inversion_scene,
    recovered_rows,
)
from relcore.maps.pane_maps import ViewSpec
from relcore.spaces.matching import Match

_AUTO = "relscope.invert-auto"  # the inputs for which Auto found its last values, and the result in words
_EDGES = "relscope.invert-edges"
_SHOWN = 5  # number of example rows in each group, and of those with a text
_SHOWN_TEXTS = 3


@dataclass(frozen=True, eq=False)
class Recovered:
    """An inversion, the rows nearest to recovered rows, its errors by number of anchors, and the scene of its
    maps. `by_hand` compares numbers that the user set with those that Auto found; "" if there is nothing to
    compare."""

    inversion: Inversion
    nearest: Recovery
    curve: AnchorCurve
    scene: Scene
    by_hand: str


def recovered(inputs: InvertInputs) -> Recovered:
    recipe = inputs.recipe
    chosen = inputs.pair, recipe.anchors, recipe.inversion
    view = ViewSpec()
    if recipe.color_by not in ERRORS:
        view = recipe.view
    shown = _SHOWN
    if inputs.items is not None and inputs.items.has_texts:
        shown = _SHOWN_TEXTS
    with inputs.places.found, st.spinner(f"Recovering {counted(len(inputs.pair), 'row')} …"):
        inversion = inversion_of(*chosen)
        scene = _scene(*chosen, recipe.color_by, view, _edges(inputs, inversion))
        curve = curve_of(inputs.pair, recipe.anchors, inversion.spec)
        return Recovered(inversion, _nearest(*chosen, shown), curve, scene, _by_hand(inputs, inversion))


@compute.cached(12)
def _nearest(pair: Match, anchors: tuple[str, ...], spec: InversionSpec, shown: int) -> Recovery:
    return recovered_rows(pair, inversion_of(pair, anchors, spec), shown)


@compute.cached(12)
def _scene(
    pair: Match,
    anchors: tuple[str, ...],
    spec: InversionSpec,
    color_by: str,
    view: ViewSpec,
    edges: tuple[float, ...],
) -> Scene:
    return inversion_scene(pair, inversion_of(pair, anchors, spec), color_by, view, edges)


def _edges(inputs: InvertInputs, inversion: Inversion) -> tuple[float, ...]:
    """The bounds between the error classes that colour the rows. They stay fixed while the numbers of one
    method change, so that colours can be compared. Another method has errors of another size."""
    color_by = inputs.recipe.color_by
    if color_by not in ERRORS:
        return ()
    spec = inversion.spec
    of = compute.pair_key(inputs.pair), inputs.recipe.anchors, spec.route, spec.method, color_by
    if st.session_state.get(_EDGES, ((), ()))[0] != of:
        errors = errors_to_color(inversion, color_by)[inversion.scored]
        st.session_state[_EDGES] = of, error_edges(errors)
    return st.session_state[_EDGES][1]


def _by_hand(inputs: InvertInputs, inversion: Inversion) -> str:
    spec = inversion.spec
    cosine = short(float(inversion.scores[spec.title]))
    of = compute.pair_key(inputs.pair), inputs.recipe.anchors, spec.route, spec.method
    if inversion.choice:
        st.session_state[CHOSEN] = inversion.choice.numbers()
        told = f"Auto ({spec.settings()}, chosen on the anchors): {cosine}."
        st.session_state[_AUTO] = of, told
    known, auto = st.session_state.get(_AUTO, ((), ""))
    if known == of and not inputs.recipe.inversion.tuned:
        return f"By hand: mean cosine {cosine}. {auto}"
    return ""
