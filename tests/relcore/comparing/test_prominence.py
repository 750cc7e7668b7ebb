"""Which rows get their names first: frequent ones, or central ones where nothing is counted."""

import numpy as np

from relcore.compare.scene import prominent_rows
from relcore.maps.views import View
from relcore.spaces.space import LatentSpace


def test_frequent_rows_come_first_among_those_drawn():
    space = LatentSpace(np.eye(5), [f"r{i}" for i in range(5)], counts=[1, 50, 3, 400, 50])
    assert prominent_rows(space, View(np.array([0, 1, 3, 4]), np.full(4, -1), ())).tolist() == [2, 1, 3, 0]


def test_without_counts_the_row_in_the_middle_of_its_category_comes_before_the_one_at_its_edge():
    angles = np.radians([0, 10, -10, 60, 180, 185, 175, 120])
    space = LatentSpace(np.c_[np.cos(angles), np.sin(angles)], [f"r{i}" for i in range(8)])
    order = prominent_rows(space, View(np.arange(8), np.repeat([0, 1], 4), ("a", "b"))).tolist()
    assert sorted(order) == list(range(8))
    assert set(order[-2:]) == {3, 7}
