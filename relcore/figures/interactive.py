"""Interactive figures: Plotly, for the app's pages and for HTML that works offline.

Every figure carries its alt text in ``figure.layout.meta["alt"]``. Names and ids are escaped, because Plotly
reads texts as HTML and would not show a word such as ``<unk>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from relcore.base.numbers import band, general, in_cell, short
from relcore.base.text import visible
from relcore.figures.style import DIVERGING, LIGHT, SEQUENTIAL, Theme
from relcore.figures.tables import (
    condition,
    histogram_table,
    score_places,
    score_range,
    score_table,
    spectrum_table,
)


def relscope_template(theme: Theme = LIGHT) -> go.layout.Template:
    """The look of every figure: quiet axes, the theme's colours, a font that needs no network."""
    axis = {
        "gridcolor": theme.grid,
        "linecolor": theme.border,
        "zerolinecolor": theme.border,
        "tickcolor": theme.border,
        "tickfont": {"color": theme.muted, "size": 12},
        "title": {"font": {"color": theme.muted, "size": 13}, "standoff": 8},
        "automargin": True,
    }
    scene_axis = {
        "backgroundcolor": theme.surface,
        "gridcolor": theme.grid,
        "linecolor": theme.border,
        "color": theme.muted,
    }
    return go.layout.Template(
        layout={
            "font": {"family": theme.font, "size": 13, "color": theme.text},
            "title": {
                "font": {"size": 16, "color": theme.text, "weight": 600},
                "x": 0,
                "xref": "paper",
                "xanchor": "left",
            },
            "paper_bgcolor": theme.surface,
            "plot_bgcolor": theme.surface,
            "colorway": theme.category_colors(20),
            "colorscale": {"sequential": SEQUENTIAL, "diverging": DIVERGING},
            "xaxis": axis,
            "yaxis": axis,
            "scene": dict.fromkeys(("xaxis", "yaxis", "zaxis"), scene_axis),
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 0,
                "yanchor": "top",
                "yref": "container",
                "itemsizing": "constant",
            },
            "hoverlabel": {
                "bgcolor": theme.surface,
                "bordercolor": theme.border,
                "font": {"family": theme.font, "color": theme.text},
            },
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": theme.border, "activecolor": theme.accent},
            "margin": {"l": 64, "r": 24, "t": 56, "b": 56},
            "dragmode": "pan",
        }
    )


