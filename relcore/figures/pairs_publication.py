"""The heat map of pairs for print: Matplotlib, vector cells, chance in small print beneath each number."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from relcore.figures.pair_cells import PairCells, cell_color, text_on
from relcore.figures.paper import blank_figure, cut_to, draw_scale, settings, width_of
from relcore.figures.style import COLUMN, PAPER, Style

_GAP = 0.02  # between cells, in shares of one


def pairs_figure(table: pd.DataFrame, title: str, style: Style = PAPER) -> Figure:
    """Every space with every other (`pair_cells.PairCells.of`): the deeper, the more alike; rows named, columns numbered.

    Beneath each number the mean of its null, where there is room; the bands are in the CSV. Cells without a score are hatched.
    """
    with settings(style):
        cells = PairCells.of(table)
        n, line = len(cells), style.line
        figure = blank_figure(style, 1)
        names = [figure.text(0, 0, name) for name in cells.names]
        left = min(max(map(width_of, names)) + 2.2 * line, 0.42 * style.width)
        right, top, edge = 3.6 * line, 1.5 * line, 0.04
        wide = (style.width - left - right) / n
        high = min(wide, max(0.42 * wide, 2.6 * line))
        total = top + n * high + edge
        figure.set_figheight(total)
        for i, text in enumerate(names):
            middle = (total - top - (i + 0.5) * high) / total
            text.set(position=((left - 1.7 * line) / style.width, middle), ha="right", va="center")
            cut_to(text, left - 1.9 * line)
            number = {"ha": "center", "va": "center", "fontweight": "bold"}
            figure.text((left - 0.9 * line) / style.width, middle, str(i + 1), **number)
            figure.text((left + (i + 0.5) * wide) / style.width, 1 - 0.5 * top / total, str(i + 1), **number)
        axes = figure.add_axes((left / style.width, edge / total, n * wide / style.width, n * high / total))
        axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5))
        axes.axis("off")
        for i in range(n):
            for j in range(n):
                _draw_cell(axes, cells, i, j, style, wide)
        bar = (left + n * wide + 0.5 * line) / style.width
        room, ticks = (bar, edge / total, 0.5 * line / style.width, n * high / total), [0, 0.25, 0.5, 0.75, 1]
        draw_scale(figure, room, ticks, ["0", ".25", ".5", ".75", "1"], title, style)
        return figure


def _draw_cell(axes: Axes, cells: PairCells, i: int, j: int, style: Style, wide: float) -> None:
    theme, score = style.theme, cells.scores[i, j]
    none = bool(np.isnan(score))
    fill = theme.surface if none else theme.grid if i == j else cell_color(score, cells.scale, theme)
    look = {"facecolor": fill, "edgecolor": theme.border if none else fill, "lw": 0.4 if none else 0}
    size = 1 - _GAP
    axes.add_patch(Rectangle((j - size / 2, i - size / 2), size, size, hatch="/////" if none else None, **look))
    if not cells.number(i, j):
        return
    ink = theme.muted if i == j else text_on(fill)
    at = {"ha": "center", "color": ink}
    chance = _chance(axes, cells.chance(i, j), (j, i), style, wide, at)
    number = axes.text(j, i - (0.02 if chance else 0), cells.number(i, j), va="bottom" if chance else "center", **at)
    fitting = style.font_size + (0.5 if style.width > COLUMN else 0)
    number.set_fontsize(fitting)
    if width_of(number) > 0.92 * wide:
        number.set_fontsize(max(3, fitting * 0.92 * wide / width_of(number)))


def _chance(axes: Axes, text: str, place: tuple[int, int], style: Style, wide: float, look: dict) -> bool:
    """Whether there was room for it: with its word, or the number alone."""
    for shorter in (text, text.removeprefix("chance ")) if text else ():
        drawn = axes.text(place[0], place[1] + 0.1, shorter, va="top", fontsize=style.font_size - 2.5, **look)
        if width_of(drawn) <= 0.94 * wide:
            return True
        drawn.remove()
    return False
