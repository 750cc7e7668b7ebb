"""Names of clusters stand where most rows of the cluster are free of a class of the colours."""

import numpy as np

from relcore.compare.clusters import among_free_rows
from relcore.figures.colorings import Coloring
from relcore.figures.scene import Clusters


def test_a_cluster_of_which_most_rows_are_tagged_has_no_name():
    numbers = np.array([0] * 10 + [1] * 10 + [-1])
    clusters = Clusters(numbers, ("cloud", "river"), finer=Clusters(numbers, ("cloud", "river")))
    tagged = np.full(21, -1)
    tagged[:9] = 0
    tagged[10:13] = 0
    found = among_free_rows(clusters, [Coloring(tagged, ("scrambled",))])
    for level in (found, found.finer):
        assert level.numbers.tolist() == [-1] * 10 + [1] * 10 + [-1]
    untouched = among_free_rows(clusters, [Coloring(np.full(21, -1))])
    assert untouched.numbers.tolist() == numbers.tolist()
