"""What all publication figures share: size, font, axes and legends."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from relcore.base.text import harmless
from relcore.figures.style import PAPER, Style

_SMALLEST = 4.5  # minimum size of a letter, in points
# The metadata with which Matplotlib writes no date.
_UNDATED: Mapping[str, Mapping[str, None]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {},
}
_lock = threading.RLock()


def write(
    figure: Figure, kind: str, style: Style = PAPER, metadata: Mapping[str, str] | None = None
) -> bytes:
    """The content of a "pdf", "svg" or "png" file of the figure. Equal figures give equal bytes.

    `metadata` uses the keys that Matplotlib has for this kind of file.
    """
    facts = {**_UNDATED[kind], **(metadata or {})}
    with settings(style), BytesIO() as file:
        figure.savefig(file, format=kind, dpi=style.dpi, metadata=facts)
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


def blank_figure(style: Style, height: float) -> Figure:
    figure = Figure(figsize=(style.width, height), dpi=style.dpi)
    FigureCanvasAgg(figure)
    return figure


def add_axes(figure: Figure, x: float, y: float, wide: float, high: float, **options: Any) -> Axes:
    """Axes whose lower left corner and size are given in inches."""
    width, height = figure.get_size_inches()
    return figure.add_axes((x / width, y / height, wide / width, high / height), **options)


def legend_below(figure: Figure, handles: list[Artist], style: Style) -> Legend | None:
    """Add a legend at the bottom, with as many columns as fit. If no artist has a label, add nothing and
    return None."""
    options = {"frameon": False, "borderpad": 0.2, "borderaxespad": 0, "handletextpad": 0.4}
    options |= {"handlelength": 1.1, "columnspacing": 1.2, "labelspacing": 0.35, "handles": handles}
    legend = None
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(loc="lower center", bbox_to_anchor=(0.5, 0), ncols=columns, **options)
        if artist_width(legend) <= style.width - 0.1 or columns == 1:
            break
        legend.remove()
    if legend:
        for text in legend.get_texts():
            fit_to(text, style.width - 0.4)
    return legend


def fit_to(text: Text, room: float) -> None:
    """Reduce the font of a text, to `_SMALLEST` points at least, until the text fits into `room` inches. If
    it is still too long, cut it in the middle."""
    while artist_width(text) > room and text.get_fontsize() > _SMALLEST:
        text.set_fontsize(max(_SMALLEST, 0.95 * text.get_fontsize()))
    whole = text.get_text()
    for left_out in range(2, len(whole)):
        if artist_width(text) <= room:
            return
        kept = len(whole) - left_out
        text.set_text(f"{whole[: kept - kept // 2]}…{whole[len(whole) - kept // 2 :]}")


def quiet_ticks(axes: Axes, style: Style, smaller: float = 1) -> None:
    """Set short ticks in the colours of the theme, with labels that are `smaller` points below the font size.
    Matplotlib's global settings would not work, because ticks are created only when they are drawn."""
    axes.tick_params(
        which="both",
        length=2,
        width=0.6,
        color=style.theme.border,
        labelsize=style.font_size - smaller,
        labelcolor=style.theme.muted,
    )


def color_bar(axes: Axes, colors: Colormap, style: Style, **options: Any) -> Colorbar:
    bar = axes.get_figure().colorbar(ScalarMappable(Normalize(0, 1), colors), cax=axes, **options)
    bar.outline.set_visible(False)
    bar.solids.set_rasterized(False)
    quiet_ticks(bar.ax, style, 1.5)
    return bar


def artist_width(artist: Artist) -> float:
    """The width of a drawn artist in inches."""
    return artist.get_window_extent().width / artist.get_figure().dpi


def artist_height(artist: Artist) -> float:
    """The height of a drawn artist in inches."""
    return artist.get_window_extent().height / artist.get_figure().dpi
