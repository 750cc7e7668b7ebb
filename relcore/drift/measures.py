"""The change between two versions of the same rows, split into shift, scale, rotation and what remains.

Let X and Y be the centred rows, and a = ‖X‖ and b = ‖Y‖ their Frobenius norms. Let c be the cosine between
the matrices X and Y, and σ the largest such cosine after a rotation of X (the sum of the singular values of
XᵀY, divided by ab). Then the squared change of the n uncentred rows, with means μ_X and μ_Y, is exactly

.. math:: n‖μ_Y − μ_X‖² + (b − a)² + 2ab(σ − c) + 2ab(1 − σ):

The four terms are the shift, the scale, the rotation, and what no rotation explains. All are at least zero. ρ
is the minimum of ‖Y − sXR‖² / ‖Y‖² over s and R. It equals 1 − σ², the squared sine of the Procrustes angle
between the two shapes, see [1]_.

.. [1] A. H. Williams, E. Kunz, S. Kornblith, S. Linderman. Generalized Shape Metrics on Neural
Representations. NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from zlib import crc32

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import lengths, mean_row, row_blocks, unit_rows
from relcore.engine.engine import thin_svd
from relcore.engine.nearest import nearest, nearest_within, without_itself
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace

STEPS = ("shift", "scale", "rotation", "remains")
FEWEST_ROWS = 10  # of both versions
BLOCK_ROWS = 2048  # number of rows per block in float64
_NONE = 1e-30  # minimum spread of rows that differ, as a share of the mean squared length
_UNCHANGED = 1e-12  # smaller changes, as a share of the squared size, are float32 rounding


def need_rows(pair: Match, versions: Sequence[LatentSpace]) -> None:
    """Raise a SpaceError if the two versions share fewer than `FEWEST_ROWS` rows."""
    if len(pair) >= FEWEST_ROWS:
        return
    old, new = versions
    zero = ""
    if pair.n_zero:
        zero = f", and {pair.n_zero:,} zero vectors"
    raise SpaceError(
        f"drift: expected {FEWEST_ROWS} rows or more that both versions have, got {len(pair)} in"
        f" {old.name!r} and {new.name!r}{zero}; compare more"
    )


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The best fit Y ≈ scale · (X − old_mean) rotation + new_mean of the new rows Y by the old rows X, and
    the share of the change that each part explains. Other symbols are those of the module.

    Attributes
    ----------
    shares : array (4,)
        The share of the squared change that each of `STEPS` explains. The sum is 1. If nothing has changed,
        all are 0; if the widths differ, NaN.
    shift : float
        Distance of the two mean rows, divided by the root mean square distance of the old rows from their
        mean. If the widths differ, NaN.
    scale : float
        The factor s of the best fit, σb / a.
    spread : float
        The Frobenius norm of the centred new rows, divided by that of the old rows: b / a.
    turn : float
        The ratio c / σ, from −1 to 1. It is 1 if no rotation is needed. If the widths differ, NaN.
    rho : float
        The part that remains unexplained: ‖Y − sXR‖² / ‖Y‖² for centred rows, 0 … 1.
    remaining : array (n,)
        The unexplained part of each row: ‖yᵢ − s xᵢR‖², divided by the mean of ‖yⱼ‖². The mean over rows is
        `rho`, or less if the new space is narrower.
    sizes, lengths : arrays (n,)
        The squared lengths ‖yᵢ‖² of the new rows, centred (`sizes`) and uncentred (`lengths`), divided by the
        same mean.
    rotation : array (d_old, d_new)
        The rotation R, with orthonormal rows or orthonormal columns.
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


def decompose(old: np.ndarray, new: np.ndarray) -> Decomposition:
    """Split the change from `old` (n, d_old) to `new` (n, d_new) into its parts. Rows are paired, n ≥ 2.

    The narrower space is padded with zeros. If all new rows are equal, ρ is 1. Raises a SpaceError if all old
    rows are equal.
    """
    n = len(old)
    same_width = old.shape[1] == new.shape[1]
    before = _Centred.of(old, "old")
    after = _Centred.of(new, "new")
    a = before.size
    b = after.size
    size = before.size * after.size or 1.0
    product = np.zeros((old.shape[1], new.shape[1]))
    for block in row_blocks(n, BLOCK_ROWS):
        product += before.rows(block).T @ after.rows(block)
    left, values, right = thin_svd(product)
    rotation = left @ right
    sigma = min(1.0, float(values.sum()) / size)
    squares = np.empty((3, n))  # squared lengths of residuals, of centred new rows and of uncentred new rows
    for block in row_blocks(n, BLOCK_ROWS):
        rows = after.rows(block)
        residual = rows - sigma * b / a * (before.rows(block) @ rotation)
        for line, part in zip(squares, (residual, rows, rows + after.mean), strict=True):
            line[block] = np.vecdot(part, part)
    squares *= n / (b**2 or 1.0)
    # Residuals give a small ρ more exactly. But if the new space is narrower, residuals lack a part of the
    # change.
    if b and old.shape[1] <= new.shape[1]:
        rho = float(squares[0].mean())
    else:
        rho = 1 - sigma**2
    ratio = b / a
    shares = np.full(len(STEPS), np.nan)
    shift = np.nan
    cosine = np.nan
    if same_width:
        cosine = float(np.trace(product)) / size
        shares, shift = _shares(before, after, sigma, cosine, rho)
    turn = cosine / sigma if sigma else np.nan
    return Decomposition(shares, shift, sigma * ratio, ratio, turn, rho, *squares, rotation)


_BY_LENGTH = 0.5  # minimum share of ρ that disappears if all rows are scaled to length 1


def other_lengths(old: np.ndarray, new: np.ndarray, split: Decomposition, jitter: float) -> np.ndarray | None:
    """Which rows (n,) changed their length by another factor than the median row; None unless these lengths
    explain most of ρ.

    Then versions are compared by the directions of their rows. A search by cosine finds the same neighbours
    after rows are normalised, although distances from the mean row change.
    """
    if split.rho <= (TIE * jitter) ** 2 * split.lengths.mean():
        return None
    if decompose(unit_rows(old), unit_rows(new)).rho > (1 - _BY_LENGTH) * split.rho:
        return None
    ratio = np.log(lengths(new).astype(np.float64) / lengths(old))
    return np.abs(ratio - np.median(ratio)) > TIE * jitter


@dataclass(frozen=True, eq=False)
class _Centred:
    """The vectors of a version with the mean row that is subtracted from them, in float64. `size` is the
    Frobenius norm of the centred rows."""

    vectors: np.ndarray
    mean: np.ndarray
    size: float

    @classmethod
    def of(cls, vectors: np.ndarray, name: str) -> _Centred:
        n = len(vectors)
        blocks = list(row_blocks(len(vectors), BLOCK_ROWS))
        mean = sum(vectors[block].astype(np.float64).sum(axis=0) for block in blocks) / n
        centred = cls(vectors, mean, 0.0)
        square = sum(float(np.sum(centred.rows(block) ** 2)) for block in blocks)
        if not square > _NONE * n * max(float(mean @ mean), _NONE):
            if name == "new":
                return replace(centred, mean=vectors[0].astype(np.float64))
            raise SpaceError(
                "drift: expected rows that differ, got the same vector in every row of the old version"
            )
        return replace(centred, size=float(np.sqrt(square)))

    def rows(self, block: slice) -> np.ndarray:
        return self.vectors[block].astype(np.float64) - self.mean


def _shares(
    before: _Centred, after: _Centred, sigma: float, cosine: float, rho: float
) -> tuple[np.ndarray, float]:
    """The shares of the squared change that the `STEPS` explain, all 0 without a change; and the shift in
    units of the spread before."""
    n = len(before.vectors)
    a = before.size
    b = after.size
    moved = float(np.linalg.norm(after.mean - before.mean))
    unexplained = rho / (1 + sigma)  # equals 1 − σ, without the cancellation of digits
    parts = np.array(
        [n * moved**2, (b - a) ** 2, 2 * a * b * max(0.0, sigma - cosine), 2 * a * b * unexplained]
    )
    whole = parts.sum()
    shares = np.zeros(len(STEPS))
    if whole > _UNCHANGED * max(a, b) ** 2:
        shares = parts / whole
    shift = np.nan
    if a:
        shift = moved * np.sqrt(n) / a
    return shares, shift


# Changed neighbours. A neighbour counts as kept if its new distance exceeds that of the k-th neighbour by at
# most `TIE` times the length of the numeric noise.

JITTER = 2.0**-11  # largest relative error of rounding to float16
TIE = 4.0  # 2 × 2: both compared distances contain the noise of two rows
_SEEDING_ROWS = 64
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class SearchedRows:
    """The rows of a version, scaled to length 1, and the nearest neighbours of the queries among them.
    `queries` (m,) are row numbers.

    Two distances from a row that differ by less than its `blur` (n,) count as equal, because rounding error
    could swap them. `nearest` (m, k) are the neighbours without the query itself, nearest first.
    """

    rows: np.ndarray
    blur: np.ndarray
    queries: np.ndarray
    nearest: np.ndarray

    @classmethod
    def of(
        cls, vectors: np.ndarray, queries: np.ndarray, k: int, jitter: float, center: bool
    ) -> SearchedRows:
        """Scale vectors (n, d) to length 1, after subtracting their mean if `center`, and search the
        neighbours of the queries. The rounding error of a row is assumed to be `jitter` times its length
        before centring.
        """
        mean = mean_row(vectors) if center else None
        before = lengths(vectors)
        after = lengths(vectors, mean)
        share = np.divide(before, after, out=np.full(len(vectors), np.inf), where=after > 0)
        rows = unit_rows(vectors, mean)
        blur = TIE * jitter * share if jitter else np.zeros(len(vectors))
        return cls(rows, blur, queries, nearest_within(rows, queries, k))


def churn(old: SearchedRows, new: SearchedRows) -> np.ndarray:
    """For each query, the share of its nearest rows in the old version that are not among its nearest rows in
    the new version: an array (m,)."""
    queries = new.queries
    return changed_rows(old.nearest, new.nearest, new.rows[queries], new.blur[queries], new.rows)


def changed_rows(
    before: np.ndarray, now: np.ndarray, units: np.ndarray, blur: np.ndarray, base: np.ndarray
) -> np.ndarray:
    """For each query, the share of its neighbours `before` (m, k) that are not among its neighbours `now` (m,
    k), an array (m,).

    A row also counts as kept if it is at most `blur` (m,) farther from the query than the last row in `now`,
    because rounding can swap such rows. Distances are those between the queries' `units` (m, d) and the
    rows `base` (n, d).
    """
    share = np.empty(len(before))
    for block in row_blocks(len(before), _BLOCK):
        among = (before[block][:, :, None] == now[block][:, None, :]).any(axis=2)
        reach = _distance(units[block], base, now[block][:, -1:]) + blur[block, None]
        share[block] = 1 - (among | (_distance(units[block], base, before[block]) <= reach)).mean(axis=1)
    return share


class Across(NamedTuple):
    """The results of a search by cosine in which new vectors of the queries search uncentred old vectors,
    arrays (m,).

    `lost` is 1.0 if the old vector of another row is nearer than that of the query itself. `churn` is the
    share of the k neighbours of the query's old vector that its new vector does not find. `reciprocal_rank`
    is 1 / rank of the query's own old vector, and 0 beyond rank k + 1.
    """

    lost: np.ndarray
    churn: np.ndarray
    reciprocal_rank: np.ndarray


def across(old: SearchedRows, new: SearchedRows) -> Across:
    """Search the old vectors with the new vectors of the queries. Old rows are shuffled first, so that among
    equal rows the first one has no advantage.
    """
    queries = new.queries
    base = old.rows
    units = new.rows[queries]
    blur = new.blur[queries]
    order = np.random.default_rng(crc32(base[-_SEEDING_ROWS:].tobytes())).permutation(len(base))
    ranked = order[nearest(units, base[order], old.nearest.shape[1] + 1).rows]
    own = ranked == queries[:, None]
    rank = np.where(own.any(axis=1), 1 / (own.argmax(axis=1) + 1), 0.0)
    others = without_itself(queries, ranked)
    to_nearest = _distance(units, base, others[:, :1])[:, 0]
    to_own = _distance(units, base, queries[:, None])[:, 0]
    lost = (to_own > to_nearest + blur).astype(float)
    return Across(lost, changed_rows(old.nearest, others, units, blur, base), rank)


def with_jitter(vectors: np.ndarray, jitter: float, rng: np.random.Generator) -> np.ndarray:
    rows = rng.standard_normal(vectors.shape, dtype=np.float32)
    rows *= (jitter / np.sqrt(vectors.shape[1]) * lengths(vectors)).astype(np.float32)[:, None]
    rows += vectors
    return rows


def _distance(units: np.ndarray, base: np.ndarray, rows: np.ndarray) -> np.ndarray:
    distances = np.empty(rows.shape, dtype=np.float32)
    for block in row_blocks(len(rows), _BLOCK):
        distances[block] = np.linalg.norm(base[rows[block]] - units[block][:, None, :], axis=2)
    return distances


# Measures: a quantity and its noise level, for all rows or for a class.

EVERYTHING_NEW = "everything_new"
NEW_QUERIES = "new_queries"
ROWS = "rows"  # stands in place of a situation: broken rows and dimensions count in both situations
_NOISE_ROWS = 20_000
FEWEST_OF_CLASS = 5  # minimum number of queries of a class for a mean
Shares = dict[tuple[str, str], np.ndarray]  # (situation, quantity) → one number per query


@dataclass(frozen=True)
class Measure:
    """The measured value of a quantity, such as "churn", in one situation. It is computed over all rows
    (`group` is "") or over the n rows of a class.

    `value` is between 0 and 1. `noise` is the value that rounding errors alone would cause; for shares of
    broken rows (`ROWS`), it is the share that was already broken in the old version. `error` is the standard
    error of value − noise.
    """

    situation: str
    quantity: str
    group: str
    n: int
    value: float
    noise: float
    error: float


def neighbour_shares(
    old: np.ndarray,
    new: np.ndarray,
    queries: np.ndarray,
    k: int,
    jitter: float,
    n_draws: int,
    random_state: int,
) -> tuple[Shares, Shares, float | None, float]:
    """Measure how the neighbours of each query change. Returns four values: the measures of each query in
    both situations; their noise levels; the mean reciprocal rank of the query's own old vector; and the mean
    share of changed neighbours without centring.

    To find the noise level, two noisy copies of the old version (the queries and at most `_NOISE_ROWS` rows)
    are compared `n_draws` times. If the widths differ, new queries cannot search old vectors, so only the
    situation "everything_new" is measured.
    """
    same_width = old.shape[1] == new.shape[1]

    def compared(
        old: np.ndarray, new: np.ndarray, queries: np.ndarray
    ) -> tuple[Shares, float | None, np.ndarray]:
        centred = [SearchedRows.of(version, queries, k, jitter, True) for version in (old, new)]
        plain = [SearchedRows.of(version, queries, k, jitter, False) for version in (old, new)]
        shares: Shares = {(EVERYTHING_NEW, "churn"): churn(*centred)}
        rank = None
        if same_width:
            lost, changed, ranks = across(*plain)
            shares |= {(NEW_QUERIES, "lost"): lost, (NEW_QUERIES, "churn"): changed}
            rank = float(ranks.mean())
        return shares, rank, churn(*plain)

    measured, rank, uncentred = compared(old, new, queries)
    rng = np.random.default_rng(random_state)
    if len(old) > _NOISE_ROWS:
        rows = np.union1d(queries, rng.choice(len(old), _NOISE_ROWS, replace=False))
        old = old[rows]
        queries = np.searchsorted(rows, queries)
    draws = [compared(*(with_jitter(old, jitter, rng) for _ in range(2)), queries)[0] for _ in range(n_draws)]
    noise = {name: np.mean([shares[name] for shares in draws], axis=0) for name in measured}
    return measured, noise, rank, float(uncentred.mean())


def measures_of(
    split: Decomposition,
    measured: Shares,
    noise: Shares,
    queries: np.ndarray,
    jitter: float,
    groups: Mapping[str, np.ndarray],
) -> tuple[Measure, ...]:
    """All measures of change: over all rows, then within each group, where a group with fewer than
    `FEWEST_OF_CLASS` queries gets only ρ. `measured` and `noise` have the values of each query."""
    measures = []
    for group, members in {"": np.arange(len(split.remaining)), **groups}.items():
        measures.append(_rho(split, jitter, group, members))
        chosen = np.isin(queries, members)
        if group and np.count_nonzero(chosen) < FEWEST_OF_CLASS:
            continue
        for name, values in measured.items():
            measures.append(mean_measure(*name, group, values[chosen], noise[name][chosen]))
    return tuple(measures)


def mean_measure(situation: str, quantity: str, group: str, value: np.ndarray, noise: np.ndarray) -> Measure:
    n = len(value)
    excess = value - noise
    error = 0.0
    if n > 1:
        error = float(excess.std(ddof=1) / np.sqrt(n))
    return Measure(situation, quantity, group, n, float(value.mean()), float(noise.mean()), error)


def _rho(split: Decomposition, jitter: float, group: str, members: np.ndarray) -> Measure:
    residuals = split.remaining[members]
    sizes = split.sizes[members]
    n = len(members)
    mean = float(sizes.mean())
    ratio = 0.0
    if mean:
        ratio = float(residuals.mean()) / mean
    error = 0.0
    if n > 1 and mean:
        error = float((residuals - ratio * sizes).std(ddof=1) / (mean * np.sqrt(n)))
    noise = 0.0
    if mean:
        noise = 2 * jitter**2 * float(split.lengths[members].mean()) / mean
    value = ratio if group else split.rho
    return Measure(EVERYTHING_NEW, "rho", group, n, min(1.0, value), min(1.0, noise), error)
