"""Publication figures, drawn by Matplotlib: as wide as a column or a page of a paper, with vector axes.

The font is DejaVu Sans, which comes with Matplotlib. PDF files embed it as Type 42. In SVG files, where
Matplotlib cannot embed fonts, letters are outlines.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from string import ascii_lowercase
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation
from scipy.ndimage import gaussian_filter

from relcore.base.numbers import general
from relcore.base.text import harmless
from relcore.figures.charts import (
    Diagram,
    Lines,
    Matrices,
    MatrixPanel,
    MovingPoints,
    label_step,
    name_of,
)
from relcore.figures.scene import (
    FACING,
    NAMED,
    OTHER,
    Pane,
    Scene,
    anchor_key,
    drawn_anchors,
    map_names,
    point_size,
    ringed_rows,
    row_colors,
    scales_of,
    seen,
    star_opacity,
    star_size,
    window_of,
)
from relcore.figures.style import COLUMN, PAPER, POINT, Style, Theme, mix_colors, ramp_of, text_on

_SMALLEST = 4.5  # minimum size of a letter, in points
_lock = threading.RLock()
_SLANTED = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}


def write(
    figure: Figure, kind: str, style: Style = PAPER, metadata: Mapping[str, str] | None = None
) -> bytes:
    """The content of a "pdf", "svg" or "png" file of the figure. Equal figures give equal bytes.

    `metadata` uses the keys that Matplotlib has for this kind of file.
    """
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind, {})
    with settings(style), BytesIO() as file:
        figure.savefig(file, format=kind, dpi=style.dpi, metadata={**undated, **(metadata or {})})
        written = file.getvalue()
    # Matplotlib copies texts into comments of SVG files, where control characters make the XML invalid.
    if kind == "svg":
        return harmless(written.decode()).encode()
    return written


@contextmanager
def settings(style: Style) -> Iterator[None]:
    """A context in which Matplotlib has the settings of this style. It holds a lock, because all threads
    share these settings.
    """
    theme = style.theme
    size = style.font_size
    surface = dict.fromkeys(("figure.facecolor", "savefig.facecolor", "axes.facecolor"), theme.surface)
    with _lock, matplotlib.rc_context():
        matplotlib.rcdefaults()  # ignore the user's matplotlibrc
        matplotlib.rcParams.update(
            surface
            | {
                "font.family": "DejaVu Sans",
                "font.size": size,
                "legend.fontsize": size,
                "axes.labelsize": size,
                "text.parse_math": False,  # texts may contain dollar signs
                "text.color": theme.text,
                "axes.labelcolor": theme.muted,
                "axes.edgecolor": theme.border,
                "axes.linewidth": 0.6,
                "axes.axisbelow": True,
                "grid.color": theme.grid,
                "grid.linewidth": 0.5,
                "pdf.fonttype": 42,
                "svg.fonttype": "path",
                "svg.hashsalt": "relscope",
            }
        )
        yield


def _blank_figure(style: Style, height: float) -> Figure:
    figure = Figure(figsize=(style.width, height), dpi=style.dpi)
    FigureCanvasAgg(figure)
    return figure


def _add_axes(figure: Figure, x: float, y: float, wide: float, high: float, **options: Any) -> Axes:
    width, height = figure.get_size_inches()
    return figure.add_axes((x / width, y / height, wide / width, high / height), **options)


def _legend_below(figure: Figure, handles: list[Artist], style: Style) -> Legend | None:
    """Add a legend at the bottom, with as many columns as fit. If no artist has a label, add nothing and
    return None."""
    look = {"frameon": False, "borderpad": 0.2, "borderaxespad": 0, "handletextpad": 0.4}
    look |= {"handlelength": 1.1, "columnspacing": 1.2, "labelspacing": 0.35, "handles": handles}
    legend = None
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(loc="lower center", bbox_to_anchor=(0.5, 0), ncols=columns, **look)
        if _width(legend) <= style.width - 0.1 or columns == 1:
            break
        legend.remove()
    for text in legend.get_texts() if legend else ():
        _fit_to(text, style.width - 0.4)
    return legend


def _fit_to(text: Text, room: float) -> None:
    """Reduce the font of a text, to `_SMALLEST` points at least, until the text fits into `room` inches. If
    it is still too long, cut it in the middle."""
    while _width(text) > room and text.get_fontsize() > _SMALLEST:
        text.set_fontsize(max(_SMALLEST, 0.95 * text.get_fontsize()))
    whole = text.get_text()
    for left_out in range(2, len(whole)):
        if _width(text) <= room:
            return
        kept = len(whole) - left_out
        text.set_text(f"{whole[: kept - kept // 2]}…{whole[len(whole) - kept // 2 :]}")


def _quiet_ticks(axes: Axes, style: Style, smaller: float = 1) -> None:
    """Set short ticks in the colours of the theme, with labels that are `smaller` points below the font size.
    Matplotlib's global settings would not work, because ticks are created only when they are drawn."""
    look = {"labelsize": style.font_size - smaller, "labelcolor": style.theme.muted}
    axes.tick_params(which="both", length=2, width=0.6, color=style.theme.border, **look)


