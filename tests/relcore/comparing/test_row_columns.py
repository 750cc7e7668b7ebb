"""Rows in the colours of a number: steps of equally many rows, the same in the scene, its CSV and its recipe."""

import numpy as np
import pytest

from relcore.comparing.row_columns import RAMP, colored, columns_of, steps_of, values_of
from relcore.comparing.scene import ComparisonRecipe, comparison_scene
from relcore.comparison import neighbour_agreement
from relcore.figures.palette import DARK, LIGHT
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import SpaceError, match
from relcore.views import NUMBERS, View, ViewSpec, sample_view


@pytest.fixture
def pair(rng, make_space):
    X = rng.normal(size=(80, 4))
    source = make_space(X, name="s", counts=np.arange(80))
    return match(source, make_space(2 * X + 0.5 * rng.normal(size=X.shape), name="t"))


def test_steps_have_equally_many_rows_and_the_lowest_is_first():
    steps, names = steps_of(np.arange(800.0)[::-1], "counts")
    assert np.abs(np.bincount(steps, minlength=len(RAMP)) - 100).max() <= 1  # limits are rounded
    assert (steps[0], steps[-1]) == (len(RAMP) - 1, 0)
    assert names[0] == "counts 0 … 99.9"
    assert names[-1] == "699 … 799"


def test_one_far_value_does_not_take_the_ramp_and_equal_values_are_one_step():
    assert np.bincount(steps_of(np.append(np.arange(79.0), 1e9), "n")[0]).max() <= 11
    steps, names = steps_of(np.ones(9), "n")
    assert (set(steps.tolist()), names) == ({0}, ("n 1 … 1",))
    many_zeros, names = steps_of(np.append(np.zeros(90), np.arange(1, 11.0)), "n")
    assert many_zeros[:90].tolist() == [0] * 90
    assert len(set(names)) == len(names)


def test_what_was_not_computed_has_no_step():
    steps, _ = steps_of(np.array([1.0, np.nan, 2.0]), "n")
    assert steps.tolist() == [0, -1, steps[2]]
    assert steps_of(np.full(3, np.nan), "n")[1] == ()


def test_values_are_those_of_the_spaces_and_of_the_agreement(pair):
    rows = np.array([3, 40, 79])
    np.testing.assert_array_equal(values_of(pair, "counts", rows), rows)
    np.testing.assert_allclose(
        values_of(pair, "target norm", rows), np.linalg.norm(pair.target.vectors[rows], axis=1), rtol=1e-6
    )
    overlap = neighbour_agreement(pair, rows).set_index("row").overlap
    np.testing.assert_array_equal(values_of(pair, "agreement", rows), overlap[rows])


def test_agreement_of_many_rows_is_that_of_a_sample(pair, monkeypatch):
    monkeypatch.setattr("relcore.comparing.row_columns.AGREEMENT_ROWS", 20)
    assert np.isfinite(values_of(pair, "agreement", np.arange(80))).sum() == 20


@pytest.mark.parametrize("column", NUMBERS)
def test_a_recipe_draws_the_steps_in_the_colours_of_the_ramp(pair, column):
    view = ViewSpec((), everything=True, color_by=column)
    named = (SpaceSpec("file", name) for name in "st")
    scene = comparison_scene(ComparisonRecipe(*named, ("r0", "r1", "r2"), view=view), pair)
    assert scene.category_names[0].startswith(f"{column} ")
    assert (scene.category_colors[0], scene.category_colors[-1]) == (RAMP[0], RAMP[-1])
    low, high = (values_of(pair, column, np.flatnonzero(scene.categories == end)) for end in (0, len(scene.category_names) - 1))
    assert low.max() < high.min()


def test_pivots_and_labels_stay_as_they_are_and_counts_have_to_be_there(pair, rng, make_space):
    view = View(np.arange(3), np.zeros(3, int), ("a",))
    assert colored(pair, view, ViewSpec()) is view
    bare = match(make_space(rng.normal(size=(9, 2))), make_space(rng.normal(size=(9, 2))))
    assert "counts" in columns_of(pair)
    assert "counts" not in columns_of(bare)
    with pytest.raises(SpaceError, match="'counts': 'made' has no counts"):
        colored(bare, view, ViewSpec(color_by="counts"))


def test_a_sample_keeps_the_colours(pair):
    view = ViewSpec((), everything=True, color_by="counts")
    drawn = colored(pair, View(np.arange(80), np.full(80, -1), ()), view)
    sampled = sample_view(drawn, 10)
    assert sampled.category_colors == drawn.category_colors
    np.testing.assert_array_equal(sampled.categories, drawn.categories[sampled.rows])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_the_ramp_rises_in_lightness_and_is_seen_on_both_pages(theme):
    def luminance(color):
        shares = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)

    found = [luminance(color) for color in RAMP]
    assert found == sorted(found)
    page = luminance(theme.surface)
    contrast = [(max(page, one) + 0.05) / (min(page, one) + 0.05) for one in found]
    assert min(contrast) > 1.3
