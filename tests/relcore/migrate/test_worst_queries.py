"""Queries that get worse: a class that loses is found, and where none does, none is."""

import numpy as np

from relcore.migrate.migration import losses_by_group

GROUPS = np.repeat(["red", "green", "blue", "few"], [40, 40, 40, 3])


def test_the_class_that_loses_comes_first():
    rng = np.random.default_rng(0)
    change = rng.normal(0, 0.1, len(GROUPS)) - 0.2 * (GROUPS == "green")
    table = losses_by_group(change, GROUPS)
    assert table.group.tolist()[0] == "green"
    assert set(table.group) == {"red", "green", "blue"}  # "few" has fewer than five
    assert table.p[0] < 0.01
    assert table.change[0] < table.low[0]
    assert (table.p[1:] > 0.05).all()
