"""A scale maps numbers to colours in order, its ends resist far values, and its ticks are round numbers on
it.
"""

import numpy as np
import pytest

from relcore.figures.scene import PARTS, STEPS, Coloring, ColorScale


def test_the_share_of_a_number_is_its_place_between_the_ends():
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


def test_numbers_that_are_all_equal_or_unknown_have_a_scale():
    assert ColorScale.of(np.full(5, 3.0), "n").steps([3.0]).tolist() == [STEPS // 2]
    assert ColorScale.of(np.full(5, np.nan), "n").steps([np.nan]).tolist() == [-1]
    assert ColorScale.of(np.append(np.zeros(990), np.ones(1)), "n").high == 1  # both percentiles are 0


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


def test_the_parts_of_a_bar_cover_it_and_hide_their_rows():
    values = np.linspace(0, 80, 161)
    scale = ColorScale("n", 0, 80)
    assert scale.parts() == [
        "up to 10",
        "10 … 20",
        "20 … 30",
        "30 … 40",
        "40 … 50",
        "50 … 60",
        "60 … 70",
        "from 70",
    ]
    hidden = Coloring(
        scale.steps(values), scale=scale, values=values, hidden=("2/8", f"{PARTS}/8")
    ).hidden_rows()
    np.testing.assert_array_equal(hidden, ((values >= 10) & (values < 20)) | (values >= 70))
