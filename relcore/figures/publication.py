"""Publication figures: Matplotlib, at the column widths of a paper, with vector axes and fonts that travel inside the file.

The same functions as in `interactive`, in a `Style` instead of a theme, without pyplot. Captions and titles are left to the
paper; see `paper` for fonts and settings.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from mpl_toolkits.mplot3d import Axes3D

from relcore.charts.scene import Pane, Scene
from relcore.figures.marks import anchor_numbers, grid_shape, groups, point_size, row_colors, star_opacity, star_size
from relcore.figures.paper import blank_figure, cut_to, height_of, legend_below, quiet_ticks, settings
from relcore.figures.style import COLUMN, PAPER, POINT, Style
from relcore.figures.tables import (
    condition,
    histogram_table,
    score_places,
    score_range,
    score_table,
    spectrum_table,
)
from relcore.numbers import in_cell


def panes_figure(scene: Scene, style: Style = PAPER) -> Figure:
    """The scene's panes in a 1 × 1, 1 × 2 or 2 × 2 grid, the legend below; as wide as the style says, as high as needed."""
    with settings(style):
        rows, columns = grid_shape(len(scene.panes))
        line = style.line
        above = line * (2.1 if any(pane.note for pane in scene.panes) else 1.2)
        edge, gap = 0.02, 0.04 * style.width / columns
        wide = (style.width - 2 * edge - gap * (columns - 1)) / columns
        high = wide * (0.62 if columns == 1 and style.width > COLUMN else 0.8)
        figure = blank_figure(style, 1)
        legend = legend_below(figure, _pane_handles(scene, style), style)
        below = height_of(legend) + line if legend else edge
        total = rows * (above + high) + 0.6 * line * (rows - 1) + below
        figure.set_figheight(total)
        for i, pane in enumerate(scene.panes):
            row, column = divmod(i, columns)
            left, bottom = edge + column * (wide + gap), total - (row + 1) * (above + high) - 0.6 * line * row
            room = (left / style.width, bottom / total, wide / style.width, high / total)
            solid = pane.coordinates.shape[1] == 3
            axes = figure.add_axes(room, projection="3d" if solid else None)
            (_draw_cloud if solid else _draw_plane)(axes, pane, scene, style, wide)
            _label(
                figure,
                pane,
                "abcd"[i] if style.panel_letters and len(scene.panes) > 1 else "",
                (left, bottom + high, wide),
                style,
            )
        return figure


def score_bars_figure(table: pd.DataFrame, style: Style = PAPER) -> Figure:
    """Bars of scores, a group per metric, a colour per form; behind each, in grey, its chance level (`tables.score_table`)."""
    with settings(style):
        table, room = score_places(score_table(table))
        forms, metrics, theme = list(dict.fromkeys(table.form)), list(dict.fromkeys(table.metric)), style.theme
        figure, axes = chart_of(style, "", "score (1 = identical)")
        null = table.dropna(subset=["null_low", "null_high"])
        axes.bar(null.x, null.null_high - null.null_low, room, bottom=null.null_low, color=theme.null, ec=theme.muted, lw=0.4)
        handles = []
        for form, color in zip(forms, theme.category_colors(len(forms)), strict=True):
            part = table[table.form == form]
            axes.bar(part.x, part.score, room * 0.72, color=color, lw=0)
            if {"low", "high"} <= set(table.columns):
                axes.errorbar(
                    part.x,
                    part.score,
                    [part.score - part.low, part.high - part.score],
                    fmt="none",
                    ecolor=theme.text,
                    elinewidth=0.7,
                )
            tops = part[[c for c in ("score", "null_high", "high") if c in part]].max(axis=1)
            for x, top, score in zip(part.x, tops, part.score, strict=True):
                _small(axes, in_cell(score), x, top, style)
            handles.append(Patch(color=color, lw=0, label=str(form)))
        if len(null):
            handles.append(Patch(facecolor=theme.null, edgecolor=theme.muted, lw=0.4, label="chance level, 95 % band"))
        letters = style.width / len(metrics) / (0.6 * style.font_size * POINT)  # as many have room under one metric
        names = [str(metric) for metric in metrics]
        axes.set_xticks(range(len(names)), [name if len(name) < letters else name.replace(", ", "\n") for name in names])
        axes.margins(x=0.02)
        axes.set_ylim(*score_range(table))
        axes.tick_params(axis="x", length=0)
        axes.grid(visible=False, axis="x")
        axes.axhline(0, color=theme.border, lw=0.6)
        axes.spines["bottom"].set_visible(False)
        return fit_around(figure, axes, handles, style)


