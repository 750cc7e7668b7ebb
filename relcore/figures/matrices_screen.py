"""Heat maps side by side for the screen: Plotly, one colour scale, numbers where there is room, every cell
to be picked.
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from relcore.figures.interactive import plain_text, relscope_template
from relcore.figures.matrices import Matrices, MatrixPanel, name_of, thinned
from relcore.figures.style import LIGHT, Theme, ramp_of, text_on

_SIGN = 7.2  # pixels that a letter of size 13 takes
_HATCHES = 9  # lines through a cell without a value
_BAR, _BETWEEN = 84, 26  # pixels: the scale at the right, and between panels
_LONGEST = 24


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
    lines, across = data.grid(_fitting(data, width))
    room = _Room(data, width, across)
    cell = (
        room.cell_height
        if height is None
        else max(8, (height - lines * room.head) / (lines * room.most_rows))
    )
    body = cell * room.most_rows
    total = lines * (body + room.head)
    figure = go.Figure()
    for number, panel in enumerate(data.panels):
        line, column = divmod(number, across)
        top = 1 - (line * (body + room.head) + room.head) / total
        axes = _axes(
            figure,
            data,
            panel,
            number,
            room,
            theme,
            column,
            (max(0.0, top - cell * len(panel.rows) / total), top),
        )
        _draw(figure, data, panel, number, axes, room, cell, theme)
        _title(figure, panel, axes, theme, room.names_above)
    if picked and picked[0] < len(data.panels):
        _frame(figure, *picked, theme)
    places, ticks = data.ticks()
    place = {"len": min(300, total - room.head) / total, "y": 1 - room.head / total, "yanchor": "top"}
    bar = {"thickness": 10, "outlinewidth": 0, **place, "ypad": 0, "tickcolor": theme.border}
    bar |= {"tickvals": places, "ticktext": ticks, "tickfont": {"color": theme.muted}}
    bar["title"] = {
        "text": plain_text(data.value_title),
        "side": "right",
        "font": {"color": theme.muted, "size": 13},
    }
    ramp = [[i / 4, color] for i, color in enumerate(ramp_of(theme))]
    figure.update_layout(
        template=relscope_template(theme),
        coloraxis={"cmin": 0, "cmax": 1, "colorscale": ramp, "colorbar": bar},
        height=round(total) + 8,
        margin={"l": 8, "r": 8, "t": 0, "b": 8},
        meta={"alt": data.alt},
        showlegend=False,
        hovermode="closest",
        hoverdistance=-1,
        hoverlabel={"align": "left"},
        modebar={
            "remove": ["select2d", "lasso2d", "zoom", "pan", "autoscale", "resetscale", "zoomin", "zoomout"]
        },
        clickmode="event+select",
        dragmode=False,
    )
    return figure


class _Room:
    """How many pixels there are, about, for what."""

    def __init__(self, data: Matrices, width: int, across: int) -> None:
        panels = data.panels
        longest = max(len(name_of(row)) for panel in panels for row in panel.rows)
        self.same_rows = len({panel.rows for panel in panels}) == 1
        self.left = min(longest, _LONGEST) * _SIGN + (22 if data.row_title else 0) + 16
        lefts = self.left * (1 if self.same_rows else across)
        self.panel = max(80.0, (width - _BAR - lefts - _BETWEEN * (across - 1)) / across)
        self.most_rows, self.most_columns = (
            max(len(getattr(p, n)) for p in panels) for n in ("rows", "columns")
        )
        self.cell = self.panel / self.most_columns
        self.signs = 1.0 * self.cell / _SIGN
        self.names_above = 26 + (18 if data.column_title else 0) + self._turned(data)
        self.head = self.names_above + 16 + (20 if any(panel.title for panel in panels) else 0)
        self.head += 18 if any(panel.note for panel in panels) else 0
        self.cell_height = float(np.clip(400 / self.most_rows / (1.6 if len(panels) > 3 else 1), 12, 58))
        self.width, self.across = width, across

    def _turned(self, data: Matrices) -> float:
        """How much higher than a line the columns' names stand where they are words that have to be
        turned.
        """
        words = [
            c
            for p in data.panels
            if not data.numbered(p, self.signs)
            for c in p.columns
            if isinstance(c, str)
        ]
        longest = max(map(len, words), default=0)
        return (
            0.57 * min(longest, _LONGEST) * _SIGN
            if longest > 2 and (longest + 1) * _SIGN > self.cell
            else 0.0
        )

    def domain(self, column: int) -> tuple[float, float]:
        """Of a panel, in shares of the width without the names at the left of the first, which Plotly
        makes room for.
        """
        if self.same_rows:
            gap = _BETWEEN / max(1, self.width - self.left - _BAR)
            wide = (1 - gap * (self.across - 1)) / self.across
        else:
            gap = (self.left + _BETWEEN) / max(1, self.width - self.left - _BAR)
            wide = (1 - gap * (self.across - 1)) / self.across
        return column * (wide + gap), min(
            1.0, column * (wide + gap) + wide
        )  # Plotly refuses what rounding puts above 1


def _fitting(data: Matrices, width: int) -> int:
    """Panels side by side: as many as leave each cell the room of a number, three at most."""
    widest = max(len(panel.columns) for panel in data.panels)
    return int(np.clip((width - 200) // max(220, 44 * min(widest, 12)), 1, 3))


def _axes(
    figure: go.Figure,
    data: Matrices,
    panel: MatrixPanel,
    number: int,
    room: _Room,
    theme: Theme,
    column: int,
    high: tuple[float, float],
) -> tuple[str, str]:
    """The panel's axes: their names for traces, "x2" and "y2" of the second."""
    suffix = str(number + 1) if number else ""
    r, c = len(panel.rows), len(panel.columns)
    look = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True}
    label, title = (
        {"color": theme.text, "size": 13},
        {
            "font": {"color": theme.muted, "size": 12},
            "standoff": 6,
        },
    )
    by_number = data.numbered(panel, room.signs)
    names = (
        [f"<b>{j + 1}</b>" for j in range(c)]
        if by_number
        else [_cut(name_of(name)) for name in panel.columns]
    )
    longest = max(len(name_of(name)) for name in panel.columns)
    every = 1 if by_number else thinned(c, room.panel / (_SIGN * (longest + 1)))
    if not by_number and every > 1 and any(isinstance(name, str) for name in panel.columns):
        every = 1  # words are turned instead, as none of them can be guessed from its neighbours
    turned = not by_number and every == 1 and (longest + 1) * _SIGN > room.cell and longest > 2
    x = {
        "range": [-0.5, c - 0.5],
        "side": "top",
        "tickvals": list(range(0, c, every)),
        "ticktext": names[::every],
    }
    x |= {
        "tickfont": label,
        "domain": room.domain(column),
        "anchor": f"y{suffix}",
        "tickangle": -35 if turned else 0,
    }
    x |= {"title": {**title, "text": plain_text(data.column_title)}, "automargin": False}
    rows = [
        _cut(name_of(name)) + (f"  <b>{i + 1}</b>" if by_number else "") for i, name in enumerate(panel.rows)
    ]
    named = column == 0 or not room.same_rows
    every = thinned(r, r * room.cell_height / 15)
    y = {
        "range": [r - 0.5, -0.5],
        "tickvals": list(range(0, r, every)),
        "ticktext": rows[::every],
        "tickfont": label,
    }
    y |= {"domain": high, "anchor": f"x{suffix}", "showticklabels": named, "automargin": True}
    y |= {"title": {**title, "standoff": 16, "text": plain_text(data.row_title) if named else ""}}
    figure.update_layout({f"xaxis{suffix}": look | x, f"yaxis{suffix}": look | y})
    return f"x{suffix}", f"y{suffix}"