def _color_bar(axes: Axes, colors: Colormap, style: Style, **options: Any) -> Colorbar:
    bar = axes.get_figure().colorbar(ScalarMappable(Normalize(0, 1), colors), cax=axes, **options)
    bar.outline.set_visible(False)
    bar.solids.set_rasterized(False)
    _quiet_ticks(bar.ax, style, 1.5)
    return bar


def _width(artist: Artist) -> float:
    return artist.get_window_extent().width / artist.get_figure().dpi


def _height(artist: Artist) -> float:
    return artist.get_window_extent().height / artist.get_figure().dpi


def _chart(style: Style, x_title: str, y_title: str) -> tuple[Figure, Axes]:
    figure = _blank_figure(style, style.width * (0.54 if style.width < 5 else 0.38))
    axes = figure.add_subplot()
    axes.set(xlabel=x_title, ylabel=y_title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True)
    _quiet_ticks(axes, style)
    return figure, axes


def _fit_around(figure: Figure, axes: Axes, handles: list[Artist], style: Style) -> Figure:
    pad = 0.04
    below = _height(_legend_below(figure, handles, style)) if handles else 0.0
    width = style.width
    height = figure.get_figheight() + below
    figure.set_figheight(height)
    margins = np.zeros(4)
    for _ in range(4):  # labels depend on the space between the margins, so a few rounds; margins only grow
        box = axes.get_window_extent()
        tight = axes.get_tightbbox()
        needed = np.array([box.x0 - tight.x0, box.y0 - tight.y0, tight.x1 - box.x1, tight.y1 - box.y1])
        margins = np.maximum(margins, needed / figure.dpi + pad + [0, below + pad, 0, 0])
        left, bottom, right, top = margins / [width, height, width, height]
        axes.set_position((left, bottom, 1 - left - right, 1 - bottom - top))
    return figure


_DASHES = ("--", ":", "-.", (0, (8, 3)))


def diagram_figure(diagram: Diagram, style: Style = PAPER) -> Figure:
    theme = style.theme
    with settings(style):
        figure, axes = _chart(style, "", "")
        colors = theme.category_colors(len(diagram.names))
        for pair in diagram.lines:
            axes.plot(*diagram.points[list(pair)].T, lw=0.6, color=theme.border, zorder=1)
        look = {"ha": "center", "va": "center", "color": theme.muted, "fontsize": style.font_size - 1}
        for place, text in diagram.line_texts():
            axes.text(*place, text, bbox={"color": theme.surface, "pad": 0.5}, **look)
        axes.scatter(*diagram.points.T, s=16, color=colors, lw=0, zorder=2)
        for name, point, above in zip(diagram.names, diagram.points, diagram.above, strict=True):
            look = {"ha": "center", "va": "bottom" if above else "top", "color": theme.text}
            place = {"xytext": (0, 4 if above else -4), "textcoords": "offset points"}
            axes.annotate(name, point, parse_math=False, **place, **look)
        axes.margins(0.2)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()
        return _fit_around(figure, axes, [], style)


_MOST_MAPS = 12  # number of maps on one page


