import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.rows import directions, mean_row, unit_rows
from relcore.engine.nearest import nearest_within


@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize("offset", [0, 3, 300])
@pytest.mark.parametrize("centre", [True, False])
def test_they_are_those_of_a_search_in_a_copy(rng, device, offset, centre):
    X = (rng.normal(size=(9000, 6)) + offset).astype(np.float32)
    mean = mean_row(X) if centre else None
    queries = np.array([8999, 0, 4096, 17])
    expected = nearest_within(unit_rows(X, mean), queries, 7, "cpu")
    np.testing.assert_array_equal(nearest_within(directions(X, mean), queries, 7, device), expected)


def test_rows_that_are_equal_do_not_agree_because_of_their_order(rng):
    first = np.repeat(rng.normal(size=(2, 5)), 3000, axis=0).astype(np.float32)
    second = np.repeat(rng.normal(size=(2, 5)), 3000, axis=0).astype(np.float32)
    found, other = (nearest_within(directions(X), np.arange(100), 20) for X in (first, second))
    assert (found < 3000).all()  # copies of themselves
    assert (other < 3000).all()
    assert not (found == np.arange(100)[:, None]).any()
    shared = np.mean([len(np.intersect1d(*lists)) for lists in zip(found, other, strict=True)])
    assert shared < 1  # by chance 20 · 20 / 2,999 = .13, and 20 in the order of the rows


def test_more_neighbours_than_rows(rng):
    with pytest.raises(SpaceError, match="expected 1 … 4 for 5 rows, got 5"):
        nearest_within(directions(np.eye(5, dtype=np.float32)), np.array([0]), 5)
