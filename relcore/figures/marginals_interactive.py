"""A heat map with marginal bars for the screen: Plotly."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from relcore.figures.interactive import plain_text, translucent
from relcore.figures.marginals import Margins
from relcore.figures.matrices import name_of
from relcore.figures.matrices_interactive import matrices_figure
from relcore.figures.palette import LIGHT, Theme
from relcore.numbers import in_cell

_BELOW = 112  # pixels of the bars beneath the matrix
_SHARE = 0.84  # of the width that the matrix keeps


def margins_figure(margins: Margins, theme: Theme = LIGHT, width: int = 1000) -> go.Figure:
    """As `matrices_figure`, its one panel narrower, with bars at the right of its rows and beneath its columns."""
    figure = matrices_figure(margins.matrices, theme, round(width * _SHARE))
    height = figure.layout.height
    low, high = (share * height for share in figure.layout.yaxis.domain)
    total = height + _BELOW
    matrix = ((low + _BELOW) / total, (high + _BELOW) / total)
    bars = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True, "range": [0, 1.02], "tickvals": [0, 1]}
    bars |= {"tickfont": {"color": theme.muted, "size": 11}}
    title = {"font": {"color": theme.muted, "size": 12}, "standoff": 4}
    figure.layout.coloraxis.colorbar.update(len=min(1, 300 / total), y=matrix[1], x=1.0)
    figure.update_layout(
        height=total,
        xaxis={"domain": [0, _SHARE]},
        yaxis={"domain": matrix},
        xaxis8={
            **bars,
            "domain": [_SHARE + 0.012, 0.985],
            "anchor": "y",
            "side": "top",
            "title": _title(margins.row_title, title),
        },
        yaxis8={**bars, "domain": [4 / total, matrix[0] - 10 / total], "anchor": "x", "side": "left"},
        bargap=0.28,
    )
    figure.update_yaxes(title=_title(margins.column_title, title), selector={"anchor": "x", "side": "left"})
    panel = margins.matrices.panels[0]
    for names, values, marks, flat in (
        (panel.rows, margins.rows, margins.row_marks, True),
        (panel.columns, margins.columns, margins.column_marks, False),
    ):
        _bars(figure, names, values, marks, margins, flat, theme)
    return figure


def _title(text: str, look: dict) -> dict:
    return {**look, "text": plain_text(text).replace(", ", ",<br>")}


def _bars(
    figure: go.Figure,
    names: tuple,
    values: np.ndarray,
    marks: np.ndarray | None,
    margins: Margins,
    flat: bool,
    theme: Theme,
) -> None:
    places, on = list(range(len(names))), {"xaxis": "x8", "yaxis": "y"} if flat else {"xaxis": "x", "yaxis": "y8"}
    along, across = ("x", "y") if flat else ("y", "x")
    title = margins.row_title if flat else margins.column_title
    told = [
        f"{plain_text(name_of(name))}<br>{plain_text(title)} {in_cell(value)}"
        for name, value in zip(names, values, strict=True)
    ]
    if marks is not None:
        told = [f"{text}<br>{plain_text(margins.mark_title)} {in_cell(mark)}" for text, mark in zip(told, marks, strict=True)]
    figure.add_bar(
        **{along: values, across: places},
        orientation="h" if flat else "v",
        marker={"color": translucent(theme.accent, 0.75)},
        text=[in_cell(value) for value in values],
        textposition="inside",
        insidetextanchor="start",
        textfont={"color": theme.on_accent, "size": 11},
        textangle=0,
        hovertext=told,
        hovertemplate="%{hovertext}<extra></extra>",
        **on,
    )
    if marks is not None:
        symbol = "line-ns" if flat else "line-ew"
        figure.add_scatter(
            **{along: marks, across: places},
            mode="markers",
            marker={"symbol": symbol, "size": 14, "line": {"width": 2, "color": theme.text}},
            hoverinfo="skip",
            **on,
        )