def moving_figure(moving: MovingPoints, style: Style = PAPER) -> Figure:
    """Draw the maps of moving points side by side. If there are more than twelve maps, twelve at even
    intervals are drawn."""
    theme = style.theme
    t = len(moving.titles)
    shown = np.unique(np.linspace(0, t - 1, min(t, _MOST_MAPS)).round().astype(int))
    middle, half_width = moving.edges
    rows = -(-len(shown) // (2 if style.width < 5 else 4))
    columns = -(-len(shown) // rows)
    side = style.width / columns
    above = 1.8 * style.line
    size = (style.font_size - 2) / 72 / (side - 0.06)  # height of a letter, as a share of the map
    names, places = moving.named((0.6 * size, 1.2 * size))
    with settings(style):
        figure = _blank_figure(style, rows * (side + above))
        for number, i in enumerate(shown):
            row, column = divmod(number, columns)
            y = figure.get_figheight() - (row + 1) * (side + above)
            axes = _add_axes(figure, column * side + 0.03, y + 0.03, side - 0.06, side - 0.06)
            axes.scatter(*moving.places[i].T, s=2.5, c=moving.colors(theme), lw=0, rasterized=True)
            axes.set(
                xlim=middle[0] + np.array([-half_width, half_width]),
                ylim=middle[1] + np.array([-half_width, half_width]),
            )
            axes.set(xticks=[], yticks=[])
            title = axes.set_title(moving.titles[i], parse_math=False, fontsize=style.font_size, pad=3)
            _fit_to(title, side - 0.1)
            halo = [withStroke(linewidth=1.5, foreground=theme.surface)]
            for name, place in zip(names, places[i], strict=True):
                if np.isnan(place).any():
                    continue
                look = {"ha": "center", "va": "center", "fontsize": style.font_size - 2, "path_effects": halo}
                axes.text(*place, name, parse_math=False, color=theme.text, clip_on=True, **look)
        return figure


def lines_figure(lines: Lines, style: Style = PAPER) -> Figure:
    theme = style.theme
    with settings(style):
        figure, axes = _chart(style, lines.x_title, lines.y_title)
        handles = []
        for line, color in zip(lines.lines, lines.colors(theme), strict=True):
            if len(line) and lines.kind == "lines":
                order = np.argsort(line.x, kind="stable")
                x = line.x[order]
                y = line.y[order]
                if line.has_band:
                    axes.fill_between(x, line.low[order], line.high[order], color=color, alpha=0.16, lw=0)
                if lines.filled:
                    axes.fill_between(x, y, color=color, alpha=0.15, lw=0)
                look = {"color": color, "lw": 1, "ls": "--" if line.dashed else "-"}
                axes.plot(x, y, **look, marker="o", ms=1.8 if len(line) <= 40 else 0)
                handles.append(Line2D([], [], **look, label=line.name))
            elif len(line):
                if line.has_band:
                    reach = [line.y - line.low, line.high - line.y]
                    thin = {"elinewidth": 0.5, "alpha": 0.5}
                    axes.errorbar(line.x, line.y, reach, fmt="none", ecolor=color, **thin)
                look = {"color": color, "lw": 0}
                axes.scatter(
                    line.x, line.y, s=9, alpha=0.85, rasterized=len(line) > style.raster_above, **look
                )
                handles.append(Line2D([], [], marker="o", ms=3, label=line.name, **look))
        levels = [
            (*named, axes.axhline, theme.muted, _DASHES[i % 4]) for i, named in enumerate(lines.baselines)
        ]
        levels += [(*named, axes.axvline, theme.text, "--") for named in lines.marks]
        for name, value, draw, color, dash in levels:
            look = {"color": color, "lw": 0.8, "ls": dash}
            draw(value, **look, zorder=1)
            handles.append(Line2D([], [], **look, label=f"{name}: {general(value)}"))
        if lines.log_x:
            axes.set_xscale("log")
            low, high = axes.get_xlim()
            axes.set_xticks([tick for tick in lines.log_ticks if low <= tick <= high])
            axes.xaxis.set_major_formatter(lambda value, position: general(value))
            axes.xaxis.set_minor_formatter(lambda value, position: "")
        if lines.counts:
            axes.xaxis.get_major_locator().set_params(integer=True)
        if names := lines.x_names:
            axes.set_xticks(range(len(names)), names, **(_SLANTED if len(names) > 4 else {}))
        if lines.y_range:
            axes.set_ylim(*lines.y_range)
        if lines.note:
            # When Matplotlib wraps lines, it reads text between dollar signs as mathematics.
            look = {"fontsize": style.font_size - 1, "color": theme.text, "wrap": "$" not in lines.note}
            axes.set_title(lines.note, loc="left", **look)
        return _fit_around(figure, axes, handles, style)


def matrices_figure(data: Matrices, style: Style = PAPER) -> Figure:
    """The figure of heat maps: all panels in a grid, with column names above and row names at the left."""
    with settings(style):
        line = style.line
        width = style.width
        figure = _blank_figure(style, 1)
        lines, across = data.grid(3 if width > COLUMN else 2)
        names = [figure.text(0, 0, name_of(row)) for panel in data.panels for row in panel.rows]
        left = min(max(map(_width, names)) + 1.6 * line, 0.3 * width)
        left += 1.2 * line if data.row_title else 0
        for name in names:
            name.remove()
        gap = 0.9 * line
        right = 4.2 * line
        between = 0.8 * line
        if data.same_rows:
            lefts = left
        else:
            lefts = left * across
        wide = (width - right - lefts - gap * (across - 1)) / across
        titles = sum(any(getattr(panel, name) for panel in data.panels) for name in ("title", "note"))
        above = line * (titles + 1.7 + (1.1 if data.column_title else 0))
        most_rows, most_columns = data.most
        cell = float(np.clip(0.62 * wide / most_columns, min(1.5 * line, 3 / most_rows), 0.5))
        high = most_rows * cell
        total = lines * (above + high) + (lines - 1) * between + 0.05
        figure.set_figheight(total)
        bold = {"fontweight": "bold", "ha": "left", "va": "bottom", "transform": figure.dpi_scale_trans}
        note = bold | {"fontsize": style.font_size - 1.5, "color": style.theme.muted, "fontweight": "normal"}
        for number, panel in enumerate(data.panels):
            row, column = divmod(number, across)
            x = left + column * (wide + gap + (0 if data.same_rows else left))
            y = total - row * (above + high + between) - above
            body = cell * len(panel.rows)
            axes = _add_axes(figure, x, y - body, wide, body)
            beside = 0
            if column == 0 or not data.same_rows:
                beside = left
            _draw_panel(axes, data, panel, style, (wide, body, beside))
            letter = ""
            if style.panel_letters and 1 < len(data.panels) <= 12:
                letter = "abcdefghijkl"[number] + "  "
            y += above - titles * line - 0.15 * line
            if panel.title:
                _fit_to(figure.text(x, y + (line if panel.note else 0), letter + panel.title, **bold), wide)
            if panel.note:
                _fit_to(figure.text(x, y, panel.note, **note), wide)
        height = min(total - above, max(high, 1.2))
        (places, labels) = data.ticks()
        axes = _add_axes(
            figure, width - right + 0.6 * line, total - above - height + 0.02, 0.5 * line, height
        )
        ramp = LinearSegmentedColormap.from_list("heat map", ramp_of(style.theme))
        bar = _color_bar(axes, ramp, style, ticks=places)
        bar.ax.set_yticklabels(labels)
        bar.set_label(data.value_title, fontsize=style.font_size - 0.5)
        return figure


def _draw_panel(
    axes: Axes, data: Matrices, panel: MatrixPanel, style: Style, size: tuple[float, float, float]
) -> None:
    """Draw a heat map with the names of its rows and columns. `size` is width, height and left margin in
    inches."""
    theme = style.theme
    (n_rows, n_columns) = panel.values.shape
    wide = size[0] / n_columns
    high = size[1] / n_rows
    axes.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5))
    axes.axis("off")
    gap = 0.02 if min(wide, high) > 0.08 else 0.0
    for i, j in np.ndindex(n_rows, n_columns):
        look = {"facecolor": theme.surface, "edgecolor": theme.border, "lw": 0.4}
        ink = theme.muted
        look["hatch"] = "/////"
        if not np.isnan(panel.values[i, j]):
            fill = data.color(panel.values[i, j], theme)
            look = {"facecolor": fill, "edgecolor": fill, "lw": 0}
            ink = text_on(fill)
        axes.add_patch(Rectangle((j - 0.5 + gap / 2, i - 0.5 + gap / 2), 1 - gap, 1 - gap, **look))
        if (i, j) in panel.marked:
            look = {"facecolor": "none", "edgecolor": ink, "lw": 0.5, "ls": ":"}
            axes.add_patch(Rectangle((j - 0.44, i - 0.42), 0.88, 0.84, **look))
    for i, j in panel.framed:
        look = {"facecolor": "none", "edgecolor": theme.category_colors(5)[4], "lw": 1.5, "zorder": 3}
        axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **look))
    _write_cells(axes, data, panel, style, (wide, high))
    letter = 0.62 * style.font_size * POINT
    by_number = data.numbered(panel, wide / letter)
    names = [name_of(name) for name in panel.columns]
    every = label_step(n_columns, n_columns * wide / (letter * (max(map(len, names)) + 1)))
    look = {"ha": "center", "va": "bottom"}
    for j in range(0, n_columns, 1 if by_number else every):
        if by_number:
            text = str(j + 1)
            weight = "bold"
        else:
            text = names[j]
            weight = "normal"
        _lift(axes.text(j, -0.5, text, fontweight=weight, **look), 2)
    small = {"color": theme.muted, "fontsize": style.font_size - 0.5}
    if data.column_title:
        title = axes.text((n_columns - 1) / 2, -0.5, data.column_title, **look, **small)
        _lift(title, 3.5 + 1.3 * style.font_size)
    if size[2]:
        _name_rows(axes, data, panel, style, size, by_number)


