"""Options beside curves, for the screen: Plotly."""

from __future__ import annotations

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from relcore.charts.options import Options
from relcore.figures.interactive import plain_text, relscope_template
from relcore.figures.lines_interactive import line_traces
from relcore.figures.palette import LIGHT, Theme
from relcore.numbers import band, general, short


def options_figure(options: Options, theme: Theme = LIGHT, height: int = 420) -> go.Figure:
    """Left each option with its interval, right the curves with the other options as levels."""
    curves, colors = options.curves, options.colors(theme.category_colors(12))
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, column_widths=[0.34, 0.66], horizontal_spacing=0.03)
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
        figure.add_hline(option.value, line=dash, name=plain_text(option.name), showlegend=True, layer="below", row=1, col=2)
    figure.update_layout(
        template=relscope_template(theme),
        meta={"alt": options.describe()},
        height=height,
        margin={"l": 64, "r": 16, "t": 16, "b": 96},
        showlegend=True,
        legend={"y": 0.01, "yanchor": "bottom"},
        hovermode="closest",
    )
    figure.update_xaxes(showgrid=False, zeroline=False, range=[-0.6, len(options.options) - 0.2], row=1, col=1)
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
