"""Which groups of rows kept fewer neighbours than the same noise everywhere would leave them, in whichever space it is?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.metrics.group_test import lowest_groups


@dataclass(frozen=True)
class NoiseTest:
    """Groups compared with what noise leaves; one number per group, (g,).

    Attributes
    ----------
    z, p : arrays
        Those of the noise that explains the group better: of the source or of the target.
    expected, reach : arrays
        Mean agreement of the group under this noise, and half the width of its 95 % band.
    between : float
        Variance of group means beyond that of random groups, the larger one of the two spaces.
    n_permutations : int
    """

    z: np.ndarray
    p: np.ndarray
    expected: np.ndarray
    reach: np.ndarray
    between: float
    n_permutations: int


def moved_beyond_noise(agreement: np.ndarray, under_noise: np.ndarray, groups: np.ndarray, random_state: int = 0) -> NoiseTest:
    """Test the agreement (m,) of rows against `agreement_under_noise`, (n_draws, m), in which the two spaces take turns.

    Nobody knows which of two spaces has the noise, and dense groups lose more neighbours to noise in the space that is
    sharper. The mean of the two expectations is that of neither: with 8 draws, noise in one space alone gave a finding in 4,
    8 and 11 % of 200 draws in absolute, relative and whitened spaces at p < .05. So each space's noise has a test of its own,
    with its own variance between groups, and a group has moved only if neither explains it: 1 to 3 % of 200 draws (noise in
    the first, the second or both spaces, three representations). A third of a class that was shuffled is still found in 20 of
    20 draws.

    Parameters
    ----------
    groups : array (m,) of int
        0 … g − 1, −1 for none; see `lowest_groups`.
    """
    shared = groups[groups >= 0]
    sizes = np.bincount(shared)
    found, expected, variances = [], [], []
    for draws in (under_noise[::2], under_noise[1::2]):
        under = draws.mean(axis=0, dtype=np.float64)
        variances.append(_between(draws, groups))
        residual = agreement - under
        found.append(lowest_groups(residual, groups, between=variances[-1], random_state=random_state))
        expected.append(np.bincount(shared, under[groups >= 0]) / sizes + residual.mean())
    sides, every = np.argmax([test.z for test in found], axis=0), np.arange(len(sizes))
    return NoiseTest(
        z=np.maximum(*(test.z for test in found)),
        p=np.maximum(*(test.p for test in found)),
        expected=np.array(expected)[sides, every],
        reach=np.array([test.reach for test in found])[sides, every],
        between=max(variances),
        n_permutations=found[0].n_permutations,
    )


def _between(draws: np.ndarray, groups: np.ndarray) -> float:
    """Variance of group means under the noise of one space beyond that of random groups of the same size, 0 or more.

    Each draw is compared with the mean of the others, m of them, which raises all variances by (1 + 1/m); the measured
    agreement is compared with the mean of all draws.
    """
    belongs, sizes, n = groups[groups >= 0], np.bincount(groups[groups >= 0]), len(groups)
    excess, others = [], len(draws) - 1
    for draw in draws:
        residual = draw - (draws.sum(axis=0) - draw) / others
        means = np.bincount(belongs, residual[groups >= 0]) / sizes - residual.mean()
        random = residual.var() / sizes * (n - sizes) / max(n - 1, 1)
        excess.append((means**2 - random) / (1 + 1 / others))
    return float(max(0.0, np.mean(excess) * (1 + 1 / len(draws))))
