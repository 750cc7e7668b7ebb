"""Lines with bands and points with names, for the screen: Plotly."""

from __future__ import annotations

from textwrap import wrap

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from relcore.base.numbers import band, general, short
from relcore.charts.lines import Line, Lines, Options
from relcore.figures.interactive import plain_text, relscope_template, translucent
from relcore.figures.style import LIGHT, Theme

DASHES = ("dash", "dot", "dashdot", "longdash")
_WIDE = 110  # letters of a note's line: as many have room over a chart on a page
_FEW = 40  # points of a line that are marked one by one


def lines_figure(lines: Lines, theme: Theme = LIGHT, height: int = 420) -> go.Figure:
    """Each line with its band, or each point with its bar; what a point's `keys` say is its
    ``customdata``.
    """
    figure = go.Figure()
    for line, color in zip(lines.lines, theme.category_colors(len(lines.lines)), strict=True):
        if not len(line):
            continue
        if lines.kind == "lines":
            figure.add_traces(line_traces(line, color))
        else:
            _draw_points(figure, line, color, theme)
    for i, (name, value) in enumerate(lines.baselines):
        dash = {"color": theme.muted, "width": 1.5, "dash": DASHES[i % len(DASHES)]}
        figure.add_hline(
            value, line=dash, name=f"{plain_text(name)}: {general(value)}", showlegend=True, layer="below"
        )
    for name, value in lines.marks:
        line = {"color": theme.text, "width": 1.5, "dash": "dash"}
        figure.add_vline(
            value, line=line, name=f"{plain_text(name)}: {general(value)}", showlegend=True, layer="below"
        )
    note = [part for line in lines.note.splitlines() for part in wrap(line, _WIDE)]
    if note:
        look = {
            "font": {"size": 13, "color": theme.text},
            "bgcolor": translucent(theme.surface, 0.85),
            "borderpad": 4,
        }
        at = {
            "x": 0,
            "y": 1,
            "xref": "paper",
            "yref": "paper",
            "xanchor": "left",
            "yanchor": "bottom",
            "align": "left",
        }
        figure.add_annotation(text="<br>".join(map(plain_text, note)), showarrow=False, **at, **look)
    figure.update_layout(
        template=relscope_template(theme),
        meta={"alt": lines.describe()},
        height=height,
        margin={"l": 64, "r": 16, "t": 24 + 18 * len(note) if note else 16, "b": 96},
        showlegend=True,
        legend={"y": 0.01, "yanchor": "bottom"},
        hovermode="closest",
    )
    figure.update_xaxes(title={"text": plain_text(lines.x_title)}, type="log" if lines.log_x else "linear")
    if lines.log_x:
        figure.update_xaxes(dtick="D2", minor={"showgrid": False})
    if lines.x_names:
        names = [plain_text(name) for name in lines.x_names]
        figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names, showgrid=False, zeroline=False)
    figure.update_yaxes(title={"text": plain_text(lines.y_title)}, range=lines.y_range)
    return figure


def line_traces(line: Line, color: str) -> list[go.Scatter]:
    """The band, where there is one, and the line."""
    order = np.argsort(line.x, kind="stable")
    x, name, traces = line.x[order], plain_text(line.name), []
    if line.has_band:
        low, high = line.low[order], line.high[order]
        known = ~np.isnan(low) & ~np.isnan(high)
        traces.append(
            go.Scatter(
                x=np.concatenate([x[known], x[known][::-1]]),
                y=np.concatenate([high[known], low[known][::-1]]),
                fill="toself",
                fillcolor=translucent(color, 0.16),
                line={"width": 0},
                mode="lines",
                hoverinfo="skip",
                legendgroup=name,
                showlegend=False,
            )
        )
    traces.append(
        go.Scatter(
            x=x,
            y=line.y[order],
            mode="lines+markers" if len(line) <= _FEW else "lines",
            name=name,
            legendgroup=name,
            line={"color": color, "width": 2},
            marker={"size": 5},
            **_hover(line, order),
        )
    )
    return traces