def _name_rows(
    axes: Axes,
    data: Matrices,
    panel: MatrixPanel,
    style: Style,
    size: tuple[float, float, float],
    by_number: bool,
) -> None:
    (wide, high, left) = size
    line = style.line
    n = len(panel.rows)
    room = left - (1.4 if by_number else 0.4) * line - (1.2 * line if data.row_title else 0)
    at = {"transform": axes.transAxes, "va": "center"}
    for i in range(0, n, label_step(n, high / (1.1 * style.font_size * POINT))):
        middle = 1 - (i + 0.5) / n
        if by_number:
            axes.text(-0.6 * line / wide, middle, str(i + 1), ha="center", fontweight="bold", **at)
        x = -(1.3 if by_number else 0.35) * line / wide
        _fit_to(axes.text(x, middle, name_of(panel.rows[i]), ha="right", **at), room)
    if data.row_title:
        look = {"color": style.theme.muted, "fontsize": style.font_size - 0.5, "rotation": 90, "ha": "left"}
        axes.text(-(left - 0.05) / wide, 0.5, data.row_title, **look, **at)


def _write_cells(
    axes: Axes, data: Matrices, panel: MatrixPanel, style: Style, cell: tuple[float, float]
) -> None:
    """Write the texts of the cells if all of them fit. The small print of the cells is written if it fits,
    too."""
    wide, high = cell
    shown = panel.shown_texts()
    if not shown:
        return
    size = style.font_size
    probe = axes.text(0, 0, max((first for first, _ in shown.values()), key=len), fontsize=size)
    size = min(size, size * 0.9 * wide / max(_width(probe), 1e-9))
    probe.remove()
    if size < 4 or high < 1.1 * size * POINT:
        return
    probe = axes.text(0, 0, max((small for _, small in shown.values()), key=len), fontsize=size - 2)
    with_small = _width(probe) <= 0.92 * wide and high >= 2.5 * size * POINT
    probe.remove()
    for (i, j), (first, small) in shown.items():
        look = {"ha": "center", "color": text_on(data.color(panel.values[i, j], style.theme))}
        if with_small and small:
            axes.text(j, i - 0.02, first, va="bottom", fontsize=size, **look)
            axes.text(j, i + 0.08, small, va="top", fontsize=size - 2, **look)
        else:
            axes.text(j, i, first, va="center_baseline", fontsize=size, **look)


