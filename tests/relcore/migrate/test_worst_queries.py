"""Queries that get worse: a class that loses is found, and where none does, none is."""

import numpy as np

from relcore.migrate.migration import clusters_of, losses_by_group

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


def test_equal_classes_are_within_the_band_of_chance():
    found = 0
    for state in range(20):
        change = np.random.default_rng(state).normal(size=len(GROUPS))
        found += losses_by_group(change, GROUPS).p.min() < 0.05
    assert found <= 4  # 5 % of 20 draws


def test_without_classes_there_is_no_table():
    assert losses_by_group(np.arange(20.0), np.array([""] * 20)).empty


def test_clusters_are_those_that_were_planted():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 30)
    vectors = 4 * np.eye(3, 6)[truth] + 0.3 * rng.normal(size=(90, 6))
    found = clusters_of(vectors, np.array([f"r{row}" for row in range(90)]), n_clusters=3)
    assert len(set(found)) == 3
    assert all(len(set(found[truth == number])) == 1 for number in range(3))
    assert all(name == found[int(name.removeprefix("around r"))] for name in set(found))
