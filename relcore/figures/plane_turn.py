"""Two planes, one rotated onto the other: an animation for the screen, three panels for paper (Fig. 1 of
the paper).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.numbers import short
from relcore.charts.plane_turn import PlaneTurn
from relcore.figures.export import Exportable
from relcore.figures.style import COLUMN, LIGHT, PAPER, Style, Theme

if TYPE_CHECKING:  # each library is loaded on demand
    import plotly.graph_objects as go
    from matplotlib.figure import Figure

STEPS = 36
_MILLISECONDS = 55
_HEIGHT = 560


@dataclass(frozen=True)
class TurnedPlanes:
    """A turn with the class of each point.

    Attributes
    ----------
    turn : PlaneTurn
    names : (str, str)
        Of the space that stays, and of the one that is turned.
    categories : array (n,)
        Positions in `category_names`.
    category_names : tuple of str
    """

    turn: PlaneTurn
    names: tuple[str, str]
    categories: np.ndarray
    category_names: tuple[str, ...]

    def table(self) -> pd.DataFrame:
        """One line a point: label, x and y of the space that stays, of the other as it is, and of the
        other turned.
        """
        columns = {"label": [self.category_names[i] for i in self.categories]}
        for name, points in self._panels():
            columns |= {f"{name} x": points[:, 0], f"{name} y": points[:, 1]}
        return pd.DataFrame(columns)

    def alt(self) -> str:
        before, after = self.turn.disparity(0), self.turn.disparity(1)
        return (
            f"{len(self.categories):,} pictures as points of two planes, {self.names[0]} and {self.names[1]}."
            f" The second, {self.turn.describe()}, is laid over the first: disparity {short(before, 2)}"
            f" before, {short(after, 2)} after."
        )

    def _panels(self) -> list[tuple[str, np.ndarray]]:
        first, second = self.names
        return [
            (first, self.turn.reference),
            (second, self.turn.moving),
            (f"{second}, {self.how}", self.turn.at(1)),
        ]

    @property
    def how(self) -> str:
        return "mirrored" if self.turn.mirrored else "turned"


def turned_planes_exportable(
    planes: TurnedPlanes, recipe: Mapping[str, Any] | None = None, name: str = "planes"
) -> Exportable:
    """The planes in all their forms."""
    return Exportable(
        name,
        interactive=lambda theme: turned_planes_figure(planes, theme),
        publication=lambda style: printed_planes_figure(planes, style),
        table=planes.table,
        recipe=recipe,
    )


def turned_planes_figure(planes: TurnedPlanes, theme: Theme = LIGHT) -> go.Figure:
    """For the screen: the first space as rings, the second moving over it; a play button and a slider."""
    import plotly.graph_objects as go

    from relcore.figures.interactive import plain_text, relscope_template

    turn = planes.turn
    classes = range(len(planes.category_names))
    rows = [np.flatnonzero(planes.categories == number) for number in classes]
    colors = theme.category_colors(len(classes))
    figure = go.Figure()
    for moving in (False, True):
        for number, (name, color) in enumerate(zip(planes.category_names, colors, strict=True)):
            points = (turn.at(0) if moving else turn.reference)[rows[number]]
            look = (
                {"size": 6, "color": color, "opacity": 0.9}
                if moving
                else {"size": 8, "color": color, "opacity": 0.3}
            )
            figure.add_scatter(
                x=points[:, 0],
                y=points[:, 1],
                mode="markers",
                marker=look if moving else look | {"symbol": "circle-open", "line": {"width": 1.5}},
                name=plain_text(name),
                legendgroup=name,
                showlegend=moving and len(classes) > 1,
                hovertemplate=f"{plain_text(name)}<extra>{plain_text(planes.names[int(moving)])}</extra>",
            )
    times = np.linspace(0, 1, STEPS + 1)
    figure.frames = [_frame(planes, rows, time) for time in times]
    everything = np.concatenate([turn.reference, *(turn.at(time) for time in times[::6])])
    low, high = everything.min(axis=0), everything.max(axis=0)
    room = 0.04 * (high - low)
    axis = {"showticklabels": False, "title": None, "zeroline": False}
    figure.update_layout(
        template=relscope_template(theme),
        meta={"alt": planes.alt()},
        height=_HEIGHT,
        margin={"l": 16, "r": 16, "t": 48, "b": 120},
        xaxis=axis | {"range": [low[0] - room[0], high[0] + room[0]]},
        yaxis=axis | {"range": [low[1] - room[1], high[1] + room[1]], "scaleanchor": "x"},
        annotations=_told(planes, theme),
        updatemenus=[_buttons(theme)],
        sliders=[_slider(planes, times, theme)],
        legend={"y": 0.01, "yanchor": "bottom"},
        hovermode="closest",
    )
    return figure


def _frame(planes: TurnedPlanes, rows: list[np.ndarray], time: float) -> go.Frame:
    import plotly.graph_objects as go

    points = planes.turn.at(time)
    data = [go.Scatter(x=points[part, 0], y=points[part, 1]) for part in rows]
    traces = list(range(len(rows), 2 * len(rows)))
    return go.Frame(data=data, traces=traces, name=f"{time:.3f}")


def _told(planes: TurnedPlanes, theme: Theme) -> list[dict]:
    """The line above the plot."""
    first, second = planes.names
    text = f"Rings: {first}. Dots: {second}, {planes.how} onto it."
    at = {"x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return [at | {"text": text, "showarrow": False, "yshift": 10, "font": {"size": 13, "color": theme.text}}]


def _moving(**frame: Any) -> dict:
    return {"mode": "immediate", "transition": {"duration": 0}, "frame": {"redraw": False, **frame}}


def _buttons(theme: Theme) -> dict:
    play = {"label": "▶ Play", "method": "animate", "args": [None, _moving(duration=_MILLISECONDS)]}
    pause = {"label": "❙❙ Pause", "method": "animate", "args": [[None], _moving(duration=0)]}
    place = {"x": 0, "y": 0, "xanchor": "left", "yanchor": "top", "pad": {"t": 14}, "direction": "left"}
    look = {"bgcolor": theme.surface, "bordercolor": theme.border, "font": {"color": theme.text}}
    return {"type": "buttons", "buttons": [play, pause], "showactive": False, **place, **look}


def _slider(planes: TurnedPlanes, times: np.ndarray, theme: Theme) -> dict:
    """Its label tells the disparity: of a frame Plotly redraws the points and the slider, nothing else."""
    labels = [f"{100 * time:.0f} %, disparity {short(planes.turn.disparity(time), 2)}" for time in times]
    steps = [
        {"label": label, "method": "animate", "args": [[f"{time:.3f}"], _moving(duration=0)]}
        for label, time in zip(labels, times, strict=True)
    ]
    place = {"x": 0.3, "len": 0.7, "y": 0, "xanchor": "left", "yanchor": "top", "pad": {"t": 4}}
    look = {
        "font": {"size": 1, "color": "rgba(0,0,0,0)"},
        "tickcolor": theme.border,
        "bordercolor": theme.border,
    }
    look |= {"bgcolor": theme.grid, "activebgcolor": theme.accent, "minorticklen": 0, "ticklen": 0}
    shown = {"prefix": "moved ", "font": {"size": 13, "color": theme.text}, "xanchor": "right"}
    return {"steps": steps, "active": 0, "currentvalue": shown, **place, **look}


def printed_planes_figure(planes: TurnedPlanes, style: Style = PAPER) -> Figure:
    """For the paper: the first space, the second, and the second laid over the first; in one column above
    each other.
    """
    from matplotlib.lines import Line2D

    from relcore.figures.publication import blank_figure, height_of, legend_below, settings

    stacked = style.width <= COLUMN
    columns, n_rows = (1, 3) if stacked else (3, 1)
    with settings(style):
        figure = blank_figure(style, 1)
        colors = style.theme.category_colors(len(planes.category_names))
        named = zip(planes.category_names, colors, strict=True)
        handles = [
            Line2D([], [], marker="o", ls="", ms=3.5, color=color, label=name) for name, color in named
        ]
        legend = legend_below(figure, handles if len(handles) > 1 else [], style)
        line, edge = style.line, 0.04
        below = height_of(legend) + 0.5 * line if legend else edge
        wide = (style.width - edge * (columns + 1)) / columns
        high, above = (0.62 * wide if stacked else wide), 1.7 * line
        total = n_rows * (high + above) + below
        figure.set_figheight(total)
        for i, (name, points) in enumerate(planes._panels()):
            row, column = divmod(i, columns)
            left, bottom = edge + column * (wide + edge), total - (row + 1) * (high + above)
            axes = figure.add_axes((left / style.width, bottom / total, wide / style.width, high / total))
            if i == 2:
                reference = planes.turn.reference
                axes.scatter(
                    *reference.T,
                    s=5,
                    lw=0,
                    color=style.theme.neutral,
                    alpha=0.5,
                    rasterized=len(reference) > 5000,
                )
            shade = [colors[category] for category in planes.categories]
            axes.scatter(*points.T, s=3.5, lw=0, c=shade, rasterized=len(points) > style.raster_above)
            axes.set(xticks=[], yticks=[])
            axes.set_aspect("equal", adjustable="datalim")
            letter = f"{'abc'[i]}  " if style.panel_letters else ""
            title = (
                f"the second {planes.how}, disparity {short(planes.turn.disparity(1), 2)}" if i == 2 else name
            )
            axes.set_title(f"{letter}{title}", loc="left", fontsize=style.font_size - 0.5, pad=3)
        return figure
