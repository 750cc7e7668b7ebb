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
from relcore.figures.charts import Diagram, Line, Lines, MovingPoints, mark_in_words
from relcore.figures.matrices import name_of
from relcore.figures.scene import point_size
from relcore.figures.style import DIVERGING, LIGHT, SEQUENTIAL, Theme, rgb

DASHES = ("dash", "dot", "dashdot", "longdash")
_ABOVE_EDGE = {"y": 0.01, "yanchor": "bottom"}  # position of a legend
ON_PAPER = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
_MARGIN = {"l": 64, "r": 16, "t": 16, "b": 96}
_WIDE = 110  # maximum number of letters in a line of a note
_FEW = 40  # lines of at most this many points get markers


def plain_text(text: object) -> str:
    """Escape a text so that Plotly shows it literally. Otherwise, Plotly would interpret HTML, mathematics
    between dollar signs, and ``%{x}``."""
    return escape(visible(text), quote=False).replace("$", "&#36;").replace("{", "&#123;")


# Plotly's texts of ticks, and ours: .5 for 0.5, as in all tables. Plotly writes the sign "−".
_WITHOUT_ZERO = {
    f"{sign}{n / scale:g}": f"{sign}{f'{n / scale:g}'[1:]}"
    for sign in ("", "\u2212")
    for n, scale in [*((n, 100) for n in range(1, 100)), *((n, 1000) for n in range(1, 10))]
}


