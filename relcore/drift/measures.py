"""The change between two versions of the same rows, split into shift, scale, rotation and what remains.

With X and Y centred, a = ‖X‖ and b = ‖Y‖ (Frobenius), c the cosine of the two matrices and σ the largest
cosine that any rotation of X reaches (the sum of the singular values of XᵀY, over ab), the squared change of
the uncentred rows is exactly

.. math:: n‖μ_Y − μ_X‖² + (b − a)² + 2ab(σ − c) + 2ab(1 − σ):

moving the mean, matching the spread, rotating, and what no rotation explains. All four are at least zero. A
rotation about zero also turns the mean row: that part of it counts as a shift. ρ compares what remains with
the new version itself: ρ = min over s and R of ‖Y − sXR‖² / ‖Y‖² = 1 − σ², the squared sine of the Procrustes
angle between the two shapes, see [1]_.

.. [1] A. H. Williams, E. Kunz, S. Kornblith, S. Linderman. Generalized Shape Metrics on Neural
Representations. NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.magnitude import exponents, lengths, scaled
from relcore.represent.similarity import mean_row, row_blocks, unit_rows
from relcore.scores.neighbours import neighbours_within, without_itself
from relcore.scores.search import nearest_directions

STEPS = ("shift", "scale", "rotation", "remains")
_ROWS = 2048  # in float64 at once
_NONE = 1e-30  # of the squared size of the rows: they are all in one point
_UNCHANGED = 1e-12  # of the same: float32 cannot hold a smaller change


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Y ≈ scale · (X − old_mean) rotation + new_mean, and what each part of it explains.

    Attributes
    ----------
    shares : array (4,)
        Of `STEPS`: shares of the squared change, from 0, of sum 1; all 0 where nothing has changed. NaN
        between spaces of different widths, whose rows cannot be subtracted.
    shift : float
        Distance of the two mean rows, in units of the old rows' root mean square distance from their mean;
        NaN between widths.
    scale : float
        The s of the best fit.
    spread : float
        Ratio of the two spreads, b / a.
    turn : float
        c / σ, from −1 to 1: 1 where nothing has to be rotated. NaN between widths.
    rho : float
        What remains: ‖Y − sXR‖² / ‖Y‖², 0 … 1.
    remaining : array (n,)
        The same per row: ‖yᵢ − s xᵢR‖² over the mean of ‖yⱼ‖². Its mean is rho, but from a wider to a
        narrower space, where it leaves out what the new space has no room for.
    sizes, lengths : arrays (n,)
        ‖yᵢ‖² of the centred and of the uncentred new rows, over the same mean.
    rotation : array (d_old, d_new)
        R: its rows or columns, whichever are fewer, are orthonormal.
    old_mean, new_mean : arrays (d_old,), (d_new,)
    """

    shares: np.ndarray
    shift: float
    scale: float
    spread: float
    turn: float
    rho: float
    remaining: np.ndarray
    sizes: np.ndarray
    lengths: np.ndarray
    rotation: np.ndarray
    old_mean: np.ndarray
    new_mean: np.ndarray