def _lift(text: Text, points: float) -> None:
    lift = ScaledTranslation(0, points * POINT, text.get_figure().dpi_scale_trans)
    text.set_transform(text.get_transform() + lift)


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
        above = line * (2.1 if any(pane.note for pane in scene.panes) else 1.2)
        edge = 0.02
        gap = 0.04 * style.width / columns
        wide = (style.width - 2 * edge - gap * (columns - 1)) / columns
        high = wide * (0.62 if columns == 1 and style.width > COLUMN else 0.8)
        figure = _blank_figure(style, 1)
        legend = _legend_below(figure, _pane_handles(scene, style), style)
        key = _write_key(figure, anchor_key(scene), style)
        if legend and key:
            legend.set_bbox_to_anchor((style.width / 2, key), figure.dpi_scale_trans)
        under = key + (_height(legend) + line if legend else edge)
        total = rows * (above + high) + 0.6 * line * (rows - 1) + under + (3.6 * line if scales else 0)
        figure.set_figheight(total)
        for i, pane in enumerate(scene.panes):
            row, column = divmod(i % models, columns)
            row += lines * (i // models)
            left = edge + column * (wide + gap)
            bottom = total - (row + 1) * (above + high) - 0.6 * line * row
            _draw_pane(_add_axes(figure, left, bottom, wide, high), i, scene, style, (wide, high))
            letter = ""
            if style.panel_letters and len(scene.panes) > 1:
                letter = ascii_lowercase[i]
            _title_pane(figure, pane, letter, (left, bottom + high, wide), style)
        for place, (title, scale) in enumerate(scales):
            width = min(0.84 / len(scales), 0.5) * style.width
            ticks = scale.ticks()
            left = (place + 0.5) / len(scales) * style.width - width / 2
            axes = _add_axes(figure, left, under + 1.4 * line, width, 0.55 * line)
            colors = ListedColormap(scale.colors)
            options = {"ticks": [at for at, _ in ticks]}
            bar = _color_bar(axes, colors, style, orientation="horizontal", **options)
            bar.solids.set_edgecolor("face")  # prevents white lines between the steps of the colour bar
            bar.ax.set_xticklabels([text for _, text in ticks])
            _fit_to(bar.ax.set_title(title, fontsize=style.font_size - 0.5, pad=2), width)
        return figure


def _draw_pane(axes: Axes, i: int, scene: Scene, style: Style, size: tuple[float, float]) -> None:
    theme = style.theme
    (wide, high) = size
    colors = row_colors(scene, style.theme, i)
    points = seen(scene.panes[i].coordinates, scene.turn)
    solid = scene.panes[i].coordinates.shape[1] == 3
    # Rows without a class are drawn first. The others follow from far to near, or in random order, so that no
    # class hides another.
    if solid:
        order = np.argsort(points[:, 2], kind="stable")
    else:
        order = np.random.default_rng(0).permutation(len(scene))
    order = order[np.argsort(np.asarray(scene.coloring(i).categories)[order] >= 0, kind="stable")]
    order = order[scene.shown[order]]
    points = points[:, :2]
    diameter = point_size(len(scene)) * min(wide, 4) / 7
    look = {"s": diameter**2, "c": colors[order].tolist(), "alpha": 0.8, "lw": 0, "zorder": 2}
    axes.scatter(*points[order].T, rasterized=len(scene) > style.raster_above, **look)
    if not solid:
        _draw_contours(axes, points[scene.shown & scene.kept], theme)
    anchors, _ = drawn_anchors(scene)
    diameter = star_size(len(scene.anchors)) * scene.stars.size * 0.55 * np.clip(wide / 3, 0.6, 1)
    if len(anchors):
        star = {"s": diameter**2, "marker": "*"}
        star["alpha"] = star_opacity(len(scene.anchors)) * scene.stars.opacity
        halo = {"color": theme.surface, "edgecolor": theme.surface, "lw": diameter / 2.5, "zorder": 3}
        axes.scatter(*points[anchors].T, **halo, **star)
        ink = {"c": colors[anchors].tolist(), "edgecolor": theme.text, "lw": diameter / 13, "zorder": 4}
        axes.scatter(*points[anchors].T, **ink, **star)
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


def _draw_axes(axes: Axes, turn: Sequence[float] | None, style: Style, size: tuple[float, float]) -> None:
    reach = style.line
    middle = np.array([1.7, 1.7]) * style.line
    look = {"xycoords": "axes fraction", "textcoords": "axes fraction", "zorder": 6}
    look |= {"ha": "center", "va": "center", "fontsize": style.font_size - 2, "color": style.theme.muted}
    arrow = {"arrowstyle": "->", "color": style.theme.muted, "lw": 0.6, "shrinkA": 0, "shrinkB": 0}
    for name, direction in zip("123", np.reshape(turn or FACING, (3, 3))[:2].T, strict=True):
        if np.hypot(*direction) < 0.15:  # the axis points to the viewer
            continue
        end = middle + reach * direction
        axes.annotate("", end / size, middle / size, arrowprops=arrow, **look)
        axes.annotate(name, end / size, (end + 0.3 * reach * direction / np.hypot(*direction)) / size, **look)


def _draw_contours(axes: Axes, points: np.ndarray, theme: Theme) -> None:
    """If points (n, 2) hide each other, draw the contours within which 25, 50, 75 and 95 % of them lie. The
    same rule is used on screen (contours.js)."""
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
    if (bins**2).sum() < 3 * len(points):  # on average, the bin of a row holds fewer than two others
        return
    dense = gaussian_filter(bins, 2.4)
    falling = np.sort(dense, axis=None)[::-1]
    within = np.searchsorted(falling.cumsum(), np.array([0.95, 0.75, 0.5, 0.25]) * falling.sum())
    look = {"colors": theme.text, "linewidths": 0.5, "alpha": 0.7, "zorder": 2.5}
    axes.contour(*middles, dense.T, levels=np.unique(falling[within]), **look)


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
    look = {"fontweight": "bold", "ha": "center", "va": "center", "transform": axes.transAxes}

    @cache
    def width_of(text: str, of_anchor: bool) -> float:
        probe = axes.text(0, 0, text, fontsize=sizes[of_anchor], **look)
        width = _width(probe)
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
        drawn = look | {"color": color, "fontsize": fontsize, "path_effects": halo} | plain
        axes.text(*at, name.text, zorder=6, **drawn)


def _title_pane(
    figure: Figure, pane: Pane, letter: str, place: tuple[float, float, float], style: Style
) -> None:
    (left, top, wide) = place
    line = style.line
    at = {"ha": "left", "va": "baseline", "transform": figure.dpi_scale_trans}
    indent = 0
    if letter:
        indent = 1.25 * style.font_size * POINT
    base = top + (1.05 if pane.note else 0.3) * line
    if letter:
        figure.text(left, base, letter, fontweight="bold", fontsize=style.font_size + 1, **at)
    _fit_to(figure.text(left + indent, base, pane.title, **at), wide - indent)
    if pane.note:
        look = {"fontsize": style.font_size - 1.5, "color": style.theme.muted}
        _fit_to(figure.text(left + indent, top + 0.3 * line, pane.note, **look, **at), wide - indent)


def _write_key(figure: Figure, key: Sequence[str], style: Style) -> float:
    """Write the numbers and names of the anchors (`key`) at the bottom of the figure. Returns their height in
    inches."""
    size = style.font_size - 1
    look = {"fontsize": size, "color": style.theme.muted, "transform": figure.dpi_scale_trans}
    lines = []
    for entry in key:
        longer = figure.text(0, 0, f"{lines[-1]}   {entry}" if lines else entry, fontsize=size)
        if lines and _width(longer) <= style.width - 0.1:
            lines[-1] = longer.get_text()
        else:
            lines.append(entry)
        longer.remove()
    for number, text in enumerate(reversed(lines)):
        at = style.width / 2, (0.25 + number) * style.line
        figure.text(*at, text, ha="center", va="baseline", **look)
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
        star = {"marker": "*", "ls": "", "ms": 0.85 * style.font_size, "mew": 0.5, "mec": style.theme.text}
        handles.append(Line2D([], [], color=style.theme.neutral, label="anchor", **star))
    return handles