def _draw(
    figure: go.Figure,
    data: Matrices,
    panel: MatrixPanel,
    number: int,
    axes: tuple[str, str],
    room: _Room,
    cell: float,
    theme: Theme,
) -> None:
    r, c = panel.values.shape
    on = {"xaxis": axes[0], "yaxis": axes[1]}
    gap = 2 if min(room.panel / c, cell) > 14 else 0
    places = {"x": list(range(c)), "y": list(range(r)), "xgap": gap, "ygap": gap, "hoverinfo": "skip"}
    figure.add_heatmap(z=data.shares(panel.values), coloraxis="coloraxis", **places, **on)
    if panel.missing:
        _hatch(figure, panel.missing, on, theme)
    for i, j in panel.marked:
        ink = theme.muted if np.isnan(panel.values[i, j]) else text_on(data.color(panel.values[i, j], theme))
        corners = {"x0": j - 0.44, "x1": j + 0.44, "y0": i - 0.41, "y1": i + 0.41}
        refs = {"xref": axes[0], "yref": axes[1]}
        figure.add_shape(
            type="rect", **corners, **refs, opacity=0.75, line={"color": ink, "width": 1.2, "dash": "dot"}
        )
    for i, j in panel.framed:
        _frame(figure, number, i, j, theme)
    _write(figure, data, panel, axes, (room.panel / c, cell), theme)
    every = list(np.ndindex(r, c))
    figure.add_scatter(
        x=[j for _, j in every],
        y=[i for i, _ in every],
        mode="markers",
        marker={"size": 1, "opacity": 0},
        unselected={"marker": {"opacity": 0}},
        customdata=[[number, i, j] for i, j in every],
        hovertext=[_hover(data, panel, i, j) for i, j in every],
        hovertemplate="%{hovertext}<extra></extra>",
        **on,
    )


