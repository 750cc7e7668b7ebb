"""Publication charts, drawn by Matplotlib: lines, diagrams, matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation

from relcore.base.numbers import general
from relcore.figures.charts import Diagram, Lines, MovingPoints, mark_in_words
from relcore.figures.matrices import Matrices, MatrixPanel, label_step, name_of
from relcore.figures.paper_style import (
    add_axes,
    artist_height,
    artist_width,
    blank_figure,
    color_bar,
    fit_to,
    legend_below,
    quiet_ticks,
    settings,
)
from relcore.figures.style import COLUMN, PAPER, POINT, Style, ramp_of, text_on

_SLANTED = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}


def _chart(style: Style, x_title: str, y_title: str) -> tuple[Figure, Axes]:
    shape = 0.54 if style.width < 5 else 0.38
    figure = blank_figure(style, style.width * shape)
    axes = figure.add_subplot()
    axes.set(xlabel=x_title, ylabel=y_title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True)
    quiet_ticks(axes, style)
    return figure, axes


def _fit_around(figure: Figure, axes: Axes, handles: list[Artist], style: Style) -> Figure:
    pad = 0.04
    below = artist_height(legend_below(figure, handles, style)) if handles else 0.0
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
        for (x, y), text in diagram.line_texts():
            axes.text(
                x,
                y,
                text,
                ha="center",
                va="center",
                color=theme.muted,
                fontsize=style.font_size - 1,
                bbox={"color": theme.surface, "pad": 0.5},
            )
        axes.scatter(*diagram.points.T, s=16, color=colors, lw=0, zorder=2)
        for name, point, side in zip(diagram.names, diagram.points, diagram.sides, strict=True):
            if side:
                _write_name(axes, name, point, side, theme.text)
        axes.margins(0.2)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()
        return _fit_around(figure, axes, [], style)


# Side of a name → its distance from the point in points, and its alignment.
_BESIDE: dict[str, tuple[tuple[int, int], str, str]] = {
    "above": ((0, 4), "center", "bottom"),
    "below": ((0, -4), "center", "top"),
    "right": ((5, 0), "left", "center"),
    "left": ((-5, 0), "right", "center"),
    "above right": ((0, 4), "left", "bottom"),
    "above left": ((0, 4), "right", "bottom"),
    "below right": ((0, -4), "left", "top"),
    "below left": ((0, -4), "right", "top"),
}


def _write_name(axes: Axes, name: str, point: np.ndarray, side: str, color: str) -> None:
    offset, across, up = _BESIDE[side]
    axes.annotate(
        name,
        point,
        xytext=offset,
        textcoords="offset points",
        ha=across,
        va=up,
        color=color,
        parse_math=False,
    )


_MOST_MAPS = 12  # number of maps on one page


def moving_figure(moving: MovingPoints, style: Style = PAPER) -> Figure:
    """Draw the maps of moving points side by side. If there are more than twelve maps, twelve at even
    intervals are drawn."""
    theme = style.theme
    t = len(moving.titles)
    drawn_steps = np.unique(np.linspace(0, t - 1, min(t, _MOST_MAPS)).round().astype(int))
    middle, half_width = moving.edges
    most_columns = 2 if style.width < 5 else 4
    rows = -(-len(drawn_steps) // most_columns)
    columns = -(-len(drawn_steps) // rows)
    side = style.width / columns
    above = 1.8 * style.line
    size = (style.font_size - 2) / 72 / (side - 0.06)  # height of a letter, as a share of the map
    names, places = moving.named((0.6 * size, 1.2 * size))
    with settings(style):
        figure = blank_figure(style, rows * (side + above))
        for number, i in enumerate(drawn_steps):
            row, column = divmod(number, columns)
            y = figure.get_figheight() - (row + 1) * (side + above)
            axes = add_axes(figure, column * side + 0.03, y + 0.03, side - 0.06, side - 0.06)
            axes.scatter(*moving.places[i].T, s=2.5, c=moving.colors(theme), lw=0, rasterized=True)
            axes.set(
                xlim=middle[0] + np.array([-half_width, half_width]),
                ylim=middle[1] + np.array([-half_width, half_width]),
            )
            axes.set(xticks=[], yticks=[])
            title = axes.set_title(moving.titles[i], parse_math=False, fontsize=style.font_size, pad=3)
            fit_to(title, side - 0.1)
            halo = [withStroke(linewidth=1.5, foreground=theme.surface)]
            for name, place in zip(names, places[i], strict=True):
                if np.isnan(place).any():
                    continue
                axes.text(
                    *place,
                    name,
                    parse_math=False,
                    color=theme.text,
                    clip_on=True,
                    ha="center",
                    va="center",
                    fontsize=style.font_size - 2,
                    path_effects=halo,
                )
        return figure


def lines_figure(lines: Lines, style: Style = PAPER) -> Figure:
    with settings(style):
        figure, axes = _chart(style, lines.x_title, lines.y_title)
        handles = draw_lines(axes, lines, style)
        if lines.note:
            # When Matplotlib wraps lines, it reads text between dollar signs as mathematics.
            axes.set_title(
                lines.note,
                loc="left",
                fontsize=style.font_size - 1,
                color=style.theme.text,
                wrap="$" not in lines.note,
            )
        return _fit_around(figure, axes, handles, style)


def draw_lines(axes: Axes, lines: Lines, style: Style) -> list[Artist]:
    """Draw the lines, baselines and marks, and set the ticks. Returns the handles of a legend."""
    theme = style.theme
    handles: list[Artist] = []
    for line, color in zip(lines.lines, lines.colors(theme), strict=True):
        if len(line) and lines.kind == "lines":
            order = np.argsort(line.x, kind="stable")
            x = line.x[order]
            y = line.y[order]
            if line.has_band:
                axes.fill_between(x, line.low[order], line.high[order], color=color, alpha=0.16, lw=0)
            if lines.filled:
                axes.fill_between(x, y, color=color, alpha=0.15, lw=0)
            line_style = {"color": color, "lw": 1, "ls": "--" if line.dashed else "-"}
            axes.plot(x, y, **line_style, marker="o", ms=1.8 if len(line) <= 40 else 0)
            handles.append(Line2D([], [], **line_style, label=line.name))
        elif len(line):
            if line.has_band:
                reach = [line.y - line.low, line.high - line.y]
                axes.errorbar(line.x, line.y, reach, fmt="none", ecolor=color, elinewidth=0.5, alpha=0.5)
            raster = {"rasterized": len(line) > style.raster_above}
            if line.hollow:
                axes.scatter(line.x, line.y, s=9, facecolors="none", edgecolors=color, lw=0.6, **raster)
                line_style = {"color": color, "lw": 0, "markerfacecolor": "none"}
            else:
                axes.scatter(line.x, line.y, s=9, alpha=0.85, color=color, lw=0, **raster)
                line_style = {"color": color, "lw": 0}
            handles.append(Line2D([], [], marker="o", ms=3, label=line.name, **line_style))
    levels = [
        (f"{name}: {general(value)}", value, axes.axhline, theme.muted, _DASHES[i % 4])
        for i, (name, value) in enumerate(lines.baselines)
    ]
    levels += [(mark_in_words(*mark), mark[1], axes.axvline, theme.text, "-") for mark in lines.marks]
    for label, value, draw, color, dash in levels:
        line_style = {"color": color, "lw": 0.8, "ls": dash}
        draw(value, **line_style, zorder=1)
        handles.append(Line2D([], [], **line_style, label=label))
    if lines.log_x:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xticks([tick for tick in lines.log_ticks if low <= tick <= high])
        axes.xaxis.set_major_formatter(lambda value, position: general(value))
        axes.xaxis.set_minor_formatter(lambda value, position: "")
    if lines.counts:
        axes.xaxis.get_major_locator().set_params(integer=True)
    if names := lines.x_names:
        turned = _SLANTED if len(names) > 4 else {}
        axes.set_xticks(range(len(names)), names, **turned)
    if lines.y_range:
        axes.set_ylim(*lines.y_range)
    return handles


_RIGHT = 4.2  # lines of room at the right of heat maps, for the colour bar


class _Grid(NamedTuple):
    """The grid of heat maps. Its sizes are in inches."""

    total: float  # height of the figure
    across: int  # number of panels in a row of panels
    step_x: float  # from one panel to the next
    step_y: float
    left: float  # width of the row names
    wide: float  # width of a panel
    above: float  # height of the titles and column names of a panel
    high: float  # height of the panel with most rows
    cell: float  # height of a cell


def matrices_figure(data: Matrices, style: Style = PAPER) -> Figure:
    """The figure of heat maps: all panels in a grid, with column names above and row names at the left."""
    with settings(style):
        figure = blank_figure(style, 1)
        grid = _grid_of(figure, data, style)
        figure.set_figheight(grid.total)
        for number, panel in enumerate(data.panels):
            row, column = divmod(number, grid.across)
            x = grid.left + column * grid.step_x
            y = grid.total - row * grid.step_y - grid.above
            body = grid.cell * len(panel.rows)
            axes = add_axes(figure, x, y - body, grid.wide, body)
            beside = 0
            if column == 0 or not data.same_rows:
                beside = grid.left
            _draw_panel(axes, data, panel, style, (grid.wide, body, beside))
            letter = ""
            if style.panel_letters and 1 < len(data.panels) <= 12:
                letter = "abcdefghijkl"[number] + "  "
            y += grid.above - _title_lines(data) * style.line - 0.15 * style.line
            _title_panel(figure, panel, letter, (x, y, grid.wide), style)
        _draw_color_bar(figure, data, grid, style)
        return figure


def _grid_of(figure: Figure, data: Matrices, style: Style) -> _Grid:
    """The grid whose names at the left are as wide as the longest one, in the fonts of the figure."""
    line = style.line
    lines, across = data.grid(3 if style.width > COLUMN else 2)
    names = [figure.text(0, 0, name_of(row)) for panel in data.panels for row in panel.rows]
    left = min(max(map(artist_width, names)) + 1.6 * line, 0.3 * style.width)
    left += 1.2 * line if data.row_title else 0
    for name in names:
        name.remove()
    gap = 0.9 * line
    between = 0.8 * line
    if data.same_rows:
        lefts = left
        between_panels = 0.0
    else:
        lefts = left * across
        between_panels = left
    wide = (style.width - _RIGHT * line - lefts - gap * (across - 1)) / across
    n_lines = _title_lines(data) + 1.7
    if data.column_title:
        n_lines += 1.1
    above = line * n_lines
    most_rows, most_columns = data.most
    cell = float(np.clip(0.62 * wide / most_columns, min(1.5 * line, 3 / most_rows), 0.5))
    high = most_rows * cell
    total = lines * (above + high) + (lines - 1) * between + 0.05
    step_x = wide + gap + between_panels
    step_y = above + high + between
    return _Grid(total, across, step_x, step_y, left, wide, above, high, cell)


def _title_lines(data: Matrices) -> int:
    """The number of lines above each panel for its title and its note."""
    return sum(any(getattr(panel, name) for panel in data.panels) for name in ("title", "note"))


def _title_panel(
    figure: Figure, panel: MatrixPanel, letter: str, place: tuple[float, float, float], style: Style
) -> None:
    """Write the title of a panel and, below it, its note. `place` is the left end and the lower end of the
    note, and the width, in inches."""
    (x, y, wide) = place
    bold = {"fontweight": "bold", "ha": "left", "va": "bottom", "transform": figure.dpi_scale_trans}
    note = bold | {"fontsize": style.font_size - 1.5, "color": style.theme.muted, "fontweight": "normal"}
    y_title = y
    if panel.note:
        y_title += style.line
    if panel.title:
        fit_to(figure.text(x, y_title, letter + panel.title, **bold), wide)
    if panel.note:
        fit_to(figure.text(x, y, panel.note, **note), wide)


def _draw_color_bar(figure: Figure, data: Matrices, grid: _Grid, style: Style) -> None:
    """Draw the colour bar of all panels at the right of the first row of panels."""
    line = style.line
    height = min(grid.total - grid.above, max(grid.high, 1.2))
    left = style.width - _RIGHT * line + 0.6 * line
    axes = add_axes(figure, left, grid.total - grid.above - height + 0.02, 0.5 * line, height)
    (places, labels) = data.ticks()
    ramp = LinearSegmentedColormap.from_list("heat map", ramp_of(style.theme))
    bar = color_bar(axes, ramp, style, ticks=places)
    bar.ax.set_yticklabels(labels)
    bar.set_label(data.value_title, fontsize=style.font_size - 0.5)


def _draw_panel(
    axes: Axes, data: Matrices, panel: MatrixPanel, style: Style, size: tuple[float, float, float]
) -> None:
    """Draw a heat map with the names of its rows and columns. `size` is width, height and left margin in
    inches."""
    n_rows, n_columns = panel.values.shape
    wide = size[0] / n_columns
    high = size[1] / n_rows
    axes.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5))
    axes.axis("off")
    gap = 0.02 if min(wide, high) > 0.08 else 0.0
    _draw_cells(axes, data, panel, style, gap)
    _write_cells(axes, data, panel, style, (wide, high))
    by_number = data.numbered(panel, wide / _letter(style))
    _name_columns(axes, data, panel, style, wide, by_number)
    if size[2]:
        _name_rows(axes, data, panel, style, size, by_number)


def _letter(style: Style) -> float:
    """The width of a letter in inches."""
    return 0.62 * style.font_size * POINT


def _draw_cells(axes: Axes, data: Matrices, panel: MatrixPanel, style: Style, gap: float) -> None:
    """Draw the cells of a heat map. Cells without a value are hatched."""
    theme = style.theme
    n_rows, n_columns = panel.values.shape
    for i, j in np.ndindex(n_rows, n_columns):
        if np.isnan(panel.values[i, j]):
            cell_style = {"facecolor": theme.surface, "edgecolor": theme.border, "lw": 0.4, "hatch": "/////"}
            ink = theme.muted
        else:
            fill = data.color(panel.values[i, j], theme)
            cell_style = {"facecolor": fill, "edgecolor": fill, "lw": 0}
            ink = text_on(fill)
        axes.add_patch(Rectangle((j - 0.5 + gap / 2, i - 0.5 + gap / 2), 1 - gap, 1 - gap, **cell_style))
        if (i, j) in panel.marked:
            dotted = Rectangle(
                (j - 0.44, i - 0.42), 0.88, 0.84, facecolor="none", edgecolor=ink, lw=0.5, ls=":"
            )
            axes.add_patch(dotted)
    for i, j in panel.framed:
        color = theme.category_colors(5)[4]
        frame = Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor="none", edgecolor=color, lw=1.5, zorder=3)
        axes.add_patch(frame)


def _name_columns(
    axes: Axes, data: Matrices, panel: MatrixPanel, style: Style, wide: float, by_number: bool
) -> None:
    """Write the names or the numbers of the columns above a heat map, and the title of the columns."""
    n_columns = len(panel.columns)
    text_style = {"ha": "center", "va": "bottom"}
    if by_number:
        for j in range(n_columns):
            _lift(axes.text(j, -0.5, str(j + 1), fontweight="bold", **text_style), 2)
    else:
        names = [name_of(name) for name in panel.columns]
        every = label_step(n_columns, n_columns * wide / (_letter(style) * (max(map(len, names)) + 1)))
        for j in range(0, n_columns, every):
            _lift(axes.text(j, -0.5, names[j], fontweight="normal", **text_style), 2)
    if data.column_title:
        title = axes.text(
            (n_columns - 1) / 2,
            -0.5,
            data.column_title,
            **text_style,
            color=style.theme.muted,
            fontsize=style.font_size - 0.5,
        )
        _lift(title, 3.5 + 1.3 * style.font_size)


def _name_rows(
    axes: Axes,
    data: Matrices,
    panel: MatrixPanel,
    style: Style,
    size: tuple[float, float, float],
    by_number: bool,
) -> None:
    wide, high, left = size
    line = style.line
    n = len(panel.rows)
    right = 0.35 * line  # space between the names and the cells; numbers stand in it
    room = left - 0.4 * line
    if by_number:
        right = 1.3 * line
        room = left - 1.4 * line
    if data.row_title:
        room -= 1.2 * line
    at = {"transform": axes.transAxes, "va": "center"}
    for i in range(0, n, label_step(n, high / (1.1 * style.font_size * POINT))):
        middle = 1 - (i + 0.5) / n
        if by_number:
            axes.text(-0.6 * line / wide, middle, str(i + 1), ha="center", fontweight="bold", **at)
        fit_to(axes.text(-right / wide, middle, name_of(panel.rows[i]), ha="right", **at), room)
    if data.row_title:
        axes.text(
            -(left - 0.05) / wide,
            0.5,
            data.row_title,
            color=style.theme.muted,
            fontsize=style.font_size - 0.5,
            rotation=90,
            ha="left",
            **at,
        )


def _write_cells(
    axes: Axes, data: Matrices, panel: MatrixPanel, style: Style, cell: tuple[float, float]
) -> None:
    """Write the texts of the cells if all of them fit. The small print of the cells is written if it fits,
    too."""
    wide, high = cell
    texts = panel.shown_texts()
    if not texts:
        return
    size = style.font_size
    probe = axes.text(0, 0, max((first for first, _ in texts.values()), key=len), fontsize=size)
    size = min(size, size * 0.9 * wide / max(artist_width(probe), 1e-9))
    probe.remove()
    if size < 4 or high < 1.1 * size * POINT:
        return
    probe = axes.text(0, 0, max((small for _, small in texts.values()), key=len), fontsize=size - 2)
    with_small = artist_width(probe) <= 0.92 * wide and high >= 2.5 * size * POINT
    probe.remove()
    for (i, j), (first, small) in texts.items():
        text_style = {"ha": "center", "color": text_on(data.color(panel.values[i, j], style.theme))}
        if with_small and small:
            axes.text(j, i - 0.02, first, va="bottom", fontsize=size, **text_style)
            axes.text(j, i + 0.08, small, va="top", fontsize=size - 2, **text_style)
        else:
            axes.text(j, i, first, va="center_baseline", fontsize=size, **text_style)


def _lift(text: Text, points: float) -> None:
    lift = ScaledTranslation(0, points * POINT, text.get_figure().dpi_scale_trans)
    text.set_transform(text.get_transform() + lift)