def score_bars_figure(
    table: pd.DataFrame, theme: Theme = LIGHT, title: str = "Similarity of the two spaces"
) -> go.Figure:
    """Bars of scores, a group per metric, a colour per form; behind each, in grey, its chance level
    (`tables.score_table`).
    """
    table, width = score_places(score_table(table))
    forms, metrics = list(dict.fromkeys(table.form)), list(dict.fromkeys(table.metric))
    has_interval = {"low", "high"} <= set(table.columns)
    figure = go.Figure()
    null = table.dropna(subset=["null_low", "null_high"])
    if len(null):
        figure.add_bar(
            x=null.x,
            base=null.null_low,
            y=null.null_high - null.null_low,
            width=width,
            name="chance level, 95 % band",
            marker={"color": theme.null, "line": {"color": theme.muted, "width": 1}},
            legendrank=2000,
            hovertext=[
                f"chance level, 95 % band: {band(row.null_low, row.null_high, 4)}"
                for row in null.itertuples()
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    for form, color in zip(forms, theme.category_colors(len(forms)), strict=True):
        part = table[table.form == form]
        interval = (
            {"array": part.high - part.score, "arrayminus": part.score - part.low, "thickness": 1, "width": 3}
            if has_interval
            else None
        )
        figure.add_bar(
            x=part.x,
            y=part.score,
            width=width * 0.72,
            name=plain_text(form),
            marker={"color": color},
            text=[in_cell(score) for score in part.score],
            textposition="outside",
            cliponaxis=False,
            error_y=interval,
            hovertext=[
                f"{plain_text(row.metric)}<br>{plain_text(form)}: {short(row.score, 4)}"
                for row in part.itertuples()
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    alt = "; ".join(f"{row.metric}, {row.form}: {short(row.score)}" for row in table.itertuples())
    _chart(figure, theme, title, "metric", "score (1 = identical)", f"Bar chart. {title} {alt}.")
    figure.update_layout(barmode="overlay", uniformtext={"minsize": 9, "mode": "show"})
    figure.update_xaxes(
        tickvals=list(range(len(metrics))), ticktext=[plain_text(m) for m in metrics], showgrid=False
    )
    figure.update_yaxes(range=score_range(table))
    return figure


def histogram_figure(
    values_by_name: Mapping[str, np.ndarray],
    x_title: str,
    theme: Theme = LIGHT,
    title: str = "Distribution",
    bins: int | None = None,
) -> go.Figure:
    """Distributions as filled outlines in common bins; `x_title` with its unit. See
    `tables.histogram_table`.
    """
    table = histogram_table(values_by_name, bins)
    names = list(dict.fromkeys(table.name))
    figure = go.Figure()
    for name, color in zip(names, theme.category_colors(len(names)), strict=True):
        part = table[table.name == name]
        edges = np.repeat([*part.left, part.right.iloc[-1]], 2)
        percent = np.concatenate([[0], np.repeat(part.percent, 2), [0]])
        label = plain_text(name)
        figure.add_scatter(
            x=edges,
            y=percent,
            mode="lines",
            name=label,
            line={"color": color, "width": 2},
            fill="tozeroy",
            fillcolor=translucent(color, 0.15),
            hovertext=[f"{general(x, 4)}: {short(y, 2)} %" for x, y in zip(edges, percent, strict=True)],
            hovertemplate="%{hovertext}<extra>" + label + "</extra>",
        )
    counts = ", ".join(f"{name} (n = {table[table.name == name]['count'].sum():,})" for name in names)
    _chart(figure, theme, title, x_title, "share of rows (%)", f"Histogram. {title}: {x_title} of {counts}.")
    figure.update_yaxes(rangemode="tozero")
    return figure


def spectrum_figure(
    singular_values_by_name: Mapping[str, np.ndarray],
    theme: Theme = LIGHT,
    title: str = "Spectrum of the anchors",
) -> go.Figure:
    """Singular values as shares of the largest, logarithmic; the legend has the condition number
    (`tables.spectrum_table`).
    """
    table = spectrum_table(singular_values_by_name)
    names = list(dict.fromkeys(table.name))
    figure, alt = go.Figure(), []
    for name, color in zip(names, theme.category_colors(len(names)), strict=True):
        part = table[table.name == name]
        alt.append(f"{name}: {len(part)} values, {condition(part)}")
        shown = part[part.relative > 0]
        figure.add_scatter(
            x=shown.component,
            y=shown.relative,
            mode="lines+markers",
            line={"color": color, "width": 2},
            marker={"size": 4},
            name=f"{plain_text(name)} · {condition(part)}",
            hovertext=[
                f"component {row.component}: {general(row.relative)} of the largest"
                f" ({general(row.singular_value, 4)})"
                for row in shown.itertuples()
            ],
            hovertemplate="%{hovertext}<extra>%{fullData.name}</extra>",
        )
    _chart(
        figure,
        theme,
        title,
        "component (rank)",
        "singular value / largest",
        f"Line chart. {title}. {'; '.join(alt)}.",
    )
    figure.update_yaxes(type="log", exponentformat="power", dtick=1)
    return figure


def _chart(figure: go.Figure, theme: Theme, title: str, x_title: str, y_title: str, alt: str) -> None:
    figure.update_layout(
        template=relscope_template(theme), meta={"alt": alt}, showlegend=True, height=380, margin={"b": 96}
    )
    figure.update_layout(title={"text": plain_text(title)}, legend={"y": 0.01, "yanchor": "bottom"})
    figure.update_xaxes(title={"text": plain_text(x_title)})
    figure.update_yaxes(title={"text": plain_text(y_title)})


def translucent(color: str, alpha: float) -> str:
    """A hexadecimal colour as rgba, alpha 0 … 1."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def plain_text(text: object) -> str:
    """A text that Plotly shows literally: not as HTML, nor between dollar signs as mathematics, nor
    ``%{x}`` as a value.
    """
    return escape(visible(text), quote=False).replace("$", "&#36;").replace("{", "&#123;")
