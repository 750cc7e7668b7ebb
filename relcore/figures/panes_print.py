"""The linked panes on paper: Matplotlib, legend and colour bar below; see `publication` for what all such
figures share.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from mpl_toolkits.mplot3d import Axes3D

from relcore.charts.coloring import ColorScale
from relcore.charts.scene import Pane, Scene
from relcore.figures.marks import (
    drawn_anchors,
    grid_shape,
    groups,
    map_names,
    places_of,
    point_size,
    row_colors,
    scales_of,
    sides,
    star_opacity,
    star_size,
)
from relcore.figures.publication import blank_figure, cut_to, height_of, legend_below, quiet_ticks, settings
from relcore.figures.style import COLUMN, PAPER, POINT, Style, mixed


def panes_figure(scene: Scene, style: Style = PAPER) -> Figure:
    """The scene's panes in a 1 × 1, 1 × 2 or 2 × 2 grid, the legend below; as wide as the style says, as
    high as needed.
    """
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
        bars, under = scales_of(scene), below
        below += _bar_height(style) if bars else 0
        total = rows * (above + high) + 0.6 * line * (rows - 1) + below
        figure.set_figheight(total)
        for i, pane in enumerate(scene.panes):
            row, column = divmod(i, columns)
            left, bottom = edge + column * (wide + gap), total - (row + 1) * (above + high) - 0.6 * line * row
            room = (left / style.width, bottom / total, wide / style.width, high / total)
            solid = pane.coordinates.shape[1] == 3
            axes = figure.add_axes(room, projection="3d" if solid else None)
            (_draw_cloud if solid else _draw_plane)(axes, i, scene, style, wide)
            _label(
                figure,
                pane,
                "abcd"[i] if style.panel_letters and len(scene.panes) > 1 else "",
                (left, bottom + high, wide),
                style,
            )
        _draw_color_bars(figure, bars, under, total, style)
        return figure


def _draw_plane(axes: Axes, i: int, scene: Scene, style: Style, wide: float) -> None:
    pane = scene.panes[i]
    _draw_marks(axes, i, scene, style, wide)
    away = 0.5 * _star_diameter(scene, wide)
    anchors, numbers = drawn_anchors(scene)
    for number, place in zip(numbers, pane.coordinates[anchors], strict=True):
        axes.annotate(
            number, place, xytext=(away, away), textcoords="offset points", **_number_look(style, wide)
        )
    _write_names(axes, i, scene, style, wide)
    if not scene.shown.all():  # the others stay where they were
        axes.update_datalim(pane.coordinates)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.06)
    axes.set_aspect("equal", adjustable="datalim")


def _draw_cloud(axes: Axes3D, i: int, scene: Scene, style: Style, wide: float) -> None:
    pane = scene.panes[i]
    axes.computed_zorder = False  # else a star inside a cloud would be painted over
    _draw_marks(axes, i, scene, style, wide, depthshade=False)
    anchors, numbers = drawn_anchors(scene)
    for number, place in zip(numbers, pane.coordinates[anchors], strict=True):
        axes.text(*place, f"  {number}", **_number_look(style, wide))
    if not scene.shown.all():
        axes.auto_scale_xyz(*pane.coordinates.T)
    axes.set(xticks=[], yticks=[], zticks=[])
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color(style.theme.surface)
        axis.line.set_color(style.theme.border)
    _write_names(axes, i, scene, style, wide)
    if scene.turn is not None:
        elevation, azimuth, roll = _angles(scene.turn)
        axes.view_init(elevation, azimuth, roll)
    axes.set_proj_type("ortho")
    axes.set_box_aspect(np.maximum(np.ptp(pane.coordinates, axis=0), 1e-9), zoom=1.1)


def _draw_marks(axes: Axes, i: int, scene: Scene, style: Style, wide: float, **options: bool) -> None:
    """Points, then the anchors' stars with a halo, as on a screen, in two or three dimensions."""
    theme, pane = style.theme, scene.panes[i]
    colors, order = row_colors(scene, theme, i), _painting_order(scene, i)
    order = order[scene.shown[order]]
    anchors, _ = drawn_anchors(scene)
    diameter = (
        point_size(len(scene)) * min(wide, 4) / 7
    )  # in proportion as on a screen's pane, a little larger
    look = {"s": diameter**2, "c": colors[order].tolist(), "alpha": 0.8, "lw": 0, "zorder": 2, **options}
    axes.scatter(*pane.coordinates[order].T, rasterized=len(scene) > style.raster_above, **look)
    if not len(anchors):
        return
    at, diameter = pane.coordinates[anchors].T, _star_diameter(scene, wide)
    star = {
        "s": diameter**2,
        "marker": "*",
        "alpha": star_opacity(len(scene.anchors)) * scene.stars.opacity,
        **options,
    }
    axes.scatter(*at, color=theme.surface, edgecolor=theme.surface, lw=diameter / 2.5, zorder=3, **star)
    axes.scatter(*at, c=colors[anchors].tolist(), edgecolor=theme.text, lw=diameter / 13, zorder=4, **star)


