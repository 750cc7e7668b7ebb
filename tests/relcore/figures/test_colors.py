"""Colours: scales, text on them, and categories told apart by all eyes."""

import numpy as np
import pytest

from relcore.figures.colorings import STEPS, Coloring, ColorScale
from relcore.figures.style import DARK, LIGHT, cell_color, text_on


def test_share_of_number_is_its_place_between_ends():
    scale = ColorScale("n", 10, 20)
    np.testing.assert_allclose(scale.shares([5, 10, 12.5, 20, 99]), [0, 0, 0.25, 1, 1])
    assert scale.steps([10, 19.99, 20, np.nan]).tolist() == [0, STEPS - 1, STEPS - 1, -1]
    logarithmic = ColorScale("n", 1, 100, logarithmic=True)
    np.testing.assert_allclose(logarithmic.shares([1, 10, 100]), [0, 0.5, 1])


def test_one_far_value_does_not_take_all_colours():
    scale = ColorScale.of(np.append(np.arange(999.0), 1e9), "n")
    assert scale.high < 1000
    assert not scale.logarithmic
    assert ColorScale.of(np.geomspace(1, 1e6, 500), "n").logarithmic
    assert not ColorScale.of(np.geomspace(1, 1e6, 500) - 1, "n").logarithmic  # 0 has no logarithm


@pytest.mark.parametrize(
    ("ends", "texts"),
    [
        ((1950, 1999), ["1950", "1960", "1970", "1980", "1990"]),
        ((-0.2, 0.33), ["−.2", "0", ".2"]),
        ((3, 50_000, True), ["10", "100", "1000", "10,000"]),
    ],
)
def test_ticks_are_round_numbers_on_the_scale(ends, texts):
    ticks = ColorScale("n", *ends).ticks()
    assert [text for _, text in ticks] == texts
    assert all(0 <= place <= 1 for place, _ in ticks)


def test_parts_of_bar_cover_it_and_hide_their_rows():
    values = np.linspace(0, 80, 161)
    scale = ColorScale("n", 0, 80)
    assert scale.parts() == ["up to 10", *(f"{low} … {low + 10}" for low in range(10, 70, 10)), "from 70"]
    hidden = Coloring(scale.steps(values), scale=scale, values=values, hidden=("2/8", "8/8")).hidden_rows()
    np.testing.assert_array_equal(hidden, ((values >= 10) & (values < 20)) | (values >= 70))


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


def rgb_of(color):
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def linear(rgb):
    rgb = np.asarray(rgb)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = (
        np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        @ rgb
        / [0.9505, 1, 1.089]
    )
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def luminance(rgb):
    return float(np.array([0.2126, 0.7152, 0.0722]) @ linear(rgb))


def contrast(one, other):
    low, high = sorted(luminance(rgb_of(color)) + 0.05 for color in (one, other))
    return high / low


@THEMES
def test_lightness_alone_tells_score_and_text_is_readable_on_all(theme):
    colors = [cell_color(score, theme) for score in np.linspace(-0.2, 1.2, 57)]
    levels = np.array([luminance(color) for color in colors])
    steps = np.diff(levels[8:49])
    assert (steps > 0).all() if theme.dark else (steps < 0).all()
    assert levels[0] == levels[8]  # beyond the scale its end
    inks = np.array([luminance(rgb_of(text_on(color))) for color in colors]) + 0.05
    assert np.exp(np.abs(np.log(inks / (levels + 0.05)))).min() > 4.3


@THEMES
@pytest.mark.parametrize(("n", "apart"), [(8, 14), (20, 6)])
@pytest.mark.parametrize("eye", EYES)
def test_every_pair_of_colors_is_told_apart(theme, n, apart, eye):
    seen = np.array(
        [
            lab(np.clip(np.array(EYES[eye]) @ linear(rgb_of(color)), 0, 1))
            for color in theme.category_colors(n)
        ]
    )
    distances = np.linalg.norm(seen[:, None] - seen[None], axis=2)[~np.eye(n, dtype=bool)]
    assert distances.min() > apart


@THEMES
def test_text_is_readable_and_marks_are_seen(theme):
    grounds = {theme.text: [theme.surface], theme.muted: [theme.surface, theme.page]}
    assert min(contrast(text, one) for text in grounds for one in grounds[text]) >= 4.5
    assert contrast(theme.accent, theme.surface) >= 4.5
    assert min(contrast(color, theme.surface) for color in theme.category_colors(6)) >= 2.2