def histogram_figure(
    values_by_name: Mapping[str, np.ndarray],
    x_title: str,
    style: Style = PAPER,
    bins: int | None = None,
) -> Figure:
    """Distributions as filled outlines in common bins; `x_title` with its unit (`tables.histogram_table`)."""
    with settings(style):
        table = histogram_table(values_by_name, bins)
        names = list(dict.fromkeys(table.name))
        figure, axes = chart_of(style, x_title, "share of rows (%)")
        handles = []
        for name, color in zip(names, style.theme.category_colors(len(names)), strict=True):
            part = table[table.name == name]
            edges = [*part.left, part.right.iloc[-1]]
            axes.stairs(part.percent, edges, fill=True, color=color, alpha=0.15, lw=0)
            axes.stairs(part.percent, edges, color=color, lw=1)
            handles.append(Line2D([], [], color=color, lw=1, label=name))
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
        return fit_around(figure, axes, handles, style)


def spectrum_figure(singular_values_by_name: Mapping[str, np.ndarray], style: Style = PAPER) -> Figure:
    """Singular values as shares of the largest, logarithmic; the legend says the condition (`tables.spectrum_table`)."""
    with settings(style):
        table = spectrum_table(singular_values_by_name)
        names = list(dict.fromkeys(table.name))
        figure, axes = chart_of(style, "component (rank)", "singular value / largest")
        handles = []
        for name, color in zip(names, style.theme.category_colors(len(names)), strict=True):
            part = table[table.name == name]
            shown = part[part.relative > 0]
            axes.plot(shown.component, shown.relative, color=color, lw=1, marker="o", ms=1.6)
            handles.append(Line2D([], [], color=color, lw=1, marker="o", ms=2, label=f"{name} · {condition(part)}"))
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(_power_of_ten)
        axes.yaxis.set_minor_formatter(lambda value, position: "")
        return fit_around(figure, axes, handles, style)


def _draw_plane(axes: Axes, pane: Pane, scene: Scene, style: Style, wide: float) -> None:
    _draw_marks(axes, pane, scene, style, wide)
    away = 0.5 * _star_diameter(scene, wide)
    for number, place in zip(anchor_numbers(scene), pane.coordinates[scene.anchors], strict=True):
        axes.annotate(number, place, xytext=(away, away), textcoords="offset points", **_number_look(style, wide))
    axes.set(xticks=[], yticks=[])
    axes.margins(0.06)
    axes.set_aspect("equal", adjustable="datalim")


def _draw_cloud(axes: Axes3D, pane: Pane, scene: Scene, style: Style, wide: float) -> None:
    axes.computed_zorder = False  # else a star inside a cloud would be painted over
    _draw_marks(axes, pane, scene, style, wide, depthshade=False)
    for number, place in zip(anchor_numbers(scene), pane.coordinates[scene.anchors], strict=True):
        axes.text(*place, f"  {number}", **_number_look(style, wide))
    axes.set(xticks=[], yticks=[], zticks=[])
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color(style.theme.surface)
        axis.line.set_color(style.theme.border)
    axes.set_proj_type("ortho")
    axes.set_box_aspect(np.maximum(np.ptp(pane.coordinates, axis=0), 1e-9), zoom=1.1)


def _draw_marks(axes: Axes, pane: Pane, scene: Scene, style: Style, wide: float, **options: bool) -> None:
    """Points, then the anchors' stars with a halo, as on a screen, in two or three dimensions."""
    theme, colors, order = style.theme, row_colors(scene, style.theme), _painting_order(scene)
    diameter = point_size(len(scene)) * min(wide, 4) / 7  # in proportion as on a screen's pane, a little larger
    look = {"s": diameter**2, "c": colors[order].tolist(), "alpha": 0.8, "lw": 0, "zorder": 2, **options}
    axes.scatter(*pane.coordinates[order].T, rasterized=len(scene) > style.raster_above, **look)
    if not len(scene.anchors) or not scene.stars.shown:
        return
    at, diameter = pane.coordinates[scene.anchors].T, _star_diameter(scene, wide)
    star = {"s": diameter**2, "marker": "*", "alpha": star_opacity(len(scene.anchors)) * scene.stars.opacity, **options}
    axes.scatter(*at, color=theme.surface, edgecolor=theme.surface, lw=diameter / 2.5, zorder=3, **star)
    axes.scatter(*at, c=colors[scene.anchors].tolist(), edgecolor=theme.text, lw=diameter / 13, zorder=4, **star)


