"""Scores over whole spaces with exact nulls: linear CKA, and the mean cosine of paired rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.magnitude import brought, centred, scaled, spread_and_offset, within
from relcore.base.numbers import short
from relcore.represent.similarity import ROWS_PER_BLOCK, mean_row, row_blocks, unit_rows
from relcore.scores.metric import AlignedPair, Metric
from relcore.scores.score import (
    Difference,
    Null,
    Score,
    cka_influence,
    decisive_rows,
    difference,
    far_from_zero,
    mean_difference,
)
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split

# Three moments of the permutation null distribution of linear CKA, which is Escoufier's RV coefficient.

SAMPLED_ROWS = (
    256  # with more rows, the two sums that need a second product are estimated from a sample of this size
)


def sampled_rows(n: int) -> np.ndarray:
    """The rows of n whose products stand for all: at most `SAMPLED_ROWS`, the same every time, ascending."""
    return (
        np.sort(np.random.default_rng(0).choice(n, SAMPLED_ROWS, replace=False))
        if n > SAMPLED_ROWS
        else np.arange(n)
    )


@dataclass(frozen=True)
class RowSums:
    """Sums over the Gram matrix S of n centred rows (n, d), scaled so that its trace is 1; S itself is never
    formed.

    Attributes
    ----------
    n : int
    t2, t3 : float
        tr(S²) and tr(S³).
    s2, s3 : float
        Σ Sᵢᵢ² and Σ Sᵢᵢ³.
    u, r, b : float
        Σ Sᵢⱼ³, Σ Sᵢᵢ (S²)ᵢᵢ and Σ Sᵢᵢ Sᵢⱼ Sⱼⱼ.
    """

    n: int
    t2: float
    t3: float
    s2: float
    s3: float
    u: float
    r: float
    b: float

    @classmethod
    def from_sums(
        cls,
        n: int,
        powers: tuple[float, float, float],
        rows: np.ndarray,
        lengths: np.ndarray,
        square: np.ndarray,
        weighted: np.ndarray,
    ) -> RowSums:
        """From Σ‖xᵢ‖², Σ‖xᵢ‖⁴ and Σ‖xᵢ‖⁶ as `powers`, the centred `rows` (m, d) of a sample and their squared
        lengths (m,), XᵀX (d, d) as `square`, and Σ ‖xᵢ‖² xᵢ (d,)."""
        m, trace = len(rows), powers[0]
        s3, square = float(powers[2] / trace**3), square / trace
        rows = rows.astype(np.float64) / np.sqrt(trace)
        gram = rows @ rows.T
        np.fill_diagonal(gram, 0)
        apart = np.vdot(gram * gram, gram) * (
            n * (n - 1) / (m * (m - 1))
        )  # 40 times as fast as a power of three
        return cls(
            n=n,
            t2=float(np.vdot(square, square)),
            t3=float(np.vdot(square @ square.T, square)),  # by its own transpose half of the product suffices
            s2=float(powers[1] / trace**2),
            s3=s3,
            u=float(apart) + s3,
            r=float((lengths / trace) @ np.einsum("ij,ij->i", rows @ square, rows)) * n / m,
            b=float(weighted @ weighted) / trace**3,
        )

    @property
    def dimension(self) -> float:
        """Effective dimension β = tr(S)² / tr(S²), 1 … d."""
        return 1 / self.t2

    @property
    def excess(self) -> float:
        """τ: how unequal the squared row lengths are (Josse, Pagès and Husson 2008, eq. 3)."""
        n, beta = self.n, self.dimension
        excess = n * (n + 1) * self.s2 / self.t2 - (n - 1) * (beta + 2)
        return (n - 1) / ((n - 3) * (n - 1 - beta)) * excess if n - 1 > beta else 0.0


def rv_null(x: RowSums, y: RowSums) -> Null:
    """Exact mean and variance, and the skewness, over all n! permutations (Kazi-Aoual et al. 1995; Josse et
    al. 2008, eq. 2–3).

    The band is that of the Pearson III distribution with these moments: for one dimension it is a χ², for
    many close to a normal distribution.
    """
    n, dimensions = x.n, x.dimension * y.dimension
    mean = np.sqrt(dimensions) / (n - 1)
    spread = 2 * (n - 1 - x.dimension) * (n - 1 - y.dimension) / ((n + 1) * (n - 1) ** 2 * (n - 2))
    variance = spread * (1 + (n - 3) / (2 * n * (n - 1)) * x.excess * y.excess)
    return Null.from_moments(mean, variance, skewness=_skewness(x, y, variance / dimensions))


def _skewness(x: RowSums, y: RowSums, variance: float) -> float:
    """Of tr(S πTπᵀ) over all permutations π, whose mean is 1 / (n − 1); 0 where the moment is not defined."""
    if x.n < 6 or variance < 1e-12 / x.n**2:
        return 0.0
    mean = 1 / (x.n - 1)
    third = _third_moment(x, y) - 3 * mean * variance - mean**3
    return float(np.clip(third / variance**1.5, -8, 8))


def _third_moment(x: RowSums, y: RowSums) -> float:
    """E tr(S πTπᵀ)³ over all permutations, for traces of 1 (Kazi-Aoual et al. 1995); a test holds it
    against brute force.
    """
    n = x.n

    def both(term) -> float:
        return term(x, y) + term(y, x)

    total = n**2 * (n + 1) * (n**2 + 15 * n - 4) * x.s3 * y.s3
    total += 4 * (n**4 - 8 * n**3 + 19 * n**2 - 4 * n - 16) * x.u * y.u
    total += 6 * (n**4 - 8 * n**3 + 21 * n**2 - 6 * n - 24) * x.b * y.b
    total += 12 * (n**4 - n**3 - 8 * n**2 + 36 * n - 48) * x.r * y.r
    total += 3 * (n**4 - 4 * n**3 - 2 * n**2 + 9 * n - 12) * x.s2 * y.s2
    total += 24 * (n**2 - n - 4) * both(lambda p, q: p.u * q.b)
    total += 12 * (n**3 - 2 * n**2 + 9 * n - 12) * both(lambda p, q: p.s2 * q.r)
    total += 24 * (n**3 - 3 * n**2 - 2 * n + 8) * both(lambda p, q: p.r * q.u)
    total += 24 * (n**3 - 2 * n**2 - 3 * n + 12) * both(lambda p, q: p.r * q.b)
    total += 12 * (n**2 - n + 4) * both(lambda p, q: p.s2 * q.u)
    total += 6 * (2 * n**3 - 7 * n**2 - 3 * n + 12) * both(lambda p, q: p.s2 * q.b)
    total -= 2 * n * (n - 1) * (n**2 - n + 4) * both(lambda p, q: (2 * p.u + 3 * p.b) * q.s3)
    total -= 3 * n * (n - 1) ** 2 * (n + 4) * both(lambda p, q: (p.s2 + 4 * p.r) * q.s3)
    total += 2 * n * (n - 1) * (n - 2) * both(lambda p, q: (1 + 6 * p.t2 + 8 * p.t3) * q.s3)
    total += n**3 - 9 * n**2 + 23 * n - 14
    total += 6 * (n - 4) * both(lambda p, q: p.t2) + 8 * both(lambda p, q: p.t3)
    total += 6 * (n**3 - 9 * n**2 + 24 * n - 14) * x.t2 * y.t2 + 24 * (n - 3) * both(lambda p, q: p.t2 * q.t3)
    total += 8 * (n**3 - 9 * n**2 + 26 * n - 22) * x.t3 * y.t3
    total -= 16 * both(lambda p, q: p.u) + (6 * n**2 - 30 * n + 24) * both(lambda p, q: p.b)
    total -= 12 * (n**2 - 5 * n + 8) * both(lambda p, q: p.t2 * q.u) + 24 * (n**2 - 5 * n + 6) * both(
        lambda p, q: p.t2 * q.b
    )
    total -= 8 * (3 * n**2 - 15 * n + 16) * both(lambda p, q: p.t3 * q.u)
    total -= 24 * (n**2 - 5 * n + 8) * both(lambda p, q: p.t3 * q.b)
    rest = 24 * both(lambda p, q: p.r) + 12 * (n**2 - 5 * n + 12) * both(lambda p, q: p.t2 * q.r)
    rest += 24 * (n**2 - 5 * n + 8) * both(lambda p, q: p.t3 * q.r) + 3 * (n**2 - 5 * n + 2) * both(
        lambda p, q: p.s2
    )
    rest += 6 * (n**2 - 5 * n + 6) * both(lambda p, q: p.t2 * q.s2) + 48 * both(lambda p, q: p.t3 * q.s2)
    return (total - (n - 2) * rest) / (n * (n - 1) * (n - 2) * (n - 3) * (n - 4) * (n - 5))


# The formulas of linear CKA and of the mean cosine from sums over rows, however these came about.

_DECIDED = 0.05  # change of CKA without a few rows that is worth a note


@dataclass(frozen=True)
class SpaceSums:
    """What linear CKA needs of one space: ‖XᵀX‖²_F of its n centred rows, the sums of its chance level, the
    root mean square of the rows' distances from their mean, and the length of the mean."""

    square: float
    sums: RowSums | None
    spread: float
    offset: float


