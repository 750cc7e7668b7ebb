"""Test whether a collection holds vectors of two models. The test compares the short axes of the two parts
that differ most.

Topics, languages and duplicates move the long axes of a space. The axes that a model hardly uses are the same
for all its texts. So the rows are split by the two Gaussians that fit them best, and the variances of both
parts are compared along the axes of one part. Within a model, the log variances rise together (slope 1). If
the two parts have different coordinates, they do not (slope 0). The split uses every other dimension, and the
comparison uses the remaining ones, because an axis that was used to choose rows is no evidence about them.

The rows are shuffled once. Each sample of a part, and the first half of a part, consists of its first rows in
this order. So equal parts have equal slopes, however they were found.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from relcore.base.rows import Rows, row_blocks, unit_rows
from relcore.engine.engine import Engine
from relcore.spaces.space import row_hashes

MIXED, SUSPECTED = 0.25, 0.3  # limits of the upper end of a slope's interval: benchmarks/check_rates.md
LEAST = 20  # rows of a part; the variances of fewer rows mean little
FITTED = 20_000  # largest number of rows used by a fit
_STARTED, _FROM = 5000, 4000  # rows among which starts are chosen; rows on which a Gaussian is fitted
_LONG = 30  # axes used to group rows at first
_GROUPINGS, _KEPT, _STEPS = 3, 3, 12  # times that groups are halved; starts of each kind; steps from a start
_SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25)  # share of the rows that is in a start part
_SETTLED = 1e-3  # a search ends if at most this share of the rows changes parts
_SHORTEST = 0.01  # of the median variance: the least variance of an axis, also of unused dimensions
_SHRUNK = 0.02  # of the mean: the smallest mean square along a short axis, which few rows estimate badly
_MANY = 10  # rows per dimension for which squares are reliable


class Slope(NamedTuple):
    """How far two parts share their axes: 1 within a model, 0 if their coordinates differ. `high` is the
    upper end of the 95 % interval over the `axes`."""

    value: float
    high: float
    axes: int


class TwoParts(NamedTuple):
    """The two parts of a collection whose axes differ most.

    Attributes
    ----------
    slope : Slope
    log_ratio : (n,) float32
        Log likelihood ratio of the smaller to the larger part; rows above 0 are counted there.
    fitted : int
        Number of rows that were used to find the parts.
    uneven : bool
        Whether the variances along the larger part's short axes differ; if they do not, the axes identify no
        model.
    """

    slope: Slope
    log_ratio: np.ndarray
    fitted: int
    uneven: bool = True


class ShortAxes(NamedTuple):
    """The axes (d, c) that a model hardly uses, and the mean squares (c,) of its rows along them. The axes
    are the shortest of the second moment of unit rows; they are the same for all texts of a model."""

    axes: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, *samples: np.ndarray, most: int | None = None) -> ShortAxes:
        """The short axes of samples of rows (n, d), at most half of all axes. All samples, such as domains,
        have equal weights."""
        moments = [units.T @ units / len(units) for units in map(unit_rows, map(np.asarray, samples))]
        values, axes = Engine().eigh(np.mean(moments, axis=0))
        count = min(most or len(values), len(values) // 2)
        floor = _SHRUNK * values.mean() if sum(map(len, samples)) < _MANY * len(values) else 1e-9
        return cls(axes[:, :count].astype(np.float32), np.maximum(values[:count], floor).astype(np.float32))

    def energy(self, X: Rows) -> np.ndarray:
        """The mean square of each unit row (n, d) along the axes, divided by that of the sample, an array
        (n,) float32."""
        return np.square(Engine().map_rows(X, self.axes / np.sqrt(self.squares), unit=True)).mean(axis=1)

    def distance(self, X: Rows) -> float:
        """The distance of rows (n, d) from the model: the mean, over the axes, of log(mean square ÷ mean
        square of the model). It is 0 for the model's own rows."""
        squares = np.square(Engine().map_rows(X, self.axes, unit=True)).mean(axis=0, dtype=np.float64)
        return float(np.log(np.maximum(squares, 1e-12) / self.squares).mean())


