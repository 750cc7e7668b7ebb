"""On paper: a map of points with a bar and a histogram below it."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from relcore.base.numbers import short
from relcore.figures.charts import Gauge, Lines, MapWithEvidence
from relcore.figures.paper_charts import draw_lines
from relcore.figures.paper_style import blank_figure, quiet_ticks, settings
from relcore.figures.style import PAPER, Style

# Heights in inches.
_MAP = 3.4
_HEIGHTS: dict[type, float] = {Gauge: 0.5, Lines: 1.0}


def evidence_figure(data: MapWithEvidence, style: Style = PAPER) -> Figure:
    """Draw a map and, below it, the bar and the histogram."""
    panels = [data.points, *data.below]
    heights = [_MAP, *(_HEIGHTS[type(panel)] for panel in data.below)]
    with settings(style):
        figure = blank_figure(style, sum(heights) + 0.45 * len(heights) + 0.3)
        figure.set_layout_engine("constrained")
        places = figure.subplots(len(panels), height_ratios=heights, squeeze=False).flat
        for axes, panel in zip(places, panels, strict=True):
            axes.spines[["top", "right"]].set_visible(False)
            quiet_ticks(axes, style)
            if isinstance(panel, Gauge):
                _draw_gauge(axes, panel, style)
            else:
                _draw_lines_with_legend(axes, panel, style)
        places[0].set(xticks=[], yticks=[])  # a map has no scale
        return figure


def _draw_gauge(axes: Axes, gauge: Gauge, style: Style) -> None:
    theme = style.theme
    axes.axvspan(gauge.limit, 1, color=theme.null, lw=0)
    axes.barh(
        [0.35],
        [gauge.value],
        0.4,
        xerr=[[0], [gauge.high - gauge.value]],
        capsize=2,
        color=theme.accent,
        ecolor=theme.text,
        error_kw={"elinewidth": 0.8},
    )
    axes.text(gauge.high + 0.015, 0.35, short(gauge.value), va="center")
    small: dict[str, Any] = {"va": "top", "color": theme.muted, "fontsize": style.font_size - 1}
    axes.text(0.005, 0.97, gauge.below, **small)
    axes.text((1 + gauge.limit) / 2, 0.97, gauge.above, ha="center", **small)
    axes.set(xlim=(0, gauge.end), ylim=(0, 1), yticks=[], xlabel=gauge.title)
    axes.set_xticks([0, gauge.limit, 1], ["0", short(gauge.limit, 2), "1"])


def _draw_lines_with_legend(axes: Axes, lines: Lines, style: Style) -> None:
    handles = draw_lines(axes, lines, style)
    axes.set(xlabel=lines.x_title, ylabel=lines.y_title)
    axes.legend(handles=handles, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
