"""What Invert asks for: the inversion of a pair, the rows that it recovers best and worst, and its errors by
number of anchors."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from app import compute
from app.invert.inputs import CHOSEN, InvertInputs
from app.invert.inversions import curve_of, inversion_of
from relcore.base.numbers import counted, short
from relcore.invert.anchor_curve import AnchorCurve
from relcore.invert.inversion import Inversion, InversionSpec
from relcore.invert.recovery import RecoveredRows, Recovery, recovered_rows
from relcore.spaces.matching import Match

_AUTO = "relscope.invert-auto"  # the inputs for which Auto found its last values, and the result in words
_SHOWN = 5  # number of example rows in each group, and of those with a text
_SHOWN_TEXTS = 3


@dataclass(frozen=True, eq=False)
class Recovered:
    """An inversion, the rows nearest to recovered rows, and its errors by number of anchors. `by_hand`
    compares numbers that the user set with those that Auto found; "" if there is nothing to compare."""

    inversion: Inversion
    nearest: Recovery
    curve: AnchorCurve
    by_hand: str


def recovered(inputs: InvertInputs) -> Recovered:
    pair = inputs.pair
    recipe = inputs.recipe
    chosen = pair, recipe.anchors, recipe.inversion
    shown = _SHOWN
    if inputs.items is not None and inputs.items.has_texts:
        shown = _SHOWN_TEXTS
    with inputs.places.found, st.spinner(f"Recovering {counted(len(pair), 'row')} …"):
        inversion = inversion_of(*chosen)
        by_hand = _by_hand(pair, recipe, inversion)
        nearest = _nearest(*chosen, shown)
        curve = curve_of(pair, recipe.anchors, inversion.spec)
        return Recovered(inversion, nearest, curve, by_hand)


@compute.cached(12)
def _nearest(pair: Match, anchors: tuple[str, ...], spec: InversionSpec, shown: int) -> Recovery:
    return recovered_rows(pair, inversion_of(pair, anchors, spec), shown)


def _by_hand(pair: Match, recipe: RecoveredRows, inversion: Inversion) -> str:
    spec = inversion.spec
    cosine = short(float(inversion.scores[spec.title]))
    of = compute.pair_key(pair), recipe.anchors, spec.route, spec.method
    if inversion.choice:
        st.session_state[CHOSEN] = inversion.choice.numbers()
        told = f"Auto ({spec.settings()}, chosen on the anchors): {cosine}."
        st.session_state[_AUTO] = of, told
    known, auto = st.session_state.get(_AUTO, ((), ""))
    if known == of and not recipe.inversion.tuned:
        return f"By hand: mean cosine {cosine}. {auto}"
    return ""
