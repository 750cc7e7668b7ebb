"""Paper: what every publication figure is printed on: its style, Matplotlib's settings, the legend, and the bytes of a file.

No lasting change to Matplotlib's settings: they are set, under a lock, while a figure is built or written, since pages of
several users draw at once and `matplotlib.rc_context` alone would leak from one thread into another. Text is DejaVu Sans, which
ships with Matplotlib: embedded as TrueType (Type 42) in PDF, where it stays searchable and editable, and as outlines in SVG,
where Matplotlib embeds no font and a reader without it would see another one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from relcore.figures.cell_colors import ramp_of
from relcore.figures.style import PAPER, Style
from relcore.plain_text import harmless

Room = tuple[float, float, float, float]
_lock = threading.RLock()


def write(figure: Figure, kind: str, style: Style = PAPER, metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a figure as "pdf", "svg" or "png": the same bytes for the same figure, whenever it is written.

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
        legend = figure.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0), ncols=columns, **look)
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
    look = {"labelsize": style.font_size - smaller, "labelcolor": style.theme.muted, "color": style.theme.border}
    axes.tick_params(which="both", length=2, width=0.6, **look)


def draw_scale(figure: Figure, room: Room, places: Sequence[float], labels: Sequence[str], title: str, style: Style) -> None:
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
