"""Figures on screen, drawn by Plotly, for the app and for HTML pages that work offline.

The alt text is in ``figure.layout.meta["alt"]``. Names and ids are escaped, because Plotly interprets HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go

from relcore.base.numbers import band, general, short
from relcore.base.text import visible
from relcore.figures.charts import (
    Diagram,
    Line,
    Lines,
    Matrices,
    MatrixPanel,
    MovingPoints,
    label_step,
    name_of,
)
from relcore.figures.style import DIVERGING, LIGHT, SEQUENTIAL, Theme, ramp_of, rgb, text_on

DASHES = ("dash", "dot", "dashdot", "longdash")
_HOVER = "%{hovertext}<extra></extra>"
_ABOVE_EDGE = {"y": 0.01, "yanchor": "bottom"}  # position of a legend
_ON_PAPER = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
_MARGIN = {"l": 64, "r": 16, "t": 16, "b": 96}
_WIDE = 110  # maximum number of letters in a line of a note
_FEW = 40  # lines of at most this many points get markers


def plain_text(text: object) -> str:
    """Escape a text so that Plotly shows it literally. Otherwise, Plotly would interpret HTML, mathematics
    between dollar signs, and ``%{x}``."""
    return escape(visible(text), quote=False).replace("$", "&#36;").replace("{", "&#123;")


def relscope_template(theme: Theme = LIGHT) -> go.layout.Template:
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
    return f"rgba({','.join(map(str, rgb(color)))},{alpha})"


def lines_figure(lines: Lines, theme: Theme = LIGHT, height: int = 420) -> go.Figure:
    """Draw a chart: lines with bands, or points with error bars."""
    note = [part for line in lines.note.splitlines() for part in wrap(line, _WIDE)]
    figure = _new_figure(theme, lines.describe(), height, showlegend=True, legend=_ABOVE_EDGE)
    figure.update_layout(margin=_MARGIN | {"t": 24 + 18 * len(note) if note else 16}, hovermode="closest")
    for line, color in zip(lines.lines, lines.colors(theme), strict=True):
        if len(line):
            points = lines.kind == "points"
            figure.add_traces([_points(line, color, theme)] if points else _line_traces(line, color))
    if lines.filled:
        figure.for_each_trace(lambda t: t.update(fill="tozeroy", fillcolor=_translucent(t.line.color, 0.15)))
    dashes = [DASHES[i % len(DASHES)] for i in range(len(lines.baselines))]
    levels = [(figure.add_hline, *b, theme.muted, d) for b, d in zip(lines.baselines, dashes, strict=True)]
    levels += [(figure.add_vline, *mark, theme.text, "dash") for mark in lines.marks]
    for add, name, value, color, dash in levels:
        look = {"line": {"width": 1.5, "dash": dash, "color": color}, "showlegend": True, "layer": "below"}
        add(value, name=f"{plain_text(name)}: {general(value)}", **look)
    if note:
        look = {"bgcolor": _translucent(theme.surface, 0.85), "borderpad": 4, "align": "left"}
        look |= {"font": {"size": 13, "color": theme.text}, "showarrow": False}
        figure.add_annotation(text="<br>".join(map(plain_text, note)), x=0, y=1, **_ON_PAPER, **look)
    figure.update_xaxes(title_text=plain_text(lines.x_title), type="log" if lines.log_x else "linear")
    if lines.log_x:
        ticks = lines.log_ticks
        figure.update_xaxes(tickvals=ticks, ticktext=list(map(general, ticks)), minor={"showgrid": False})
    xs = {x for line in lines.lines for x in line.x}
    if lines.counts and len(xs) <= 15:  # for few whole numbers, Plotly would also label halves
        figure.update_xaxes(tickformat="d", dtick=1 if max(xs) - min(xs) <= 10 else None)
    if lines.x_names:
        names = [plain_text(name) for name in lines.x_names]
        figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names, showgrid=False, zeroline=False)
    figure.update_yaxes(title_text=plain_text(lines.y_title), range=lines.y_range)
    if lines.n_direct:
        _name_ends(figure, lines, theme, height)
    return figure


def _name_ends(figure: go.Figure, lines: Lines, theme: Theme, height: int) -> None:
    """Write the names of the first lines (`Lines.n_direct`) at their right ends. Names are moved apart so
    that they do not overlap."""
    named = lines.lines[: lines.n_direct]
    parts = [part for line in lines.lines for part in (line.y, line.low, line.high) if part is not None]
    every = np.concatenate(parts)
    low, high = lines.y_range or (np.nanmin(every), np.nanmax(every))
    step = (high - low) * 19 / (height - 110)
    colors = lines.colors(theme)
    ends = sorted((line.y[np.argmax(line.x)], number) for number, line in enumerate(named))
    places = np.array([end for end, _ in ends])
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + step)
    places -= max(0.0, places[-1] - high)
    look = {"xref": "paper", "x": 1.01, "xanchor": "left", "showarrow": False}
    for (_, number), place in zip(ends, places, strict=True):
        text = plain_text(named[number].name.partition(",")[0])
        figure.add_annotation(text=text, y=place, font={"size": 13, "color": colors[number]}, **look)
        figure.update_traces({"showlegend": False}, {"name": plain_text(named[number].name)})
    has_legend = len(named) < len(lines.lines) or lines.baselines or lines.marks
    figure.update_layout(margin_r=150, margin_b=_MARGIN["b"] if has_legend else 56)
    figure.update_yaxes(range=[low - step / 2, high + step / 2])


def _line_traces(line: Line, color: str) -> list[go.Scatter]:
    order = np.argsort(line.x, kind="stable")
    x = line.x[order]
    name = plain_text(line.name)
    traces = []
    if line.has_band:
        low = line.low[order]
        high = line.high[order]
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
        line={"color": color, "width": 2, "dash": "dash" if line.dashed else "solid"},
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
        label = ""
        if len(line.labels):
            label = f"{plain_text(line.labels[i])}<br>"
        known = line.has_band and not np.isnan(line.low[i])
        ends = ""
        if known:
            ends = f" ({band(line.low[i], line.high[i])})"
        texts.append(f"{label}{general(line.x[i], 4)}: {short(line.y[i])}{ends}")
    return {"hovertext": texts, "hovertemplate": f"%{{hovertext}}<extra>{plain_text(line.name)}</extra>"}


def diagram_figure(diagram: Diagram, theme: Theme = LIGHT) -> go.Figure:
    names = [plain_text(name) for name in diagram.names]
    (x, y) = diagram.points.T
    figure = _new_figure(theme, diagram.describe(), 420, showlegend=False, hovermode="closest")
    figure.update_layout(margin={"l": 24, "r": 24, "t": 16, "b": 16})
    dots = {"color": theme.category_colors(len(names)), "size": 12}
    dots["line"] = {"color": theme.surface, "width": 1}
    figure.add_scatter(
        x=x,
        y=y,
        text=_cut(names),
        hovertext=[
            "<br>".join([f"<b>{name}</b>", *map(plain_text, more.split("\n"))]) if more else name
            for name, more in zip_longest(names, diagram.hover)
        ],
        hoverinfo="text",
        customdata=list(range(len(names))),
        mode="markers+text",
        textposition=["top center" if above else "bottom center" for above in diagram.above],
        textfont={"color": theme.text},
        cliponaxis=False,
        marker=dots,
    )
    ends = [diagram.points[list(pair)] for pair in diagram.lines]
    line = {"type": "line", "layer": "below", "line": {"color": theme.border, "width": 1.5}}
    figure.update_layout(shapes=[line | {"x0": a[0], "y0": a[1], "x1": b[0], "y1": b[1]} for a, b in ends])
    look = {"showarrow": False, "bgcolor": theme.surface, "font": {"color": theme.muted, "size": 13}}
    for (x, y), text in diagram.line_texts():
        figure.add_annotation(x=x, y=y, text=plain_text(text), **look)
    middle = (diagram.points.max(0) + diagram.points.min(0)) / 2
    wide = np.ptp(diagram.points, 0)
    half = 0.59 * np.maximum(wide, 0.35 * max(wide.max(), 1e-9))  # room for names beside points
    look = {"visible": False, "constrain": "domain"}  # if the window changes its size, ranges stay
    figure.update_xaxes(range=[middle[0] - half[0], middle[0] + half[0]], **look)
    figure.update_yaxes(range=[middle[1] - half[1], middle[1] + half[1]], scaleanchor="x", **look)
    return figure


_MAP_LETTER = (0.023, 0.046)  # width and height of a letter, as shares of a map that is 350 pixels wide
_MOST_NAMED = 64  # limit of steps × longest name; above it, a slider hides its names
_MOVES = {"mode": "immediate", "transition": {"duration": 700, "easing": "cubic-in-out"}}


def moving_figure(moving: MovingPoints, theme: Theme = LIGHT) -> go.Figure:
    """Draw moving points: one map at a time, with a slider over all maps and a button that plays them."""
    titles = [plain_text(title) for title in moving.titles]
    (named, middles) = moving.named(_MAP_LETTER)
    figure = _new_figure(theme, moving.describe(), 520, showlegend=False, hovermode="closest")
    dots = {"color": moving.colors(theme), "size": 5, "opacity": 0.8}
    halo = ", ".join([f"0 0 3px {theme.surface}"] * 4)
    words = {"text": [f"<b>{plain_text(name)}</b>" for name in named]}
    words["textfont"] = {"color": theme.text, "size": 14, "shadow": halo}
    frames = [
        [{"x": xy[:, 0], "y": xy[:, 1]} for xy in (places, middle)]
        for places, middle in zip(np.round(moving.places, 4), np.round(middles, 4), strict=True)
    ]
    hover = {"hovertext": [plain_text(name) for name in moving.names], "hoverinfo": "text"}
    figure.add_scatter(mode="markers", marker=dots, **hover, **frames[0][0])
    figure.add_scatter(mode="text", hoverinfo="skip", **words, **frames[0][1])
    figure.frames = [
        go.Frame(name=str(number), data=[go.Scatter(**part) for part in parts], traces=[0, 1])
        for number, parts in enumerate(frames)
    ]
    middle, half_width = moving.edges
    hidden = dict.fromkeys(("showticklabels", "showgrid", "zeroline", "showline"), False)
    hidden["constrain"] = "domain"
    figure.update_xaxes(range=[middle[0] - half_width, middle[0] + half_width], **hidden)
    figure.update_yaxes(range=[middle[1] - half_width, middle[1] + half_width], scaleanchor="x", **hidden)
    figure.update_layout(margin={"l": 8, "r": 8, "t": 8, "b": 96})
    if len(titles) > 1:
        still = _MOVES | {"frame": {"duration": 700, "redraw": False}}
        plays = still | {"frame": {"duration": 1500, "redraw": False}, "fromcurrent": True}
        buttons = [
            {"label": "▶", "method": "animate", "args": [None, plays]},
            {"label": "❚❚", "method": "animate", "args": [[None], still]},
        ]
        look = {"bgcolor": theme.surface, "bordercolor": theme.border}
        place = {"x": 1, "y": 0, "xanchor": "right", "yanchor": "top", "pad": {"t": 0}, "direction": "right"}
        figure.update_layout(
            updatemenus=[{"type": "buttons", "buttons": buttons, "showactive": False, **place, **look}],
            sliders=[
                {
                    "steps": [
                        {"label": title, "method": "animate", "args": [[str(number)], still]}
                        for number, title in enumerate(_cut(titles))
                    ],
                    "pad": {"t": 18, "l": 24, "r": 24},
                    "currentvalue": {"font": {"size": 14, "color": theme.text}, "xanchor": "left"},
                    # Many or long names would overlap, so they get the colour of the page.
                    "font": {"size": 11, "color": theme.muted}
                    if (len(titles) - 1) * max(map(len, titles)) <= _MOST_NAMED
                    else {"size": 1, "color": theme.surface},
                    "ticklen": 0,
                    **look,
                }
            ],
        )
    return figure


_SIGN = 7.2  # pixels: width of a letter of size 13
# pixels: width of the scale at the right; distance between panels
_BAR = 84
_BETWEEN = 26
_LONGEST = 24
_TOOLS = ["select2d", "lasso2d", "zoom", "pan", "autoscale", "resetscale", "zoomin", "zoomout"]


def matrices_figure(
    data: Matrices,
    theme: Theme = LIGHT,
    width: int = 1000,
    picked: tuple[int, int, int] | None = None,
) -> go.Figure:
    """The figure of heat maps: all panels in a grid, with column names above and row names at the left.

    In Plotly, the cells of heat maps cannot be selected. So each cell has an invisible point, whose
    ``customdata`` are panel, row and column. The cell `picked` (panel, row, column) gets a frame. `width` is
    the approximate width in pixels; it decides which texts fit.
    """
    fitting = int(np.clip((width - 200) // max(220, 44 * min(data.most[1], 12)), 1, 3))
    lines, across = data.grid(fitting)
    room = _Room(data, width, across)
    cell = room.cell_height
    most = data.most[0]
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
    shapes = []  # added at the end, because adding shapes one by one is much slower
    for number, panel in enumerate(data.panels):
        line, column = divmod(number, across)
        top = 1 - (line * (cell * most + room.head) + room.head) / total
        suffix = str(number + 1) if number else ""
        reach = (max(0.0, top - cell * len(panel.rows) / total), top)
        x, y = _matrix_axes(data, panel, room, theme, column)
        y |= {"anchor": f"x{suffix}", "domain": reach}
        figure.update_layout({f"xaxis{suffix}": {**x, "anchor": f"y{suffix}"}, f"yaxis{suffix}": y})
        shapes += _draw_panel(figure, data, number, (room.panel / len(panel.columns), cell), theme)
        _title_panel(figure, panel, suffix, theme, room.names_above)
    if picked and picked[0] < len(data.panels):
        shapes.append(_frame(*picked, theme))
    return figure.update_layout(shapes=shapes)


class _Room:
    def __init__(self, data: Matrices, width: int, across: int) -> None:
        panels = data.panels
        (rows, columns) = data.most
        longest = max(len(name_of(row)) for panel in panels for row in panel.rows)
        left = min(longest, _LONGEST) * _SIGN + (22 if data.row_title else 0) + 16
        lefts = left * (1 if data.same_rows else across)
        self.panel = max(80.0, (width - _BAR - lefts - _BETWEEN * (across - 1)) / across)
        self.cell = self.panel / columns
        self.signs = self.cell / _SIGN
        broken = [_in_two_lines(p.columns, self.signs) for p in panels]
        words = [
            name
            for p, names in zip(panels, broken, strict=True)
            if not names and not data.numbered(p, self.signs)
            for name in p.columns
        ]
        longest = max((len(word) for word in words if isinstance(word, str)), default=0)
        turned = longest > 2 and (longest + 1) * _SIGN > self.cell  # vertical names need more height
        self.names_above = 26 + (18 if data.column_title else 0) + 16 * any(broken)
        if turned:
            self.names_above += 0.57 * min(longest, _LONGEST) * _SIGN
        else:
            self.names_above += 0.0
        self.head = self.names_above + 16 + (20 if any(panel.title for panel in panels) else 0)
        if any(panel.note for panel in panels):
            self.head += 18
        self.cell_height = float(np.clip(400 / rows / (2.4 if len(panels) > 3 else 1), 12, 58))
        # `gap` and `wide` are shares of the width without the row names at the left, for which Plotly
        # reserves space.
        self.gap = (_BETWEEN + (0 if data.same_rows else left)) / max(1, width - left - _BAR)
        self.wide = (1 - self.gap * (across - 1)) / across

    def domain(self, column: int) -> tuple[float, float]:
        left = column * (self.wide + self.gap)
        return left, min(1.0, left + self.wide)  # Plotly rejects values above 1, even by rounding


def _matrix_axes(
    data: Matrices, panel: MatrixPanel, room: _Room, theme: Theme, column: int
) -> tuple[dict, dict]:
    n_rows, n_columns = panel.values.shape
    look = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True}
    look["tickfont"] = {"color": theme.text, "size": 13}
    title = {"font": {"color": theme.muted, "size": 12}}
    broken = _in_two_lines(panel.columns, room.signs)
    by_number = not broken and data.numbered(panel, room.signs)
    names = broken or _cut(panel.columns)
    longest = max(len(name_of(name)) for name in panel.columns)
    every = 1
    turned = False
    if by_number:
        names = [f"<b>{number}</b>" for number in range(1, n_columns + 1)]
    elif not any(isinstance(name, str) for name in panel.columns):
        every = label_step(n_columns, room.panel / (_SIGN * (longest + 1)))
    if not broken and not by_number and every == 1:  # words are all shown, vertically if there is no room
        turned = (longest + 1) * _SIGN > room.cell and longest > 2
    x = {"range": [-0.5, n_columns - 0.5], "side": "top", "domain": room.domain(column), "automargin": False}
    x |= {"tickvals": list(range(0, n_columns, every)), "ticktext": names[::every]}
    x |= {"tickangle": -35 if turned else 0, "title": {"text": plain_text(data.column_title), "standoff": 6}}
    x["title"] |= title
    numbers = [f"  <b>{number}</b>" if by_number else "" for number in range(1, n_rows + 1)]
    rows = [name + number for name, number in zip(_cut(panel.rows), numbers, strict=True)]
    named = column == 0 or not data.same_rows
    every = label_step(n_rows, n_rows * room.cell_height / 15)
    y = {"range": [n_rows - 0.5, -0.5], "tickvals": list(range(0, n_rows, every)), "ticktext": rows[::every]}
    y |= {"showticklabels": named, "automargin": True}
    y["title"] = {**title, "standoff": 16, "text": plain_text(data.row_title) if named else ""}
    return look | x, look | y


def _draw_panel(
    figure: go.Figure, data: Matrices, number: int, cell: tuple[float, float], theme: Theme
) -> list[dict[str, Any]]:
    """Draw the cells of a panel. Returns the shapes that mark or frame some of the cells."""
    panel = data.panels[number]
    suffix = str(number + 1) if number else ""
    (n_rows, n_columns) = panel.values.shape
    on = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
    gap = 2 if min(cell) > 14 else 0
    places = {"x": list(range(n_columns)), "y": list(range(n_rows)), "xgap": gap, "ygap": gap}
    look = {"coloraxis": "coloraxis", "hoverinfo": "skip"}
    figure.add_heatmap(z=data.shares(panel.values), **look, **places, **on)
    refs = {"xref": f"x{suffix}", "yref": f"y{suffix}"}
    shapes = []
    for i, j in panel.marked:
        if np.isnan(panel.values[i, j]):
            ink = theme.muted
        else:
            ink = text_on(data.color(panel.values[i, j], theme))
        corners = {"x0": j - 0.44, "x1": j + 0.44, "y0": i - 0.41, "y1": i + 0.41}
        look = {"opacity": 0.75, "line": {"color": ink, "width": 1.2, "dash": "dot"}}
        shapes.append({"type": "rect", **corners, **refs, **look})
    shapes += [_frame(number, i, j, theme) for i, j in panel.framed]
    cells = list(np.ndindex(n_rows, n_columns))
    figure.add_scatter(
        x=[j for _, j in cells],
        y=[i for i, _ in cells],
        mode="markers+text",
        marker={"size": 1, "opacity": 0},
        **_cell_texts(data, panel, cell, theme),
        unselected={"marker": {"opacity": 0}},
        customdata=[[number, i, j] for i, j in cells],
        hovertext=[_cell_hover(data, panel, i, j) for i, j in cells],
        hovertemplate=_HOVER,
        **on,
    )
    return shapes


def _cell_texts(
    data: Matrices, panel: MatrixPanel, cell: tuple[float, float], theme: Theme
) -> dict[str, Any]:
    """The settings with which a Plotly scatter trace writes the texts of the cells, in colours with enough
    contrast. They are empty if some texts do not fit. Small print is included if it fits, too."""
    (wide, high) = cell
    shown = panel.shown_texts()
    longest, small = (max((len(texts[n]) for texts in shown.values()), default=0) for n in (0, 1))
    size = next((s for s in (15, 13, 12, 11) if longest * 0.58 * s + 4 <= wide), None)
    if not shown or size is None or high < size + 3:
        return {}
    with_small = high >= size + 18 and small * 6.2 + 4 <= wide
    texts = np.full(panel.values.shape, "", dtype=object)
    for place, (text, below) in shown.items():
        texts[place] = plain_text(text)
        if below and with_small:
            texts[place] += f'<br><span style="font-size: 11px">{plain_text(below)}</span>'
    inks = [
        text_on(data.color(value, theme)) if value == value else theme.text for value in panel.values.flat
    ]
    return {"text": texts.ravel(), "textfont": {"size": size, "color": inks}}


def _title_panel(
    figure: go.Figure, panel: MatrixPanel, suffix: str, theme: Theme, names_above: float
) -> None:
    parts = []
    if panel.title:
        parts = [f"<b>{plain_text(panel.title)}</b>"]
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


def _in_two_lines(names: Sequence[Any], room: float) -> list[str]:
    """Break long names into two lines, at the space nearest to the middle. The list is empty if all names fit
    in one line of `room` letters, or if one does not fit in two lines."""
    lines = []
    for name in map(name_of, names):
        spaces = [place for place, letter in enumerate(name) if letter == " "]
        at = 0
        if len(name) > room - 1:
            at = min(spaces, key=lambda place: abs(2 * place - len(name)), default=0)
        lines.append([name[:at], name[at + 1 :]] if at else [name])
    fits = max(len(line) for name in lines for line in name) <= room - 1
    if fits and max(map(len, lines)) > 1:
        return ["<br>".join(map(plain_text, name)) for name in lines]
    return []


def _frame(panel: int, row: int, column: int, theme: Theme) -> dict[str, Any]:
    suffix = str(panel + 1) if panel else ""
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    look = {"line": {"color": theme.category_colors(5)[4], "width": 3}, "fillcolor": "rgba(0,0,0,0)"}
    return {"type": "rect", **corners, "xref": f"x{suffix}", "yref": f"y{suffix}", **look}


def _cut(names: Sequence[Any]) -> list[str]:
    """Cut names at their ends to `_LONGEST` characters. If distinct names would become equal, they are cut in
    the middle or at the beginning instead."""
    whole = [name_of(name) for name in names]
    n = _LONGEST
    for head in (n - 1, n // 2, 0):
        short = [
            name if len(name) <= n else f"{name[:head]}…{name[len(name) - n + head + 1 :]}" for name in whole
        ]
        if len(set(short)) == len(set(whole)):
            break
    return [plain_text(name) for name in short]