def decompose(old: np.ndarray, new: np.ndarray) -> Decomposition:
    """Split the change from `old` (n, d_old) to `new` (n, d_new), row by row the same items.

    Memory: the product of the two widths, and blocks of rows in float64. Between different widths the
    narrower space counts as one of the larger width with zeros, so that R has orthonormal rows or columns.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than two rows, a version whose rows are all in one point.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.drift.measures import STEPS, decompose
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> X -= X.mean(axis=0)
    >>> quarter_turn = np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    >>> found = decompose(X, X @ quarter_turn)
    >>> dict(zip(STEPS, (found.shares.round(6) + 0).tolist()))
    {'shift': 0.0, 'scale': 0.0, 'rotation': 1.0, 'remains': 0.0}
    """
    if len(old) != len(new):
        raise SpaceError(
            f"drift: expected the same rows in both versions, got {len(old):,} and {len(new):,}; pair them"
            " by id"
        )
    if len(old) < 2:
        raise SpaceError(f"drift: expected two rows or more, got {len(old)}; compare more rows")
    exponent = max(int(exponents(old)), int(exponents(new)))
    sides = [_Side.of(X, int(exponents(X)), name) for X, name in ((old, "old"), (new, "new"))]
    a, b = (side.size for side in sides)
    product = np.zeros((old.shape[1], new.shape[1]))
    for block in row_blocks(len(old), _ROWS):
        product += sides[0].rows(block).T @ sides[1].rows(block)
    left, values, right = np.linalg.svd(product, full_matrices=False)
    rotation = left @ right
    sigma = min(1.0, float(values.sum()) / (a * b))
    remaining, sizes, lengths = _per_row(sides, rotation, sigma * b / a)
    total = float(remaining.mean())
    rho = (
        total if old.shape[1] <= new.shape[1] else 1 - sigma**2
    )  # the residual keeps the digits of a small rho
    units = [float(np.ldexp(1.0, side.exponent - exponent)) for side in sides]
    cosine = float(np.trace(product)) / (a * b) if old.shape[1] == new.shape[1] else np.nan
    shares, shift = _shares(sides, units, sigma, cosine, rho)
    ratio = float(np.ldexp(b / a, sides[1].exponent - sides[0].exponent))
    means = (np.ldexp(side.mean, side.exponent) for side in sides)
    turn = cosine / sigma if sigma else np.nan
    return Decomposition(
        shares, shift, sigma * ratio, ratio, turn, rho, remaining, sizes, lengths, rotation, *means
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """One version, divided by a power of two so that float64 can square it: its mean and its ‖·‖ after
    centring.
    """

    vectors: np.ndarray
    exponent: int
    mean: np.ndarray
    size: float

    @classmethod
    def of(cls, vectors: np.ndarray, exponent: int, name: str) -> _Side:
        blocks = list(row_blocks(len(vectors), _ROWS))
        mean = sum(scaled(vectors[block].astype(np.float64), exponent).sum(axis=0) for block in blocks) / len(
            vectors
        )
        side = cls(vectors, exponent, mean, 0.0)
        square = sum(float(np.sum(side.rows(block) ** 2)) for block in blocks)
        if not square > _NONE * len(vectors) * max(float(mean @ mean), _NONE):
            raise SpaceError(
                f"drift: expected rows that differ, got the same vector in every row of the {name} version"
            )
        return cls(vectors, exponent, mean, float(np.sqrt(square)))

    def rows(self, block: slice) -> np.ndarray:
        return scaled(self.vectors[block].astype(np.float64), self.exponent) - self.mean


def _per_row(sides: list[_Side], rotation: np.ndarray, scale: float) -> np.ndarray:
    """Squared lengths (3, n) over the mean squared length of the centred new rows: of the residuals of the
    fit, of the centred and of the uncentred new rows."""
    old, new = sides
    n, found = len(old.vectors), np.empty((3, len(old.vectors)))
    for block in row_blocks(n, _ROWS):
        rows = new.rows(block)
        residual = rows - scale * (old.rows(block) @ rotation)
        for line, one in zip(found, (residual, rows, rows + new.mean), strict=True):
            line[block] = np.vecdot(one, one)
    return found * (n / new.size**2)


def _shares(
    sides: list[_Side], units: list[float], sigma: float, cosine: float, rho: float
) -> tuple[np.ndarray, float]:
    """The four shares of the squared change, and the distance of the means over the old spread."""
    if np.isnan(cosine):
        return np.full(len(STEPS), np.nan), np.nan
    n = len(sides[0].vectors)
    a, b = (side.size * unit for side, unit in zip(sides, units, strict=True))
    moved = float(np.linalg.norm(sides[1].mean * units[1] - sides[0].mean * units[0]))
    unexplained = rho / (1 + sigma)  # 1 − σ, without its rounding
    parts = np.array(
        [n * moved**2, (b - a) ** 2, 2 * a * b * max(0.0, sigma - cosine), 2 * a * b * unexplained]
    )
    size = max(a, b) ** 2
    whole = parts.sum()
    shares = parts / whole if whole > _UNCHANGED * size else np.zeros(len(STEPS))
    return shares, moved * np.sqrt(n) / a if a else np.nan


# Neighbours that change from one version to the next, by more than numeric noise can change them.
#
# Rows that are equal, or nearly, are in no order: numeric noise decides which of them a search names. So a
# neighbour that is no longer among the k nearest counts as kept if it is no farther than the k-th by `_TIE`
# times the length of the noise.

JITTER = 2.0**-11  # the largest relative error of rounding to float16
_TIE = 4.0  # a distance has the noise of two rows, and two versions of it are compared
_SEEDING_ROWS = 64
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class UnitVersions:
    """The rows of one version as they are compared by cosine.

    Attributes
    ----------
    rows : array (n, d)
        Of length 1, after the mean row is subtracted where they are centred.
    blur : array (n,)
        Distances of a row that differ by less are equal, up to numeric noise.
    """

    rows: np.ndarray
    blur: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray, jitter: float, center: bool) -> UnitVersions:
        """Of the vectors (n, d); the noise is `jitter` times the length of a row before it is centred."""
        mean = mean_row(vectors) if center else None
        before, after = lengths(vectors), lengths(vectors, mean)
        share = np.divide(before, after, out=np.full(len(vectors), np.inf), where=after > 0)
        return cls(unit_rows(vectors, mean), _TIE * jitter * share if jitter else np.zeros(len(vectors)))

    def near(self, queries: np.ndarray, k: int) -> np.ndarray:
        """The k nearest rows of each of these rows, itself left out, (m, k), nearest first."""
        return neighbours_within(self.rows, queries, k)

    def changed(self, queries: np.ndarray, before: np.ndarray, now: np.ndarray) -> np.ndarray:
        """`changed_rows` where these are the new directions, and the queries rows of them."""
        return changed_rows(before, now, self.rows[queries], self.blur[queries], self.rows)


