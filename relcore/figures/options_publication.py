"""Options beside curves, for print: Matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from relcore.charts.options import Options
from relcore.figures.lines_publication import draw_line
from relcore.figures.paper import blank_figure, height_of, legend_below, quiet_ticks, settings
from relcore.figures.style import PAPER, Style
from relcore.numbers import general, short

_LEFT = 0.36  # share of the plots' width


def options_figure(options: Options, style: Style = PAPER) -> Figure:
    """As on the screen, the legend below."""
    with settings(style):
        theme, line = style.theme, 1.35 * style.font_size / 72
        colors = options.colors(theme.category_colors(12))
        figure = blank_figure(style, 1)
        handles = [Line2D([], [], color=colors[one.name], lw=1, label=one.name) for one in options.curves.lines]
        handles += [Line2D([], [], color=colors[one.name], lw=0.8, ls="--", label=one.name) for one in options.levels]
        below = height_of(legend_below(figure, handles, style)) + 4.6 * line
        total = below + 0.36 * style.width + 0.1
        figure.set_figheight(total)
        left, gap = 3.6 * line / style.width, 0.02
        room = 1 - left - gap - 0.1 / style.width
        bottom, height = below / total, 1 - (below + 0.1) / total
        choices = figure.add_axes((left, bottom, _LEFT * room, height))
        curves = figure.add_axes((left + _LEFT * room + gap, bottom, (1 - _LEFT) * room, height), sharey=choices)
        for place, one in enumerate(options.options):
            look = {"color": colors[one.name], "capsize": 2, "lw": 0.8, "ms": 6 if one.name == options.chosen else 3.5}
            reach = [[one.value - one.low], [one.high - one.value]]
            choices.errorbar([place], [one.value], reach, fmt="*" if one.name == options.chosen else "o", **look)
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
