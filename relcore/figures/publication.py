"""Publication figures: Matplotlib, at the column widths of a paper, with vector axes and fonts that travel
inside the file.

The same functions as in `interactive`, in a `Style` instead of a theme, without pyplot. Captions and titles
are left to the paper; see `paper` for fonts and settings.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from relcore.base.numbers import in_cell
from relcore.base.text import harmless
from relcore.figures.style import COLUMN, PAPER, POINT, Style, ramp_of
from relcore.figures.tables import (
    condition,
    histogram_table,
    score_places,
    score_range,
    score_table,
    spectrum_table,
)

# Paper: what every publication figure is printed on: its style, Matplotlib's settings, the legend, and the
# bytes of a file.
#
# No lasting change to Matplotlib's settings: they are set, under a lock, while a figure is built or written,
# since pages of several users draw at once and `matplotlib.rc_context` alone would leak from one thread into
# another. Text is DejaVu Sans, which ships with Matplotlib: embedded as TrueType (Type 42) in PDF, where it
# stays searchable and editable, and as outlines in SVG, where Matplotlib embeds no font and a reader without
# it would see another one.

Room = tuple[float, float, float, float]
_lock = threading.RLock()


def write(
    figure: Figure, kind: str, style: Style = PAPER, metadata: Mapping[str, str] | None = None
) -> bytes:
    """The bytes of a figure as "pdf", "svg" or "png": the same bytes for the same figure, whenever it is
    written.

    `metadata` goes into the file under the keys that Matplotlib knows for its kind.
    """
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind, {})
    with settings(style), BytesIO() as file:
        figure.savefig(file, format=kind, dpi=style.dpi, metadata={**undated, **(metadata or {})})
        written = file.getvalue()
    # Matplotlib writes each text of an SVG into a comment, too; with a control character it would be no XML.
    return harmless(written.decode()).encode() if kind == "svg" else written


@contextmanager
def settings(style: Style) -> Iterator[None]:
    """Matplotlib's settings for one figure, put back afterwards; one thread at a time."""
    with _lock, matplotlib.rc_context():
        matplotlib.rcdefaults()  # a reader's own matplotlibrc must not change a paper's figure
        matplotlib.rcParams.update(_settings(style))
        yield


def _settings(style: Style) -> dict:
    theme, size = style.theme, style.font_size
    surface = dict.fromkeys(("figure.facecolor", "savefig.facecolor", "axes.facecolor"), theme.surface)
    return surface | {
        "font.family": "DejaVu Sans",
        "font.size": size,
        "legend.fontsize": size,
        "axes.labelsize": size,
        "text.parse_math": False,  # a word may hold a dollar sign
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


def blank_figure(style: Style, height: float) -> Figure:
    figure = Figure(figsize=(style.width, height), dpi=style.dpi)
    FigureCanvasAgg(figure)
    return figure


def legend_below(figure: Figure, handles: list[Artist], style: Style) -> Legend | None:
    """The legend at the bottom, in as many columns as fit the width; None without names."""
    if not handles:
        return None
    look = {
        "frameon": False,
        "borderpad": 0.2,
        "borderaxespad": 0,
        "handletextpad": 0.4,
        "handlelength": 1.1,
        "columnspacing": 1.2,
        "labelspacing": 0.35,
    }
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0), ncols=columns, **look
        )
        if width_of(legend) <= style.width - 0.1 or columns == 1:
            break
        legend.remove()
    for text in legend.get_texts():
        cut_to(text, style.width - 0.4)
    return legend


def cut_to(text: Text, room: float) -> None:
    """End a text that is wider than `room` inches in an ellipsis."""
    whole = text.get_text()
    for length in range(len(whole), 0, -1):
        text.set_text(whole if length == len(whole) else whole[:length].rstrip() + "…")
        if width_of(text) <= room:
            return


def quiet_ticks(axes: Axes, style: Style, smaller: float = 1) -> None:
    """Short ticks in the theme's colours, their labels smaller than the text by `smaller` points."""
    look = {
        "labelsize": style.font_size - smaller,
        "labelcolor": style.theme.muted,
        "color": style.theme.border,
    }
    axes.tick_params(which="both", length=2, width=0.6, **look)


