"""Splits of the studies: fewer anchors are the first of more, and no row is in two parts."""

import numpy as np
from relscope_studies.data import anchored_split, n_needed

from relcore.scores.estimate import Estimate

IDS = [f"r{i}" for i in range(400)]


def test_parts_are_disjoint_and_fewer_anchors_are_the_first_of_more():
    few, many = (anchored_split(IDS, k, random_state=3) for k in (20, 200))
    for split in (few, many):
        parts = np.concatenate([split.anchors, split.train, split.test])
        assert sorted(parts) == list(range(400))
    assert np.array_equal(few.anchors, many.anchors[:20])
    assert np.array_equal(few.test, many.test)
    assert not np.array_equal(few.anchors, anchored_split(IDS, 20, random_state=4).anchors)


def test_the_number_needed_is_that_of_a_power_of_four_fifths():
    found = Estimate.around(0, 1.96 * 2 / np.sqrt(25), 25)
    assert n_needed(found, 0.5) == round(((1.96 + 0.8416) * 2 / 0.5) ** 2)
