"""Distributions as small multiples on the screen, one panel each on common axes: Plotly."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from relcore.figures.interactive import plain_text, relscope_template, translucent
from relcore.figures.palette import LIGHT, Theme
from relcore.figures.tables import histogram_table
from relcore.numbers import general, short

COLUMNS = 2
_ROW_HEIGHT, _AXIS_HEIGHT = 96, 64


def panels_figure(values_by_name: Mapping[str, np.ndarray], x_title: str, theme: Theme = LIGHT) -> go.Figure:
    """One filled outline per panel, its name above it; bins and both axes are common, see `tables.histogram_table`."""
    table = histogram_table(values_by_name)
    names = list(dict.fromkeys(table.name))
    rows = ceil(len(names) / COLUMNS)
    height = rows * _ROW_HEIGHT + _AXIS_HEIGHT
    figure = make_subplots(
        rows,
        COLUMNS,
        shared_xaxes="all",
        shared_yaxes="all",
        subplot_titles=[plain_text(name) for name in names],
        horizontal_spacing=0.04,
        vertical_spacing=26 / (height - _AXIS_HEIGHT) if rows > 1 else 0,
    )
    for number, (name, color) in enumerate(zip(names, theme.category_colors(len(names)), strict=True)):
        part = table[table.name == name]
        edges = np.repeat([*part.left, part.right.iloc[-1]], 2)
        percent = np.concatenate([[0], np.repeat(part.percent, 2), [0]])
        figure.add_scatter(
            x=edges,
            y=percent,
            mode="lines",
            name=plain_text(name),
            line={"color": color, "width": 1.5},
            fill="tozeroy",
            fillcolor=translucent(color, 0.2),
            hovertext=[f"{general(x, 4)}: {short(y, 2)} %" for x, y in zip(edges, percent, strict=True)],
            hovertemplate="%{hovertext}<extra>" + plain_text(name) + "</extra>",
            row=number // COLUMNS + 1,
            col=number % COLUMNS + 1,
        )
    counts = ", ".join(f"{name} (n = {table[table.name == name]['count'].sum():,})" for name in names)
    alt = f"Histograms, one panel each, on common axes: {x_title} of {counts}."
    figure.update_layout(template=relscope_template(theme), meta={"alt": alt}, showlegend=False, height=height)
    figure.update_layout(margin={"t": 24, "b": 48, "l": 56, "r": 8})
    figure.update_annotations(font={"size": 12, "color": theme.text}, yshift=-2)
    figure.update_yaxes(range=[0, 1.06 * table.percent.max()], nticks=3)
    for column in range(1, min(COLUMNS, len(names)) + 1):  # the last row may have fewer panels than columns
        last = (len(names) - column) // COLUMNS + 1
        figure.update_xaxes(title={"text": plain_text(x_title)}, showticklabels=True, row=last, col=column)
    figure.add_annotation(
        text="share of rows (%)", textangle=-90, showarrow=False, xref="paper", yref="paper", xshift=-42, x=0, y=0.5
    )
    return figure