def _painting_order(scene: Scene) -> np.ndarray:
    """Rows of no category first, the rest shuffled, always alike: else the last category would hide the others."""
    shuffled = np.random.default_rng(0).permutation(len(scene))
    return shuffled[np.argsort(np.asarray(scene.categories)[shuffled] >= 0, kind="stable")]


def _star_diameter(scene: Scene, wide: float) -> float:
    """Of an anchor's star, in points."""
    return star_size(len(scene.anchors)) * scene.stars.size * 0.55 * np.clip(wide / 3, 0.6, 1)


def _number_look(style: Style, wide: float) -> dict:
    halo = withStroke(linewidth=1.6, foreground=style.theme.surface)
    size = style.font_size - (1.5 if wide > 2 else 2.5)
    return {"fontsize": size, "fontweight": "bold", "color": style.theme.text, "path_effects": [halo], "zorder": 5}


def _small(axes: Axes, text: str, x: float, y: float, style: Style) -> None:
    look = {
        "fontsize": style.font_size - (2 if style.width > COLUMN else 3),
        "ha": "center",
        "va": "bottom",
        "color": style.theme.text,
    }
    axes.annotate(text, (x, y), xytext=(0, 1), textcoords="offset points", **look)


def _label(figure: Figure, pane: Pane, letter: str, place: tuple[float, float, float], style: Style) -> None:
    """Letter and title above a pane, its note beneath them; what is too long for the pane ends in an ellipsis."""
    left, top, wide = place
    line = style.line
    at = {"ha": "left", "va": "baseline", "transform": figure.dpi_scale_trans}
    indent = 1.25 * style.font_size * POINT if letter else 0
    base = top + (1.05 if pane.note else 0.3) * line
    if letter:
        figure.text(left, base, letter, fontweight="bold", fontsize=style.font_size + 1, **at)
    cut_to(figure.text(left + indent, base, pane.title, **at), wide - indent)
    if pane.note:
        note = {"fontsize": style.font_size - 1.5, "color": style.theme.muted}
        cut_to(figure.text(left + indent, top + 0.3 * line, pane.note, **note, **at), wide - indent)


def _pane_handles(scene: Scene, style: Style) -> list[Line2D]:
    dot = {"marker": "o", "ls": "", "ms": 0.55 * style.font_size, "mew": 0}
    found = groups(scene, style.theme)
    handles = [Line2D([], [], color=group.color, label=group.name, **dot) for group in found if group.named]
    unnamed = sum(not group.named for group in found) if scene.category_names else 0
    if unnamed:
        handles.append(Line2D([], [], ls="", label=f"and {unnamed} more"))
    return handles


def chart_of(style: Style, x_title: str, y_title: str) -> tuple[Figure, Axes]:
    """An empty chart in the style, under `settings(style)`; `fit_around` gives it its room when it is drawn."""
    figure = blank_figure(style, style.width * (0.54 if style.width < 5 else 0.38))
    axes = figure.add_subplot()
    axes.set(xlabel=x_title, ylabel=y_title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True)
    # Ticks are made when they are first drawn, possibly under other settings: set their style here.
    quiet_ticks(axes, style)
    return figure, axes


def fit_around(figure: Figure, axes: Axes, handles: list[Artist], style: Style) -> Figure:
    """Leave the room that tick labels, titles and the legend take, so nothing is cut and little is wasted."""
    legend = legend_below(figure, handles, style)
    pad, below = 0.04, height_of(legend)
    width, height = style.width, figure.get_figheight() + below
    figure.set_figheight(height)
    margins = np.zeros(4)
    for _ in range(4):  # tick labels change with the room, and the room with them: a margin only ever grows, so that this ends
        box, tight = axes.get_window_extent(), axes.get_tightbbox()
        needed = np.array([box.x0 - tight.x0, box.y0 - tight.y0, tight.x1 - box.x1, tight.y1 - box.y1]) / figure.dpi + pad
        margins = np.maximum(margins, needed + np.array([0, below + pad, 0, 0]))
        left, bottom, right, top = margins / [width, height, width, height]
        axes.set_position((left, bottom, 1 - left - right, 1 - bottom - top))
    return figure


def _power_of_ten(value: float, position: int) -> str:
    """``10⁻²``, spelled with the font's own superscripts: mathtext is off, so that a name may hold a dollar sign."""
    exponent = round(np.log10(value))
    return "1" if exponent == 0 else "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
