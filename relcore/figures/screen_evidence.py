"""On screen: a map of points with a bar and a histogram below it."""

from __future__ import annotations

from dataclasses import replace

import plotly.graph_objects as go

from relcore.base.numbers import short
from relcore.figures.charts import Gauge, Lines, MapWithEvidence
from relcore.figures.screen import lines_figure, plain_text
from relcore.figures.style import LIGHT, Theme

# Heights in pixels.
_MAP = 360
_HEIGHTS: dict[type, int] = {Gauge: 64, Lines: 110}
_ROOM = 74  # above a panel, for the axis of the one above it


def evidence_figure(data: MapWithEvidence, theme: Theme = LIGHT) -> go.Figure:
    """Draw a map and, below it, the bar and the histogram."""
    total = _MAP + sum(_HEIGHTS[type(chart)] + _ROOM for chart in data.below)
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
    for number, chart in enumerate(data.below, start=2):
        bottom = top - _HEIGHTS[type(chart)]
        domain = (max(0.0, bottom / total), top / total)
        if isinstance(chart, Gauge):
            _add_gauge(figure, chart, theme, number, domain)
        else:
            _add_histogram(figure, chart, theme, number, domain)
        top = bottom - _ROOM
    return figure


def _add_gauge(
    figure: go.Figure, gauge: Gauge, theme: Theme, number: int, domain: tuple[float, float]
) -> None:
    _add_gauge_axes(figure, gauge, number, domain)
    _name_ranges(figure, gauge, theme, number)
    _add_bar(figure, gauge, theme, number)


def _references(number: int) -> dict[str, str]:
    """The axes of a shape or an annotation in the panel with this number."""
    return {"xref": f"x{number}", "yref": f"y{number}"}


def _add_gauge_axes(figure: go.Figure, gauge: Gauge, number: int, domain: tuple[float, float]) -> None:
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


def _name_ranges(figure: go.Figure, gauge: Gauge, theme: Theme, number: int) -> None:
    """Write the names of the ranges below and above the limit, and shade the upper one."""
    axes = _references(number)
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
    text_style = {
        "y": 1,
        "showarrow": False,
        "yanchor": "top",
        "font": {"size": 12, "color": theme.muted},
        **axes,
    }
    figure.add_annotation(x=0, xanchor="left", text=plain_text(gauge.below), **text_style)
    figure.add_annotation(x=(1 + gauge.limit) / 2, text=plain_text(gauge.above), **text_style)


def _add_bar(figure: go.Figure, gauge: Gauge, theme: Theme, number: int) -> None:
    """Draw the value as a bar with the upper end of its interval, and write the value beside it."""
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
    figure.add_annotation(
        x=gauge.high + 0.015,
        text=short(gauge.value),
        y=0.35,
        showarrow=False,
        xanchor="left",
        font={"size": 14, "color": theme.text},
        **_references(number),
    )


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
    text_style = {"showarrow": False, "xanchor": "right", "yanchor": "bottom", "font": {"size": 12}}
    text_style["bgcolor"] = theme.surface
    figure.add_annotation(x=1, y=level, text=plain_text(name), **text_style, **axes)
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
