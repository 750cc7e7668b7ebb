"""Colours of heat maps, the same on screen and on paper: a ramp of one hue, and ink that can be read on it."""

from __future__ import annotations

import numpy as np

from relcore.figures.palette import Theme

_INKS = ("#0b0c12", "#ffffff")
_RAMPS = {
    False: ("#f1f1f8", "#c9c6e8", "#8f86d0", "#4338a8", "#241a6b"),
    True: ("#1f2233", "#37346b", "#5b52ad", "#857ce0", "#c4bfff"),
}


def ramp_of(theme: Theme) -> tuple[str, ...]:
    """Five colours, palest first: one hue in different lightness, readable for colour-blind eyes and in greyscale."""
    return _RAMPS[theme.dark]


def cell_color(share: float, theme: Theme) -> tuple[float, float, float]:
    """The colour of a place on the ramp, 0 palest … 1 deepest, as three shares 0 … 1; beyond the ramp its end."""
    ramp = np.array([_shares(color) for color in ramp_of(theme)])
    return tuple(float(np.interp(share, np.linspace(0, 1, len(ramp)), ramp[:, channel])) for channel in range(3))


def text_on(color: tuple[float, float, float]) -> str:
    """Black or white, whichever has more contrast on a colour of three shares 0 … 1 (contrast of WCAG 2)."""
    return max(_INKS, key=lambda ink: _contrast(_shares(ink), color))


def _contrast(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: tuple[float, ...]) -> float:
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in color[:3]]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def _shares(color: str) -> tuple[float, ...]:
    return tuple(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