def draw_scale(
    figure: Figure, room: Room, places: Sequence[float], labels: Sequence[str], title: str, style: Style
) -> None:
    """The colours of a heat map beside it, 0 … 1 from pale to deep; `room` in shares of the figure."""
    ramp = LinearSegmentedColormap.from_list("heat map", ramp_of(style.theme))
    bar = figure.colorbar(ScalarMappable(Normalize(0, 1), ramp), cax=figure.add_axes(room), ticks=places)
    bar.outline.set_visible(False)
    bar.solids.set_rasterized(False)
    bar.ax.set_yticklabels(labels)
    quiet_ticks(bar.ax, style, 1.5)
    bar.set_label(title, fontsize=style.font_size - 0.5)


def width_of(artist: Artist) -> float:
    """Inches."""
    return artist.get_window_extent().width / artist.get_figure().dpi


def height_of(artist: Artist) -> float:
    """Inches."""
    return artist.get_window_extent().height / artist.get_figure().dpi


def score_bars_figure(table: pd.DataFrame, style: Style = PAPER) -> Figure:
    """Bars of scores, a group per metric, a colour per form; behind each, in grey, its chance level
    (`tables.score_table`).
    """
    with settings(style):
        table, room = score_places(score_table(table))
        forms, metrics, theme = (
            list(dict.fromkeys(table.form)),
            list(dict.fromkeys(table.metric)),
            style.theme,
        )
        figure, axes = chart_of(style, "", "score (1 = identical)")
        null = table.dropna(subset=["null_low", "null_high"])
        axes.bar(
            null.x,
            null.null_high - null.null_low,
            room,
            bottom=null.null_low,
            color=theme.null,
            ec=theme.muted,
            lw=0.4,
        )
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
            handles.append(
                Patch(facecolor=theme.null, edgecolor=theme.muted, lw=0.4, label="chance level, 95 % band")
            )
        letters = (
            style.width / len(metrics) / (0.6 * style.font_size * POINT)
        )  # as many have room under one metric
        names = [str(metric) for metric in metrics]
        axes.set_xticks(
            range(len(names)), [name if len(name) < letters else name.replace(", ", "\n") for name in names]
        )
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
    """Singular values as shares of the largest, logarithmic; the legend says the condition
    (`tables.spectrum_table`).
    """
    with settings(style):
        table = spectrum_table(singular_values_by_name)
        names = list(dict.fromkeys(table.name))
        figure, axes = chart_of(style, "component (rank)", "singular value / largest")
        handles = []
        for name, color in zip(names, style.theme.category_colors(len(names)), strict=True):
            part = table[table.name == name]
            shown = part[part.relative > 0]
            axes.plot(shown.component, shown.relative, color=color, lw=1, marker="o", ms=1.6)
            handles.append(
                Line2D([], [], color=color, lw=1, marker="o", ms=2, label=f"{name} · {condition(part)}")
            )
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(_power_of_ten)
        axes.yaxis.set_minor_formatter(lambda value, position: "")
        return fit_around(figure, axes, handles, style)


def _small(axes: Axes, text: str, x: float, y: float, style: Style) -> None:
    look = {
        "fontsize": style.font_size - (2 if style.width > COLUMN else 3),
        "ha": "center",
        "va": "bottom",
        "color": style.theme.text,
    }
    axes.annotate(text, (x, y), xytext=(0, 1), textcoords="offset points", **look)


def chart_of(style: Style, x_title: str, y_title: str) -> tuple[Figure, Axes]:
    """An empty chart in the style, under `settings(style)`; `fit_around` gives it its room when it is
    drawn.
    """
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
    for _ in range(
        4
    ):  # tick labels change with the room, and the room with them: a margin only grows, so that this ends
        box, tight = axes.get_window_extent(), axes.get_tightbbox()
        needed = (
            np.array([box.x0 - tight.x0, box.y0 - tight.y0, tight.x1 - box.x1, tight.y1 - box.y1])
            / figure.dpi
            + pad
        )
        margins = np.maximum(margins, needed + np.array([0, below + pad, 0, 0]))
        left, bottom, right, top = margins / [width, height, width, height]
        axes.set_position((left, bottom, 1 - left - right, 1 - bottom - top))
    return figure


def _power_of_ten(value: float, position: int) -> str:
    """``10⁻²``, spelled with the font's own superscripts: mathtext is off, so that a name may hold a
    dollar sign.
    """
    exponent = round(np.log10(value))
    return (
        "1" if exponent == 0 else "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    )
