"""Panels whose points move together, over a chart of lines: on paper as a strip of frames, and as a film."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from relcore.base.errors import need_one_of
from relcore.figures.charts import MovingPanels
from relcore.figures.paper_charts import draw_lines
from relcore.figures.paper_style import (
    add_axes,
    artist_height,
    blank_figure,
    fit_to,
    legend_below,
    quiet_ticks,
    settings,
)
from relcore.figures.style import PAPER, Style

FILMS = ("webp", "gif")
_MOST_COLUMNS = 6
_FILM_DPI = 110
_FILM_FRAMES = 90  # fewer frames are filled up with frames between them
_MILLISECONDS = 70
_LAST_MILLISECONDS = 1800


def moving_panels_figure(moving: MovingPanels, style: Style = PAPER) -> Figure:
    """Draw up to six frames of each panel in a row, and the lines below."""
    n_frames = len(moving.frames)
    drawn_frames = np.unique(np.linspace(0, n_frames - 1, min(n_frames, _MOST_COLUMNS)).round().astype(int))
    left = 1.4 * style.line
    side = (style.width - left) / max(len(drawn_frames), 3)
    above = 1.5 * style.line
    with settings(style):
        figure = blank_figure(style, above + len(moving.panels) * side)
        axes = _lines_below(figure, moving, style)
        top = figure.get_figheight() - above
        for row, name in enumerate(moving.panels):
            low = top - (row + 1) * side
            title = figure.text(
                0.5 * style.line / style.width, (low + side / 2) / figure.get_figheight(), name
            )
            title.set(rotation=90, va="center", ha="center", parse_math=False, fontsize=style.font_size)
            for column, number in enumerate(drawn_frames):
                place = left + column * side + 0.02, low + 0.02, side - 0.04, side - 0.04
                panel = _panel(figure, moving, place)
                panel.scatter(*moving.places[row, number].T, s=2, c=moving.colors(style.theme), **_DOTS)
                if row == 0:
                    heading = panel.set_title(moving.frames[number], fontsize=style.font_size, pad=3)
                    fit_to(heading, side)
        for number in drawn_frames:
            axes.axvline(moving.xs[number], color=style.theme.border, lw=0.6, zorder=0)
        return figure


_DOTS: dict[str, Any] = {"lw": 0, "rasterized": True}


def film(moving: MovingPanels, kind: str = "webp", style: Style = PAPER) -> bytes:
    """The content of an animated picture, "webp" or "gif": panels side by side, and the lines below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    need_one_of("kind", kind, FILMS)
    n_panels = len(moving.panels)
    side = style.width / max(n_panels, 2)
    above = 1.6 * style.line
    pictures = []
    with settings(style):
        figure = blank_figure(style, side + above)
        figure.set_dpi(_FILM_DPI)
        axes = _lines_below(figure, moving, style)
        low = figure.get_figheight() - above - side
        dots = []
        for column, name in enumerate(moving.panels):
            panel = _panel(figure, moving, (column * side + 0.02, low, side - 0.04, side - 0.04))
            fit_to(panel.set_title(name, loc="left", parse_math=False, fontsize=style.font_size, pad=3), side)
            colors = moving.colors(style.theme)
            dots.append(panel.scatter(*moving.places[column, 0].T, s=5, c=colors, **_DOTS))
        heading = figure.text(0.995, 0.995, "", ha="right", va="top", fontsize=style.font_size)
        mark = axes.axvline(moving.xs[0], color=style.theme.accent, lw=1.2)
        changing = [*dots, mark, heading]
        for artist in changing:
            artist.set_animated(True)  # so that what stays is drawn once
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        still = canvas.copy_from_bbox(figure.bbox)
        for places, x, title in _between(moving):
            for one, xy in zip(dots, places, strict=True):
                one.set_offsets(xy)
            mark.set_xdata([x, x])
            heading.set_text(title)
            canvas.restore_region(still)
            for artist in changing:
                figure.draw_artist(artist)
            pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB"))
    durations = [_MILLISECONDS] * (len(pictures) - 1) + [_LAST_MILLISECONDS]
    stream = BytesIO()
    save_options: dict[str, Any] = {
        "save_all": True,
        "append_images": pictures[1:],
        "duration": durations,
        "loop": 0,
    }
    if kind == "webp":
        save_options |= {"quality": 80, "method": 2}
    pictures[0].save(stream, kind.upper(), **save_options)
    return stream.getvalue()


def _between(moving: MovingPanels) -> list[tuple[np.ndarray, float, str]]:
    """The places (p, n, 2), the x and the title of each picture of a film: the frames, and if there are few,
    pictures between them."""
    n_frames = len(moving.frames)
    n_parts = max(1, _FILM_FRAMES // max(n_frames, 1))
    pictures = []
    for number in range(n_frames - 1):
        for part in range(n_parts):
            share = part / n_parts
            places = (1 - share) * moving.places[:, number] + share * moving.places[:, number + 1]
            x = moving.xs[number] ** (1 - share) * moving.xs[number + 1] ** share
            pictures.append((places, x, moving.frames[number]))
    return [*pictures, (moving.places[:, -1], moving.xs[-1], moving.frames[-1])]


def _panel(figure: Figure, moving: MovingPanels, place: tuple[float, float, float, float]) -> Axes:
    axes = add_axes(figure, *place)
    reach = moving.reach
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
    return axes


def _lines_below(figure: Figure, moving: MovingPanels, style: Style) -> Axes:
    """Draw the lines below what the figure has, for which it grows. Returns their axes."""
    high = 1.5
    axes = figure.add_subplot()
    axes.set(xlabel=moving.lines.x_title, ylabel=moving.lines.y_title)
    axes.spines[["top", "right"]].set_visible(False)
    quiet_ticks(axes, style)
    handles = draw_lines(axes, moving.lines, style)
    legend = legend_below(figure, handles, style)
    below = 2.8 * style.line
    if legend is not None:
        below += artist_height(legend)
    total = figure.get_figheight() + high + below + style.line
    figure.set_figheight(total)
    left = 4 * style.line
    axes.set_position((left / style.width, below / total, 1 - (left + 0.1) / style.width, high / total))
    return axes