def _write(
    figure: go.Figure,
    data: Matrices,
    panel: MatrixPanel,
    axes: tuple[str, str],
    cell: tuple[float, float],
    theme: Theme,
) -> None:
    """The texts of a panel where all of them have room, as one trace an ink, the small print only with the
    first lines.
    """
    wide, high = cell
    shown = {}
    for i, j in np.ndindex(panel.values.shape):
        first, _, small = panel.text(i, j).partition("\n")
        if first and not np.isnan(panel.values[i, j]):
            shown[i, j] = first, small
    if not shown:
        return
    size = next(
        (s for s in (15, 13, 12, 11) if max(len(t) for t, _ in shown.values()) * 0.58 * s + 4 <= wide), None
    )
    if size is None or high < size + 3:
        return
    with_small = high >= size + 18 and max(len(small) for _, small in shown.values()) * 6.2 + 4 <= wide
    notes = []  # set at once: Plotly checks all that is there with each one that is added
    for (i, j), (first, small) in shown.items():
        ink = text_on(data.color(panel.values[i, j], theme))
        below = (
            f'<br><span style="font-size: 11px">{plain_text(small)}</span>' if small and with_small else ""
        )
        font = {"color": ink, "size": size}
        where = {"x": j, "y": i, "xref": axes[0], "yref": axes[1]}
        notes.append({**where, "text": plain_text(first) + below, "showarrow": False, "font": font})
    figure.layout.annotations = (*figure.layout.annotations, *notes)


def _title(
    figure: go.Figure, panel: MatrixPanel, axes: tuple[str, str], theme: Theme, names_above: int
) -> None:
    note = (
        f'<span style="color: {theme.muted}; font-size: 12px">{plain_text(panel.note)}</span>'
        if panel.note
        else ""
    )
    parts = [f"<b>{plain_text(panel.title)}</b>" if panel.title else "", note]
    if text := "<br>".join(filter(None, parts)):
        at = {
            "xref": f"{axes[0]} domain",
            "yref": f"{axes[1]} domain",
            "x": 0,
            "y": 1,
            "xanchor": "left",
            "yanchor": "bottom",
        }
        figure.add_annotation(
            **at, yshift=names_above, text=text, showarrow=False, align="left", font={"size": 14}
        )


def _hover(data: Matrices, panel: MatrixPanel, i: int, j: int) -> str:
    row, column = (plain_text(name_of(name)) for name in (panel.rows[i], panel.columns[j]))
    titles = plain_text(data.row_title), plain_text(data.column_title)
    where = [f"{title} {name}".strip() for title, name in zip(titles, (row, column), strict=True)]
    told = [plain_text(line) for line in panel.explain(i, j).split("\n")]
    joined = ", ".join(where) if any(titles) else f"<b>{row}</b> and <b>{column}</b>"
    return "<br>".join([f"<b>{plain_text(panel.title)}</b>"] * bool(panel.title) + [joined, *told])


def _hatch(figure: go.Figure, cells: list[tuple[int, int]], on: dict, theme: Theme) -> None:
    x, y = [], []
    for i, j in cells:
        for total in np.linspace(-1, 1, _HATCHES + 2)[
            1:-1
        ]:  # the line x + y = total within a cell from −½ to ½
            low, high = max(-0.48, total - 0.48), min(0.48, total + 0.48)
            x += [j + low, j + high, None]
            y += [i + total - low, i + total - high, None]
    figure.add_scatter(
        x=x, y=y, mode="lines", line={"color": theme.border, "width": 1}, hoverinfo="skip", **on
    )


def _frame(figure: go.Figure, panel: int, row: int, column: int, theme: Theme) -> None:
    suffix = str(panel + 1) if panel else ""
    refs = {"xref": f"x{suffix}", "yref": f"y{suffix}"}
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    figure.add_shape(
        type="rect",
        **corners,
        **refs,
        line={"color": theme.category_colors(5)[4], "width": 3},
        fillcolor="rgba(0,0,0,0)",
    )


def _cut(name: str) -> str:
    return plain_text(name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…")
