"""Distributions as small multiples for print, one panel each on common axes: Matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

import numpy as np
from matplotlib.figure import Figure

from relcore.figures.paper import blank_figure, quiet_ticks, settings
from relcore.figures.style import PAPER, Style
from relcore.figures.tables import histogram_table

_ROW, _EDGE, _TITLE = 0.62, 0.42, 0.17  # inches; the last is the room of an axis title


def panels_figure(values_by_name: Mapping[str, np.ndarray], x_title: str, style: Style = PAPER) -> Figure:
    """As on the screen: two columns where the figure is a text wide, else one."""
    table = histogram_table(values_by_name)
    names = list(dict.fromkeys(table.name))
    columns = 2 if style.width > 5 and len(names) > 1 else 1
    rows = ceil(len(names) / columns)
    with settings(style):
        figure = blank_figure(style, rows * _ROW + _EDGE)
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for place, name, color in zip(axes.flat, names, style.theme.category_colors(len(names)), strict=False):
            part = table[table.name == name]
            edges = [*part.left, part.right.iloc[-1]]
            place.stairs(part.percent, edges, fill=True, color=color, alpha=0.2, lw=0)
            place.stairs(part.percent, edges, color=color, lw=0.8)
            place.set_title(name, fontsize=style.font_size - 1, color=style.theme.text, loc="left", pad=2, parse_math=False)
            place.spines[["top", "right"]].set_visible(False)
            place.margins(x=0)
            place.grid(visible=True)
            quiet_ticks(place, style)
        for place in axes.flat[len(names) :]:
            place.set_visible(False)
            axes[rows - 2, columns - 1].tick_params(labelbottom=True)
        axes[0, 0].set_ylim(0, 1.06 * table.percent.max())
        width, height = style.width, figure.get_figheight()
        figure.supxlabel(x_title, fontsize=style.font_size, y=0.03 / height, va="bottom")
        figure.supylabel("share of rows (%)", fontsize=style.font_size, x=0.03 / width, ha="left")
        figure.tight_layout(pad=0.2, h_pad=0.5, w_pad=0.8, rect=(_TITLE / width, 0, 1, 1))
        return figure
