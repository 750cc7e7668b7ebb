"""Style: how a figure is printed. Apart from the drawing, so that a page can offer the choices without loading Matplotlib."""

from __future__ import annotations

from dataclasses import dataclass

from relcore.figures.palette import LIGHT, Theme
from relcore.spaces import SpaceError

POINT = 1 / 72  # inches
COLUMN, PAGE = 3.25, 6.75  # inches: one column of two, and the width of the text


@dataclass(frozen=True)
class Style:
    """How a figure is printed.

    Attributes
    ----------
    width : float
        Inches, exactly those of the page: `COLUMN` or `PAGE`, or 2 to 12.
    dpi : int
        Of PNG and of the rastered points in PDF and SVG, 72 to 1200.
    panel_letters : bool
        Bold a, b, c, d before the titles of more than one pane.
    font_size : float
        Points.
    raster_above : int
        Panes with more points than this hold them as one picture; axes, text and anchors stay vector.
    theme : Theme
    """

    width: float = PAGE
    dpi: int = 300
    panel_letters: bool = True
    font_size: float = 8
    raster_above: int = 20_000
    theme: Theme = LIGHT

    @property
    def line(self) -> float:
        """Height of a line of text in inches."""
        return 1.35 * self.font_size * POINT

    def __post_init__(self) -> None:
        for name, low, high, unit in (
            ("width", 2, 12, "inches"),
            ("dpi", 72, 1200, "dots per inch"),
            ("font_size", 4, 24, "points"),
        ):
            if not low <= getattr(self, name) <= high:
                raise SpaceError(f"{name}: expected {low} to {high} {unit}, got {getattr(self, name)}")


PAPER = Style()
