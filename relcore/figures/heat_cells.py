"""Cells of a heat map on the screen: what the figures of pairs and of matrices draw alike with Plotly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from relcore.figures.cell_colors import ramp_of
from relcore.figures.interactive import plain_text
from relcore.figures.palette import Theme


def plotly_ramp(theme: Theme) -> list[list]:
    """The colours of `ramp_of` as Plotly takes them."""
    return [[i / 4, color] for i, color in enumerate(ramp_of(theme))]


def color_bar(title: str, theme: Theme, place: dict[str, Any], ticks: dict[str, Any]) -> dict[str, Any]:
    """The scale at the right."""
    named = {"text": plain_text(title), "side": "right", "font": {"color": theme.muted, "size": 13}}
    quiet = {"ypad": 0, "tickcolor": theme.border, **ticks, "tickfont": {"color": theme.muted}}
    return {"thickness": 10, "outlinewidth": 0, **place, **quiet, "title": named}


def picked_by_cell(*removed: str) -> dict[str, Any]:
    """Layout of a figure whose cells are picked by a click, without these buttons in its bar."""
    hover = {"hovermode": "closest", "hoverdistance": -1, "hoverlabel": {"align": "left"}}
    return hover | {"modebar": {"remove": ["select2d", "lasso2d", *removed]}, "clickmode": "event+select", "dragmode": False}


def hatch(figure: go.Figure, cells: Sequence[tuple[int, int]], theme: Theme, n_lines: int, **trace: Any) -> None:
    """Slanted lines through each cell (row, column), as one trace."""
    x, y = [], []
    for i, j in cells:
        for total in np.linspace(-1, 1, n_lines + 2)[1:-1]:  # the line x + y = total within a cell from −½ to ½
            low, high = max(-0.48, total - 0.48), min(0.48, total + 0.48)
            x += [j + low, j + high, None]
            y += [i + total - low, i + total - high, None]
    figure.add_scatter(x=x, y=y, mode="lines", line={"color": theme.border, "width": 1}, hoverinfo="skip", **trace)


def pick_cells(
    figure: go.Figure,
    shape: tuple[int, int],
    data: Callable[[int, int], list],
    hover: Callable[[int, int], str],
    **trace: Any,
) -> None:
    """An invisible point on each cell, since Plotly lets no cell of a heat map be picked: its ``customdata`` and its hover."""
    every = list(np.ndindex(shape))
    figure.add_scatter(
        x=[j for _, j in every],
        y=[i for i, _ in every],
        mode="markers",
        marker={"size": 1, "opacity": 0},
        unselected={"marker": {"opacity": 0}},
        customdata=[data(i, j) for i, j in every],
        hovertext=[hover(i, j) for i, j in every],
        hovertemplate="%{hovertext}<extra></extra>",
        **trace,
    )