@dataclass(frozen=True)
class CkaSums:
    """What linear CKA needs of a pair: ‖XᵀY‖²_F of centred rows, and the sums of either space."""

    n: int
    xy: float
    x: SpaceSums
    y: SpaceSums

    @property
    def value(self) -> float:
        return alignment(self.xy, self.x.square, self.y.square)

    def score(self, note: str = "") -> Score:
        """With its chance level; `note` comes before the one about the distance from zero.

        Raises
        ------
        SpaceError
            Fewer than four rows, or a space in which all rows are equal.
        """
        if self.n < 4:
            raise SpaceError(f"expected at least 4 rows, got {self.n}")
        need_different_rows(self.x.square, self.y.square)
        far = offset_note((self.x.spread, self.y.spread), (self.x.offset, self.y.offset))
        null = rv_null(self.x.sums, self.y.sums)
        return Score(
            self.value, metric="cka", convention="linear", n=self.n, null=null, note=f"{note} {far}".strip()
        )


def need_different_rows(*squares: float) -> None:
    """Raise a SpaceError where ‖XᵀX‖²_F of a space is 0."""
    if min(squares) == 0:
        raise SpaceError("expected spaces with different rows, got one whose rows are all equal")


def alignment(xy: float, xx: float, yy: float) -> float:
    """xy / √(xx · yy); NaN where all rows of a space are equal."""
    return xy / np.sqrt(xx * yy) if xx * yy > 0 else float("nan")


