"""Reconstruction stitching: disparities and errors that are known by hand."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.studies.isometry import balanced_anchors, mean_squared_errors, plane_disparity


def test_runs_that_differ_by_a_turn_have_no_disparity_and_unrelated_ones_nearly_one(rng):
    first, (c, s) = rng.normal(size=(400, 2)) * [3, 1], (np.cos(0.9), np.sin(0.9))
    assert plane_disparity(first, -2 * first @ [[c, s], [-s, c]] + [7, 1]) == pytest.approx(0, abs=1e-12)
    # The overlap of unrelated planes of n points is of the order √(2 d / n) = .1; its square is lost.
    assert plane_disparity(first, rng.normal(size=(400, 2))) > 1 - 4 * 0.01
    with pytest.raises(SpaceError, match="got all of them in one place"):
        plane_disparity(first, np.ones((400, 2)))


def test_errors_and_anchors_by_hand(rng):
    pictures = rng.uniform(size=(40, 3, 2))
    errors = mean_squared_errors(pictures.mean(axis=0), pictures)
    assert errors == pytest.approx(1000 * pictures.var(axis=0).mean())
    labels = np.array([str(i % 4) for i in range(40)])
    rows = balanced_anchors(pictures.astype(np.float32), labels, 12)
    assert np.unique(labels[rows], return_counts=True)[1].tolist() == [3] * 4