def changed_rows(
    before: np.ndarray, now: np.ndarray, directions: np.ndarray, blur: np.ndarray, base: np.ndarray
) -> np.ndarray:
    """Share of each query's nearest rows `before` (m, k) that are not among its nearest `now` (m, k), (m,), 0
    … 1.

    The search of now is that of the directions (m, d) among the base (n, d); what is tied with the k-th of
    them is kept.
    """
    found = np.empty(len(before))
    for block in row_blocks(len(before), _BLOCK):
        among = (before[block][:, :, None] == now[block][:, None, :]).any(axis=2)
        reach = _distance(directions[block], base, now[block][:, -1:]) + blur[block, None]
        found[block] = 1 - (among | (_distance(directions[block], base, before[block]) <= reach)).mean(axis=1)
    return found


def chance_churn(n: int, k: int) -> float:
    """The churn of rows that are paired at random: k of n − 1 rows are the same by chance."""
    return 1 - k / (n - 1)


@dataclass(frozen=True, eq=False)
class Across:
    """New vectors of rows as queries among the old vectors of all rows, compared by cosine as they are.

    Attributes
    ----------
    changed : array (m,)
        Share of the k nearest old rows that are others than those that the old vector finds, the own row left
        out.
    lost : array (m,)
        1.0 where another old row is nearer than the query's own, 0.0 elsewhere.
    reciprocal_rank : array (m,)
        1 / rank of the own row, 0 beyond k + 1.
    """

    changed: np.ndarray
    lost: np.ndarray
    reciprocal_rank: np.ndarray

    @classmethod
    def search(cls, new: UnitVersions, old: UnitVersions, queries: np.ndarray, before: np.ndarray) -> Across:
        """Rows `queries` of the new version among all of the old one; `before` (m, k) is what their old
        vectors find.

        The old rows are searched in an order of their own, so that equal rows are no advantage for the first
        of them.
        """
        directions, blur, base = new.rows[queries], new.blur[queries], old.rows
        order = np.random.default_rng(crc32(base[-_SEEDING_ROWS:].tobytes())).permutation(len(base))
        found = order[nearest_directions(directions, base[order], before.shape[1] + 1)]
        own = found == queries[:, None]
        rank = np.where(own.any(axis=1), 1 / (own.argmax(axis=1) + 1), 0.0)
        others = without_itself(queries, found)
        nearest, its_own = (
            _distance(directions, base, rows)[:, 0] for rows in (others[:, :1], queries[:, None])
        )
        lost = (its_own > nearest + blur).astype(float)
        return cls(changed_rows(before, others, directions, blur, base), lost, rank)


def jittered(vectors: np.ndarray, jitter: float, rng: np.random.Generator) -> np.ndarray:
    """The rows (n, d) with Gaussian noise whose length is `jitter` times that of the row, as float32."""
    found = rng.standard_normal(vectors.shape, dtype=np.float32)
    found *= (jitter / np.sqrt(vectors.shape[1]) * lengths(vectors)).astype(np.float32)[:, None]
    found += vectors
    return found


