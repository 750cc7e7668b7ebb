"""Figures on the screen: Plotly, for the app's pages and for HTML that works offline.

Every figure carries its alt text in ``figure.layout.meta["alt"]``. Names and ids are escaped, because Plotly
reads texts as HTML and would not show a word such as ``<unk>``.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from io import BytesIO
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from PIL import Image
from plotly.subplots import make_subplots

from relcore.base.numbers import band, counted, general, in_cell, short
from relcore.base.text import visible
from relcore.figures.charts import (
    TRAINING_PANELS,
    Curves,
    Line,
    Lines,
    Matrices,
    MatrixPanel,
    Options,
    PictureGrid,
    condition,
    histogram_table,
    name_of,
    score_places,
    score_range,
    score_table,
    spectrum_table,
    thinned,
    training_table,
)
from relcore.figures.scene import (
    ColorScale,
    LegendGroup,
    Scene,
    drawn_anchors,
    groups,
    map_names,
    number_text,
    places_of,
    point_size,
    row_colors,
    scales_of,
    star_opacity,
    star_size,
)
from relcore.figures.style import DIVERGING, LIGHT, SEQUENTIAL, Theme, mixed, ramp_of, text_on

DASHES = ("dash", "dot", "dashdot", "longdash")
_HOVER = "%{hovertext}<extra></extra>"
_ABOVE_EDGE = {"y": 0.01, "yanchor": "bottom"}  # where a legend stands
_ON_PAPER = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
_MARGIN = {"l": 64, "r": 16, "t": 16, "b": 96}
_WIDE = 110  # letters of a note's line: as many have room over a chart on a page
_FEW = 40  # points of a line that are marked one by one


def plain_text(text: object) -> str:
    """A text that Plotly shows literally: not as HTML, nor between dollar signs as mathematics, nor
    ``%{x}`` as a value.
    """
    return escape(visible(text), quote=False).replace("$", "&#36;").replace("{", "&#123;")


def relscope_template(theme: Theme = LIGHT) -> go.layout.Template:
    """The look of every figure: quiet axes, the theme's colours, a font that needs no network."""
    lines = {"gridcolor": theme.grid, "linecolor": theme.border}
    axis = lines | {
        "zerolinecolor": theme.border,
        "tickcolor": theme.border,
        "tickfont": {"color": theme.muted, "size": 12},
        "title": {"font": {"color": theme.muted, "size": 13}, "standoff": 8},
        "automargin": True,
    }
    scene_axis = lines | {"backgroundcolor": theme.surface, "color": theme.muted}
    title = {"font": {"size": 16, "color": theme.text, "weight": 600}}
    hover = {"bgcolor": theme.surface, "bordercolor": theme.border}
    legend = {"orientation": "h", "x": 0, "y": 0, "yanchor": "top", "yref": "container"}
    return go.layout.Template(
        layout={
            "font": {"family": theme.font, "size": 13, "color": theme.text},
            "title": title | {"x": 0, "xref": "paper", "xanchor": "left"},
            "paper_bgcolor": theme.surface,
            "plot_bgcolor": theme.surface,
            "colorway": theme.category_colors(20),
            "colorscale": {"sequential": SEQUENTIAL, "diverging": DIVERGING},
            "xaxis": axis,
            "yaxis": axis,
            "scene": dict.fromkeys(("xaxis", "yaxis", "zaxis"), scene_axis),
            "legend": legend | {"itemsizing": "constant"},
            "hoverlabel": hover | {"font": {"family": theme.font, "color": theme.text}},
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": theme.border, "activecolor": theme.accent},
            "margin": {"l": 64, "r": 24, "t": 56, "b": 56},
            "dragmode": "pan",
        }
    )


def _new_figure(theme: Theme, alt: str, height: int | None, **layout: Any) -> go.Figure:
    return go.Figure(
        layout={"template": relscope_template(theme), "meta": {"alt": alt}, "height": height, **layout}
    )