def _draw_points(figure: go.Figure, line: Line, color: str, theme: Theme) -> None:
    bars = None
    if line.has_band:
        bars = {"array": line.high - line.y, "arrayminus": line.y - line.low, "thickness": 1, "width": 0}
        bars["color"] = translucent(color, 0.5)
    figure.add_scatter(
        x=line.x,
        y=line.y,
        mode="markers",
        name=plain_text(line.name),
        marker={"color": color, "size": 9, "opacity": 0.85, "line": {"color": theme.surface, "width": 1}},
        error_y=bars,
        **_hover(line, np.arange(len(line))),
    )


def _hover(line: Line, order: np.ndarray) -> dict:
    bands = [
        f" ({band(line.low[i], line.high[i])})" if line.has_band and not np.isnan(line.low[i]) else ""
        for i in order
    ]
    texts = [
        f"{general(line.x[i], 4)}: {short(line.y[i])}{part}" for i, part in zip(order, bands, strict=True)
    ]
    if len(line.labels):
        texts = [f"{plain_text(line.labels[i])}<br>{text}" for i, text in zip(order, texts, strict=True)]
    keys = {"customdata": [[line.keys[i]] for i in order]} if len(line.keys) else {}
    return {
        "hovertext": texts,
        "hovertemplate": "%{hovertext}<extra>" + plain_text(line.name) + "</extra>",
        **keys,
    }


# Options beside curves, for the screen: Plotly.


def options_figure(options: Options, theme: Theme = LIGHT, height: int = 420) -> go.Figure:
    """Left each option with its interval, right the curves with the other options as levels."""
    curves, colors = options.curves, options.colors(theme.category_colors(12))
    figure = make_subplots(
        rows=1, cols=2, shared_yaxes=True, column_widths=[0.34, 0.66], horizontal_spacing=0.03
    )
    for option in options.options:
        chosen = option.name == options.chosen
        figure.add_scatter(
            x=[plain_text(option.name)],
            y=[option.value],
            mode="markers+text",
            text=[short(option.value)],
            textposition="middle right",
            textfont={"size": 12, "color": theme.text},
            marker={
                "color": colors[option.name],
                "size": 13 if chosen else 9,
                "symbol": "star" if chosen else "circle",
                "line": {"color": theme.surface, "width": 1},
            },
            error_y={
                "array": [option.high - option.value],
                "arrayminus": [option.value - option.low],
                "thickness": 1.5,
                "width": 4,
                "color": colors[option.name],
            },
            hovertemplate=f"%{{x}}: {short(option.value)} ({band(option.low, option.high)})<extra></extra>",
            showlegend=False,
            cliponaxis=False,
            row=1,
            col=1,
        )
    for line in curves.lines:
        for trace in line_traces(line, colors[line.name]):
            figure.add_trace(trace, row=1, col=2)
    for option in options.levels:
        dash = {"color": colors[option.name], "width": 1.5, "dash": "dash"}
        figure.add_hline(
            option.value,
            line=dash,
            name=plain_text(option.name),
            showlegend=True,
            layer="below",
            row=1,
            col=2,
        )
    figure.update_layout(
        template=relscope_template(theme),
        meta={"alt": options.describe()},
        height=height,
        margin={"l": 64, "r": 16, "t": 16, "b": 96},
        showlegend=True,
        legend={"y": 0.01, "yanchor": "bottom"},
        hovermode="closest",
    )
    figure.update_xaxes(
        showgrid=False, zeroline=False, range=[-0.6, len(options.options) - 0.2], row=1, col=1
    )
    figure.update_xaxes(
        title={"text": plain_text(curves.x_title)},
        type="log" if curves.log_x else "linear",
        tickvals=options.places,
        ticktext=[general(place) for place in options.places],
        row=1,
        col=2,
    )
    figure.update_yaxes(title={"text": plain_text(curves.y_title)}, row=1, col=1)
    return figure
