"""Lines with bands and points with names, for print: Matplotlib."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from relcore.base.numbers import general, short
from relcore.charts.lines import Line, Lines, Options
from relcore.figures.publication import (
    blank_figure,
    chart_of,
    fit_around,
    height_of,
    legend_below,
    quiet_ticks,
    settings,
)
from relcore.figures.style import PAPER, Style

_DASHES = ("--", ":", "-.", (0, (8, 3)))


def lines_figure(lines: Lines, style: Style = PAPER) -> Figure:
    """As on the screen, the legend below, the note above."""
    theme = style.theme
    with settings(style):
        figure, axes = chart_of(style, lines.x_title, lines.y_title)
        handles = []
        for line, color in zip(lines.lines, theme.category_colors(len(lines.lines)), strict=True):
            if not len(line):
                continue
            if lines.kind == "lines":
                handles.append(draw_line(axes, line, color))
                continue
            if line.has_band:
                reach = [line.y - line.low, line.high - line.y]
                axes.errorbar(line.x, line.y, reach, fmt="none", ecolor=color, elinewidth=0.5, alpha=0.5)
            axes.scatter(
                line.x, line.y, s=9, color=color, lw=0, alpha=0.85, rasterized=len(line) > style.raster_above
            )
            handles.append(Line2D([], [], color=color, lw=0, marker="o", ms=3, label=line.name))
        for i, (name, value) in enumerate(lines.baselines):
            dash = {"color": theme.muted, "lw": 0.8, "ls": _DASHES[i % len(_DASHES)]}
            axes.axhline(value, **dash, zorder=1)
            handles.append(Line2D([], [], **dash, label=f"{name}: {general(value)}"))
        for name, value in lines.marks:
            dash = {"color": theme.text, "lw": 0.8, "ls": "--"}
            axes.axvline(value, **dash, zorder=1)
            handles.append(Line2D([], [], **dash, label=f"{name}: {general(value)}"))
        if lines.log_x:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, position: general(value))
            axes.xaxis.set_minor_formatter(lambda value, position: "")
        if lines.x_names:
            slanted = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
            axes.set_xticks(
                range(len(lines.x_names)), lines.x_names, **(slanted if len(lines.x_names) > 4 else {})
            )
        if lines.y_range:
            axes.set_ylim(*lines.y_range)
        if lines.note:
            wrap = (
                "$" not in lines.note
            )  # Matplotlib takes text between dollar signs for mathematics where it wraps lines
            axes.set_title(lines.note, fontsize=style.font_size - 1, color=theme.text, loc="left", wrap=wrap)
        return fit_around(figure, axes, handles, style)


def draw_line(axes: Axes, line: Line, color: str) -> Line2D:
    """A line with its band; what stands for it in the legend."""
    order = np.argsort(line.x, kind="stable")
    if line.has_band:
        axes.fill_between(line.x[order], line.low[order], line.high[order], color=color, alpha=0.16, lw=0)
    axes.plot(line.x[order], line.y[order], color=color, lw=1, marker="o", ms=1.8 if len(line) <= 40 else 0)
    return Line2D([], [], color=color, lw=1, label=line.name)


# Options beside curves, for print: Matplotlib.

_LEFT = 0.36  # share of the plots' width


def options_figure(options: Options, style: Style = PAPER) -> Figure:
    """As on the screen, the legend below."""
    with settings(style):
        theme, line = style.theme, 1.35 * style.font_size / 72
        colors = options.colors(theme.category_colors(12))
        figure = blank_figure(style, 1)
        handles = [
            Line2D([], [], color=colors[one.name], lw=1, label=one.name) for one in options.curves.lines
        ]
        handles += [
            Line2D([], [], color=colors[one.name], lw=0.8, ls="--", label=one.name) for one in options.levels
        ]
        below = height_of(legend_below(figure, handles, style)) + 4.6 * line
        total = below + 0.36 * style.width + 0.1
        figure.set_figheight(total)
        left, gap = 3.6 * line / style.width, 0.02
        room = 1 - left - gap - 0.1 / style.width
        bottom, height = below / total, 1 - (below + 0.1) / total
        choices = figure.add_axes((left, bottom, _LEFT * room, height))
        curves = figure.add_axes(
            (left + _LEFT * room + gap, bottom, (1 - _LEFT) * room, height), sharey=choices
        )
        for place, one in enumerate(options.options):
            look = {
                "color": colors[one.name],
                "capsize": 2,
                "lw": 0.8,
                "ms": 6 if one.name == options.chosen else 3.5,
            }
            reach = [[one.value - one.low], [one.high - one.value]]
            choices.errorbar(
                [place], [one.value], reach, fmt="*" if one.name == options.chosen else "o", **look
            )
            choices.annotate(
                short(one.value),
                (place, one.value),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=style.font_size - 1.5,
            )
        slanted = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
        choices.set_xticks(range(len(options.options)), [one.name for one in options.options], **slanted)
        choices.set_xlim(-0.5, len(options.options) - 0.1)
        for one in options.curves.lines:
            draw_line(curves, one, colors[one.name])
        for one in options.levels:
            curves.axhline(one.value, color=colors[one.name], lw=0.8, ls="--", zorder=1)
        if options.curves.log_x:
            curves.set_xscale("log")
        curves.set_xticks(options.places, [general(place) for place in options.places])
        curves.xaxis.set_minor_locator(NullLocator())
        choices.set_ylabel(options.curves.y_title)
        curves.set_xlabel(options.curves.x_title)
        curves.tick_params(labelleft=False)
        for axes in (choices, curves):
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="y")
            quiet_ticks(axes, style)
        return figure
