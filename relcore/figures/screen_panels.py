"""Panels whose points move together, over a chart of lines, drawn by Plotly."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from relcore.base.numbers import general
from relcore.figures.charts import MovingPanels
from relcore.figures.screen import DASHES, new_figure, plain_text, play_buttons
from relcore.figures.style import LIGHT, Theme

_BELOW = 0.3  # share of the height that the lines take
_GAP = 0.03
_AT_ONCE = {"mode": "immediate", "transition": {"duration": 0}}


def moving_panels_figure(moving: MovingPanels, theme: Theme = LIGHT, height: int = 760) -> go.Figure:
    """Draw one frame at a time, with a slider over all frames, a button that plays them, and a line that
    tells the frame on the chart below."""
    figure = new_figure(theme, moving.describe(), height, hovermode="closest", showlegend=True)
    n_panels = len(moving.panels)
    wide = (1 - _GAP * (n_panels - 1)) / n_panels
    for number, title in enumerate(moving.panels):
        left = number * (wide + _GAP)
        _add_panel(figure, moving, theme, number, (left, left + wide), title)
    _add_lines(figure, moving, theme, n_panels + 1)
    rounded = np.round(moving.places, 4)
    figure.frames = [
        go.Frame(
            name=str(number),
            data=[go.Scatter(x=one[number, :, 0], y=one[number, :, 1]) for one in rounded]
            + [go.Scatter(x=[x, x], y=_y_range(moving))],
            traces=list(range(n_panels + 1)),
        )
        for number, x in enumerate(moving.xs)
    ]
    figure.update_layout(
        margin={"l": 56, "r": 16, "t": 36, "b": 150},
        legend={"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top", "yref": "paper"},
        **_controls(moving, theme),
    )
    return figure


def _y_range(moving: MovingPanels) -> list[float]:
    return list(moving.lines.y_range or (0.0, 1.0))


def _add_panel(
    figure: go.Figure,
    moving: MovingPanels,
    theme: Theme,
    number: int,
    domain: tuple[float, float],
    title: str,
) -> None:
    name = "" if number == 0 else str(number + 1)
    hidden = dict.fromkeys(("showticklabels", "showgrid", "zeroline", "showline"), False)
    reach = [-moving.reach, moving.reach]
    axes = {
        f"xaxis{name}": {"domain": domain, "range": reach, "anchor": f"y{name}", **hidden},
        f"yaxis{name}": {
            "domain": (_BELOW + 0.14, 1),
            "range": reach,
            "anchor": f"x{name}",
            "scaleanchor": f"x{name}",
            "constrain": "domain",
            **hidden,
        },
    }
    figure.update_layout(axes)
    dots = {"color": moving.colors(theme), "size": 5, "opacity": 0.8}
    words = [plain_text(one) for one in moving.names]
    figure.add_scatter(
        x=np.round(moving.places[number, moving.start, :, 0], 4),
        y=np.round(moving.places[number, moving.start, :, 1], 4),
        mode="markers",
        marker=dots,
        hovertext=words,
        hoverinfo="text",
        showlegend=False,
        xaxis=f"x{name}",
        yaxis=f"y{name}",
    )
    figure.add_annotation(
        text=f"<b>{plain_text(title)}</b>",
        x=domain[0],
        y=1,
        xref="paper",
        yref="paper",
        yanchor="bottom",
        xanchor="left",
        showarrow=False,
        font={"size": 14, "color": theme.text},
    )


def _add_lines(figure: go.Figure, moving: MovingPanels, theme: Theme, number: int) -> None:
    lines = moving.lines
    axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    x = moving.xs[moving.start]
    marker = {"color": theme.accent, "width": 2}
    figure.add_scatter(
        x=[x, x], y=_y_range(moving), mode="lines", line=marker, hoverinfo="skip", showlegend=False, **axes
    )
    for line, color in zip(lines.lines, lines.colors(theme), strict=True):
        line_style = {"color": color, "width": 2, "dash": "dash" if line.dashed else "solid"}
        dots = {"size": 6, "color": color}
        name = plain_text(line.name)
        figure.add_scatter(
            x=line.x, y=line.y, mode="lines+markers", line=line_style, marker=dots, name=name, **axes
        )
    ends = [min(moving.xs), max(moving.xs)]
    for (name, value), dash in zip(lines.baselines, DASHES, strict=False):
        line_style = {"color": theme.muted, "width": 1.5, "dash": dash}
        text = f"{plain_text(name)}: {general(value)}"
        figure.add_scatter(x=ends, y=[value, value], mode="lines", line=line_style, name=text, **axes)
    below: dict[str, Any] = {"anchor": f"y{number}", "title": {"text": plain_text(lines.x_title)}}
    if lines.log_x:
        ticks = lines.log_ticks
        below |= {"type": "log", "tickvals": ticks, "ticktext": list(map(general, ticks))}
    beside = {"anchor": f"x{number}", "domain": (0, _BELOW), "range": _y_range(moving)}
    title = {"title": {"text": plain_text(lines.y_title)}}
    figure.update_layout({f"xaxis{number}": below, f"yaxis{number}": beside | title})


def _controls(moving: MovingPanels, theme: Theme) -> dict[str, Any]:
    still = _AT_ONCE | {"frame": {"duration": 0, "redraw": False}}
    plays = _AT_ONCE | {"frame": {"duration": 120, "redraw": False}, "fromcurrent": True}
    buttons = play_buttons(plays, still)
    colors = {"bgcolor": theme.surface, "bordercolor": theme.border}
    place = {"x": 0, "y": _BELOW + 0.12, "xanchor": "left", "yanchor": "top", "direction": "right"}
    steps = [
        {"label": plain_text(title), "method": "animate", "args": [[str(number)], still]}
        for number, title in enumerate(moving.frames)
    ]
    slider = {
        "steps": steps,
        "active": moving.start,
        "x": 0.12,
        "len": 0.88,
        "y": _BELOW + 0.13,
        "yanchor": "top",
        "pad": {"t": 0},
        "currentvalue": {"font": {"size": 14, "color": theme.text}, "xanchor": "left"},
        "font": {"size": 1, "color": theme.surface},
        "ticklen": 0,
        **colors,
    }
    menu = {"type": "buttons", "buttons": buttons, "showactive": False, **place, **colors}
    return {"updatemenus": [menu], "sliders": [slider]}