def offset_note(spreads: Sequence[float], offsets: Sequence[float]) -> str:
    """See `cautions.far_from_zero`; of the first space that lies far from zero."""
    first, second = (
        far_from_zero(side, spreads[at], offsets[at]) for at, side in enumerate(("first", "second"))
    )
    return first or second


def decided_note(value: float, without: float, rows: np.ndarray, ids: Sequence[str] | None) -> str:
    """Says that a few long rows decide a score that is another without them; "" where they do not."""
    if abs(without - value) <= _DECIDED:
        return ""
    named = quote(rows[:3].tolist() if ids is None else ids[rows[:3]]) + (", …" if len(rows) > 3 else "")
    told = f"One long row, {named}, decides" if len(rows) == 1 else f"{len(rows)} long rows, {named}, decide"
    return f"{told} this score; CKA of the other rows is {short(without)}."


def cosine_score(n: int, mean: float, of_means: float, of_products: float) -> Score:
    """The mean cosine of n pairs of unit rows aᵢ, bᵢ, from mean aᵢ·bᵢ, ā·b̄ and ⟨A, B⟩ of A = Σ (aᵢ − ā)(aᵢ −
    ā)ᵀ and B alike. The chance level is exact (Hoeffding 1951, theorem 2)."""
    null = Null.from_moments(of_means, of_products / ((n - 1) * n**2)) if n > 1 else None
    return Score(mean, metric="cosine", n=n, null=null)