class _Gaussian(NamedTuple):
    mean: np.ndarray
    whitening: np.ndarray
    log_scale: float

    @classmethod
    def of(cls, X: np.ndarray) -> _Gaussian:
        """The Gaussian of the first rows of X (n, d). Its covariance is shrunk towards a multiple of the
        identity."""
        X = X[:_FROM]
        (n, d), (mean, covariance) = X.shape, _covariance(X)
        shrinking = max(0.02, d / (d + 2 * n))
        covariance = (1 - shrinking) * covariance
        covariance[np.diag_indices(d)] += shrinking * np.trace(covariance) / d / (1 - shrinking) + 1e-9
        root = np.linalg.cholesky(covariance)
        return cls(mean, np.linalg.inv(root).T.astype(np.float32), float(np.log(root.diagonal()).sum()))

    def log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """The log likelihood (n,) of rows, up to a constant that depends on the dimension."""
        white = Engine().map_rows(X, self.whitening, mean=self.mean.astype(np.float32))
        return -0.5 * np.vecdot(white, white) - np.float32(self.log_scale)


class _Pair(NamedTuple):
    """A Gaussian for each part, and the logarithm of the second part's odds."""

    first: _Gaussian
    second: _Gaussian
    odds: float

    @classmethod
    def of(cls, X: np.ndarray, second: np.ndarray) -> _Pair:
        share = second.mean()
        odds = float(np.log(share / (1 - share)))
        return cls(_Gaussian.of(X[~second]), _Gaussian.of(X[second]), odds)

    def log_ratio(self, X: np.ndarray) -> np.ndarray:
        return self.second.log_likelihood(X) - self.first.log_likelihood(X) + np.float32(self.odds)


