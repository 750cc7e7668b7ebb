"""Heat maps side by side for print: Matplotlib, vector cells, one colour scale, numbers where there is
room.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from relcore.figures.matrices import Matrices, MatrixPanel, name_of, thinned
from relcore.figures.publication import blank_figure, cut_to, draw_scale, settings, width_of
from relcore.figures.style import COLUMN, PAPER, POINT, Style, text_on


def matrices_figure(data: Matrices, style: Style = PAPER) -> Figure:
    """All panels in a grid; the columns' names above each, the rows' at the left; as high as needed."""
    with settings(style):
        line = style.line
        figure = blank_figure(style, 1)
        lines, across = data.grid(3 if style.width > COLUMN else 2)
        same_rows = len({panel.rows for panel in data.panels}) == 1
        names = [
            figure.text(0, 0, name_of(row))
            for row in dict.fromkeys(row for p in data.panels for row in p.rows)
        ]
        left = min(max(map(width_of, names)) + 1.6 * line, 0.3 * style.width) + (
            1.2 * line if data.row_title else 0
        )
        for name in names:
            name.remove()
        gap, right = 0.9 * line, 4.2 * line
        lefts = left if same_rows else left * across
        wide = (style.width - right - lefts - gap * (across - 1)) / across
        titles = sum(any(getattr(panel, name) for panel in data.panels) for name in ("title", "note"))
        above = line * (titles + 1.7 + (1.1 if data.column_title else 0))
        cells = (
            max(len(panel.columns) for panel in data.panels),
            max(len(panel.rows) for panel in data.panels),
        )
        high = cells[1] * float(np.clip(0.62 * wide / cells[0], min(1.5 * line, 3 / cells[1]), 0.5))
        between = 0.8 * line
        total = lines * (above + high) + (lines - 1) * between + 0.05
        figure.set_figheight(total)
        for number, panel in enumerate(data.panels):
            row, column = divmod(number, across)
            x = left + column * (wide + gap + (0 if same_rows else left))
            y = total - row * (above + high + between) - above
            body = high * len(panel.rows) / cells[1]
            axes = figure.add_axes((x / style.width, (y - body) / total, wide / style.width, body / total))
            _draw_panel(axes, data, panel, style, (wide, body), left if column == 0 or not same_rows else 0)
            letter = "abcdefghijkl"[number] if style.panel_letters and 1 < len(data.panels) <= 12 else ""
            _title(
                figure,
                panel,
                (x, y + above - titles * line - 0.15 * line),
                style,
                (wide, line, total),
                letter,
            )
        bar = (style.width - right + 0.6 * line) / style.width
        reach = min(total - above, max(high, 1.2))
        room = (bar, (total - above - reach + 0.02) / total, 0.5 * line / style.width, reach / total)
        draw_scale(figure, room, *data.ticks(), data.value_title, style)
        return figure


def _title(
    figure: Figure,
    panel: MatrixPanel,
    place: tuple[float, float],
    style: Style,
    sizes: tuple[float, float, float],
    letter: str,
) -> None:
    wide, line, total = sizes
    x, y = place
    y += line if panel.note else 0
    look = {"ha": "left", "va": "bottom"}
    if panel.title:
        told = f"{letter}  {panel.title}" if letter else panel.title
        cut_to(figure.text(x / style.width, y / total, told, fontweight="bold", **look), wide)
    if panel.note:
        note = {"fontsize": style.font_size - 1.5, "color": style.theme.muted}
        cut_to(figure.text(x / style.width, (y - line) / total, panel.note, **note, **look), wide)


def _draw_panel(
    axes: Axes, data: Matrices, panel: MatrixPanel, style: Style, size: tuple[float, float], left: float
) -> None:
    r, c = panel.values.shape
    wide, high = size[0] / c, size[1] / r
    axes.set(xlim=(-0.5, c - 0.5), ylim=(r - 0.5, -0.5))
    axes.axis("off")
    gap = 0.02 if min(wide, high) > 0.08 else 0.0
    for i, j in np.ndindex(r, c):
        value = panel.values[i, j]
        none = bool(np.isnan(value))
        fill = style.theme.surface if none else data.color(value, style.theme)
        look = {
            "facecolor": fill,
            "edgecolor": style.theme.border if none else fill,
            "lw": 0.4 if none else 0,
        }
        corner = (j - 0.5 + gap / 2, i - 0.5 + gap / 2)
        axes.add_patch(Rectangle(corner, 1 - gap, 1 - gap, hatch="/////" if none else None, **look))
        if (i, j) in panel.marked:
            frame = {
                "facecolor": "none",
                "edgecolor": style.theme.muted if none else text_on(fill),
                "lw": 0.5,
                "ls": ":",
            }
            axes.add_patch(Rectangle((j - 0.44, i - 0.42), 0.88, 0.84, **frame))
    for i, j in panel.framed:
        look = {"facecolor": "none", "edgecolor": style.theme.category_colors(5)[4], "lw": 1.5, "zorder": 3}
        axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **look))
    _write(axes, data, panel, style, (wide, high))
    _name_columns(axes, data, panel, style, wide)
    if left:
        _name_rows(axes, data, panel, style, (size[0], high, left), wide)


def _write(axes: Axes, data: Matrices, panel: MatrixPanel, style: Style, cell: tuple[float, float]) -> None:
    """The texts where all of them have room, small print only with the first lines."""
    wide, high = cell
    shown = {
        (i, j): panel.text(i, j).partition("\n")[::2]
        for i, j in np.ndindex(panel.values.shape)
        if panel.text(i, j) and not np.isnan(panel.values[i, j])
    }
    if not shown:
        return
    size = style.font_size
    probe = axes.text(0, 0, max((first for first, _ in shown.values()), key=len), fontsize=size)
    size = min(size, size * 0.9 * wide / max(width_of(probe), 1e-9))
    probe.remove()
    if size < 4 or high < 1.1 * size * POINT:
        return
    small = max((s for _, s in shown.values()), key=len)
    probe = axes.text(0, 0, small, fontsize=size - 2)
    with_small = bool(small) and width_of(probe) <= 0.92 * wide and high >= 2.5 * size * POINT
    probe.remove()
    for (i, j), (first, second) in shown.items():
        look = {"ha": "center", "color": text_on(data.color(panel.values[i, j], style.theme))}
        both = with_small and second
        axes.text(
            j,
            i - 0.02 if both else i,
            first,
            va="bottom" if both else "center_baseline",
            fontsize=size,
            **look,
        )
        if both:
            axes.text(j, i + 0.08, second, va="top", fontsize=size - 2, **look)


def _name_columns(axes: Axes, data: Matrices, panel: MatrixPanel, style: Style, wide: float) -> None:
    names = [name_of(name) for name in panel.columns]
    letter = 0.62 * style.font_size * POINT
    by_number = data.numbered(panel, wide / letter)
    longest = max(map(len, names))
    every = 1 if by_number else thinned(len(names), len(names) * wide / (letter * (longest + 1)))
    for j in range(0, len(names), every):
        text = str(j + 1) if by_number else names[j]
        weight = "bold" if by_number else "normal"
        _above(axes.text(j, -0.5, text, ha="center", va="bottom", fontweight=weight), 2)
    if data.column_title:
        title = {
            "ha": "center",
            "va": "bottom",
            "color": style.theme.muted,
            "fontsize": style.font_size - 0.5,
        }
        _above(axes.text((len(names) - 1) / 2, -0.5, data.column_title, **title), 3.5 + 1.3 * style.font_size)


def _above(text: Text, points: float) -> None:
    """Lift a text by a number of points above its place."""
    from matplotlib.transforms import ScaledTranslation

    lift = ScaledTranslation(0, points * POINT, text.get_figure().dpi_scale_trans)
    text.set_transform(text.get_transform() + lift)


def _name_rows(
    axes: Axes,
    data: Matrices,
    panel: MatrixPanel,
    style: Style,
    room: tuple[float, float, float],
    cell: float,
) -> None:
    wide, high, left = room
    line = style.line
    by_number = data.numbered(panel, cell / (0.62 * style.font_size * POINT))
    for i in range(
        0, len(panel.rows), thinned(len(panel.rows), len(panel.rows) * high / (1.1 * style.font_size * POINT))
    ):
        middle = 1 - (i + 0.5) / len(panel.rows)
        at = {"transform": axes.transAxes, "va": "center"}
        if by_number:
            axes.text(-0.6 * line / wide, middle, str(i + 1), ha="center", fontweight="bold", **at)
        name = axes.text(
            -(1.3 if by_number else 0.35) * line / wide, middle, name_of(panel.rows[i]), ha="right", **at
        )
        cut_to(name, left - (1.4 if by_number else 0.4) * line - (1.2 * line if data.row_title else 0))
    if data.row_title:
        look = {
            "color": style.theme.muted,
            "fontsize": style.font_size - 0.5,
            "rotation": 90,
            "ha": "left",
            "va": "center",
        }
        axes.text(-(left - 0.05) / wide, 0.5, data.row_title, transform=axes.transAxes, **look)
