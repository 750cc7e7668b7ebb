"""Whether groups of rows differ more than noise explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from relcore.base.rows import unit_rows
from relcore.engine.nearest import nearest_within
from relcore.represent.noise import BY_LENGTH, EQUAL, ROUNDED, noise_sizes, noisy
from relcore.scores.neighbours import jaccard_rows

# A little noise changes the neighbours of rows in dense groups, so agreement differs by class even if no
# class has moved. To correct for this, noise is added until the mean agreement is as measured. This gives the
# expected agreement of each group. Repeated draws give its variation, because the rows of a small, separated
# group keep or lose their neighbours together.

SIGNIFICANT = 0.05
CALIBRATED_ROWS = 400
STEPS = 9  # number of times that the range of noise levels is halved
_LEVELS = (-2.0, 2.0)  # range of noise levels: log10 of the noise's size as a share of the spread
DRAWS = 10  # number of draws of each kind of noise
_AROUND = 0.1  # distance of the drawn noise levels from the fitted level, in log10
_MISFIT = 0.1  # standard deviation, between kinds of noise, of the log odds of a group's agreement


@dataclass(frozen=True)
class NoiseTest:
    """The result of testing g groups against noise. Each group is tested against the noise model that
    explains it best. Arrays have the shape (g,).

    Attributes
    ----------
    p : array
        The p-values, corrected for the number of groups (Bonferroni).
    expected, half_width : arrays
        The mean agreement under this noise, and half the width of its 95 % band.
    by_row : array (m,)
        The mean agreement of each query over all draws of noise.
    """

    z: np.ndarray
    p: np.ndarray
    expected: np.ndarray
    half_width: np.ndarray
    by_row: np.ndarray


def moved_beyond_noise(
    vectors: tuple[np.ndarray, np.ndarray],
    represent: Callable[[np.ndarray], np.ndarray],
    own: tuple[np.ndarray, np.ndarray],
    queries: np.ndarray,
    agreement: np.ndarray,
    groups: np.ndarray,
    belongs: np.ndarray,
    random_state: int = 0,
) -> NoiseTest:
    """Test whether groups of rows keep fewer neighbours than if every row had noise of the same size.

    Either space may be the noisy one, and noise changes more neighbours in groups that are dense in the other
    space. So there are four explanations: the second space is the first with noise; the first is the second
    with noise; both are noisy copies of one space, which is the first (or the second) without its noise. Each
    is tried with three kinds of noise, because long rows may have more: noise of the same size for all rows,
    noise proportional to the length of a row, and rounding to steps proportional to the largest number of a
    row. A group counts as moved only if all explanations fail. To remove noise, the rows of each group are
    moved towards their mean until the variance has decreased by that of the noise.

    The mean agreement of a group is compared with that in `DRAWS` draws near the fitted level of noise,
    after regression on the mean of all rows. The standard error is the largest of three: from the scatter of
    the group's draws, of all draws, and of the rows within groups. `_MISFIT` allows for a wrong kind of
    noise.

    Parameters
    ----------
    vectors : two arrays (n, d)
    represent : (n, d) → (t, c)
        A function that returns the rows among which neighbours are searched. Noise is added before, so that
        anchors have noise, too.
    own : two arrays (m, k)
        The neighbours of the queries in each represented space.
    agreement : array (m,)
        The Jaccard overlap of these neighbours in the two spaces.
    groups, belongs : arrays (m,) and (n,)
        Group of each query, 0 … g − 1 (−1 for none); group of each of the n rows, as any number.
    """
    from scipy.special import stdtr, stdtrit  # equals `scipy.stats.t`, which takes longer to import

    rng = np.random.default_rng(random_state)
    every = np.arange(len(queries))
    some = np.sort(rng.choice(every, min(CALIBRATED_ROWS, len(every)), replace=False))
    measured = _group_means(agreement, groups)
    z = np.full(len(measured), -np.inf)
    p = 0.0
    drawn = []
    expected = np.zeros(len(measured))
    half_width = np.zeros(len(measured))
    for kind, both, side in _EXPLANATIONS:
        overlap = _overlap_under_noise(
            vectors[side], kind, represent, own[side], queries, belongs if both else None, rng
        )
        middle = _fitted_level(overlap, some, agreement.mean())
        levels = middle + np.linspace(-_AROUND, _AROUND, DRAWS)
        draws = np.stack([overlap(10.0**level, every) for level in levels])
        drawn.append(draws.mean(axis=0))
        fitted, error = _expected_means(draws, agreement, groups)
        distance = (measured - fitted) / error
        better = distance > z
        z = np.where(better, distance, z)
        expected = np.where(better, fitted, expected)
        half_width = np.where(better, error, half_width)
        p = np.minimum(1, len(measured) * stdtr(DRAWS - 2, z))
        if np.all(p >= SIGNIFICANT):
            break
    return NoiseTest(z, p, expected, half_width * stdtrit(DRAWS - 2, 0.975), np.mean(drawn, axis=0))


def _group_means(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The mean (g,) of the values (m,) of each group."""
    inside = groups >= 0
    return np.bincount(groups[inside], values[inside]) / np.bincount(groups[inside])


