"""Whether the two most different parts of a collection share their axes, as
parts of one model's vectors do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from relcore.base.rows import Rows, row_blocks, unit_rows
from relcore.engine.engine import Engine
from relcore.engine.nearest import nearest
from relcore.spaces.matching import row_hashes

SUSPECTED = 0.3
LEAST = 20  # minimum number of rows of a part, for reliable variances
FITTED = 20_000  # maximum number of rows of a fit
# maximum number of rows for the choice of starts, and for a Gaussian
_STARTED = 5000
_FROM = 4000
_LONG = 30  # number of the longest axes, by which rows are grouped
# numbers of halvings, of starts kept per kind, of steps per start
_GROUPINGS = 3
_KEPT = 3
_STEPS = 12
_SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25)  # shares of the rows that a start puts into one part
_SETTLED = 1e-3  # share of the rows that change their part; below it, a search ends
_SHORTEST = 0.01  # minimum variance of an axis, as a share of the median variance; unused dimensions have 0
_SHRUNK = 0.02  # minimum mean square along an axis of few rows, as a share of the mean over all axes
# of each part, the share of the rows that lie nearest to the other part, and that lie farthest from it; the
# difference of their slopes from which parts pass into each other, as a number and in standard errors
_ENDS = 0.35
_GRADED = 0.05
_GRADED_ERRORS = 0.8
_SAME_WAY = 0.1  # cosine of the means of two parts above which they point the same way
_MIXED_ORDER = 0.5  # correlation of orders in a smaller part from which it has rows of both models
# slope of the axes of all rows and of the differences of near rows: .34 or more in encoders, at most .16 in
# groups whose noise is nearly equal along all axes
_NEAR = 0.25
_MANY = 10  # number of rows per dimension from which mean squares need no minimum


class Slope(NamedTuple):
    """The similarity of the axes along which two sets of rows vary: about 1 if both are of one model, 0 if
    they share no coordinates (see `shared_axes`). `high` is the upper end of the 95 % interval; `axes` is the
    number of axes.
    """

    value: float
    high: float
    axes: int


class TwoParts(NamedTuple):
    """The division of a collection into the two parts whose axes differ most.

    Attributes
    ----------
    slope : Slope
    log_ratio : (n,) float32
        Log likelihood ratio of the smaller to the larger part; rows above 0 count as the smaller part.
    fitted : int
        Number of rows that were used to find the parts.
    uneven : bool
        Whether the larger part has axes that identify a model: its variances along its short axes differ, and
        its rows differ from their nearest ones along the same axes (see `_near_rows_share_axes`). Otherwise,
        any rotation of the axes is as good, or they are the axes of separate groups.
    graded : bool
        Whether the parts pass into each other (see `_pass_into_each_other`), as topics of one model do.
    """

    slope: Slope
    log_ratio: np.ndarray
    fitted: int
    uneven: bool = True
    graded: bool = False


class ShortAxes(NamedTuple):
    """The short axes (d, c) of a model, along which its vectors hardly vary, and the mean squares (c,) of its
    rows along them. They are the eigenvectors with the smallest eigenvalues of the second moment of unit
    rows, and are nearly the same for all texts.
    """

    axes: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, *samples: np.ndarray, most: int | None = None) -> ShortAxes:
        """The short axes of samples of rows (n, d): half of all axes, but at most `most`. The samples, such
        as texts of several domains, have equal weights.
        """
        units = [unit_rows(np.asarray(sample)) for sample in samples]
        moments = [rows.T @ rows / len(rows) for rows in units]
        values, axes = Engine().eigh(np.mean(moments, axis=0))
        count = min(most or len(values), len(values) // 2)
        floor = 1e-9
        if sum(map(len, samples)) < _MANY * len(values):
            floor = _SHRUNK * values.mean()
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
        """The Gaussian of the first 4,000 rows of X (n, d). Its covariance is shrunk towards a multiple of
        the identity.
        """
        X = X[:_FROM]
        (n, d) = X.shape
        (mean, covariance) = _covariance(X)
        shrinking = max(0.02, d / (d + 2 * n))
        covariance = (1 - shrinking) * covariance
        covariance[np.diag_indices(d)] += shrinking * np.trace(covariance) / d / (1 - shrinking) + 1e-9
        root = np.linalg.cholesky(covariance)
        return cls(mean, np.linalg.inv(root).T.astype(np.float32), float(np.log(root.diagonal()).sum()))

    def log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """The log likelihood (n,) of the rows X (n, d), up to a constant that depends only on d."""
        white = Engine().map_rows(X, self.whitening, mean=self.mean.astype(np.float32))
        return -0.5 * np.vecdot(white, white) - np.float32(self.log_scale)


def _log_odds(X: np.ndarray, second: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Fit a Gaussian to each of two parts of X; `second` (n,) is True for rows of the second part. Returns a
    function that gives, for new rows (m, d), the log odds (m,) of the second part.
    """
    share = second.mean()
    models = _Gaussian.of(X[second]), _Gaussian.of(X[~second])
    odds = np.float32(np.log(share / (1 - share)))
    return lambda rows: models[0].log_likelihood(rows) - models[1].log_likelihood(rows) + odds


