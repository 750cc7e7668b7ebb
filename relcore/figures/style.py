"""The colours of figures, and `Style`, the settings of a printed figure. Matplotlib is not imported."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.base.settings import setting

# Colours of classes that colour-blind readers can tell apart. The first six are those of Okabe and Ito (2008,
# "Color Universal Design"), without yellow (too pale on white) and black (used for text). Then come those of
# Paul Tol ("Colour Schemes", SRON technical note 09-002), ordered so that each differs as much as possible
# from those before it. The dark theme replaces blue and indigo, which are hard to see on it.

SEQUENTIAL = "viridis"  # a name that Plotly and Matplotlib both know
DIVERGING = "PuOr"

_OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_BLUE_ON_DARK = "#5A84F0"
_ON_LIGHT = ("#332288", "#882255", "#225522", "#FFAABB", "#EE6677", "#999933", "#88CCEE")
_ON_LIGHT += ("#117733", "#44BB99", "#AA3377", "#EE8866", "#BBCC33", "#228833", "#4477AA")
_ON_DARK = ("#EEDD88", "#FFAABB", "#666633", "#99DDFF", "#AA3377", "#EE6677", "#999933")
_ON_DARK += ("#44BB99", "#EE8866", "#BBCC33", "#4477AA", "#AA4499", "#228833", "#CCBB44")


def rgb(color: str) -> tuple[int, ...]:
    """Red, green and blue of a hexadecimal colour, each 0 … 255."""
    return tuple(bytes.fromhex(color[1:]))


def mix_colors(color: str, other: str) -> str:
    """Mix two hexadecimal colours: 55 % of the first and 45 % of the second."""
    pairs = zip(rgb(color), rgb(other), strict=True)
    return "#" + "".join(f"{round(0.55 * a + 0.45 * b):02x}" for a, b in pairs)


@dataclass(frozen=True)
class Theme:
    """The colours and the font of everything in a figure except the data. Plotly, Matplotlib and the style
    sheet of the app use the same theme.

    Attributes
    ----------
    page, surface : str
        The background colour of the page, and that of a figure.
    text, muted : str
        The colour of titles and numbers, and that of notes and axis titles.
    grid, border : str
        The colour of lines inside a plot, and that of the frame of a pane.
    neutral, null : str
        The colour of points without a class, and that of the band of the chance level.
    accent : str
        The colour of buttons, links and emphasis.
    font : str
        A CSS font stack that needs no network.
    """

    name: str
    page: str
    surface: str
    text: str
    muted: str
    grid: str
    border: str
    neutral: str
    null: str
    accent: str
    font: str = '"Source Sans", system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif'

    @property
    def dark(self) -> bool:
        return self.name == "dark"

    def category_colors(self, n: int) -> list[str]:
        """A list of `n` hexadecimal colours in a fixed order, which repeats after 20 colours."""
        if self.dark:
            colors = (_BLUE_ON_DARK, *_OKABE_ITO[1:], *_ON_DARK)
        else:
            colors = _OKABE_ITO + _ON_LIGHT
        return [colors[i % len(colors)] for i in range(n)]


LIGHT = Theme(
    name="light",
    page="#f7f7fb",
    surface="#ffffff",
    text="#1b1d28",
    muted="#5c6070",
    grid="#e8e9ef",
    border="#c9cbd6",
    neutral="#b4b7c3",
    null="#d5d7e0",
    accent="#4338a8",
)

DARK = Theme(
    name="dark",
    page="#0f1118",
    surface="#161923",
    text="#eceef6",
    muted="#a3a8bb",
    grid="#2a2e3d",
    border="#3d4254",
    neutral="#656b80",
    null="#3d4254",
    accent="#aaa3ff",
)


POINT = 1 / 72  # inches
# inches: width of one of two columns, and of both
COLUMN = 3.25
PAGE = 6.75


@dataclass(frozen=True)
class Style:
    """The settings of a printed figure.

    Attributes
    ----------
    width : float
        Width in inches: `COLUMN`, `PAGE` or another width, 2 to 12.
    dpi : int
        Resolution of PNG and of rastered points in PDF and SVG, 72 to 1200.
    panel_letters : bool
        Whether the titles of several panes begin with a bold letter (a, b, c, d).
    font_size : float
        Font size in points.
    raster_above : int
        The number of points above which the points of a pane are rastered. Everything else is vector
        graphics.
    """

    width: float = setting(PAGE, low=2, high=12, metavar="INCHES", help="3.25 for a column, 6.75 for a page.")
    dpi: int = setting(
        300, low=72, high=1200, help="Resolution of png, and of points that pdf and svg hold as pixels."
    )
    panel_letters: bool = setting(True, help="Write the letters a, b, c, d before the titles.")
    font_size: float = setting(8.0, low=4, high=24, metavar="POINTS", help="Size of the letters.")
    raster_above: int = 20_000
    theme: Theme = LIGHT

    @property
    def line(self) -> float:
        """The height of a line of text in inches."""
        return 1.35 * self.font_size * POINT


PAPER = Style()


# Colours of heat maps: a ramp of one hue, and the colour of the text on it.

_INKS = ("#0b0c12", "#ffffff")
_RAMPS = {
    False: ("#f1f1f8", "#c9c6e8", "#8f86d0", "#4338a8", "#241a6b"),
    True: ("#1f2233", "#37346b", "#5b52ad", "#857ce0", "#c4bfff"),
}


def ramp_of(theme: Theme) -> tuple[str, ...]:
    """The colours of the ramp, which show values as colours: five shades of the same hue, palest first."""
    return _RAMPS[theme.dark]


def cell_color(share: float, theme: Theme) -> tuple[float, float, float]:
    """The colour at a position on the ramp, 0 (palest) … 1 (deepest), as red, green and blue, each 0 … 1."""
    ramp = [_shares(color) for color in ramp_of(theme)]
    places = np.linspace(0, 1, len(ramp))
    return tuple(float(np.interp(share, places, channel)) for channel in zip(*ramp, strict=True))


def text_on(color: tuple[float, float, float]) -> str:
    """Black or white, whichever has more contrast with a colour (red, green, blue, each 0 … 1; WCAG 2)."""
    (dark_ink, light_ink) = _INKS
    dark = _luminance(_shares(dark_ink)) + 0.05
    light = _luminance(_shares(light_ink)) + 0.05
    return _INKS[(_luminance(color) + 0.05) ** 2 < dark * light]  # the contrast is the ratio of luminances


def _luminance(color: tuple[float, ...]) -> float:
    """The relative luminance of WCAG of a colour in sRGB, 0 to 1."""
    return float(np.dot([_linear(part) for part in color], (0.2126, 0.7152, 0.0722)))


def _linear(share: float) -> float:
    """The linear share of red, green or blue, without the gamma of sRGB."""
    if share <= 0.04045:
        return share / 12.92
    return ((share + 0.055) / 1.055) ** 2.4


def _shares(color: str) -> tuple[float, ...]:
    return tuple(part / 255 for part in rgb(color))
