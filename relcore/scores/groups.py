"""A permutation test of all groups of rows at once: which have lower values than random groups of their
size?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.base.errors import SpaceError
from relcore.scores.score import Z95

PERMUTATIONS = 1999  # the smallest p is 1 / 2,000


@dataclass(frozen=True)
class GroupTest:
    """The comparison of g groups with random groups of the same sizes; each field has one number per group.

    `mean` is the group's mean; `z` is (mean − mean of all rows) / standard error of a random group. `p` is
    the share of permutations in which *any* group has a z as low, so it is corrected for the number of
    groups; `half_width` is half the 95 % band of a random group's mean.
    """

    mean: np.ndarray
    z: np.ndarray
    p: np.ndarray
    half_width: np.ndarray
    n_permutations: int


def lowest_groups(
    values: np.ndarray,
    groups: np.ndarray,
    *,
    n_permutations: int = PERMUTATIONS,
    random_state: int = 0,
) -> GroupTest:
    r"""Test whether a group's mean value is below that of random groups of the same size.

    A random group of m of n rows, drawn without replacement, has the mean μ of all rows and the variance
    :math:`\sigma^2 / m \cdot (n - m) / (n - 1)`. Each group's z is compared with the *smallest* z of
    all groups after a permutation of the values (Westfall and Young 1993), so p is the family-wise error.

    Parameters
    ----------
    values : array (n,)
    groups : array (n,) of int
        Group of each row, 0 … g − 1; −1 for rows of no group, which random groups may include.

    Raises
    ------
    SpaceError
        No group, a group without rows, or a number of values that differs.

    Examples
    --------
    >>> import numpy as np
    >>> values, groups = np.random.default_rng(0).normal(size=300), np.repeat([0, 1, 2], 100)
    >>> found = lowest_groups(values - (groups == 1), groups)
    >>> int(found.p.argmin()), bool(found.p[1] < .001), bool(found.p[0] > .05)
    (1, True, True)
    """
    values, groups = np.asarray(values, dtype=np.float64), np.asarray(groups)
    if len(values) != len(groups):
        raise SpaceError(f"groups: expected {len(values)} numbers, one per value, got {len(groups)}")
    n_groups = int(groups.max(initial=-1)) + 1
    sizes = np.bincount(groups[groups >= 0], minlength=n_groups)
    if not n_groups or not sizes.all():
        raise SpaceError(
            "groups: expected one group or more, each with a row or more; leave empty groups out"
        )
    n = len(values)
    error = np.sqrt(values.var() / sizes * (n - sizes) / max(n - 1, 1))
    order = np.flatnonzero(groups >= 0)
    belongs, mu = groups[order], values.mean()

    def means(values: np.ndarray) -> np.ndarray:
        return np.bincount(belongs, values[order], n_groups) / sizes

    def standardised(means: np.ndarray) -> np.ndarray:
        return np.divide(means - mu, error, out=np.zeros(n_groups), where=error > 0)

    mean = means(values)
    z, rng = standardised(mean), np.random.default_rng(random_state)
    lowest = np.sort([standardised(means(rng.permutation(values))).min() for _ in range(n_permutations)])
    as_low = np.searchsorted(lowest, z, side="right")
    return GroupTest(mean, z, (1 + as_low) / (1 + n_permutations), Z95 * error, n_permutations)
