"""Splits of the studies: fewer anchors are the first of more, and no row is in two parts."""

import numpy as np
import pytest
from relscope_studies.data import anchored_split, n_needed

from relcore.base.errors import SpaceError
from relcore.studies.study import Estimate

IDS = [f"r{i}" for i in range(400)]


def test_parts_are_disjoint_and_fewer_anchors_are_the_first_of_more():
    few, many = (anchored_split(IDS, k, random_state=3) for k in (20, 200))
    for split in (few, many):
        parts = np.concatenate([split.anchors, split.train, split.test])
        assert sorted(parts) == list(range(400))
    assert np.array_equal(few.anchors, many.anchors[:20])
    assert np.array_equal(few.test, many.test)
    assert not np.array_equal(few.anchors, anchored_split(IDS, 20, random_state=4).anchors)


def test_test_ids_are_the_test_rows_and_too_many_anchors_are_refused():
    split = anchored_split(IDS, 300, test_ids=IDS[:50])
    assert split.test.tolist() == list(range(50))
    with pytest.raises(SpaceError, match=r"n_anchors: expected 1 … 350, .*got 351"):
        anchored_split(IDS, 351, test_ids=IDS[:50])


def test_the_number_needed_is_that_of_a_power_of_four_fifths():
    found = Estimate.around(0, 1.96 * 2 / np.sqrt(25), 25)
    assert n_needed(found, 0.5) == round(((1.96 + 0.8416) * 2 / 0.5) ** 2)
