"""Panels whose points move together, over a chart of lines, drawn by Plotly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from relcore.base.numbers import general, short
from relcore.figures.charts import Gauge, Lines, MapWithEvidence, MovingPanels
from relcore.figures.screen import DASHES, lines_figure, new_figure, plain_text, play_buttons
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


_MAP = 360  # pixels
_BAR = 64
_HISTOGRAM = 110
_ROOM = 74  # above a panel, for the axis of the one above it


def evidence_figure(data: MapWithEvidence, theme: Theme = LIGHT) -> go.Figure:
    """Draw a map and, below it, the bar and the histogram."""
    below = [(_BAR, data.gauge), (_HISTOGRAM, data.histogram)]
    heights = [height for height, chart in below if chart]
    total = _MAP + sum(heights) + _ROOM * len(heights)
    figure = lines_figure(replace(data.points, note=""), theme, total + _ROOM + 40)
    figure.update_layout(
        meta={"alt": data.describe()},
        margin={"t": 40, "b": _ROOM},
        legend={"y": 1, "yref": "paper", "yanchor": "bottom"},
    )
    hidden = {"showticklabels": False, "zeroline": False, "automargin": False}
    figure.update_xaxes(**hidden)
    figure.update_yaxes(**hidden, domain=(1 - _MAP / total, 1))
    top = total - _MAP - _ROOM
    number = 2
    for height, chart in below:
        if not chart:
            continue
        domain = (max(0.0, (top - height) / total), top / total)
        if isinstance(chart, Gauge):
            _add_gauge(figure, chart, theme, number, domain)
        else:
            _add_histogram(figure, chart, theme, number, domain)
        top -= height + _ROOM
        number += 1
    return figure


def _add_gauge(
    figure: go.Figure, gauge: Gauge, theme: Theme, number: int, domain: tuple[float, float]
) -> None:
    axes = {"xref": f"x{number}", "yref": f"y{number}"}
    figure.update_layout(
        {
            f"xaxis{number}": {
                "anchor": f"y{number}",
                "range": (0, gauge.end),
                "title": {"text": plain_text(gauge.title)},
                "tickvals": (0, gauge.limit, 1),
                "ticktext": ["0", short(gauge.limit, 2), "1"],
            },
            f"yaxis{number}": {"anchor": f"x{number}", "range": (0, 1), "domain": domain, "visible": False},
        }
    )
    figure.add_shape(
        type="rect",
        x0=gauge.limit,
        x1=1,
        y0=0,
        y1=1,
        fillcolor=theme.null,
        line_width=0,
        layer="below",
        **axes,
    )
    look = {"y": 1, "showarrow": False, "yanchor": "top", "font": {"size": 12, "color": theme.muted}, **axes}
    figure.add_annotation(x=0, xanchor="left", text=plain_text(gauge.below), **look)
    figure.add_annotation(x=(1 + gauge.limit) / 2, text=plain_text(gauge.above), **look)
    figure.add_bar(
        x=[gauge.value],
        y=[0.35],
        width=0.4,
        orientation="h",
        marker={"color": theme.accent},
        error_x={
            "array": [gauge.high - gauge.value],
            "color": theme.text,
            "symmetric": False,
            "width": 5,
            "visible": gauge.high > gauge.value,
        },
        hovertext=plain_text(gauge.in_words),
        hoverinfo="text",
        showlegend=False,
        xaxis=f"x{number}",
        yaxis=f"y{number}",
    )
    said = {"y": 0.35, "showarrow": False, "xanchor": "left", "font": {"size": 14, "color": theme.text}}
    figure.add_annotation(x=gauge.high + 0.015, text=short(gauge.value), **said, **axes)


def _add_histogram(
    figure: go.Figure, lines: Lines, theme: Theme, number: int, domain: tuple[float, float]
) -> None:
    drawn = lines_figure(lines, theme)
    names = {"xaxis": f"x{number}", "yaxis": f"y{number}", "showlegend": False}
    for trace in drawn.data:
        figure.add_trace(trace.update(names))
    ((name, level),) = lines.baselines
    axes = {"xref": f"x{number}", "yref": f"y{number}"}
    line = {"color": theme.muted, "dash": "dash", "width": 1.5}
    figure.add_shape(type="line", x0=0, x1=1, y0=level, y1=level, line=line, **axes)
    look = {"showarrow": False, "xanchor": "right", "yanchor": "bottom", "font": {"size": 12}}
    look["bgcolor"] = theme.surface
    figure.add_annotation(x=1, y=level, text=plain_text(name), **look, **axes)
    title = {"text": plain_text(lines.x_title)}
    beside = {"text": plain_text(lines.y_title)}
    ticks = {"tickvals": (0, 0.5, 1), "ticktext": ["0", ".5", "1"]}
    figure.update_layout(
        {
            f"xaxis{number}": {"anchor": f"y{number}", "range": (0, 1), "title": title} | ticks,
            f"yaxis{number}": {
                "anchor": f"x{number}",
                "domain": domain,
                "title": beside,
                "rangemode": "tozero",
            },
        }
    )


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
    look: dict[str, Any] = {"showarrow": False, "font": {"size": 14, "color": theme.text}}
    where = {"x": domain[0], "y": 1, "xref": "paper", "yref": "paper", "yanchor": "bottom", "xanchor": "left"}
    figure.add_annotation(text=f"<b>{plain_text(title)}</b>", **where, **look)


def _add_lines(figure: go.Figure, moving: MovingPanels, theme: Theme, number: int) -> None:
    lines = moving.lines
    axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    x = moving.xs[moving.start]
    marker = {"color": theme.accent, "width": 2}
    figure.add_scatter(
        x=[x, x], y=_y_range(moving), mode="lines", line=marker, hoverinfo="skip", showlegend=False, **axes
    )
    for line, color in zip(lines.lines, lines.colors(theme), strict=True):
        look = {"color": color, "width": 2, "dash": "dash" if line.dashed else "solid"}
        dots = {"size": 6, "color": color}
        name = plain_text(line.name)
        figure.add_scatter(
            x=line.x, y=line.y, mode="lines+markers", line=look, marker=dots, name=name, **axes
        )
    ends = [min(moving.xs), max(moving.xs)]
    for (name, value), dash in zip(lines.baselines, DASHES, strict=False):
        look = {"color": theme.muted, "width": 1.5, "dash": dash}
        text = f"{plain_text(name)}: {general(value)}"
        figure.add_scatter(x=ends, y=[value, value], mode="lines", line=look, name=text, **axes)
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
    look = {"bgcolor": theme.surface, "bordercolor": theme.border}
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
        **look,
    }
    menu = {"type": "buttons", "buttons": buttons, "showactive": False, **place, **look}
    return {"updatemenus": [menu], "sliders": [slider]}
