"""Dimensions of known clouds: flat ones in wide spaces, and what the three numbers do not depend on."""

import numpy as np
import pytest
from relscope_studies.isometry import condition_number, participation_ratio, two_nn

from relcore.base.errors import SpaceError


@pytest.mark.parametrize("dimension", [2, 5])
def test_two_nn_finds_the_dimension_of_a_flat_cloud_in_a_wide_space(rng, dimension):
    n = 3000
    axes, _ = np.linalg.qr(rng.normal(size=(40, dimension)))
    cloud = rng.uniform(size=(n, dimension)) @ axes.T
    # log μ is exponential with rate D, so a fit to nine tenths of n ratios has a relative standard error near
    # 1.5 / √n = .027; the border of the cloud, where neighbours lie on one side, biases five dimensions by
    # some hundredths more.
    assert two_nn(cloud) == pytest.approx(dimension, rel=4 * 0.027)


def test_two_nn_against_all_distances(rng):
    from scipy.spatial.distance import cdist

    cloud = rng.normal(size=(300, 6))
    distances = np.sort(cdist(cloud, cloud), axis=1)
    ratios = np.sort(distances[:, 2] / distances[:, 1])[:270]
    x = np.log(ratios)
    y = -np.log(1 - np.arange(1, 271) / 300)
    assert two_nn(cloud) == pytest.approx((x @ y) / (x @ x), rel=1e-3)


def test_participation_ratio_and_condition_number_of_known_variances(rng):
    basis, _ = np.linalg.qr(rng.normal(size=(50, 50)))
    scores = basis[:, :3] - basis[:, :3].mean(axis=0)
    scores, _ = np.linalg.qr(scores)  # centred, orthogonal, of length 1
    cloud = scores * [4.0, 2.0, 1.0]
    assert participation_ratio(cloud) == pytest.approx(21**2 / (16**2 + 4**2 + 1))
    assert condition_number(cloud) == pytest.approx(4)
    assert participation_ratio(scores) == pytest.approx(3)
    flat = np.column_stack([cloud, np.zeros((50, 2))])
    assert condition_number(flat) == pytest.approx(4), "an axis of nothing is none"
    with pytest.raises(SpaceError, match="rows that differ"):
        participation_ratio(np.ones((5, 3)))