class CosineSums:
    """What the mean cosine needs of pairs of unit rows (n, d), block by block; its attributes are arrays that
    add up.
    """

    def __init__(self, width: int) -> None:
        self.n, self.paired, self.sums = np.zeros(1), np.zeros(1), np.zeros((2, width))
        self.products = np.zeros((2, width, width))

    def add(self, a: np.ndarray, b: np.ndarray) -> None:
        self.n += len(a)
        self.paired += np.vecdot(a, b).sum(dtype=np.float64)
        for side, rows in enumerate((a, b)):
            self.sums[side] += rows.sum(axis=0, dtype=np.float64)
            self.products[side] += rows.T @ rows

    def score(self) -> Score:
        n, means = int(self.n[0]), self.sums / self.n
        a, b = (
            product - n * np.outer(mean, mean) for product, mean in zip(self.products, means, strict=True)
        )
        return cosine_score(n, float(self.paired[0]) / n, means[0] @ means[1], np.vdot(a, b))


_NEAR_ZERO = 64  # times the spread of the rows
_FEW = 256  # rows that stay in cache between their passes
_DIFFERENCE_ROWS, _INFLUENCE_ROWS = (
    4000,
    1000,
)  # that tell a difference, and how sure it is: a score takes all


@dataclass(frozen=True)
class OwnMoments:
    """The part of linear CKA that depends on one space (n, d), found once where it is compared with several
    others.

    The rows are brought to numbers that float32 can square: times 2^−exponent, which is exact, less a mean
    row (d,). Of these `square` is ‖XᵀX‖²_F, `rows` their squared lengths (n,), and `sums` is for the chance
    level.
    """

    mean: np.ndarray
    exponent: int
    square: float
    rows: np.ndarray
    sums: RowSums | None

    @classmethod
    def of(cls, X: np.ndarray, null: bool = True, exponent: int = 0) -> OwnMoments:
        """Without the sums for the chance level unless `null`."""
        n = len(X)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = _mean_row(scaled(X, exponent))
        rows, weighted, product = np.empty(n), np.zeros(X.shape[1]), np.zeros((X.shape[1],) * 2)
        buffer = np.empty((min(n, ROWS_PER_BLOCK), X.shape[1]), dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for block in row_blocks(n):
                part = buffer[: block.stop - block.start]
                for few in row_blocks(len(part), _FEW):  # still in cache when their lengths are taken
                    centred(scaled(X[block][few], exponent), mean, part[few])
                    lengths = np.vecdot(part[few], part[few])
                    rows[block][few] = lengths
                    weighted += lengths @ part[few]
                product += part.T @ part
        if not exponent and not within(np.array([rows.max()])).all() and (power := brought(X)[1]):
            return cls.of(X, null, power)
        square, sums = float(np.vdot(product, product)), None
        if null and square > 0 and n > 1:
            sample = sampled_rows(n)
            sampled = centred(scaled(X[sample], exponent), mean)
            powers = rows.sum(), rows @ rows, np.vdot(rows * rows, rows)  # much faster than a power of three
            sums = RowSums.from_sums(n, powers, sampled, rows[sample], product, weighted)
        return cls(mean, exponent, square, rows, sums)

    def centred(self, X: np.ndarray, out: np.ndarray) -> np.ndarray:
        return centred(scaled(X, self.exponent), self.mean, out)


def linear_cka(
    X: np.ndarray,
    Y: np.ndarray,
    *,
    debiased: bool = False,
    own: tuple[OwnMoments, OwnMoments] | None = None,
    ids: Sequence[str] | None = None,
) -> Score:
    """Linear centred kernel alignment of row-aligned spaces (n, d_x), (n, d_y): ‖XᵀY‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F),
    0 … 1.

    On centred columns (Kornblith et al. 2019), in feature space: no n × n matrix; products of blocks in
    float32, sums in float64. It is Escoufier's RV coefficient, so the moments of its permutation null are
    known exactly. `debiased` takes the unbiased estimator of each term (Song et al. 2012); it may be
    negative, chance is 0, and n must be at least 4. `own` reuses results of other pairs; `ids` name the rows
    in the score's note.

    Raises
    ------
    SpaceError
        Row counts that differ, too few rows, a space in which all rows are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import linear_cka
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(float(linear_cka(X, 2 * X @ rotation + 1)), 4)
    1.0
    """
    if len(X) != len(Y):
        raise SpaceError(
            f"expected row-aligned spaces, got {len(X)} and {len(Y)} rows; pair them with match()"
        )
    value, x, y = _cka(X, Y, debiased, own)
    need_different_rows(x.square, y.square)
    n, rows = len(X), decisive_rows((x.rows, y.rows))
    spreads = float(np.sqrt(x.rows.mean())), float(np.sqrt(y.rows.mean()))
    note = offset_note(spreads, (float(np.linalg.norm(x.mean)), float(np.linalg.norm(y.mean))))
    if len(rows) and n - len(rows) >= 4:
        rest = np.delete(np.arange(n), rows)
        without = _cka(X[rest], Y[rest], debiased, null=False)[0]
        note = f"{decided_note(value, without, rows, ids)} {note}".strip()
    null = rv_null(x.sums, y.sums)
    if debiased:  # its mean is 0; the spread is that of the biased score, but for a constant and O(1/n)
        scale = np.sqrt(x.square * y.square / (_unbiased(x.square, x, x) * _unbiased(y.square, y, y)))
        null = Null(0.0, (null.low - null.mean) * scale, (null.high - null.mean) * scale)
    return Score(
        value, metric="cka", convention="debiased" if debiased else "linear", n=n, null=null, note=note
    )


def _cka(
    X: np.ndarray,
    Y: np.ndarray,
    debiased: bool,
    own: tuple[OwnMoments, OwnMoments] | None = None,
    null: bool = True,
) -> tuple[float, OwnMoments, OwnMoments]:
    """The score, NaN where all rows of a space are equal, and the moments of either space."""
    n = len(X)
    if n < 4:
        raise SpaceError(f"expected at least 4 rows, got {n}")
    x, y = own or (OwnMoments.of(X, null), OwnMoments.of(Y, null))
    product = np.zeros((X.shape[1], Y.shape[1]))
    left, right = (np.empty((min(n, ROWS_PER_BLOCK), width), dtype=np.float32) for width in product.shape)
    for block in row_blocks(n):
        size = block.stop - block.start
        product += x.centred(X[block], left[:size]).T @ y.centred(Y[block], right[:size])
    xy, xx, yy = float(np.vdot(product, product)), x.square, y.square
    if debiased:
        xy, xx, yy = _unbiased(xy, x, y), _unbiased(xx, x, x), _unbiased(yy, y, y)
    return alignment(xy, xx, yy), x, y


def _unbiased(biased: float, left: OwnMoments, right: OwnMoments) -> float:
    """n (n − 3) times the unbiased HSIC of Song et al. 2012, eq. 5, from centred features."""
    n, p, q = len(left.rows), left.rows, right.rows
    return biased - n / (n - 2) * (p @ q) + p.sum() * q.sum() / ((n - 1) * (n - 2))


def _mean_row(X: np.ndarray) -> np.ndarray:
    """Float32 within blocks, float64 between them: half the time of float64 throughout.

    The error, below 1e-5 of the values, shifts the centre so little that its square is negligible in a sum of
    squares, unless the rows lie far from zero.
    """
    one, total = np.ones(512, dtype=np.float32), np.zeros(X.shape[1])
    for block in row_blocks(len(X), len(one)):
        total += one[: block.stop - block.start] @ X[block]
    mean = (total / len(X)).astype(np.float32)
    spread, offset = spread_and_offset(X, mean)
    return mean if offset <= _NEAR_ZERO * spread else mean_row(X)


def mean_cosine(source: np.ndarray, target: np.ndarray, *, of_unit_length: bool = False) -> Score:
    """Mean cosine of paired rows, −1 … 1, of row-aligned spaces of one width (n, d); 1: equal directions.

    The null is exact: over all permutations π the mean of Σ aᵢ·b_π(i) and its variance follow from the sums
    Σaᵢ, Σbᵢ and the d × d products of the centred unit rows (Hoeffding 1951, theorem 2). `of_unit_length`
    says that all rows have length 1 (or 0) already.

    Raises
    ------
    SpaceError
        Shapes that differ.
    """
    if source.shape != target.shape:
        raise SpaceError(f"expected row-aligned spaces of one width, got {source.shape} and {target.shape}")
    sums = CosineSums(source.shape[1])
    sums.add(*((source, target) if of_unit_length else (unit_rows(source), unit_rows(target))))
    return sums.score()


class LinearCKA(Metric):
    """`linear_cka` as a metric."""

    reads = "sums"
    debiased = False

    def score(self, pair: AlignedPair) -> Score:
        ids = pair.split.ids[pair.split.test]
        if pair.sums is not None and not self.debiased:
            return pair.sums.linear_cka(ids)
        return linear_cka(pair.source, pair.target, debiased=self.debiased, ids=ids)

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference:
        """Of samples of the held-out rows; the interval is by `cka_influence`."""
        split = before.split
        drawn = Split.held_out(split.ids[split.test], random_state=split.random_state)
        rows, few = drawn.queries(_DIFFERENCE_ROWS), drawn.queries(_INFLUENCE_ROWS)
        name = "debiased cka" if self.debiased else "cka"
        scores = [pair.of_some_rows(name, rows, self._value) for pair in (before, now)]
        pulls = [pair.of_some_rows("cka influence", few, cka_influence) for pair in (before, now)]
        error = np.std(pulls[1] - pulls[0], ddof=1) / np.sqrt(len(split.test))
        return difference(scores[1] - scores[0], error)

    def _value(self, X: np.ndarray, Y: np.ndarray) -> float:
        """`linear_cka` without its chance level."""
        value, x, y = _cka(X, Y, self.debiased, null=False)
        need_different_rows(x.square, y.square)
        return value

    def own(self, space: LatentSpace, settings: Any) -> OwnMoments:
        return OwnMoments.of(space.vectors)

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any
    ) -> Score:
        both = own(first), own(second)
        return linear_cka(first.vectors, second.vectors, debiased=self.debiased, own=both, ids=first.ids)

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool]:
        sampled = [brought(space.vectors[rows])[0] for space in spaces]
        moved = [centred(X, mean_row(X)) for X in sampled]
        return [X @ X.T for X in moved], True


class DebiasedCKA(LinearCKA):
    """`linear_cka` without its bias for few rows."""

    debiased = True


class MeanCosine(Metric):
    """`mean_cosine` as a metric."""

    reads = "sums"

    def score(self, pair: AlignedPair) -> Score | None:
        if not pair.same_width:
            return None
        if pair.sums is not None:
            return pair.sums.mean_cosine()
        return mean_cosine(pair.neighbours.source, pair.neighbours.target, of_unit_length=True)

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference | None:
        if not before.same_width:
            return None
        return mean_difference(before.cosines, now.cosines)