def _distance(directions: np.ndarray, base: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Euclidean distances of each direction (m, d) from its own rows (m, k) of the base: (m, k)."""
    found = np.empty(rows.shape, dtype=np.float32)
    for block in row_blocks(len(rows), _BLOCK):
        found[block] = np.linalg.norm(base[rows[block]] - directions[block][:, None, :], axis=2)
    return found


# What the drift between two versions is measured by: each quantity for all rows and for each class, beside
# its noise level.

EVERYTHING_NEW, NEW_QUERIES = "everything_new", "new_queries"
_NOISE_ROWS = 20_000
FEWEST = 5  # rows of a class that a mean is computed of
_Rows = dict[tuple[str, str], np.ndarray]


@dataclass(frozen=True)
class Measure:
    """One quantity of one group of rows, in one situation.

    Attributes
    ----------
    situation : "everything_new" or "new_queries"
    quantity : "churn", "rho" or "lost"
    group : str
        A class; "" for all rows.
    n : int
        Rows that it is the mean of.
    value, noise : float
        What was measured, and what numeric noise alone would leave; shares 0 … 1.
    error : float
        Standard error of value − noise over the rows.
    """

    situation: str
    quantity: str
    group: str
    n: int
    value: float
    noise: float
    error: float


@dataclass(frozen=True, eq=False)
class NeighbourRows:
    """Per query: the measured shares and what noise leaves, by situation and quantity; (m,) each."""

    measured: _Rows
    noise: _Rows
    reciprocal_rank: float | None
    churn_uncentred: float


def neighbour_rows(
    old: np.ndarray,
    new: np.ndarray,
    queries: np.ndarray,
    k: int,
    jitter: float,
    n_draws: int,
    random_state: int,
) -> NeighbourRows:
    """Search the neighbours of the queries in both versions, across them, and in versions of the old rows
    with noise.

    The noise level is the mean over `n_draws` pairs of such versions, each with noise of its own: two runs of
    one model, on at most `_NOISE_ROWS` rows and the queries, so that it takes less than the two versions
    themselves. Between different widths nothing can be searched across, and only "everything_new" is
    measured.
    """
    across = old.shape[1] == new.shape[1]
    measured, rank, uncentred = _compared(old, new, queries, k, jitter, across)
    rng, drawn = np.random.default_rng(random_state), []
    if len(old) > _NOISE_ROWS:
        rows = np.union1d(queries, rng.choice(len(old), _NOISE_ROWS, replace=False))
        old, queries = old[rows], np.searchsorted(rows, queries)
    for _ in range(n_draws):
        pair = [jittered(old, jitter, rng) for _ in range(2)]
        drawn.append(_compared(*pair, queries, k, jitter, across)[0])
    noise = {name: np.mean([rows[name] for rows in drawn], axis=0) for name in measured}
    return NeighbourRows(measured, noise, rank, uncentred)


def _compared(
    old: np.ndarray, new: np.ndarray, queries: np.ndarray, k: int, jitter: float, across: bool
) -> tuple[_Rows, float | None, float]:
    """The measured shares of two versions, the mean reciprocal rank across them, and the churn of rows
    that are not centred.
    """
    rows: _Rows = {}
    for center in (True, False):
        before, after = (UnitVersions.of(one, jitter, center) for one in (old, new))
        lists = before.near(queries, k)
        churn = after.changed(queries, lists, after.near(queries, k))
        if center:
            rows[EVERYTHING_NEW, "churn"] = churn
    if not across:
        return rows, None, float(churn.mean())
    found = Across.search(after, before, queries, lists)
    rows |= {(NEW_QUERIES, "lost"): found.lost, (NEW_QUERIES, "churn"): found.changed}
    return rows, float(found.reciprocal_rank.mean()), float(churn.mean())


def measures_of(
    split: Decomposition,
    rows: NeighbourRows,
    queries: np.ndarray,
    jitter: float,
    groups: Mapping[str, np.ndarray],
) -> tuple[Measure, ...]:
    """All quantities of all rows, then of each group with `FEWEST` rows or more; groups are row numbers."""
    found = [_rho(split, jitter, "", np.arange(len(split.remaining)))]
    found += [_mean(*name, "", values, rows.noise[name]) for name, values in rows.measured.items()]
    for group, members in groups.items():
        chosen = np.isin(queries, members)
        found.append(_rho(split, jitter, group, members))
        if np.count_nonzero(chosen) >= FEWEST:
            found += [
                _mean(*name, group, one[chosen], rows.noise[name][chosen])
                for name, one in rows.measured.items()
            ]
    return tuple(found)


def _mean(situation: str, quantity: str, group: str, values: np.ndarray, noise: np.ndarray) -> Measure:
    n, excess = len(values), values - noise
    error = float(excess.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    return Measure(situation, quantity, group, n, float(values.mean()), float(noise.mean()), error)


def _rho(split: Decomposition, jitter: float, group: str, members: np.ndarray) -> Measure:
    """The residuals of these rows over their squared lengths: a ratio of means, with the error of such a
    ratio.
    """
    residuals, sizes, n = split.remaining[members], split.sizes[members], len(members)
    mean = float(sizes.mean())
    ratio = float(residuals.mean()) / mean if mean else 0.0
    error = float((residuals - ratio * sizes).std(ddof=1) / (mean * np.sqrt(n))) if n > 1 and mean else 0.0
    noise = 2 * jitter**2 * float(split.lengths[members].mean()) / mean if mean else 0.0
    value = ratio if group else split.rho
    return Measure(EVERYTHING_NEW, "rho", group, n, min(1.0, value), min(1.0, noise), error)
