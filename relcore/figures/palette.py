"""Palette: the colours of Relscope, on screen and on paper, distinguishable for colour-blind eyes.

Categories start with six colours of Okabe and Ito (2008, "Color Universal Design"), strongest on a white page first; their
yellow and black are left out, one too pale on white, one the colour of text. The rest are Paul Tol's ("Colour Schemes", SRON
technical note 09-002: muted, bright, light, dark), each the one farthest, to normal, protan and deutan eyes, from those before
it. The first six are alike on light and dark; then each surface has its own, as indigo vanishes on a dark one. No list of
colours stays readable beyond about ten; after 20 they repeat. The accent is a deep indigo, which is not a category colour.
"""

from __future__ import annotations

from dataclasses import dataclass

SEQUENTIAL = "viridis"  # known by these names to Plotly and Matplotlib alike
DIVERGING = "PuOr"

_OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_ON_LIGHT = ("#332288", "#882255", "#225522", "#FFAABB", "#EE6677", "#999933", "#88CCEE")
_ON_LIGHT += ("#117733", "#44BB99", "#AA3377", "#EE8866", "#BBCC33", "#228833", "#4477AA")
_ON_DARK = ("#EEDD88", "#FFAABB", "#666633", "#99DDFF", "#AA3377", "#EE6677", "#999933")
_ON_DARK += ("#44BB99", "#EE8866", "#BBCC33", "#4477AA", "#AA4499", "#228833", "#CCBB44")


def category_colors(n: int, dark: bool = False) -> list[str]:
    """`n` hexadecimal colours, always the same first ones; repeating after 20."""
    colors = _OKABE_ITO + (_ON_DARK if dark else _ON_LIGHT)
    return [colors[i % len(colors)] for i in range(n)]


def mixed(color: str, other: str, share: float = 0.55) -> str:
    """Two hexadecimal colours mixed, `share` of the first."""
    pairs = [(int(color[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(share * one + (1 - share) * two):02x}" for one, two in pairs)


@dataclass(frozen=True)
class Theme:
    """The colours and the font around the data, shared by Plotly, Matplotlib and the app's style sheet.

    Attributes
    ----------
    page, surface : str
        Behind everything; behind a figure.
    text, muted : str
        Titles and numbers; notes and axis titles.
    grid, border : str
        Lines inside a plot; the frame of a pane.
    neutral : str
        Points of no category.
    null : str
        The band of the chance level.
    accent, on_accent : str
        The one colour of buttons, links and emphasis; text on it.
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
    on_accent: str
    font: str = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'

    @property
    def dark(self) -> bool:
        return self.name == "dark"

    def category_colors(self, n: int) -> list[str]:
        return category_colors(n, dark=self.dark)


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
    on_accent="#ffffff",
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
    on_accent="#14122e",
)
