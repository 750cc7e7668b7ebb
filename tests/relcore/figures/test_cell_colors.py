"""Colours of heat maps tell a score by lightness alone, and text on them can be read."""

import numpy as np
import pytest

from relcore.figures.style import DARK, LIGHT, cell_color, ramp_of, text_on


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_lightness_alone_tells_the_score_and_text_is_readable_on_all(theme):
    def luminance(color):
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in color]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    colors = [cell_color(score, theme) for score in np.linspace(-0.2, 1.2, 57)]
    levels = np.array([luminance(color) for color in colors])
    steps = np.diff(levels[8:49])
    assert (steps > 0).all() if theme.dark else (steps < 0).all()
    assert levels[0] == levels[8]  # beyond the scale its end
    inks = [luminance(tuple(int(text_on(color)[i : i + 2], 16) / 255 for i in (1, 3, 5))) for color in colors]
    low, high = np.minimum(inks, levels), np.maximum(inks, levels)
    assert ((high + 0.05) / (low + 0.05)).min() > 4.3
    assert len(ramp_of(theme)) == 5