def _covariance(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    moments = Engine().moments(X)
    return moments.means[0], moments.products / max(1, moments.n - 1)


def halves(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The even and the odd dimensions of unit rows (n, d). Parts that are found in one half of the dimensions
    can be tested in the other half.
    """
    units = unit_rows(np.asarray(X))
    return np.ascontiguousarray(units[:, ::2]), np.ascontiguousarray(units[:, 1::2])


def shared_axes(A: np.ndarray, B: np.ndarray) -> Slope:
    """Test whether the rows A (n, d) and B (m, d) vary along the same axes. For each principal axis of A, the
    log variances of A and of B along it are one point; the result is the slope of a linear regression. It is
    about 1 for the same axes and 0 for unrelated ones. The axes come from one half of A, the variances of A
    from the other.
    """
    half = len(A) // 2
    _, axes = Engine().eigh(_covariance(A[:half])[1])
    a = _log_variances(A[half:], axes)
    b = _log_variances(B, axes)
    x = a - a.mean()
    y = b - b.mean()
    k = len(a)
    slope = float(x @ y / max(x @ x, 1e-12))
    error = float(np.sqrt(np.square(y - slope * x).sum() / max(1, k - 2) / max(x @ x, 1e-12)))
    return Slope(slope, slope + 1.96 * error, k)


def _log_variances(rows: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The logarithms (k,) of the variances of rows (n, d) along the axes. Very small variances are raised
    first, to a fixed share of the median."""
    variances = Engine().map_rows(rows, axes).var(axis=0, dtype=np.float64)
    least = max(_SHORTEST * np.median(variances), 1e-12)
    return np.log(np.maximum(variances, least))


def between(X: np.ndarray, second: np.ndarray) -> Slope:
    """The slope `shared_axes` between two parts of the rows X (n, d), by the axes of the larger part. If the
    smaller part has enough rows, the slope by its axes is computed as well, and the higher slope is returned.
    `second` (n,) is True for rows of the second part.
    """
    A = X[~second]
    B = X[second]
    if len(A) < len(B):
        A, B = B, A
    slope = shared_axes(A, B)
    if len(B) >= 2 * X.shape[1]:
        return max(slope, shared_axes(B, A))
    return slope


def parts_of(X: Rows, random_state: int = 0, unlike: np.ndarray | None = None) -> TwoParts:
    """Divide rows (n, d), n ≥ 2 × `LEAST`, into the two parts whose axes differ most. If `unlike` (n,), the
    difference of each row from a trusted sample, is given, the rows that differ most are tried as a part,
    too.
    """
    n = len(X)
    some = np.random.default_rng((random_state, 40)).permutation(n)[:FITTED]
    rows = np.asarray(X[some])
    # Equal rows have no variance along any axis, and neither have rows with the same number in all
    # dimensions.
    distinct = ~(row_hashes(rows).duplicated().to_numpy() | (rows == rows[:, :1]).all(axis=1))
    some = some[distinct]
    even, odd = halves(rows[distinct])
    starts = [*_starts(even)]
    if unlike is not None:
        starts.append(_highest(unlike[some]))
    kept = [
        start for kind in starts for start in sorted(kind, key=lambda one: between(odd, one).high)[:_KEPT]
    ]
    if not kept:
        return TwoParts(Slope(1.0, 1.0, odd.shape[1]), np.full(n, -np.inf, np.float32), len(some))
    best, second = _least_shared_parts(even, odd, kept)
    # Repeat with odd and even dimensions exchanged; the higher slope counts.
    other, again = _least_shared_parts(odd, even, [second])
    best = max(best, other, key=lambda one: one.high)
    models = _log_odds(even, second), _log_odds(odd, again)
    ratio = np.empty(n, np.float32)
    for block in row_blocks(n):
        sides = halves(X[block])
        ratio[block] = sum(model(side) for model, side in zip(models, sides, strict=True))
    if 2 * np.count_nonzero(second) > len(second):
        larger = odd[second]
    else:
        larger = odd[~second]
    if not (np.mean(ratio > 0) <= 0.5):
        ratio = -ratio
    uneven = _are_uneven(larger) and _near_rows_share_axes(larger)
    if best.high < SUSPECTED and uneven:
        best = max(best, _by_all_dimensions(even, odd, (second, again)), key=lambda one: one.high)
    graded = best.high < SUSPECTED and _pass_into_each_other([(even, odd, second), (odd, even, again)])
    return TwoParts(best, ratio, len(some), uneven, graded)


def _by_all_dimensions(even: np.ndarray, odd: np.ndarray, parts: Sequence[np.ndarray]) -> Slope:
    """The higher slope of two divisions of the rows into parts (n,), over the dimensions of both halves. The
    divisions were chosen for a low slope over half of the dimensions. One model's parts can have that by
    chance, but rarely over all of them.
    """
    units = np.hstack([even, odd])
    return max((between(units, second) for second in parts), key=lambda one: one.high)


def _pass_into_each_other(sides: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> bool:
    """Whether two parts are graded, as topics of one model are, also those of frequent words, whose parts as
    wholes share hardly any axis. Of two models, the angle of the means is arbitrary, and so is the order in
    which the rows of one lie towards the other.

    So the means must point the same way, and one of two conditions must hold. First: the rows of the larger
    part lie in the same order towards the smaller one by both halves of the dimensions. Second: the parts
    share more axes where they meet than where they are farthest apart. The second is ignored if the smaller
    part has such an order and the larger part has none, because it is then a mixture of rows of two models.

    Each side has dimensions that order the rows from one part to the other, dimensions that are compared, and
    a mask of the second part.
    """
    cosines = []
    larger = []
    smaller = []
    for ordering, compared, second in sides:
        means = [
            np.stack([rows[part].mean(axis=0) for part in (second, ~second)]) for rows in (ordering, compared)
        ]
        first_end, second_end = unit_rows(means[1])
        cosines.append(first_end @ second_end)
        places = [rows @ (ends[0] - ends[1]) for rows, ends in zip((ordering, compared), means, strict=True)]
        orders = [np.corrcoef(places[0][part], places[1][part])[0, 1] for part in (second, ~second)]
        if 2 * np.count_nonzero(second) > len(second):
            orders.reverse()
        smaller.append(orders[0])
        larger.append(orders[1])
    if np.mean(cosines) <= _SAME_WAY:
        return False
    if np.mean(larger) > 0:
        return True
    return bool(np.mean(smaller) < _MIXED_ORDER and _share_more_where_they_meet(sides))


def _share_more_where_they_meet(sides: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> bool:
    """Whether the rows of two parts that are nearest to the other part share more axes than those farthest
    from it. It is False where a part has too few rows to tell."""
    changes = []
    for ordering, compared, second in sides:
        parts = [np.flatnonzero(second), np.flatnonzero(~second)]
        first_end = ordering[parts[0]].mean(axis=0)
        second_end = ordering[parts[1]].mean(axis=0)
        place = ordering @ (first_end - second_end)
        counts = [round(_ENDS * len(rows)) for rows in parts]
        if min(counts) < compared.shape[1]:
            return False
        near = []
        far = []
        for rows, count, sign in zip(parts, counts, (1, -1), strict=True):
            order = rows[np.argsort(sign * place[rows], kind="stable")]
            # in the order of the rows, since halves of a sample must be alike
            near.append(compared[np.sort(order[:count])])
            far.append(compared[np.sort(order[-count:])])
        for one, other in ((0, 1), (1, 0)):
            slopes = [shared_axes(ends[one], ends[other]) for ends in (near, far)]
            variance = sum(((slope.high - slope.value) / 1.96) ** 2 for slope in slopes)
            changes.append((slopes[0].value - slopes[1].value, variance))
    change, variance = np.mean(changes, axis=0)
    return bool(change > max(_GRADED, _GRADED_ERRORS * np.sqrt(variance)))


def _are_uneven(X: np.ndarray) -> bool:
    """Whether the variances along the short axes differ: a χ² test at the 1 % level. The axes come from one
    half of the rows, the variances from the other half.
    """
    from scipy.special import chdtri  # imported here, because SciPy would delay the first page

    first, rest = np.array_split(X, 2)
    axes = Engine().eigh(_covariance(first)[1])[1][:, : X.shape[1] // 2]
    squares = np.square(Engine().map_rows(rest - rest.mean(axis=0), axes), dtype=np.float64)
    means = np.maximum(squares.mean(axis=0), 1e-12)
    logs = np.log(means)
    errors = squares.var(axis=0) / means**2 / len(rest)
    return bool(np.square(logs - logs.mean()).sum() > chdtri(len(logs), 0.01) * errors.mean())


def _near_rows_share_axes(X: np.ndarray) -> bool:
    """Whether the rows X (n, d) differ from their nearest ones along the axes on which all rows vary, as a
    model's rows do. Rows in separate groups that vary equally in all directions inside a group do not. Their
    axes are those of the groups' means, so two halves of the groups have other axes, as two models have.
    """
    units = unit_rows(X[:_FROM])
    (first, second) = nearest(units, units, 2).rows.T
    near = np.where(first == np.arange(len(units)), second, first)
    return shared_axes(units, units - units[near]).value >= _NEAR


def _starts(X: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Two lists of masks (n,) of a part, from which a search for parts starts. In the first list, a part has
    the rows that are likelier in one of two `_groups` than in the other. In the second list, it has the rows
    with the largest squares along the short axes.
    """
    n = len(X)
    some = X[:_STARTED]
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
    """For each of `_SHARES`, a mask (n,) of this share of the highest values. Masks of fewer than `LEAST` are
    left out."""
    ranks = np.argsort(np.argsort(-values))
    sizes = [round(share * len(values)) for share in _SHARES]
    return [ranks < size for size in sizes if size >= LEAST]


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
        first = places[side].mean(axis=0)
        second = places[~side].mean(axis=0)
        now = places @ (first - second) > (first @ first - second @ second) / 2
        if np.array_equal(now, side):
            break
        side = now
    return [*_groups(X, rows[side], levels - 1), *_groups(X, rows[~side], levels - 1)]


def _least_shared_parts(
    X: np.ndarray, other: np.ndarray, starts: list[np.ndarray]
) -> tuple[Slope, np.ndarray]:
    """Search from these starts for the two parts of the rows with the lowest slope. Returns the slope and a
    mask (n,) of the second part. In each step, every row moves to the part in which it is likelier, by the
    dimensions X; the slope is measured on the `other` dimensions. A search ends when few rows move.
    """
    found = []
    for start in starts:
        part = start
        lowest = np.inf
        for _ in range(_STEPS):
            slope = between(other, part)
            found.append((slope, part))
            lowest = min(lowest, slope.high)
            if slope.high > lowest + 0.05:  # further steps only raise the slope
                break
            now = _log_odds(X, part)(X) > 0
            changed = np.count_nonzero(now != part)
            if not LEAST <= np.count_nonzero(now) <= len(X) - LEAST or changed <= _SETTLED * len(X):
                break
            part = now
    # The step with the lowest slope counts, because in later steps a small part also takes rows that are rare
    # in both models.
    return min(found, key=lambda one: one[0].high)
