"""A graph network and its head trained together, on absolute and on relative rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from relcore.encoders.graphs import neighbour_matrix
from relcore.papers.end_to_end import Nodes, parted, trained_answers, weighted_f1

KINDS = pytest.mark.parametrize("kind", ["absolute", "relative"])


@pytest.fixture
def nodes(rng):
    """Three communities of 80 nodes, which words and edges tell apart."""
    groups = np.repeat(np.arange(3), 80)
    edges = np.argwhere(rng.random((240, 240)) < np.where(groups[:, None] == groups, 0.08, 0.005))
    words = rng.random((240, 30)) < np.where(np.arange(30) % 3 == groups[:, None], 0.4, 0.1)
    words[~words.any(axis=1), 0] = True
    features = torch.from_numpy(words / words.sum(axis=1, keepdims=True)).float().to_sparse().coalesce()
    names, ids = (
        np.array(["red", "green", "blue"])[groups],
        np.array([f"node {i}" for i in range(240)], dtype=object),
    )
    return Nodes(features, neighbour_matrix(torch.from_numpy(edges.T), 240, normalise=True), names, ids)


@KINDS
def test_communities_are_told_apart_and_equal_states_give_equal_answers(nodes, kind):
    split = parted(nodes, 40, 0)
    answers = trained_answers(nodes, split, kind, 16, 60)
    assert weighted_f1(nodes, split, answers) > 0.9
    np.testing.assert_array_equal(answers, trained_answers(nodes, split, kind, 16, 60))


@KINDS
def test_classes_that_say_nothing_of_the_graph_give_chance(nodes, rng, kind):
    drawn = replace(nodes, labels=rng.permutation(nodes.labels))
    # Two splits of about 40 test nodes, three classes: right for a third, standard error √(2/9 / 80) = .053
    # on average.
    splits = [parted(drawn, 40, state) for state in (0, 1)]
    scores = [weighted_f1(drawn, split, trained_answers(drawn, split, kind, 16, 60)) for split in splits]
    assert np.mean(scores) < 1 / 3 + 4 * 0.053


def test_anchors_training_nodes_and_test_nodes_are_apart_and_every_class_is_trained_on(nodes):
    rare = replace(nodes, labels=np.where(np.arange(240) < 2, "rare", nodes.labels))
    for state in range(5):
        split = parted(rare, 40, state)
        assert len(split.anchors) == 40
        assert not set(split.test) & set(split.known)
        assert "rare" in set(rare.labels[split.known])
