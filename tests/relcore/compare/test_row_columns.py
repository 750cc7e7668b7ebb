"""Rows in the colours of a number: steps of equally many rows, the same in the scene, its CSV and its
recipe.
"""

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.compare.columns import colored, neighbour_agreement, values_of
from relcore.maps.pane_maps import View, ViewSpec
from relcore.spaces.matching import match


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