def relscope_template(theme: Theme = LIGHT) -> go.layout.Template:
    lines = {"gridcolor": theme.grid, "linecolor": theme.border}
    axis = lines | {
        "zerolinecolor": theme.border,
        "tickcolor": theme.border,
        "tickfont": {"color": theme.muted, "size": 12},
        "title": {"font": {"color": theme.muted, "size": 13}, "standoff": 8},
        "automargin": True,
        "labelalias": _WITHOUT_ZERO,
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


def new_figure(theme: Theme, alt: str, height: int | None, **layout: Any) -> go.Figure:
    return go.Figure(
        layout={"template": relscope_template(theme), "meta": {"alt": alt}, "height": height, **layout}
    )


def _translucent(color: str, alpha: float) -> str:
    return f"rgba({','.join(map(str, rgb(color)))},{alpha})"


def lines_figure(lines: Lines, theme: Theme = LIGHT, height: int = 420) -> go.Figure:
    """Draw a chart: lines with bands, or points with error bars."""
    note = [part for line in lines.note.splitlines() for part in wrap(line, _WIDE)]
    figure = new_figure(theme, lines.describe(), height, showlegend=True, legend=_ABOVE_EDGE)
    figure.update_layout(margin=_MARGIN | {"t": 24 + 18 * len(note) if note else 16}, hovermode="closest")
    for line, color in zip(lines.lines, lines.colors(theme), strict=True):
        if len(line) and lines.kind == "points":
            figure.add_traces([_points(line, color, theme)])
        elif len(line):
            figure.add_traces(_line_traces(line, color))
    if lines.filled:
        figure.for_each_trace(lambda t: t.update(fill="tozeroy", fillcolor=_translucent(t.line.color, 0.15)))
    dashes = [DASHES[i % len(DASHES)] for i in range(len(lines.baselines))]
    levels = [
        (figure.add_hline, f"{name}: {general(value)}", value, theme.muted, dash)
        for (name, value), dash in zip(lines.baselines, dashes, strict=True)
    ]
    # A dashed mark could hide in a grid line.
    levels += [(figure.add_vline, mark_in_words(*mark), mark[1], theme.text, "solid") for mark in lines.marks]
    for add, label, value, color, dash in levels:
        add(
            value,
            name=plain_text(label),
            line={"width": 1.5, "dash": dash, "color": color},
            showlegend=True,
            layer="below",
        )
    if note:
        figure.add_annotation(
            text="<br>".join(plain_text(line) for line in note),
            x=0,
            y=1,
            bgcolor=_translucent(theme.surface, 0.85),
            borderpad=4,
            align="left",
            font={"size": 13, "color": theme.text},
            showarrow=False,
            **ON_PAPER,
        )
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
    for (_, number), place in zip(ends, places, strict=True):
        text = plain_text(named[number].name.partition(",")[0])
        figure.add_annotation(
            text=text,
            xref="paper",
            x=1.01,
            y=place,
            xanchor="left",
            showarrow=False,
            font={"size": 13, "color": colors[number]},
        )
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
    marker = {"color": color, "size": 9, "opacity": 0.85, "line": {"color": theme.surface, "width": 1}}
    if len(line) > _FEW:
        marker |= {"size": 2 + point_size(len(line)), "opacity": 0.6}
    if line.hollow:
        marker |= {"symbol": "circle-open", "opacity": 1, "line": {"color": color, "width": 1.5}}
    return go.Scatter(
        x=line.x,
        y=line.y,
        mode="markers",
        name=plain_text(line.name),
        marker=marker,
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


def _hover(name: str, text: str | None) -> str:
    """The name, as a heading if more lines of text follow."""
    if not text:
        return name
    return "<br>".join([f"<b>{name}</b>", *map(plain_text, text.split("\n"))])


_BESIDE = {
    "above": "top center",
    "below": "bottom center",
    "right": "middle right",
    "left": "middle left",
    "above right": "top right",
    "above left": "top left",
    "below right": "bottom right",
    "below left": "bottom left",
}


def diagram_figure(diagram: Diagram, theme: Theme = LIGHT) -> go.Figure:
    names = [plain_text(name) for name in diagram.names]
    (x, y) = diagram.points.T
    figure = new_figure(theme, diagram.describe(), 420, showlegend=False, hovermode="closest")
    figure.update_layout(margin={"l": 24, "r": 24, "t": 16, "b": 16})
    dots = {"color": theme.category_colors(len(names)), "size": 12}
    dots["line"] = {"color": theme.surface, "width": 1}
    sides = diagram.sides
    figure.add_scatter(
        x=x,
        y=y,
        text=[name if side else "" for name, side in zip(cut_names(names), sides, strict=True)],
        hovertext=[_hover(name, hover) for name, hover in zip_longest(names, diagram.hover)],
        hoverinfo="text",
        customdata=list(range(len(names))),
        mode="markers+text",
        textposition=[_BESIDE.get(side, "top center") for side in sides],
        textfont={"color": theme.text},
        cliponaxis=False,
        marker=dots,
    )
    ends = [diagram.points[list(pair)] for pair in diagram.lines]
    line = {"type": "line", "layer": "below", "line": {"color": theme.border, "width": 1.5}}
    figure.update_layout(shapes=[line | {"x0": a[0], "y0": a[1], "x1": b[0], "y1": b[1]} for a, b in ends])
    font = {"color": theme.muted, "size": 13}
    for (x, y), text in diagram.line_texts():
        figure.add_annotation(
            x=x, y=y, text=plain_text(text), showarrow=False, bgcolor=theme.surface, font=font
        )
    middle = (diagram.points.max(0) + diagram.points.min(0)) / 2
    wide = np.ptp(diagram.points, 0)
    half = 0.59 * np.maximum(wide, 0.35 * max(wide.max(), 1e-9))  # room for names beside points
    # If the window changes its size, the ranges stay ("domain").
    figure.update_xaxes(range=[middle[0] - half[0], middle[0] + half[0]])
    figure.update_yaxes(range=[middle[1] - half[1], middle[1] + half[1]], scaleanchor="x")
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, constrain="domain")
    return figure


_MAP_LETTER = (0.023, 0.046)  # width and height of a letter, as shares of a map that is 350 pixels wide
_MOST_NAMED = 64  # limit of steps × longest name; above it, a slider hides its names
_MOVES = {"mode": "immediate", "transition": {"duration": 700, "easing": "cubic-in-out"}}


def moving_figure(moving: MovingPoints, theme: Theme = LIGHT) -> go.Figure:
    """Draw moving points: one map at a time, with a slider over all maps and a button that plays them."""
    titles = [plain_text(title) for title in moving.titles]
    (named, middles) = moving.named(_MAP_LETTER)
    figure = new_figure(theme, moving.describe(), 520, showlegend=False, hovermode="closest")
    dots = {"color": moving.colors(theme), "size": 5, "opacity": 0.8}
    halo = ", ".join([f"0 0 3px {theme.surface}"] * 4)
    frames = [
        [{"x": xy[:, 0], "y": xy[:, 1]} for xy in (places, middle)]
        for places, middle in zip(np.round(moving.places, 4), np.round(middles, 4), strict=True)
    ]
    figure.add_scatter(
        mode="markers",
        marker=dots,
        hovertext=[plain_text(name) for name in moving.names],
        hoverinfo="text",
        **frames[0][0],
    )
    figure.add_scatter(
        mode="text",
        hoverinfo="skip",
        text=[f"<b>{plain_text(name)}</b>" for name in named],
        textfont={"color": theme.text, "size": 14, "shadow": halo},
        **frames[0][1],
    )
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
        _add_player(figure, titles, theme)
    return figure


def play_buttons(plays: dict[str, Any], still: dict[str, Any]) -> list[dict[str, Any]]:
    """Buttons that play and pause the frames of a figure, with these settings of Plotly's animation."""
    return [
        {"label": "▶", "method": "animate", "args": [None, plays]},
        {"label": "❚❚", "method": "animate", "args": [[None], still]},
    ]


def _add_player(figure: go.Figure, titles: list[str], theme: Theme) -> None:
    """Add a slider over the frames of a figure, and buttons that play and pause them."""
    still = _MOVES | {"frame": {"duration": 700, "redraw": False}}
    plays = still | {"frame": {"duration": 1500, "redraw": False}, "fromcurrent": True}
    buttons = play_buttons(plays, still)
    steps = [
        {"label": title, "method": "animate", "args": [[str(number)], still]}
        for number, title in enumerate(cut_names(titles))
    ]
    names = {"size": 11, "color": theme.muted}
    if (len(titles) - 1) * max(map(len, titles)) > _MOST_NAMED:
        # Many or long names would overlap, so they get the colour of the page.
        names = {"size": 1, "color": theme.surface}
    colors = {"bgcolor": theme.surface, "bordercolor": theme.border}
    place = {"x": 1, "y": 0, "xanchor": "right", "yanchor": "top", "pad": {"t": 0}, "direction": "right"}
    figure.update_layout(
        updatemenus=[{"type": "buttons", "buttons": buttons, "showactive": False, **place, **colors}],
        sliders=[
            {
                "steps": steps,
                "pad": {"t": 18, "l": 24, "r": 24},
                "currentvalue": {"font": {"size": 14, "color": theme.text}, "xanchor": "left"},
                "font": names,
                "ticklen": 0,
                **colors,
            }
        ],
    )


LONGEST = 24


def cut_names(names: Sequence[Any]) -> list[str]:
    """Cut names at their ends to `LONGEST` characters. If distinct names would become equal, they are cut in
    the middle or at the beginning instead."""
    whole = [name_of(name) for name in names]
    n = LONGEST
    for head in (n - 1, n // 2, 0):
        tail = n - 1 - head
        short = []
        for name in whole:
            if len(name) > n:
                name = f"{name[:head]}…{name[len(name) - tail :]}"
            short.append(name)
        if len(set(short)) == len(set(whole)):
            break
    return [plain_text(name) for name in short]