def _write_names(axes: Axes, i: int, scene: Scene, style: Style, wide: float) -> None:
    """The names of the groups where they have room."""
    pane, size = scene.panes[i], style.font_size - (0.5 if wide > 2 else 1.5)
    high = wide * 0.8
    places = places_of(pane.coordinates, scene.turn, wide / high)
    line = size * POINT * 1.15
    for name in map_names(scene, i, style.theme, places, (0.68 * size * POINT / wide, line / high)):
        look = {
            "fontsize": size,
            "fontweight": "bold",
            "color": mixed(name.color, style.theme.text),
            "zorder": 6,
        }
        look |= {
            "path_effects": [withStroke(linewidth=2, foreground=style.theme.surface)],
            "ha": "center",
            "va": "center",
        }
        at = pane.coordinates[name.row]
        if len(at) == 3:
            axes.text(*at, name.text, **look)
        else:
            offset = name.shift * wide / POINT, name.lines * line / POINT
            axes.annotate(name.text, at, xytext=offset, textcoords="offset points", **look)


def _angles(turn: tuple[float, ...]) -> tuple[float, float, float]:
    """Elevation, azimuth and roll of Matplotlib's view, in degrees, for the rows right, up and to the
    viewer.
    """
    right, _, viewer = np.reshape(turn, (3, 3))
    elevation = np.arcsin(np.clip(viewer[2], -1, 1))
    azimuth = np.arctan2(viewer[1], viewer[0]) if np.hypot(viewer[0], viewer[1]) > 1e-6 else -np.pi / 2
    level = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])  # what is right without a roll
    roll = np.arctan2(right @ np.cross(viewer, level), right @ level)
    return tuple(np.degrees([elevation, azimuth, -roll]).tolist())


def _painting_order(scene: Scene, pane: int) -> np.ndarray:
    """Rows of no category first, the rest shuffled, always alike: else the last category would hide the
    others.
    """
    shuffled = np.random.default_rng(0).permutation(len(scene))
    return shuffled[np.argsort(np.asarray(scene.coloring(pane).categories)[shuffled] >= 0, kind="stable")]


def _star_diameter(scene: Scene, wide: float) -> float:
    """Of an anchor's star, in points."""
    return star_size(len(scene.anchors)) * scene.stars.size * 0.55 * np.clip(wide / 3, 0.6, 1)


def _number_look(style: Style, wide: float) -> dict:
    halo = withStroke(linewidth=1.6, foreground=style.theme.surface)
    size = style.font_size - (1.5 if wide > 2 else 2.5)
    return {
        "fontsize": size,
        "fontweight": "bold",
        "color": style.theme.text,
        "path_effects": [halo],
        "zorder": 5,
    }


def _label(figure: Figure, pane: Pane, letter: str, place: tuple[float, float, float], style: Style) -> None:
    """Letter and title above a pane, its note beneath them; what is too long for the pane ends in an
    ellipsis.
    """
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


def _bar_height(style: Style) -> float:
    """Inches that a colour bar takes with its ticks and its title."""
    return 3.6 * style.line


def _draw_color_bars(
    figure: Figure, scales: list[tuple[str, ColorScale]], under: float, total: float, style: Style
) -> None:
    """The scales side by side, `under` inches above the figure's lower edge."""
    line = style.line
    for place, (title, scale) in enumerate(scales):
        share = min(0.84 / len(scales), 0.5)
        left = (place + 0.5) / len(scales) - share / 2
        axes = figure.add_axes((left, (under + 1.4 * line) / total, share, 0.55 * line / total))
        ticks = scale.ticks()
        ramp = ScalarMappable(Normalize(0, 1), ListedColormap(scale.colors))
        bar = figure.colorbar(ramp, cax=axes, orientation="horizontal", ticks=[at for at, _ in ticks])
        bar.outline.set_visible(False)
        bar.solids.set_rasterized(False)
        bar.solids.set_edgecolor("face")  # else white lines between the steps
        bar.ax.set_xticklabels([text for _, text in ticks])
        quiet_ticks(bar.ax, style, 1.5)
        cut_to(bar.ax.set_title(title, fontsize=style.font_size - 0.5, pad=2), share * style.width)


def _pane_handles(scene: Scene, style: Style) -> list[Line2D]:
    """The legend of each colouring, its panes' name before it where there are two."""
    handles = []
    for side, pane in zip(sides(scene), (0, *scene.second_panes[:1]), strict=True):
        found = _handles(scene, pane, style)
        handles += [Line2D([], [], ls="", label=f"{side}:"), *found] if side and found else found
    return handles


def _handles(scene: Scene, pane: int, style: Style) -> list[Line2D]:
    dot = {"marker": "o", "ls": "", "ms": 0.55 * style.font_size, "mew": 0}
    found = groups(scene, style.theme, pane)
    handles = [Line2D([], [], color=group.color, label=group.name, **dot) for group in found if group.named]
    unnamed = sum(not group.named for group in found) if scene.coloring(pane).names else 0
    if unnamed:
        handles.append(Line2D([], [], ls="", label=f"and {unnamed} more"))
    return handles
