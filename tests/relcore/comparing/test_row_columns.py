"""Rows in the colours of a number: steps of equally many rows, the same in the scene, its CSV and its
recipe.
"""

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.charts.coloring import RAMP, STEPS
from relcore.compare.columns import MOST_CLASSES, agreement_rows, classes_of, colored, columns_of, values_of
from relcore.compare.neighbours import neighbour_agreement
from relcore.compare.scene import ComparisonRecipe, comparison_scene
from relcore.figures.style import DARK, LIGHT
from relcore.maps.views import NUMBERS, View, ViewSpec, sample_view
from relcore.spaces.space import match


@pytest.fixture
def pair(rng, make_space):
    X = rng.normal(size=(80, 4))
    source = make_space(X, name="s", counts=np.arange(80))
    return match(source, make_space(2 * X + 0.5 * rng.normal(size=X.shape), name="t"))


def test_numbers_are_a_scale_and_few_whole_numbers_or_texts_are_classes(pair):
    view = View(np.arange(80), np.zeros(80, int), ("a",))
    years = pd.Series(np.arange(1900, 1980), index=pair.ids)
    by_year = colored(pair, view, ViewSpec(color_by="column:year"), {"year": years}.get)
    assert (by_year.scale.title, by_year.category_names) == ("year", ())
    np.testing.assert_array_equal(by_year.values, years)
    shuffled = years.sample(frac=1, random_state=0)[:40]
    partly = colored(pair, view, ViewSpec(color_by="column:year"), {"year": shuffled}.get)
    np.testing.assert_array_equal(partly.categories >= 0, np.isin(pair.ids, shuffled.index))
    stars = pd.Series(np.arange(80) % 5, index=pair.ids)
    assert colored(pair, view, ViewSpec(color_by="column:n"), {"n": stars}.get).category_names == (
        "0",
        "1",
        "2",
        "3",
        "4",
    )
    mixed = pd.Series(["7", "ten", None] * 26 + ["7", "ten"], index=pair.ids)
    classes = colored(pair, view, ViewSpec(color_by="column:n"), {"n": mixed}.get)
    assert (classes.category_names, classes.categories[:3].tolist()) == (("7", "ten"), [0, 1, -1])


def test_of_many_classes_the_most_frequent_have_a_colour():
    names = [f"c{i}" for i in range(30) for _ in range(i + 1)]
    categories, kept, about = classes_of([*names, ""])
    assert len(kept) == MOST_CLASSES - 1
    assert set(kept) == {f"c{i}" for i in range(11, 30)}
    assert np.count_nonzero(categories < 0) == sum(range(1, 12)) + 1
    assert about == "the 19 most frequent of 30 values, the rest as other"
    exactly = classes_of([f"c{i}" for i in range(MOST_CLASSES)])
    assert (len(exactly[1]), exactly[2]) == (MOST_CLASSES, "")


def test_a_column_that_is_not_there_is_refused(pair):
    view = View(np.arange(3), np.zeros(3, int), ("a",))
    with pytest.raises(SpaceError, match="expected spaces with a column 'year', got spaces without a table"):
        colored(pair, view, ViewSpec(color_by="column:year"))
    with pytest.raises(SpaceError, match="color_by: expected one of pivots, labels"):
        ViewSpec(color_by="column:")


def test_values_are_those_of_the_spaces_and_of_the_agreement(pair):
    rows = np.array([3, 40, 79])
    np.testing.assert_array_equal(values_of(pair, "counts", rows), rows)
    np.testing.assert_allclose(
        values_of(pair, "target norm", rows), np.linalg.norm(pair.target.vectors[rows], axis=1), rtol=1e-6
    )
    overlap = neighbour_agreement(pair, rows).set_index("row").overlap
    np.testing.assert_array_equal(values_of(pair, "agreement", rows), overlap[rows])


def test_agreement_of_many_rows_is_that_of_a_sample(pair, monkeypatch):
    monkeypatch.setattr("relcore.compare.columns.AGREEMENT_ROWS", (20, 20))
    assert np.isfinite(values_of(pair, "agreement", np.arange(80))).sum() == 20


@pytest.mark.parametrize("column", NUMBERS)
def test_a_recipe_draws_the_steps_in_the_colours_of_the_ramp(pair, column):
    view = ViewSpec((), everything=True, color_by=column)
    named = (SpaceSpec("file", name) for name in "st")
    scene = comparison_scene(ComparisonRecipe(*named, ("r0", "r1", "r2"), view=view), pair)
    assert scene.scale.title == column
    assert (scene.coloring().colors[0], scene.coloring().colors[-1]) == (RAMP[0], RAMP[-1])
    assert column in scene.table().columns
    low, high = (values_of(pair, column, np.flatnonzero(scene.categories == end)) for end in (0, STEPS - 1))
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
    assert sampled.scale == drawn.scale
    np.testing.assert_array_equal(sampled.values, drawn.values[sampled.rows])
    np.testing.assert_array_equal(sampled.categories, drawn.categories[sampled.rows])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_the_ramp_rises_in_lightness_and_is_seen_on_both_pages(theme):
    def luminance(color):
        shares = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4) @ (
            0.2126,
            0.7152,
            0.0722,
        )

    found = [luminance(color) for color in RAMP]
    assert found == sorted(found)
    page = luminance(theme.surface)
    contrast = [(max(page, one) + 0.05) / (min(page, one) + 0.05) for one in found]
    assert min(contrast) > 1.3


def test_fewer_rows_are_compared_where_each_has_more_rows_to_search():
    found = [agreement_rows(n) for n in (100, 20_000, 100_000, 250_000, 10**9)]
    assert found == [4000, 4000, 2500, 1000, 500]
