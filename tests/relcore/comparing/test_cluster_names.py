"""Clusters of a map are named by labels, by the term that tells them apart, or by their most central word."""

import numpy as np
import pytest

from relcore.compare.columns import named_clusters, needs_clusters
from relcore.maps.views import View
from relcore.spaces.space import LatentSpace

WORDS = ["apple", "bread", "cheese", "dough", "eggs", "flour", "grape", "honey", "icing", "jelly"]


@pytest.fixture
def islands(rng):
    """Four groups of 100 points far apart, and the number of each point's group."""
    groups = np.repeat(np.arange(4), 100)
    return np.array([[0, 0], [50, 0], [0, 50], [50, 50]])[groups] + rng.normal(size=(400, 2)), groups


def test_the_term_is_that_of_the_texts_of_the_cluster_not_the_most_frequent_one(islands):
    coordinates, groups = islands
    ids = [f"row/{i}" for i in range(400)]
    space = LatentSpace(np.c_[coordinates, np.ones(400)], ids)
    themes = ("river", "engine", "violin", "senate")
    text = {ids[i]: f"the and of the {themes[group]} with number {i % 7}" for i, group in enumerate(groups)}
    found = named_clusters(space, np.arange(400), coordinates, lambda asked: [text[one] for one in asked])
    named = np.array([*found.names, ""])[found.numbers]
    for group, theme in enumerate(themes):
        assert {name.split(" · ")[0] for name in named[groups == group]} == {theme}
    assert not any(word in name for name in found.names for word in ("the", "with", "number"))


def test_texts_that_are_all_alike_name_nothing(islands):
    coordinates, _ = islands
    space = LatentSpace(np.c_[coordinates, np.ones(400)], [f"row/{i}" for i in range(400)])
    found = named_clusters(
        space, np.arange(400), coordinates, lambda asked: ["one and the same text"] * len(asked)
    )
    assert set(found.names) == {""}
    assert set(found.numbers) == {-1}


def test_a_word_is_the_most_central_of_the_frequent_ones(islands, rng):
    coordinates, groups = islands
    centres = rng.normal(size=(4, 30)) * 9
    vectors = centres[groups] + rng.normal(size=(400, 30))
    letters = "abcdefghijklmnopqrst"
    ids = [f"w{letters[i // 20]}{letters[i % 20]}x" for i in range(400)]
    for group in range(4):
        vectors[100 * group] = centres[group]
        vectors[100 * group + 1] = centres[group] + 0.001
        ids[100 * group], ids[100 * group + 1] = f"rare{letters[group]}", f"usual{letters[group]}"
    counts = np.where(np.arange(400) % 100 == 0, 1, 500 - np.arange(400) % 100)
    plain = named_clusters(LatentSpace(vectors, ids), np.arange(400), coordinates)
    assert all(name.startswith(("rare", "usual")) for name in plain.names)
    counted = named_clusters(LatentSpace(vectors, ids, counts=counts), np.arange(400), coordinates)
    named = np.array(counted.names)[counted.numbers]
    assert set(named) == {f"usual{letter}" for letter in "abcd"}
    assert named[groups == 2].tolist() == ["usualc"] * 100


def test_labels_are_used_where_most_rows_have_one(islands):
    coordinates, groups = islands
    labels = [f"class {group}" for group in groups[:390]] + [""] * 10
    space = LatentSpace(np.c_[coordinates, np.ones(400)], [str(i) for i in range(400)], labels=labels)
    found = named_clusters(space, np.arange(400), coordinates)
    assert found.names == ("class 0", "class 1", "class 2", "class 3")
    assert [*groups[:390], *[-1] * 10] == found.numbers.tolist()


def test_numbers_as_ids_and_few_rows_have_no_names(islands):
    coordinates, _ = islands
    space = LatentSpace(np.c_[coordinates, np.ones(400)], [f"digits/{i}" for i in range(400)])
    assert named_clusters(space, np.arange(400), coordinates) is None
    few = LatentSpace(np.eye(10), WORDS)
    assert named_clusters(few, np.arange(10), np.zeros((10, 2))) is None


def test_clusters_are_needed_where_colours_leave_rows_without_a_name():
    rows = np.arange(100)
    all_named, half = View(rows, np.zeros(100, int), ("a",)), View(rows, rows % 2 - 1, ("a",))
    assert not needs_clusters(all_named, None)
    assert needs_clusters(half, None)
    assert needs_clusters(all_named, half)
