"""Publication figures of the linked panes, drawn by Matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from string import ascii_lowercase
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from scipy.ndimage import gaussian_filter

from relcore.figures.colorings import OTHER, ColorScale, Pane
from relcore.figures.map_names import NAMED, map_names, ringed_rows
from relcore.figures.paper_style import (
    add_axes,
    artist_height,
    artist_width,
    blank_figure,
    color_bar,
    fit_to,
    legend_below,
    settings,
)
from relcore.figures.scene import (
    FACING,
    Scene,
    anchor_key,
    drawn_anchors,
    filter_note,
    point_size,
    row_colors,
    scales_of,
    seen,
    star_opacity,
    star_size,
    window_of,
)
from relcore.figures.style import COLUMN, PAPER, POINT, Style, Theme, mix_colors

_MANY = 5000  # number of rows from which contours are drawn, as on screen


def panes_figure(scene: Scene, style: Style = PAPER) -> Figure:
    """Draw the panes of a scene, with the legend below. `scene.columns` panes are side by side, but at most
    two if the figure is as wide as a column of a paper."""
    with settings(style):
        models = min(len(scene.panes), scene.columns)
        columns = models
        if style.width <= COLUMN:
            columns = min(models, 2)
        lines = -(-models // columns)  # number of rows of panes for each representation
        rows = lines * -(-len(scene.panes) // models)
        line = style.line
        scales = scales_of(scene)
        above = 1.2 * line  # a line of titles, and perhaps one of notes
        if any(pane.note for pane in scene.panes):
            above = 2.1 * line
        edge = 0.02
        gap = 0.04 * style.width / columns
        wide = (style.width - 2 * edge - gap * (columns - 1)) / columns
        high = 0.8 * wide
        if columns == 1 and style.width > COLUMN:
            high = 0.62 * wide
        figure = blank_figure(style, 1)
        legend = legend_below(figure, _pane_handles(scene, style), style)
        key = _write_key(figure, [*anchor_key(scene), *filter_note(scene)], style)
        if legend and key:
            legend.set_bbox_to_anchor((style.width / 2, key), figure.dpi_scale_trans)
        under = key + edge
        if legend:
            under = key + (artist_height(legend) + line)
        total = rows * (above + high) + 0.6 * line * (rows - 1) + under
        if scales:
            total += 3.6 * line
        figure.set_figheight(total)
        for i, pane in enumerate(scene.panes):
            row, column = divmod(i % models, columns)
            row += lines * (i // models)
            left = edge + column * (wide + gap)
            bottom = total - (row + 1) * (above + high) - 0.6 * line * row
            _draw_pane(add_axes(figure, left, bottom, wide, high), i, scene, style, (wide, high))
            letter = ""
            if style.panel_letters and len(scene.panes) > 1:
                letter = ascii_lowercase[i]
            _title_pane(figure, pane, letter, (left, bottom + high, wide), style)
        _draw_color_bars(figure, scales, under + 1.4 * line, style)
        return figure


def _draw_color_bars(
    figure: Figure, scales: Sequence[tuple[str, ColorScale]], bottom: float, style: Style
) -> None:
    """Draw a colour bar for each titled scale, side by side, `bottom` inches above the end of the figure."""
    for place, (title, scale) in enumerate(scales):
        width = min(0.84 / len(scales), 0.5) * style.width
        ticks = scale.ticks()
        left = (place + 0.5) / len(scales) * style.width - width / 2
        axes = add_axes(figure, left, bottom, width, 0.55 * style.line)
        colors = ListedColormap(scale.colors)
        bar = color_bar(axes, colors, style, orientation="horizontal", ticks=[at for at, _ in ticks])
        bar.solids.set_edgecolor("face")  # prevents white lines between the steps of the colour bar
        bar.ax.set_xticklabels([text for _, text in ticks])
        fit_to(bar.ax.set_title(title, fontsize=style.font_size - 0.5, pad=2), width)


def _draw_pane(axes: Axes, i: int, scene: Scene, style: Style, size: tuple[float, float]) -> None:
    theme = style.theme
    (wide, high) = size
    colors = row_colors(scene, style.theme, i)
    points = seen(scene.panes[i].coordinates, scene.turn)
    solid = scene.panes[i].coordinates.shape[1] == 3
    order = _drawing_order(scene, i, points)
    points = points[:, :2]
    diameter = point_size(len(scene)) * min(wide, 4) / 7
    axes.scatter(
        *points[order].T,
        rasterized=len(scene) > style.raster_above,
        s=diameter**2,
        c=colors[order].tolist(),
        alpha=0.8,
        lw=0,
        zorder=2,
    )
    by_itself = scene.density is None and len(scene) > _MANY
    if (scene.density or by_itself) and not solid:
        counted = points[scene.shown & scene.kept]
        _draw_contours(axes, counted, theme, always=not by_itself)
    diameter = star_size(len(scene.anchors)) * scene.stars.size * 0.55 * np.clip(wide / 3, 0.6, 1)
    _draw_stars(axes, scene, points, colors, diameter, theme)
    rings = {"s": (0.8 * style.font_size) ** 2, "facecolor": "none", "edgecolor": theme.text, "lw": 0.8}
    if len(ringed := ringed_rows(scene)):
        axes.scatter(*points[ringed].T, zorder=5, **rings)
    middle, window = window_of(points, wide / high)
    (left, bottom) = middle - window / 2
    (right, top) = middle + window / 2
    axes.set(xticks=[], yticks=[], xlim=(left, right), ylim=(bottom, top))
    _write_names(axes, i, scene, style, size, (0.5 + (points - middle) / window) * size, diameter)
    if solid:
        _draw_axes(axes, scene.turn, style, size)


def _drawing_order(scene: Scene, i: int, points: np.ndarray) -> np.ndarray:
    """The shown rows of pane `i` in the order in which they are drawn: first those without a class, then the
    others from far to near. In two dimensions, their order is random, so that no class hides another."""
    if points.shape[1] == 3:
        order = np.argsort(points[:, 2], kind="stable")
    else:
        order = np.random.default_rng(0).permutation(len(scene))
    order = order[np.argsort(np.asarray(scene.coloring(i).categories)[order] >= 0, kind="stable")]
    return order[scene.shown[order]]


def _draw_stars(
    axes: Axes, scene: Scene, points: np.ndarray, colors: np.ndarray, diameter: float, theme: Theme
) -> None:
    """Draw a star with a light rim at each anchor."""
    anchors, _ = drawn_anchors(scene)
    if not len(anchors):
        return
    opacity = star_opacity(len(scene.anchors)) * scene.stars.opacity
    star: dict[str, Any] = {"s": diameter**2, "marker": "*", "alpha": opacity}
    axes.scatter(
        *points[anchors].T,
        color=theme.surface,
        edgecolor=theme.surface,
        lw=diameter / 2.5,
        zorder=3,
        **star,
    )
    axes.scatter(
        *points[anchors].T,
        c=colors[anchors].tolist(),
        edgecolor=theme.text,
        lw=diameter / 13,
        zorder=4,
        **star,
    )


def _draw_axes(axes: Axes, turn: Sequence[float] | None, style: Style, size: tuple[float, float]) -> None:
    reach = style.line
    middle = np.array([1.7, 1.7]) * style.line
    label_style = {"xycoords": "axes fraction", "textcoords": "axes fraction", "zorder": 6}
    label_style |= {
        "ha": "center",
        "va": "center",
        "fontsize": style.font_size - 2,
        "color": style.theme.muted,
    }
    arrow = {"arrowstyle": "->", "color": style.theme.muted, "lw": 0.6, "shrinkA": 0, "shrinkB": 0}
    for name, direction in zip("123", np.reshape(turn or FACING, (3, 3))[:2].T, strict=True):
        if np.hypot(*direction) < 0.15:  # the axis points to the viewer
            continue
        end = middle + reach * direction
        axes.annotate("", end / size, middle / size, arrowprops=arrow, **label_style)
        axes.annotate(
            name, end / size, (end + 0.3 * reach * direction / np.hypot(*direction)) / size, **label_style
        )


def _draw_contours(axes: Axes, points: np.ndarray, theme: Theme, always: bool) -> None:
    """Draw the contours within which 25, 50, 75 and 95 % of the points (n, 2) lie: `always`, or if the points
    hide each other. The same rule is used on screen (contours.js)."""
    if not len(points):
        return
    low = points.min(axis=0)
    high = points.max(axis=0)
    side = max(float((high - low).max()), 1e-9) / 120
    middles = [
        start + side * (np.arange(-8, np.ceil(width / side) + 8) + 0.5)
        for start, width in zip(low, high - low, strict=True)
    ]
    edges = [np.append(middle, middle[-1] + side) - side / 2 for middle in middles]
    bins, *_ = np.histogram2d(*points.T, bins=edges)
    crowding = (bins**2).sum() / len(points)
    if not always and crowding < 3:  # on average, the bin of a row holds fewer than two others
        return
    dense = gaussian_filter(bins, 2.4)
    falling = np.sort(dense, axis=None)[::-1]
    within = np.searchsorted(falling.cumsum(), np.array([0.95, 0.75, 0.5, 0.25]) * falling.sum())
    axes.contour(
        *middles,
        dense.T,
        levels=np.unique(falling[within]),
        colors=theme.text,
        linewidths=0.5,
        alpha=0.7,
        zorder=2.5,
    )


def _write_names(
    axes: Axes, i: int, scene: Scene, style: Style, size: tuple[float, float], places: np.ndarray, star: float
) -> None:
    """Write the names of rows, groups and anchors on pane number `i`, which has `size` inches. `places` are
    the positions of the rows, and `star` the diameter of a star, in inches."""
    theme = style.theme
    smaller = 0 if size[0] > 2 else 1
    sizes = {
        True: style.font_size - 1.5 - smaller,
        False: style.font_size - 0.5 - smaller,
    }  # font sizes of anchors (True) and of other names
    text_style = {"fontweight": "bold", "ha": "center", "va": "center", "transform": axes.transAxes}

    @cache
    def width_of(text: str, of_anchor: bool) -> float:
        probe = axes.text(0, 0, text, fontsize=sizes[of_anchor], **text_style)
        width = artist_width(probe)
        probe.remove()
        return width

    line = 1.15 * sizes[False] * POINT
    for name in map_names(scene, i, theme, places, size, line, width_of, star * POINT):
        if name.color:
            color = mix_colors(name.color, theme.text)
        else:
            color = theme.text
        plain = {}
        if name.heap:
            plain = {"fontweight": "normal", "fontstyle": "italic", "color": theme.muted}
        halo = [withStroke(linewidth=2 if name.color else 1.6, foreground=theme.surface)]
        fontsize = sizes[not name.color]
        at = (name.x / size[0], name.y / size[1])
        name_style = text_style | {"color": color, "fontsize": fontsize, "path_effects": halo} | plain
        axes.text(*at, name.text, zorder=6, **name_style)


def _title_pane(
    figure: Figure, pane: Pane, letter: str, place: tuple[float, float, float], style: Style
) -> None:
    (left, top, wide) = place
    line = style.line
    at = {"ha": "left", "va": "baseline", "transform": figure.dpi_scale_trans}
    indent = 0
    if letter:
        indent = 1.25 * style.font_size * POINT
    base = top + 0.3 * line
    if pane.note:
        base = top + 1.05 * line
    if letter:
        figure.text(left, base, letter, fontweight="bold", fontsize=style.font_size + 1, **at)
    fit_to(figure.text(left + indent, base, pane.title, **at), wide - indent)
    if pane.note:
        size = style.font_size - 1.5
        color = style.theme.muted
        note = figure.text(left + indent, top + 0.3 * line, pane.note, fontsize=size, color=color, **at)
        fit_to(note, wide - indent)


def _write_key(figure: Figure, key: Sequence[str], style: Style) -> float:
    """Write the numbers and names of the anchors (`key`) at the bottom of the figure. Returns their height in
    inches."""
    size = style.font_size - 1
    text_style = {"fontsize": size, "color": style.theme.muted, "transform": figure.dpi_scale_trans}
    lines = []
    for entry in key:
        longer = figure.text(0, 0, f"{lines[-1]}   {entry}" if lines else entry, fontsize=size)
        if lines and artist_width(longer) <= style.width - 0.1:
            lines[-1] = longer.get_text()
        else:
            lines.append(entry)
        longer.remove()
    for number, text in enumerate(reversed(lines)):
        at = style.width / 2, (0.25 + number) * style.line
        fit_to(figure.text(*at, text, ha="center", va="baseline", **text_style), style.width - 0.1)
    if lines:
        return (len(lines) + 0.5) * style.line
    return 0.0


def _pane_handles(scene: Scene, style: Style) -> list[Line2D]:
    """The entries of the legend. A colouring by classes has an entry for each class that occurs, and "other"
    for rows without a class. A colouring by numbers has a colour bar instead, and only the entry "other". The
    anchors come last.
    """
    dot = {"marker": "o", "ls": "", "ms": 0.55 * style.font_size, "mew": 0}
    handles = []
    for side, coloring in zip(scene.sides, scene.colorings(), strict=True):
        present = set(np.asarray(coloring.categories)[scene.shown].tolist())
        entries = []
        if -1 in present and (coloring.names or coloring.scale):
            entries = [(OTHER, style.theme.neutral)]
        colors = zip(map(str, coloring.names), coloring.palette(style.theme), strict=False)
        entries += [entry for category, entry in enumerate(colors) if category in present]
        if side and entries:
            handles.append(Line2D([], [], ls="", label=f"{side}:"))
        handles += [Line2D([], [], color=color, label=name, **dot) for name, color in entries[:NAMED]]
        if len(entries) > NAMED:
            handles.append(Line2D([], [], ls="", label=f"and {len(entries) - NAMED} more"))
    if len(drawn_anchors(scene)[0]):
        star = Line2D(
            [],
            [],
            color=style.theme.neutral,
            label="anchor",
            marker="*",
            ls="",
            ms=0.85 * style.font_size,
            mew=0.5,
            mec=style.theme.text,
        )
        handles.append(star)
    return handles
