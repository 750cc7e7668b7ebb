"""Clusters of a map are named by labels, by the term that tells them apart, or by their most central word."""

import numpy as np
import pytest

from relcore.compare.columns import named_clusters
from relcore.spaces.space import LatentSpace


@pytest.fixture
def islands(rng):
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


def test_labels_are_used_where_most_rows_have_one(islands):
    coordinates, groups = islands
    labels = [f"class {group}" for group in groups[:390]] + [""] * 10
    space = LatentSpace(np.c_[coordinates, np.ones(400)], [str(i) for i in range(400)], labels=labels)
    found = named_clusters(space, np.arange(400), coordinates)
    assert found.names == ("class 0", "class 1", "class 2", "class 3")
    assert [*groups[:390], *[-1] * 10] == found.numbers.tolist()