def _translucent(color: str, alpha: float) -> str:
    """A hexadecimal colour as rgba, alpha 0 … 1."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def _titled(text: object) -> dict[str, dict[str, str]]:
    return {"title": {"text": plain_text(text)}}


# Bars, distributions, spectra, training.


def _table_chart(theme: Theme, title: str, x_title: str, y_title: str, alt: str) -> go.Figure:
    axes = {"xaxis": _titled(x_title), "yaxis": _titled(y_title)}
    look = {"showlegend": True, "margin": {"b": 96}, "legend": _ABOVE_EDGE}
    return _new_figure(theme, alt, 380, **_titled(title), **axes, **look)


def score_bars_figure(table: pd.DataFrame, theme: Theme = LIGHT) -> go.Figure:
    """Bars of scores, a group per metric, a colour per form; behind each, in grey, its chance level
    (`charts.score_table`).
    """
    table, width = score_places(score_table(table))
    title = "Similarity of the two spaces"
    alt = "; ".join(f"{row.metric}, {row.form}: {short(row.score)}" for row in table.itertuples())
    alt = f"Bar chart. {title} {alt}."
    figure = _table_chart(theme, title, "metric", "score (1 = identical)", alt)
    null = table.dropna(subset=["null_low", "null_high"])
    if len(null):
        name = "chance level, 95 % band"
        figure.add_bar(
            x=null.x,
            base=null.null_low,
            y=null.null_high - null.null_low,
            width=width,
            name=name,
            marker={"color": theme.null, "line": {"color": theme.muted, "width": 1}},
            legendrank=2000,
            hovertext=[f"{name}: {band(row.null_low, row.null_high, 4)}" for row in null.itertuples()],
            hovertemplate=_HOVER,
        )
    forms, metrics = table.form.unique(), table.metric.unique()
    for form, color in zip(forms, theme.category_colors(len(forms)), strict=True):
        part, interval, label = table[table.form == form], None, plain_text(form)
        if {"low", "high"} <= set(table.columns):
            ends = {"array": part.high - part.score, "arrayminus": part.score - part.low}
            interval = ends | {"thickness": 1, "width": 3}
        rows = zip(part.metric, part.score, strict=True)
        figure.add_bar(
            x=part.x,
            y=part.score,
            width=width * 0.72,
            name=label,
            marker={"color": color},
            text=[in_cell(score) for score in part.score],
            textposition="outside",
            cliponaxis=False,
            error_y=interval,
            hovertext=[f"{plain_text(metric)}<br>{label}: {short(score, 4)}" for metric, score in rows],
            hovertemplate=_HOVER,
        )
    figure.update_layout(barmode="overlay", uniformtext={"minsize": 9, "mode": "show"})
    names = [plain_text(metric) for metric in metrics]
    figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names, showgrid=False)
    figure.update_yaxes(range=score_range(table))
    return figure


def histogram_figure(
    values_by_name: Mapping[str, np.ndarray], x_title: str, theme: Theme = LIGHT
) -> go.Figure:
    """Distributions as filled outlines in common bins; `x_title` with its unit."""
    table = histogram_table(values_by_name)
    names = table.name.unique()
    counts = ", ".join(f"{name} (n = {table[table.name == name]['count'].sum():,})" for name in names)
    alt = f"Histogram. Distribution: {x_title} of {counts}."
    figure = _table_chart(theme, "Distribution", x_title, "share of rows (%)", alt)
    for name, color in zip(names, theme.category_colors(len(names)), strict=True):
        part, label = table[table.name == name], plain_text(name)
        edges = np.repeat([*part.left, part.right.iloc[-1]], 2)
        percent = np.concatenate([[0], np.repeat(part.percent, 2), [0]])
        figure.add_scatter(
            x=edges,
            y=percent,
            mode="lines",
            name=label,
            line={"color": color, "width": 2},
            fill="tozeroy",
            fillcolor=_translucent(color, 0.15),
            hovertext=[f"{general(x, 4)}: {short(y, 2)} %" for x, y in zip(edges, percent, strict=True)],
            hovertemplate=f"%{{hovertext}}<extra>{label}</extra>",
        )
    figure.update_yaxes(rangemode="tozero")
    return figure


def spectrum_figure(values_by_name: Mapping[str, np.ndarray], theme: Theme = LIGHT) -> go.Figure:
    """Singular values as shares of the largest, logarithmic; the legend has the condition number."""
    table, title = spectrum_table(values_by_name), "Spectrum of the anchors"
    parts = {name: table[table.name == name] for name in table.name.unique()}
    alt = "; ".join(f"{name}: {len(part)} values, {condition(part)}" for name, part in parts.items())
    alt = f"Line chart. {title}. {alt}."
    figure = _table_chart(theme, title, "component (rank)", "singular value / largest", alt)
    for (name, part), color in zip(parts.items(), theme.category_colors(len(parts)), strict=True):
        shown = part[part.relative > 0]
        hovers = [
            f"component {row.component}: {general(row.relative)} of the largest"
            f" ({general(row.singular_value, 4)})"
            for row in shown.itertuples()
        ]
        figure.add_scatter(
            x=shown.component,
            y=shown.relative,
            mode="lines+markers",
            line={"color": color, "width": 2},
            marker={"size": 4},
            name=f"{plain_text(name)} · {condition(part)}",
            hovertext=hovers,
            hovertemplate="%{hovertext}<extra>%{fullData.name}</extra>",
        )
    figure.update_yaxes(type="log", exponentformat="power", dtick=1)
    return figure


def training_figure(curves: Curves, theme: Theme = LIGHT) -> go.Figure:
    """Two panels over the same epochs, loss and held-out accuracy, one colour an encoder."""
    table = training_table(curves)
    names, traces, alts = table.name.unique(), [], []
    for name, color in zip(names, theme.category_colors(len(names)), strict=True):
        part, label = table[table.name == name], plain_text(name)
        scores = f"loss {short(part.loss.iloc[-1])}, held-out accuracy {short(part.accuracy.iloc[-1])}"
        alts.append(f"{name}: {scores} after {counted(len(part), 'epoch')}")
        for number, column in enumerate(TRAINING_PANELS, start=1):
            traces.append(
                go.Scatter(
                    x=part.epoch,
                    y=part[column],
                    mode="lines+markers",
                    name=label,
                    legendgroup=name,
                    showlegend=number == 1,
                    line={"color": color, "width": 2},
                    marker={"size": 5},
                    text=[short(value) for value in part[column]],
                    hovertemplate=f"epoch %{{x}}: %{{text}}<extra>{label}</extra>",
                    xaxis=f"x{number}",
                    yaxis=f"y{number}",
                )
            )
    few = table.epoch.max() <= 15
    epochs = {"title": {"text": "epoch"}, "rangemode": "tozero", "dtick": 1 if few else None}
    figure = _new_figure(theme, f"Line chart of training by epoch. {'; '.join(alts)}.", 320).add_traces(
        traces
    )
    return figure.update_layout(
        margin=_MARGIN | {"b": 88},
        hovermode="x unified",
        xaxis={**epochs, "domain": [0, 0.46], "anchor": "y"},
        xaxis2={**epochs, "domain": [0.54, 1], "anchor": "y2"},
        yaxis={"title": {"text": TRAINING_PANELS["loss"]}, "rangemode": "tozero"},
        yaxis2={"title": {"text": TRAINING_PANELS["accuracy"]}, "range": [0, 1.02], "anchor": "x2"},
        legend=_ABOVE_EDGE,
    )


# Lines, and options beside curves.


def lines_figure(lines: Lines, theme: Theme = LIGHT, height: int = 420) -> go.Figure:
    """Each line with its band, or each point with its bar; what a point's `keys` say is its
    ``customdata``.
    """
    note = [part for line in lines.note.splitlines() for part in wrap(line, _WIDE)]
    figure = _new_figure(theme, lines.describe(), height, showlegend=True, legend=_ABOVE_EDGE)
    figure.update_layout(margin=_MARGIN | {"t": 24 + 18 * len(note) if note else 16}, hovermode="closest")
    for line, color in zip(lines.lines, theme.category_colors(len(lines.lines)), strict=True):
        if len(line):
            traces = _line_traces(line, color) if lines.kind == "lines" else [_points(line, color, theme)]
            figure.add_traces(traces)
    dash = {"width": 1.5, "dash": "dash"}
    for i, (name, value) in enumerate(lines.baselines):
        look = dash | {"color": theme.muted, "dash": DASHES[i % len(DASHES)]}
        figure.add_hline(value, line=look, **_level(f"{plain_text(name)}: {general(value)}"))
    for name, value in lines.marks:
        look = dash | {"color": theme.text}
        figure.add_vline(value, line=look, **_level(f"{plain_text(name)}: {general(value)}"))
    if note:
        look = {"bgcolor": _translucent(theme.surface, 0.85), "borderpad": 4, "align": "left"}
        look |= {"font": {"size": 13, "color": theme.text}, "showarrow": False}
        figure.add_annotation(text="<br>".join(map(plain_text, note)), x=0, y=1, **_ON_PAPER, **look)
    figure.update_xaxes(**_titled(lines.x_title), type="log" if lines.log_x else "linear")
    if lines.log_x:
        figure.update_xaxes(dtick="D2", minor={"showgrid": False})
    if lines.x_names:
        names = [plain_text(name) for name in lines.x_names]
        figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names, showgrid=False, zeroline=False)
    return figure.update_yaxes(**_titled(lines.y_title), range=lines.y_range)


def _level(name: str) -> dict[str, Any]:
    return {"name": name, "showlegend": True, "layer": "below"}


def _line_traces(line: Line, color: str) -> list[go.Scatter]:
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
                fillcolor=_translucent(color, 0.16),
                line={"width": 0},
                mode="lines",
                hoverinfo="skip",
                legendgroup=name,
                showlegend=False,
            )
        )
    trace = go.Scatter(
        x=x,
        y=line.y[order],
        mode="lines+markers" if len(line) <= _FEW else "lines",
        name=name,
        legendgroup=name,
        line={"color": color, "width": 2},
        marker={"size": 5},
        **_line_hover(line, order),
    )
    return [*traces, trace]


def _points(line: Line, color: str, theme: Theme) -> go.Scatter:
    bars = None
    if line.has_band:
        bars = {"array": line.high - line.y, "arrayminus": line.y - line.low, "thickness": 1, "width": 0}
        bars["color"] = _translucent(color, 0.5)
    return go.Scatter(
        x=line.x,
        y=line.y,
        mode="markers",
        name=plain_text(line.name),
        marker={"color": color, "size": 9, "opacity": 0.85, "line": {"color": theme.surface, "width": 1}},
        error_y=bars,
        **_line_hover(line, np.arange(len(line))),
    )


def _line_hover(line: Line, order: np.ndarray) -> dict[str, Any]:
    texts = []
    for i in order:
        label = f"{plain_text(line.labels[i])}<br>" if len(line.labels) else ""
        known = line.has_band and not np.isnan(line.low[i])
        ends = f" ({band(line.low[i], line.high[i])})" if known else ""
        texts.append(f"{label}{general(line.x[i], 4)}: {short(line.y[i])}{ends}")
    keys = {"customdata": [[line.keys[i]] for i in order]} if len(line.keys) else {}
    extra = f"%{{hovertext}}<extra>{plain_text(line.name)}</extra>"
    return {"hovertext": texts, "hovertemplate": extra, **keys}


def options_figure(options: Options, theme: Theme = LIGHT) -> go.Figure:
    """Left each option with its interval, right the curves with the other options as levels."""
    curves, colors = options.curves, options.colors(theme.category_colors(12))
    left, right = {"row": 1, "col": 1}, {"row": 1, "col": 2}
    figure = make_subplots(
        rows=1, cols=2, shared_yaxes=True, column_widths=[0.34, 0.66], horizontal_spacing=0.03
    )
    for option in options.options:
        color, chosen = colors[option.name], option.name == options.chosen
        marker = {"color": color, "line": {"color": theme.surface, "width": 1}}
        ends = {"array": [option.high - option.value], "arrayminus": [option.value - option.low]}
        figure.add_scatter(
            x=[plain_text(option.name)],
            y=[option.value],
            mode="markers+text",
            text=[short(option.value)],
            textposition="middle right",
            textfont={"size": 12, "color": theme.text},
            marker=marker | ({"size": 13, "symbol": "star"} if chosen else {"size": 9, "symbol": "circle"}),
            error_y=ends | {"thickness": 1.5, "width": 4, "color": color},
            hovertemplate=f"%{{x}}: {short(option.value)} ({band(option.low, option.high)})<extra></extra>",
            showlegend=False,
            cliponaxis=False,
            **left,
        )
    for line in curves.lines:
        figure.add_traces(_line_traces(line, colors[line.name]), rows=1, cols=2)
    for option in options.levels:
        dash = {"color": colors[option.name], "width": 1.5, "dash": "dash"}
        figure.add_hline(option.value, line=dash, **_level(plain_text(option.name)), **right)
    figure.update_layout(template=relscope_template(theme), meta={"alt": options.describe()}, height=420)
    figure.update_layout(margin=_MARGIN, showlegend=True, legend=_ABOVE_EDGE, hovermode="closest")
    figure.update_xaxes(showgrid=False, zeroline=False, range=[-0.6, len(options.options) - 0.2], **left)
    ticks = {"tickvals": options.places, "ticktext": [general(place) for place in options.places]}
    figure.update_xaxes(**_titled(curves.x_title), type="log" if curves.log_x else "linear", **ticks, **right)
    return figure.update_yaxes(**_titled(curves.y_title), **left)


# Heat maps side by side: one colour scale, numbers where there is room, every cell to be picked.

_SIGN = 7.2  # pixels that a letter of size 13 takes
_HATCHES = 9  # lines through a cell without a value
_BAR, _BETWEEN = 84, 26  # pixels: the scale at the right, and between panels
_LONGEST = 24
_TOOLS = ["select2d", "lasso2d", "zoom", "pan", "autoscale", "resetscale", "zoomin", "zoomout"]


def matrices_figure(
    data: Matrices,
    theme: Theme = LIGHT,
    width: int = 1000,
    height: int | None = None,
    picked: tuple[int, int, int] | None = None,
) -> go.Figure:
    """All panels in a grid; the columns' names above each, the rows' at the left.

    Above the cells lies one invisible point for each, since Plotly lets no cell of a heat map be picked: its
    ``customdata`` is panel, row, column. `picked` frames such a cell. `width` is how wide the figure will be,
    about, in pixels: it decides which numbers have room. Without `height` cells are as high as they look
    well.
    """
    fitting = int(np.clip((width - 200) // max(220, 44 * min(data.most[1], 12)), 1, 3))
    lines, across = data.grid(fitting)
    room = _Room(data, width, across)
    cell, most = room.cell_height, data.most[0]
    if height is not None:
        cell = max(8, (height - lines * room.head) / (lines * most))
    total = lines * (cell * most + room.head)
    ramp = [[i / 4, color] for i, color in enumerate(ramp_of(theme))]
    places, ticks = data.ticks()
    bar = {"thickness": 10, "outlinewidth": 0, "ypad": 0, "yanchor": "top", "y": 1 - room.head / total}
    bar |= {"len": min(300, total - room.head) / total, "tickcolor": theme.border, "tickvals": places}
    bar |= {"ticktext": ticks, "tickfont": {"color": theme.muted}}
    font = {"color": theme.muted, "size": 13}
    bar["title"] = {"text": plain_text(data.value_title), "side": "right", "font": font}
    figure = _new_figure(
        theme,
        data.alt,
        round(total) + 8,
        coloraxis={"cmin": 0, "cmax": 1, "colorscale": ramp, "colorbar": bar},
        margin={"l": 8, "r": 8, "t": 0, "b": 8},
        showlegend=False,
        hovermode="closest",
        hoverdistance=-1,
        hoverlabel={"align": "left"},
        modebar={"remove": _TOOLS},
        clickmode="event+select",
        dragmode=False,
    )
    for number, panel in enumerate(data.panels):
        line, column = divmod(number, across)
        top = 1 - (line * (cell * most + room.head) + room.head) / total
        suffix = str(number + 1) if number else ""
        reach = (max(0.0, top - cell * len(panel.rows) / total), top)
        x, y = _matrix_axes(data, panel, room, theme, column)
        y |= {"anchor": f"x{suffix}", "domain": reach}
        figure.update_layout({f"xaxis{suffix}": {**x, "anchor": f"y{suffix}"}, f"yaxis{suffix}": y})
        _draw_panel(figure, data, number, (room.panel / len(panel.columns), cell), theme)
        _title_panel(figure, panel, suffix, theme, room.names_above)
    if picked and picked[0] < len(data.panels):
        _frame(figure, *picked, theme)
    return figure


class _Room:
    """How many pixels there are, about, for what."""

    def __init__(self, data: Matrices, width: int, across: int) -> None:
        panels, (rows, columns) = data.panels, data.most
        longest = max(len(name_of(row)) for panel in panels for row in panel.rows)
        left = min(longest, _LONGEST) * _SIGN + (22 if data.row_title else 0) + 16
        lefts = left * (1 if data.same_rows else across)
        self.panel = max(80.0, (width - _BAR - lefts - _BETWEEN * (across - 1)) / across)
        self.cell = self.panel / columns
        self.signs = self.cell / _SIGN
        words = [name for p in panels if not data.numbered(p, self.signs) for name in p.columns]
        longest = max((len(word) for word in words if isinstance(word, str)), default=0)
        turned = longest > 2 and (longest + 1) * _SIGN > self.cell  # they then stand higher than a line
        self.names_above = 26 + (18 if data.column_title else 0)
        self.names_above += 0.57 * min(longest, _LONGEST) * _SIGN if turned else 0.0
        self.head = self.names_above + 16 + (20 if any(panel.title for panel in panels) else 0)
        self.head += 18 if any(panel.note for panel in panels) else 0
        self.cell_height = float(np.clip(400 / rows / (1.6 if len(panels) > 3 else 1), 12, 58))
        # In shares of the width without the names at the left of the first, which Plotly makes room for.
        self.gap = (_BETWEEN + (0 if data.same_rows else left)) / max(1, width - left - _BAR)
        self.wide = (1 - self.gap * (across - 1)) / across

    def domain(self, column: int) -> tuple[float, float]:
        left = column * (self.wide + self.gap)
        return left, min(1.0, left + self.wide)  # Plotly refuses what rounding puts above 1


def _matrix_axes(
    data: Matrices, panel: MatrixPanel, room: _Room, theme: Theme, column: int
) -> tuple[dict, dict]:
    n_rows, n_columns = panel.values.shape
    look = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True}
    look["tickfont"] = {"color": theme.text, "size": 13}
    title = {"font": {"color": theme.muted, "size": 12}}
    by_number = data.numbered(panel, room.signs)
    names = [_cut(name_of(name)) for name in panel.columns]
    longest, every, turned = max(len(name_of(name)) for name in panel.columns), 1, False
    if by_number:
        names = [f"<b>{number}</b>" for number in range(1, n_columns + 1)]
    elif not any(isinstance(name, str) for name in panel.columns):
        every = thinned(n_columns, room.panel / (_SIGN * (longest + 1)))
    if not by_number and every == 1:  # words are turned, as none can be guessed from its neighbours
        turned = (longest + 1) * _SIGN > room.cell and longest > 2
    x = {"range": [-0.5, n_columns - 0.5], "side": "top", "domain": room.domain(column), "automargin": False}
    x |= {"tickvals": list(range(0, n_columns, every)), "ticktext": names[::every]}
    x |= {"tickangle": -35 if turned else 0, "title": {"text": plain_text(data.column_title), "standoff": 6}}
    x["title"] |= title
    numbers = [f"  <b>{number}</b>" if by_number else "" for number in range(1, n_rows + 1)]
    rows = [_cut(name_of(name)) + number for name, number in zip(panel.rows, numbers, strict=True)]
    named, every = column == 0 or not data.same_rows, thinned(n_rows, n_rows * room.cell_height / 15)
    y = {"range": [n_rows - 0.5, -0.5], "tickvals": list(range(0, n_rows, every)), "ticktext": rows[::every]}
    y |= {"showticklabels": named, "automargin": True}
    y["title"] = {**title, "standoff": 16, "text": plain_text(data.row_title) if named else ""}
    return look | x, look | y


def _draw_panel(
    figure: go.Figure, data: Matrices, number: int, cell: tuple[float, float], theme: Theme
) -> None:
    panel, suffix = data.panels[number], str(number + 1) if number else ""
    (n_rows, n_columns), on = panel.values.shape, {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
    gap = 2 if min(cell) > 14 else 0
    places = {"x": list(range(n_columns)), "y": list(range(n_rows)), "xgap": gap, "ygap": gap}
    figure.add_heatmap(z=data.shares(panel.values), coloraxis="coloraxis", hoverinfo="skip", **places, **on)
    x, y = [], []
    for i, j in np.argwhere(np.isnan(panel.values)).tolist():
        for total in np.linspace(-1, 1, _HATCHES + 2)[1:-1]:  # x + y = total in a cell from −½ to ½
            low, high = max(-0.48, total - 0.48), min(0.48, total + 0.48)
            x += [j + low, j + high, None]
            y += [i + total - low, i + total - high, None]
    if x:
        look = {"mode": "lines", "line": {"color": theme.border, "width": 1}, "hoverinfo": "skip"}
        figure.add_scatter(x=x, y=y, **look, **on)
    refs = {"xref": f"x{suffix}", "yref": f"y{suffix}"}
    for i, j in panel.marked:
        ink = theme.muted if np.isnan(panel.values[i, j]) else text_on(data.color(panel.values[i, j], theme))
        corners = {"x0": j - 0.44, "x1": j + 0.44, "y0": i - 0.41, "y1": i + 0.41}
        look = {"opacity": 0.75, "line": {"color": ink, "width": 1.2, "dash": "dot"}}
        figure.add_shape(type="rect", **corners, **refs, **look)
    for i, j in panel.framed:
        _frame(figure, number, i, j, theme)
    _write_cells(figure, data, panel, refs, cell, theme)
    cells = list(np.ndindex(n_rows, n_columns))
    figure.add_scatter(
        x=[j for _, j in cells],
        y=[i for i, _ in cells],
        mode="markers",
        marker={"size": 1, "opacity": 0},
        unselected={"marker": {"opacity": 0}},
        customdata=[[number, i, j] for i, j in cells],
        hovertext=[_cell_hover(data, panel, i, j) for i, j in cells],
        hovertemplate=_HOVER,
        **on,
    )


def _write_cells(
    figure: go.Figure, data: Matrices, panel: MatrixPanel, refs: dict, cell: tuple[float, float], theme: Theme
) -> None:
    """The texts of a panel where all of them have room, the small print only with the first lines."""
    wide, high = cell
    shown = panel.shown_texts()
    longest, small = (max((len(texts[n]) for texts in shown.values()), default=0) for n in (0, 1))
    size = next((s for s in (15, 13, 12, 11) if longest * 0.58 * s + 4 <= wide), None)
    if not shown or size is None or high < size + 3:
        return
    with_small = high >= size + 18 and small * 6.2 + 4 <= wide
    notes = []  # set at once: Plotly checks all that is there with each one that is added
    for (i, j), (text, below) in shown.items():
        text = plain_text(text)
        if below and with_small:
            text += f'<br><span style="font-size: 11px">{plain_text(below)}</span>'
        font = {"color": text_on(data.color(panel.values[i, j], theme)), "size": size}
        notes.append({"x": j, "y": i, **refs, "text": text, "showarrow": False, "font": font})
    figure.layout.annotations = (*figure.layout.annotations, *notes)


def _title_panel(
    figure: go.Figure, panel: MatrixPanel, suffix: str, theme: Theme, names_above: float
) -> None:
    parts = [f"<b>{plain_text(panel.title)}</b>"] if panel.title else []
    if panel.note:
        parts.append(f'<span style="color: {theme.muted}; font-size: 12px">{plain_text(panel.note)}</span>')
    if parts:
        at = _ON_PAPER | {"xref": f"x{suffix} domain", "yref": f"y{suffix} domain", "x": 0, "y": 1}
        look = {"showarrow": False, "align": "left", "font": {"size": 14}}
        figure.add_annotation(**at, yshift=names_above, text="<br>".join(parts), **look)


def _cell_hover(data: Matrices, panel: MatrixPanel, i: int, j: int) -> str:
    row, column = (plain_text(name_of(name)) for name in (panel.rows[i], panel.columns[j]))
    where = f"<b>{row}</b> and <b>{column}</b>"
    if data.row_title or data.column_title:
        named = ((plain_text(data.row_title), row), (plain_text(data.column_title), column))
        where = ", ".join(f"{title} {name}".strip() for title, name in named)
    lines = [plain_text(line) for line in panel.explain(i, j).split("\n")]
    return "<br>".join([*[f"<b>{plain_text(panel.title)}</b>"] * bool(panel.title), where, *lines])


def _frame(figure: go.Figure, panel: int, row: int, column: int, theme: Theme) -> None:
    suffix = str(panel + 1) if panel else ""
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    look = {"line": {"color": theme.category_colors(5)[4], "width": 3}, "fillcolor": "rgba(0,0,0,0)"}
    figure.add_shape(type="rect", **corners, xref=f"x{suffix}", yref=f"y{suffix}", **look)


def _cut(name: str) -> str:
    return plain_text(name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…")


# Pictures and their reconstructions: sharp pixels, the error of each picture on hover.

_LEFT, _RIGHT = 200, 130  # units, a pixel in a wide window, .6 of one in a narrow one


def pictures_figure(grid: PictureGrid, theme: Theme = LIGHT) -> go.Figure:
    """The rows of each family as one picture, with titles and errors beside them."""
    layout = grid.layout(theme)
    high, wide = layout.mosaic.shape[:2]
    file = BytesIO()
    Image.fromarray(layout.mosaic).save(file, format="PNG")
    source = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    figure = _new_figure(theme, grid.describe(), round(0.68 * high) + 16, hovermode="closest", dragmode=False)
    figure.add_image(source=source, hoverinfo="skip")
    x, y, texts = zip(*layout.cells, strict=True)
    marker = {"size": 0.8 * layout.cell, "opacity": 0}
    look = {"mode": "markers", "hovertemplate": _HOVER, "showlegend": False}
    figure.add_scatter(x=x, y=y, marker=marker, hovertext=texts, **look)
    title = {"size": 15, "color": theme.text, "weight": 600}
    error, head = {"size": 12, "color": theme.text}, {"size": 11, "color": theme.muted}
    heads = [(layout.errors[0][0], y, "MSE × 10³") for _, y, _ in layout.titles]
    notes = [(*place, "left", title) for place in layout.titles]
    for place in layout.labels:
        ink = theme.text if "stitched" in place[2] else theme.muted
        notes.append((*place, "right", {"size": 12, "color": ink}))
    notes += [(*place, "left", error) for place in layout.errors]
    notes += [(*place, "left", head) for place in heads]
    for x, y, text, side, font in notes:
        figure.add_annotation(x=x, y=y, text=plain_text(text), showarrow=False, xanchor=side, font=font)
    axis = {"visible": False, "fixedrange": True, "constrain": "domain"}
    return figure.update_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        xaxis=axis | {"range": [-_LEFT, wide + _RIGHT], "constraintoward": "left"},
        yaxis=axis | {"range": [high, 0], "scaleanchor": "x", "constraintoward": "top"},
    )


# The linked panes: for HTML that works offline, and for three dimensions on the page.

_ROOM = 64  # pixels beneath the panes for a colour bar with its ticks and its title
_LEGEND = 30  # and for a line of the legend under it
_GAP = 0.035  # between panes, in shares of the plot
_USUAL_WIDTH = 1000  # pixels, where the figure is as wide as the window
_LETTER = 7.8  # pixels that a bold letter of size 13 takes
_TITLE = 46  # pixels above a pane for its title and its note


def panes_figure(scene: Scene, theme: Theme = LIGHT) -> go.Figure:
    """The scene's panes in a 1 × 1, 1 × 2 or 2 × 2 grid: WebGL points in 2-D, turnable clouds in 3-D.

    One legend for all panes: a click hides a category everywhere. Axes bear no numbers, as only distances
    mean something, and both have the same scale.
    """
    rows, columns = scene.grid
    colorings = scene.colorings()
    height, legend = 420 * rows + 60, 0
    if any(not c.scale or bool((np.asarray(c.categories) < 0).any()) for c in colorings):
        legend = _LEGEND  # a row is of a class
    scales = scales_of(scene)
    bottom = _ROOM + 12 + legend if scales else 52 if scene.category_names else 12
    margin = {"l": 8, "r": 8, "t": _TITLE + 4, "b": bottom}
    figure = _new_figure(theme, scene.alt(), height, margin=margin, hovermode="closest", legend=_ABOVE_EDGE)
    ids, high = _hovers(scene), height - _TITLE - 4 - bottom
    gap, title = _GAP / 2, _TITLE / high
    pane_wide, pane_high = (1 - gap * (columns - 1)) / columns, (1 - title * (rows - 1)) / rows
    for i, pane in enumerate(scene.panes):
        row, column = divmod(i, columns)
        left, top = column * (pane_wide + gap), 1 - row * (pane_high + title)
        domain = {"x": [left, min(left + pane_wide, 1)], "y": [max(top - pane_high, 0), top]}
        _lay_out_pane(figure, scene, i, domain)
        _draw_rows(figure, scene, i, ids, theme)
        sizes = [_USUAL_WIDTH * (domain["x"][1] - left), high * (top - domain["y"][0])]
        _write_names(figure, scene, i, theme, sizes)
        at = _ON_PAPER | {"x": left, "y": top, "showarrow": False, "align": "left"}
        font = {"size": 15, "weight": 600}
        figure.add_annotation(text=plain_text(pane.title), font=font, yshift=20 if pane.note else 4, **at)
        if pane.note:
            font = {"size": 12, "color": theme.muted}
            figure.add_annotation(text=plain_text(pane.note), font=font, yshift=3, **at)
    for place, side in enumerate(scene.sides if scene.second else ()):
        look = _ABOVE_EDGE | {"orientation": "h", "x": 0.5 * place, "yref": "container", "entrywidth": 0}
        look |= {"itemsizing": "constant", "title": {"text": side}, "maxheight": 60}
        figure.update_layout({("legend", "legend2")[place]: look})
    for place, (name, scale) in enumerate(scales):
        ticks = scale.ticks()
        bar = {
            "orientation": "h",
            "thickness": 10,
            "len": min(0.9 / len(scales), 0.5),
            "x": (place + 0.5) / len(scales),
            "xanchor": "center",
            "y": (26 + legend) / height,
            "yref": "container",
            "yanchor": "bottom",
            "ypad": 0,
            "outlinewidth": 0,
            "tickvals": [share for share, _ in ticks],
            "ticktext": [text for _, text in ticks],
            "tickfont": {"color": theme.muted, "size": 12},
            "title": {"text": plain_text(name), "side": "top", "font": {"size": 13, "color": theme.text}},
        }
        marker = {"color": [0], "showscale": True, "colorbar": bar, **_scale_look(scale)}
        figure.add_scattergl(x=[None], y=[None], marker=marker, showlegend=False, hoverinfo="skip")
    return figure


def _scale_look(scale: ColorScale) -> dict[str, Any]:
    """Colours by share, as a logarithmic scale has no other way in Plotly."""
    colors = scale.colors
    ramp = [[i / (len(colors) - 1), color] for i, color in enumerate(colors)]
    return {"cmin": 0, "cmax": 1, "colorscale": ramp}


def _lay_out_pane(figure: go.Figure, scene: Scene, i: int, domain: dict[str, list[float]]) -> None:
    number, points = "" if i == 0 else str(i + 1), scene.panes[i].coordinates
    if points.shape[1] == 3:
        plain = {"showticklabels": False, "title": {"text": ""}, "showspikes": False, "zeroline": False}
        look = {"domain": domain, "aspectmode": "data", **{f"{axis}axis": plain for axis in "xyz"}}
        if scene.turn is not None:  # that of the screen, which has no perspective
            _, up, viewer = (dict(zip("xyz", row, strict=True)) for row in np.reshape(scene.turn, (3, 3)))
            eye = {axis: 2.0 * value for axis, value in viewer.items()}
            look["camera"] = {"eye": eye, "up": up, "projection": {"type": "orthographic"}}
        figure.update_layout({f"scene{number}": look})
        return
    for axis, other, values in zip("xy", "yx", points.T, strict=True):
        look = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "showline": True}
        look |= {"mirror": True, "domain": domain[axis], "anchor": f"{other}{number}"}
        if not scene.shown.all():  # the rows that are shown stay where they were
            low, high = values.min(), values.max()
            edge = 0.06 * ((high - low) or 1)
            look["range"] = [float(low - edge), float(high + edge)]
        figure.update_layout({f"{axis}axis{number}": look})
    figure.update_layout({f"yaxis{number}": {"scaleanchor": f"x{number}"}})


def _draw_rows(figure: go.Figure, scene: Scene, i: int, ids: np.ndarray, theme: Theme) -> None:
    """The points of each class, those on a scale, and the anchors."""
    points, number = scene.panes[i].coordinates, "" if i == 0 else str(i + 1)
    solid, coloring = points.shape[1] == 3, scene.coloring(i)
    add, on = figure.add_scattergl, {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    look = {"size": point_size(len(scene)), "opacity": 0.75}
    if solid:
        add, on = figure.add_scatter3d, {"scene": f"scene{number}"}
        look = {"size": look["size"] * 0.7, "opacity": 0.8}

    def at(rows: np.ndarray) -> dict[str, Any]:
        return {**dict(zip("xyz", points[rows].T, strict=False)), **on}

    for order, group in enumerate(groups(scene, theme, i)):
        marker = {**look, "color": group.color}
        add(**at(group.rows), mode="markers", marker=marker, **_entry(group, order, i, ids, scene))
    if coloring.scale:
        rows = np.flatnonzero((np.asarray(coloring.categories) >= 0) & scene.shown)
        values, title = coloring.values[rows], plain_text(coloring.scale.title)
        named = zip(ids[rows], values, strict=True)
        hover = {"hovertext": [f"{name}<br>{title} {number_text(value)}" for name, value in named]}
        marker = {**look, "color": coloring.scale.shares(values), **_scale_look(coloring.scale)}
        if len(rows):
            add(**at(rows), mode="markers", marker=marker, showlegend=False, hovertemplate=_HOVER, **hover)
    anchors, numbers = drawn_anchors(scene)
    if not len(anchors):
        return
    size = star_size(len(scene.anchors)) * scene.stars.size
    font, color = {"size": 12, "color": theme.text}, row_colors(scene, theme, i)[anchors]
    if solid:  # Plotly has no star in 3-D: a diamond in a ring is its stand-in there.
        ring = {"symbol": "circle-open", "size": size, "color": theme.text}
        star = {"symbol": "diamond", "size": size * 0.5, "line": {"color": theme.text, "width": 2}}
        text = {"textposition": "top center", "textfont": font}
    else:  # WebGL too: the browser paints it above all of SVG, so stars in SVG would lie beneath the points
        opacity = star_opacity(len(scene.anchors)) * scene.stars.opacity
        ring = {"symbol": "circle", "size": size * 1.45, "color": theme.surface, "opacity": 0.9 * opacity}
        ring["line"] = {"width": 0}
        star = {"symbol": "star", "size": size, "opacity": opacity}
        star["line"] = {"color": theme.text, "width": max(size / 13, 0.4)}
        text = {"textposition": "top right", "textfont": font | {"weight": "bold"}}
    add(**at(anchors), mode="markers", marker=ring, showlegend=False, hoverinfo="skip")
    places = np.flatnonzero(scene.shown[scene.anchors]) + 1
    text["hovertext"] = [f"{ids[row]}<br>anchor {n}" for n, row in zip(places, anchors, strict=True)]
    text |= {"text": numbers, "hovertemplate": _HOVER, "showlegend": False}
    add(**at(anchors), mode="markers+text", marker={**star, "color": color}, **text)


def _entry(group: LegendGroup, order: int, i: int, ids: np.ndarray, scene: Scene) -> dict[str, Any]:
    """What a trace of points has beside its places: one legend entry for all panes of a colouring, and
    what a hover says.
    """
    name, legend, first_pane = plain_text(group.name), {"legendgroup": str(order)}, 0
    if scene.coloring(i) is scene.second:
        legend, first_pane = {"legend": "legend2", "legendgroup": f"second {order}"}, scene.second_panes[0]
    template = f"%{{hovertext}}<extra>{name if group.named else ''}</extra>"
    hover = {"hovertext": ids[group.rows], "hovertemplate": template}
    return {"name": name, **legend, "showlegend": group.named and i == first_pane, **hover}


def _write_names(figure: go.Figure, scene: Scene, i: int, theme: Theme, size: list[float]) -> None:
    """The names of the groups, as annotations; `size` is the pane's in pixels, about."""
    points, suffix = scene.panes[i].coordinates, "" if i == 0 else str(i + 1)
    places, shadow = places_of(points, scene.turn, size[0] / size[1]), f"0 0 3px {theme.surface}"
    halo = f"text-shadow: {shadow}, {shadow}, {shadow}"
    notes = []
    for name in map_names(scene, i, theme, places, (_LETTER / size[0], 15 / size[1])):
        text = f'<span style="{halo}"><b>{plain_text(name.text)}</b></span>'
        look = {"text": text, "showarrow": False}
        look["font"] = {"size": 13, "color": mixed(name.color, theme.text)}
        at = dict(zip("xyz", map(float, points[name.row]), strict=False))
        notes.append({**look, **at, "yshift": 15 * name.lines, "xshift": round(name.shift * size[0])})
    if points.shape[1] == 3:
        figure.layout[f"scene{suffix}"].annotations = notes
        return
    for note in notes:
        figure.add_annotation(**note, xref=f"x{suffix}", yref=f"y{suffix}")


def _hovers(scene: Scene) -> np.ndarray:
    """What a hover says of each row, (n,) of HTML: its text in three lines at most, its id, its note."""
    texts = [""] * len(scene) if scene.texts is None else scene.texts
    notes = [""] * len(scene) if scene.notes is None else scene.notes
    hovers = []
    for identifier, text, note in zip(scene.ids, texts, notes, strict=True):
        lines = [*wrap(text, 60, max_lines=3, placeholder=" …"), identifier, *([note] if note else [])]
        hovers.append("<br>".join(map(plain_text, lines)))
    return np.array(hovers, dtype=object)
