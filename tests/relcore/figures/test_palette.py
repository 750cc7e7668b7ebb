"""Palette: told apart by normal, protan and deutan eyes, and seen on its surface."""

import numpy as np
import pytest

from relcore.figures.style import DARK, LIGHT

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
EYES = {
    "normal": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)


def linear(color):
    value = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = (
        np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        @ rgb
        / [0.9505, 1, 1.089]
    )
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    low, high = sorted(np.array([0.2126, 0.7152, 0.0722]) @ linear(color) + 0.05 for color in (one, other))
    return high / low


@THEMES
@pytest.mark.parametrize(("n", "apart"), [(8, 14), (20, 6)])
@pytest.mark.parametrize("eye", EYES)
def test_every_pair_of_colors_is_told_apart(theme, n, apart, eye):
    seen = np.array(
        [lab(np.clip(np.array(EYES[eye]) @ linear(color), 0, 1)) for color in theme.category_colors(n)]
    )
    distances = np.linalg.norm(seen[:, None] - seen[None], axis=2)[~np.eye(n, dtype=bool)]
    assert distances.min() > apart


@THEMES
def test_text_is_readable_and_marks_are_seen(theme):
    for text, ground in (
        (theme.text, theme.surface),
        (theme.muted, theme.surface),
        (theme.muted, theme.page),
    ):
        assert contrast(text, ground) >= 4.5
    assert contrast(theme.accent, theme.surface) >= 4.5
    assert contrast(theme.accent, theme.on_accent) >= 4.5
    assert min(contrast(color, theme.surface) for color in theme.category_colors(6)) >= 2.2
