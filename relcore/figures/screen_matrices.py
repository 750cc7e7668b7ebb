"""Matrices of scores on screen, drawn by Plotly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from relcore.figures.matrices import Matrices, MatrixPanel, label_step, name_of
from relcore.figures.screen import LONGEST, ON_PAPER, cut_names, new_figure, plain_text
from relcore.figures.style import LIGHT, Theme, ramp_of, text_on

_HOVER = "%{hovertext}<extra></extra>"
_SIGN = 7.2  # pixels: width of a letter of size 13
# pixels: width of the scale at the right; distance between panels
_BAR = 84
_BETWEEN = 26
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
    figure = new_figure(
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


def _width_of_row_names(data: Matrices) -> float:
    longest = max(len(name_of(row)) for panel in data.panels for row in panel.rows)
    width = min(longest, LONGEST) * _SIGN
    if data.row_title:
        width += 22
    return width + 16


def _height_of_column_names(data: Matrices, cell: float) -> float:
    """The height of the column names and their title above cells of this width. Names that fit neither on one
    line nor on two are vertical."""
    letters = cell / _SIGN
    broken = [_in_two_lines(panel.columns, letters) for panel in data.panels]
    names = [
        name
        for panel, lines in zip(data.panels, broken, strict=True)
        if not lines and not data.numbered(panel, letters)
        for name in panel.columns
    ]
    longest = max((len(name) for name in names if isinstance(name, str)), default=0)
    height = 26.0
    if data.column_title:
        height += 18
    if any(broken):
        height += 16
    if longest > 2 and (longest + 1) * _SIGN > cell:
        height += 0.57 * min(longest, LONGEST) * _SIGN
    return height


class _Room:
    """The sizes of the panels, in pixels, and the places of their columns, as shares of the width."""

    def __init__(self, data: Matrices, width: int, across: int) -> None:
        panels = data.panels
        rows, columns = data.most
        left = _width_of_row_names(data)
        lefts = left
        gap = _BETWEEN
        if not data.same_rows:
            lefts = left * across
            gap = _BETWEEN + left
        self.panel = max(80.0, (width - _BAR - lefts - _BETWEEN * (across - 1)) / across)
        self.cell = self.panel / columns
        self.signs = self.cell / _SIGN
        self.names_above = _height_of_column_names(data, self.cell)
        self.head = self.names_above + 16
        if any(panel.title for panel in panels):
            self.head += 20
        if any(panel.note for panel in panels):
            self.head += 18
        cell_height = 400 / rows
        if len(panels) > 3:
            cell_height /= 2.4
        self.cell_height = float(np.clip(cell_height, 12, 58))
        # `gap` and `wide` are shares of the width without the row names at the left, for which Plotly
        # reserves space.
        self.gap = gap / max(1, width - left - _BAR)
        self.wide = (1 - self.gap * (across - 1)) / across

    def domain(self, column: int) -> tuple[float, float]:
        left = column * (self.wide + self.gap)
        return left, min(1.0, left + self.wide)  # Plotly rejects values above 1, even by rounding


def _matrix_axes(
    data: Matrices, panel: MatrixPanel, room: _Room, theme: Theme, column: int
) -> tuple[dict, dict]:
    """The settings of the x axis and of the y axis of a heat map in the given column of the figure."""
    axis_style = {
        "showgrid": False,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "fixedrange": True,
        "tickfont": {"color": theme.text, "size": 13},
    }
    title_style = {"font": {"color": theme.muted, "size": 12}}
    n_rows, n_columns = panel.values.shape
    names, every, turned = _column_names(data, panel, room)
    x = {
        "range": [-0.5, n_columns - 0.5],
        "side": "top",
        "domain": room.domain(column),
        "automargin": False,
        "tickvals": list(range(0, n_columns, every)),
        "ticktext": names[::every],
        "tickangle": -35 if turned else 0,
        "title": {"text": plain_text(data.column_title), "standoff": 6, **title_style},
    }
    rows = cut_names(panel.rows)
    if data.numbered(panel, room.signs) and not _in_two_lines(panel.columns, room.signs):
        rows = [f"{name}  <b>{number}</b>" for number, name in enumerate(rows, 1)]
    every = label_step(n_rows, n_rows * room.cell_height / 15)
    is_named = column == 0 or not data.same_rows
    row_title = plain_text(data.row_title) if is_named else ""
    y = {
        "range": [n_rows - 0.5, -0.5],
        "tickvals": list(range(0, n_rows, every)),
        "ticktext": rows[::every],
        "showticklabels": is_named,
        "automargin": True,
        "title": {**title_style, "standoff": 16, "text": row_title},
    }
    return axis_style | x, axis_style | y


def _column_names(data: Matrices, panel: MatrixPanel, room: _Room) -> tuple[list[str], int, bool]:
    """The names of the columns as they are shown, the step between shown names, and whether they are turned.
    Of columns that are numbers, only every few may be named."""
    names = _in_two_lines(panel.columns, room.signs)
    if names:
        return names, 1, False
    if data.numbered(panel, room.signs):
        return [f"<b>{number}</b>" for number in range(1, len(panel.columns) + 1)], 1, False
    longest = max(len(name_of(name)) for name in panel.columns)
    every = 1
    if not any(isinstance(name, str) for name in panel.columns):
        every = label_step(len(panel.columns), room.panel / (_SIGN * (longest + 1)))
    turned = every == 1 and longest > 2 and (longest + 1) * _SIGN > room.cell
    return cut_names(panel.columns), every, turned


def _draw_panel(
    figure: go.Figure, data: Matrices, number: int, cell: tuple[float, float], theme: Theme
) -> list[dict[str, Any]]:
    """Draw the cells of a panel. Returns the shapes that mark or frame some of the cells."""
    panel = data.panels[number]
    suffix = str(number + 1) if number else ""
    (n_rows, n_columns) = panel.values.shape
    on = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
    gap = 2 if min(cell) > 14 else 0
    figure.add_heatmap(
        z=data.shares(panel.values),
        coloraxis="coloraxis",
        hoverinfo="skip",
        x=list(range(n_columns)),
        y=list(range(n_rows)),
        xgap=gap,
        ygap=gap,
        **on,
    )
    refs = {"xref": f"x{suffix}", "yref": f"y{suffix}"}
    shapes = []
    for i, j in panel.marked:
        if np.isnan(panel.values[i, j]):
            ink = theme.muted
        else:
            ink = text_on(data.color(panel.values[i, j], theme))
        corners = {"x0": j - 0.44, "x1": j + 0.44, "y0": i - 0.41, "y1": i + 0.41}
        line = {"color": ink, "width": 1.2, "dash": "dot"}
        shapes.append({"type": "rect", **corners, **refs, "opacity": 0.75, "line": line})
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
    cell_texts = panel.shown_texts()
    longest = max((len(texts[0]) for texts in cell_texts.values()), default=0)
    small = max((len(texts[1]) for texts in cell_texts.values()), default=0)
    size = next((s for s in (15, 13, 12, 11) if longest * 0.58 * s + 4 <= wide), None)
    if not cell_texts or size is None or high < size + 3:
        return {}
    with_small = high >= size + 18 and small * 6.2 + 4 <= wide
    texts = np.full(panel.values.shape, "", dtype=object)
    for place, (text, below) in cell_texts.items():
        texts[place] = plain_text(text)
        if below and with_small:
            texts[place] += f'<br><span style="font-size: 11px">{plain_text(below)}</span>'
    inks = []
    for value in panel.values.flat:
        if np.isnan(value):
            inks.append(theme.text)
        else:
            inks.append(text_on(data.color(value, theme)))
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
        at = ON_PAPER | {"xref": f"x{suffix} domain", "yref": f"y{suffix} domain", "x": 0, "y": 1}
        figure.add_annotation(
            **at,
            yshift=names_above,
            text="<br>".join(parts),
            showarrow=False,
            align="left",
            font={"size": 14},
        )


def _cell_hover(data: Matrices, panel: MatrixPanel, i: int, j: int) -> str:
    row = plain_text(name_of(panel.rows[i]))
    column = plain_text(name_of(panel.columns[j]))
    where = f"<b>{row}</b> and <b>{column}</b>"
    if data.row_title or data.column_title:
        named = ((plain_text(data.row_title), row), (plain_text(data.column_title), column))
        where = ", ".join(f"{title} {name}".strip() for title, name in named)
    lines = [where, *(plain_text(line) for line in panel.explain(i, j).split("\n"))]
    if panel.title:
        lines.insert(0, f"<b>{plain_text(panel.title)}</b>")
    return "<br>".join(lines)


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
    return {
        "type": "rect",
        **corners,
        "xref": f"x{suffix}",
        "yref": f"y{suffix}",
        "line": {"color": theme.category_colors(5)[4], "width": 3},
        "fillcolor": "rgba(0,0,0,0)",
    }
