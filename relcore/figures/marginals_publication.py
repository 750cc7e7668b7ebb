"""A heat map with marginal bars for print: Matplotlib."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from relcore.figures.marginals import Margins
from relcore.figures.matrices_publication import matrices_figure
from relcore.figures.paper import quiet_ticks, settings
from relcore.figures.style import PAPER, Style


def margins_figure(margins: Margins, style: Style = PAPER) -> Figure:
    """As `matrices_figure`, narrower, with bars at the right of its rows and beneath its columns, of the style's width."""
    line = style.line
    right, below = max(0.5, 0.13 * style.width), 4.2 * line
    figure = matrices_figure(margins.matrices, replace(style, width=max(2.0, style.width - right)))
    with settings(style):
        width, height = figure.get_size_inches()
        panel, scale = figure.axes
        places = [np.array(axes.get_position().bounds) * [width, height, width, height] for axes in (panel, scale)]
        total = height + below
        figure.set_size_inches(style.width, total)
        by = [style.width, total, style.width, total]
        left, bottom, wide, high = places[0] + [0, below, 0, 0]
        panel.set_position(np.array([left, bottom, wide, high]) / by)
        scale.set_position((places[1] + [style.width - width, below, 0, 0]) / by)
        gap = 0.3 * line
        beside = figure.add_axes(np.array([left + wide + gap, bottom, right - 2 * gap, high]) / by)
        under = figure.add_axes(np.array([left, 0.7 * line, wide, below - 1.1 * line]) / by)
        r, c = margins.matrices.panels[0].values.shape
        fill = {"color": style.theme.accent, "alpha": 0.75, "lw": 0}
        beside.barh(np.arange(r), np.nan_to_num(margins.rows), height=0.7, **fill)
        under.bar(np.arange(c), np.nan_to_num(margins.columns), width=0.7, **fill)
        beside.set(xlim=(0, 1.02), ylim=(r - 0.5, -0.5), yticks=[], xticks=[0, 1])
        under.set(ylim=(0, 1.02), xlim=(-0.5, c - 0.5), xticks=[], yticks=[0, 1])
        mark = {"color": style.theme.text, "lw": 1}
        if margins.row_marks is not None:
            beside.vlines(margins.row_marks, np.arange(r) - 0.4, np.arange(r) + 0.4, **mark)
        if margins.column_marks is not None:
            under.hlines(margins.column_marks, np.arange(c) - 0.4, np.arange(c) + 0.4, **mark)
        beside.xaxis.tick_top()
        for axes, title in ((beside, margins.row_title), (under, margins.column_title)):
            axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
            quiet_ticks(axes, style, 1.5)
            small = {"fontsize": style.font_size - 1.5, "color": style.theme.muted}
            if axes is beside:
                axes.set_xlabel(title.replace(", ", ",\n"), labelpad=3, **small)
            else:
                axes.set_ylabel(title.replace(", ", ",\n"), labelpad=3, rotation=0, ha="right", va="center", **small)
        return figure