def _fitted_level(
    overlap: Callable[[float, np.ndarray], np.ndarray], queries: np.ndarray, agreement: float
) -> float:
    """The log10 of the noise level at which the mean overlap of the queries is this agreement, by
    bisection."""
    low, high = _LEVELS
    for _ in range(STEPS):
        middle = (low + high) / 2
        if overlap(10.0**middle, queries).mean() > agreement:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _expected_means(
    draws: np.ndarray, agreement: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The mean agreement of each group that noise explains, (g,), and its standard error, (g,). `draws` has
    the overlap of each query under noise, (`DRAWS`, m)."""
    inside = groups >= 0
    sizes = np.bincount(groups[inside])
    by_draw = draws.mean(axis=1) - draws.mean()
    by_group = np.stack([_group_means(draw, groups) for draw in draws])
    squares = max(float(by_draw @ by_draw), 1e-12)
    apart = float(agreement.mean() - draws.mean())
    slope = by_draw @ by_group / squares
    fitted = by_group.mean(axis=0) + slope * apart
    rest = by_group - by_group.mean(axis=0) - np.outer(by_draw, slope)
    scatter = np.square(rest).sum(0) / (DRAWS - 2)
    residual = agreement - draws.mean(axis=0)
    within = np.square(residual[inside] - _group_means(residual, groups)[groups[inside]]).mean()
    variance = np.maximum(scatter, max((scatter * sizes).mean(), within) / sizes)
    odds = np.clip(fitted, 0.01, 0.99)
    misfit = np.square(_MISFIT * odds * (1 - odds))
    error = np.sqrt(variance * (1 + 1 / DRAWS + apart**2 / squares) + misfit)
    return fitted, error


# Rounding cannot explain two noisy copies of one space, because they would have the same error.
_EXPLANATIONS = [
    *product((EQUAL, BY_LENGTH), (False, True), (0, 1)),
    *product((ROUNDED,), (False,), (0, 1)),
]


def _overlap_under_noise(
    X: np.ndarray,
    kind: str,
    represent: Callable[[np.ndarray], np.ndarray],
    own: np.ndarray,
    queries: np.ndarray,
    belongs: np.ndarray | None,
    rng: np.random.Generator,
) -> Callable[[float, np.ndarray], np.ndarray]:
    """A function of (level, queries) that returns the neighbour overlap of a space and a noisy copy of it.
    With `belongs`, the variance of the noise is first removed from the space, and the function compares two
    noisy copies of the result."""
    k = own.shape[1]
    sizes = noise_sizes(X, kind)

    def near(rows: np.ndarray, level: float, which: np.ndarray) -> np.ndarray:
        moved = noisy(rows, kind, np.float32(level) * sizes, rng)
        return nearest_within(unit_rows(represent(moved)), queries[which], k)

    def overlap(level: float, which: np.ndarray) -> np.ndarray:
        if belongs is None:
            return jaccard_rows(own[which], near(X, level, which))
        shared = X.copy()
        for group in np.unique(belongs[belongs >= 0]):
            members = belongs == group
            rows = X[members]
            rest = rows - rows.mean(axis=0)
            variance = np.square(rest, dtype=np.float64).sum() / max(len(rows) - 1, 1)
            noise = level**2 * float(np.square(sizes[members], dtype=np.float64).mean()) * X.shape[1]
            kept = 0
            if variance > 0:
                kept = 1 - noise / variance
            shared[members] = rows - (1 - np.sqrt(max(kept, 0))) * rest
        return jaccard_rows(near(shared, level, which), near(shared, level, which))

    return overlap