def _covariance(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    moments = Engine().moments(X)
    return moments.means[0], moments.products / max(1, moments.n - 1)


def halves(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The even and the odd dimensions of unit rows (n, d). The columns are not principal axes of the rows, so
    choices made on one half do not affect the other half."""
    units = unit_rows(np.asarray(X))
    return np.ascontiguousarray(units[:, ::2]), np.ascontiguousarray(units[:, 1::2])


def shared_axes(A: np.ndarray, B: np.ndarray) -> Slope:
    """The slope of a regression, over the axes of rows A (n, d): log variances of rows B (m, d) against log
    variances of A. The axes come from the first half of A, and the variances of A from its second half."""
    half = len(A) // 2
    _, axes = Engine().eigh(_covariance(A[:half])[1])
    variances = [Engine().map_rows(rows, axes).var(axis=0, dtype=np.float64) for rows in (A[half:], B)]
    a, b = (np.log(np.maximum(one, max(_SHORTEST * np.median(one), 1e-12))) for one in variances)
    x, y, k = a - a.mean(), b - b.mean(), len(a)
    slope = float(x @ y / max(x @ x, 1e-12))
    error = float(np.sqrt(np.square(y - slope * x).sum() / max(1, k - 2) / max(x @ x, 1e-12)))
    return Slope(slope, slope + 1.96 * error, k)


def between(X: np.ndarray, second: np.ndarray) -> Slope:
    """The slope `shared_axes` of two parts of the rows, by the axes of the larger part. If the smaller part
    has enough rows, its axes give a second slope, and the higher of the two is returned."""
    A, B = X[~second], X[second]
    A, B = (A, B) if len(A) >= len(B) else (B, A)
    slope = shared_axes(A, B)
    return max(slope, shared_axes(B, A)) if len(B) >= 2 * X.shape[1] else slope


def parts_of(X: Rows, random_state: int = 0, unlike: np.ndarray | None = None) -> TwoParts:
    """The two parts of rows (n, d), n ≥ 2 × `LEAST`, whose axes differ most. The rows that are most `unlike`
    a trusted sample (n,) are also tried as a part."""
    n = len(X)
    some = np.random.default_rng((random_state, 40)).permutation(n)[:FITTED]
    rows = np.asarray(X[some])
    # Equal rows vary along no axis; neither do rows with one number in all dimensions.
    distinct = ~(row_hashes(rows).duplicated().to_numpy() | (rows == rows[:, :1]).all(axis=1))
    some = some[distinct]
    even, odd = halves(rows[distinct])
    starts = [*_starts(even), *([_highest(unlike[some])] if unlike is not None else [])]
    kept = [
        start for kind in starts for start in sorted(kind, key=lambda one: between(odd, one).high)[:_KEPT]
    ]
    if not kept:
        return TwoParts(Slope(1.0, 1.0, odd.shape[1]), np.full(n, -np.inf, np.float32), len(some))
    best, second = _least_shared_parts(even, odd, kept)
    # Repeat with the roles of the odd and even dimensions exchanged; the higher slope counts.
    other, again = _least_shared_parts(odd, even, [second])
    best = max(best, other, key=lambda one: one.high)
    models = _Pair.of(even, second), _Pair.of(odd, again)
    ratio = np.empty(n, np.float32)
    for block in row_blocks(n):
        sides = halves(X[block])
        ratio[block] = sum(model.log_ratio(side) for model, side in zip(models, sides, strict=True))
    larger = odd[second] if 2 * np.count_nonzero(second) > len(second) else odd[~second]
    ratio = ratio if np.mean(ratio > 0) <= 0.5 else -ratio
    return TwoParts(best, ratio, len(some), _are_uneven(larger))


def _are_uneven(X: np.ndarray) -> bool:
    """Whether the variances along the short axes are uneven. The axes come from one half of the rows, the
    variances from the other half. The limit is exceeded by one in 100 draws of rows with equal variances."""
    from scipy.special import chdtri  # imported here, because SciPy would delay the first page

    first, rest = np.array_split(X, 2)
    axes = Engine().eigh(_covariance(first)[1])[1][:, : X.shape[1] // 2]
    squares = np.square(Engine().map_rows(rest - rest.mean(axis=0), axes), dtype=np.float64)
    means = np.maximum(squares.mean(axis=0), 1e-12)
    logs, errors = np.log(means), squares.var(axis=0) / means**2 / len(rest)
    return bool(np.square(logs - logs.mean()).sum() > chdtri(len(logs), 0.01) * errors.mean())


def _starts(X: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The parts from which the search starts, each an array (n,). Some hold the rows of two groups; others
    hold the rows with the most energy along the short axes."""
    n, some = len(X), X[:_STARTED]
    models = [_Gaussian.of(some[rows]) for rows in _groups(some, np.arange(len(some)), _GROUPINGS)]
    likely = [model.log_likelihood(X) for model in models]
    parts = (second > first for first, second in combinations(likely, 2))
    mean, covariance = _covariance(some)
    values, axes = Engine().eigh(covariance)
    short = slice(0, 3 * X.shape[1] // 4)
    weights = axes[:, short] / np.sqrt(np.maximum(values[short], _SHORTEST * np.median(values)))
    places = Engine().map_rows(X, weights, mean=mean.astype(np.float32))
    fit = [part for part in parts if LEAST <= np.count_nonzero(part) <= n - LEAST]
    return fit, _highest(np.vecdot(places, places))


def _highest(values: np.ndarray) -> list[np.ndarray]:
    """For each of `_SHARES`, the part (n,) with this share of the rows, those with the highest values."""
    ranks = np.argsort(np.argsort(-values))
    return [ranks < size for share in _SHARES if (size := round(share * len(values))) >= LEAST]


def _groups(X: np.ndarray, rows: np.ndarray, levels: int) -> list[np.ndarray]:
    """Groups of rows, made by repeated 2-means on the longest axes of each group."""
    if not levels or len(rows) < 6 * LEAST:
        return [rows]
    part = X[rows]
    mean, covariance = _covariance(part)
    places = Engine().map_rows(part, Engine().eigh(covariance)[1][:, -_LONG:], mean=mean.astype(np.float32))
    side = places[:, -1] > np.median(places[:, -1])
    for _ in range(15):
        if not 3 * LEAST <= np.count_nonzero(side) <= len(rows) - 3 * LEAST:
            return [rows]
        first, second = places[side].mean(axis=0), places[~side].mean(axis=0)
        now = places @ (first - second) > (first @ first - second @ second) / 2
        if np.array_equal(now, side):
            break
        side = now
    return [*_groups(X, rows[side], levels - 1), *_groups(X, rows[~side], levels - 1)]


def _least_shared_parts(
    X: np.ndarray, other: np.ndarray, starts: list[np.ndarray]
) -> tuple[Slope, np.ndarray]:
    """The lowest slope between two parts on the `other` dimensions, and these parts. In each step, rows move
    to the part where they are likelier by X; the search ends when few rows move."""
    found = []
    for start in starts:
        part, lowest = start, np.inf
        for _ in range(_STEPS):
            found.append((slope := between(other, part), part))
            lowest = min(lowest, slope.high)
            if slope.high > lowest + 0.05:  # further steps only make the parts worse
                break
            now = _Pair.of(X, part).log_ratio(X) > 0
            changed = np.count_nonzero(now != part)
            if not LEAST <= np.count_nonzero(now) <= len(X) - LEAST or changed <= _SETTLED * len(X):
                break
            part = now
    # The step with the lowest slope counts, not the last one: by then, a small part of another model has
    # taken rows that are rare in both models.
    return min(found, key=lambda one: one[0].high)
