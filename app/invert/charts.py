"""The low charts beside the maps of Invert: the error by number of anchors, and the errors of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from app import exports
from app.invert.recovered import Recovered
from app.plain_text import plain
from relcore.base.numbers import short
from relcore.figures.export import Exportable
from relcore.invert.anchor_curve import ErrorByAnchors
from relcore.invert.recovery import RecoveredRows, RecoveryErrors, about_errors

_HEIGHT = 165  # pixels


def draw_charts(recipe: RecoveredRows, result: Recovered) -> None:
    """Draw both charts, each below a sentence and beside its export menu."""
    theme = exports.theme()
    spec = result.inversion.spec
    curve = ErrorByAnchors.of(recipe, inversion=spec).draw(result.curve)
    figure = _low(curve.interactive(theme))
    chance = short(result.curve.chance, 2)
    ends = np.log10(result.curve.sizes)[[0, -1]].tolist()
    now = float(np.log10(result.curve.n_anchors))
    first = now > sum(ends) / 2  # on the other side of “now”
    middle = ends[0] + 0.15 * (ends[1] - ends[0])
    place = middle if first else ends[1]
    _write(
        figure, f"by chance {chance}", place, result.curve.chance, theme.muted, "left" if first else "right"
    )
    _write(figure, "now", now, result.curve.chance / 2, theme.text)
    figure.update_yaxes(title_text="mean error")
    _titled(result.curve.describe(), curve, figure, "invert-curve")

    errors = RecoveryErrors.of(recipe, inversion=spec, own=True).draw(result.inversion)
    figure = _low(errors.interactive(theme))
    for trace in figure.data:
        peak = int(np.argmax(trace.y))
        _write(figure, trace.name, float(trace.x[peak]), float(trace.y[peak]), trace.line.color)
    figure.update_xaxes(title_text="error, 1 − cosine")
    figure.update_yaxes(range=[0, 1.25 * max(float(np.max(trace.y)) for trace in figure.data)])
    _titled(about_errors(result.inversion), errors, figure, "invert-own-errors")


def _titled(sentence: str, drawn: Exportable, figure: Any, key: str) -> None:
    with st.container(gap="xxsmall", key=f"{key}-chart"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"{key}-head"):
            st.markdown(f"**{plain(sentence)}**", width="stretch")
            exports.export_bar(drawn, key)
        exports.chart(figure, f"{key}.chart")


def _low(figure: Any) -> Any:
    """The figure with little height and no legend: what it shows is written beside its lines."""
    look = {"title": {"text": ""}, "height": _HEIGHT, "showlegend": False}
    return figure.update_layout(**look, margin={"l": 4, "r": 4, "t": 4, "b": 4})


def _write(figure: Any, text: str, x: float, y: float, color: str, below: str = "") -> None:
    """Write a text above a point, to the right; or `below` it, beginning ("left") or ending ("right")
    there."""
    figure.add_annotation(
        text=text,
        x=x,
        y=y,
        xanchor=below or "left",
        yanchor="top" if below else "bottom",
        xshift=0 if below else 4,
        font={"size": 12, "color": color},
        showarrow=False,
    )
