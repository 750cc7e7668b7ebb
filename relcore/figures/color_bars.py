"""Rows coloured by a number in a Plotly figure: their markers, what a hover says, and a colour bar beneath the panes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from relcore.charts.coloring import Coloring, ColorScale, told
from relcore.charts.scene import Scene
from relcore.figures.interactive import plain_text
from relcore.figures.marks import scales_of
from relcore.figures.palette import Theme

_ROOM = 64  # pixels beneath the panes for a bar with its ticks and its title
_LEGEND = 30  # and for a line of the legend under it


@dataclass(frozen=True)
class NumberedRows:
    """The rows of a pane that have a number, and their colours; shares 0 … 1 of the scale."""

    rows: np.ndarray
    coloring: Coloring

    @property
    def marker(self) -> dict:
        """Colours by share, as a logarithmic scale has no other way in Plotly."""
        return {
            "color": self.scale.shares(self.coloring.values[self.rows]),
            "cmin": 0,
            "cmax": 1,
            "colorscale": ramp_of(self.scale),
        }

    def hover(self, ids: np.ndarray) -> dict:
        """What a hover says, without an entry in the legend."""
        title = plain_text(self.scale.title)
        texts = [f"{ids[row]}<br>{title} {told(self.coloring.values[row])}" for row in self.rows]
        return {"hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>", "showlegend": False}

    @property
    def scale(self) -> ColorScale:
        return self.coloring.scale


def numbered_rows(scene: Scene, pane: int) -> NumberedRows | None:
    """The rows on the scale of this pane; None where it is coloured by categories, or no row has a number."""
    coloring = scene.coloring(pane)
    rows = np.flatnonzero((np.asarray(coloring.categories) >= 0) & scene.shown) if coloring.scale else ()
    return NumberedRows(rows, coloring) if len(rows) else None


def bar_room(scene: Scene) -> int:
    """Pixels beneath the panes for the colour bar and the legend; 0 without a scale."""
    return _ROOM + 12 + _legend(scene) if scales_of(scene) else 0


def _legend(scene: Scene) -> int:
    """Pixels for the line of the legend; 0 where no row is of a class."""
    classes = (not one.scale or bool((np.asarray(one.categories) < 0).any()) for one in scene.colorings())
    return _LEGEND if any(classes) else 0


def draw_color_bars(figure: go.Figure, scene: Scene, theme: Theme, height: int) -> None:
    """A horizontal colour bar for the scale of the panes."""
    scales = scales_of(scene)
    for place, (title, scale) in enumerate(scales):
        ticks = scale.ticks()
        bar = {
            "orientation": "h",
            "thickness": 10,
            "len": min(0.9 / len(scales), 0.5),
            "x": (place + 0.5) / len(scales),
            "xanchor": "center",
            "y": (26 + _legend(scene)) / height,
            "yref": "container",
            "yanchor": "bottom",
            "ypad": 0,
            "outlinewidth": 0,
            "tickvals": [share for share, _ in ticks],
            "ticktext": [text for _, text in ticks],
            "tickfont": {"color": theme.muted, "size": 12},
            "title": {"text": plain_text(title), "side": "top", "font": {"size": 13, "color": theme.text}},
        }
        marker = {"color": [0], "cmin": 0, "cmax": 1, "colorscale": ramp_of(scale), "showscale": True, "colorbar": bar}
        figure.add_scattergl(x=[None], y=[None], marker=marker, showlegend=False, hoverinfo="skip")


def ramp_of(scale: ColorScale) -> list[list]:
    """The scale's colours as Plotly wants them."""
    colors = scale.colors
    return [[i / (len(colors) - 1), color] for i, color in enumerate(colors)]
