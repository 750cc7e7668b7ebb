"""Linear CKA and the mean cosine of paired rows. They are computed from rows or from sums, with chance levels
from moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, brief, quote
from relcore.base.kinds import takes_kinds
from relcore.base.numbers import short
from relcore.base.rows import ROWS_PER_BLOCK, centred, mean_row, row_blocks, unit_rows
from relcore.engine.engine import Engine
from relcore.scores.score import CENTRE, ChanceLevel, Score
from relcore.spaces.ids import Texts
from relcore.spaces.matching import checked_names, need_columns_in_one_order, paired_matrices, partner_rows
from relcore.spaces.space import MatrixLike, ids_of

# The first three moments of linear CKA (Escoufier's RV coefficient) under permutations of the rows.

SAMPLED_ROWS = 256  # number of rows that estimate `u` and `r`, because all rows would need another product


def sampled_rows(n: int) -> np.ndarray:
    """A fixed sample of the row numbers 0 … n − 1, ascending. It has `SAMPLED_ROWS` numbers, or all n if n is
    smaller."""
    if n <= SAMPLED_ROWS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, SAMPLED_ROWS, replace=False))


@dataclass(frozen=True)
class RowSums:
    """Sums over the entries of S, the Gram matrix of n centred rows (n, d), scaled to trace 1. S itself is
    never held in memory.

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
        """Compute the sums of n centred rows xᵢ from `powers` (Σ‖xᵢ‖², Σ‖xᵢ‖⁴ and Σ‖xᵢ‖⁶), `square` (XᵀX, (d,
        d)) and `weighted` (Σ ‖xᵢ‖² xᵢ, (d,)). `u` and `r` are estimated from some `rows` (m, d) and their
        squared `lengths` (m,)."""
        m = len(rows)
        trace = powers[0]
        s3 = float(powers[2] / trace**3)
        square = square / trace
        rows = rows.astype(np.float64) / np.sqrt(trace)
        gram = rows @ rows.T
        np.fill_diagonal(gram, 0)
        off_diagonal = np.vdot(gram * gram, gram)  # 40 times as fast as gram**3
        return cls(
            n=n,
            t2=float(np.vdot(square, square)),
            t3=float(np.vdot(square @ square.T, square)),  # in a product A Aᵀ, BLAS computes only one half
            s2=float(powers[1] / trace**2),
            s3=s3,
            u=float(off_diagonal) * (n * (n - 1) / (m * (m - 1))) + s3,
            r=float((lengths / trace) @ np.einsum("ij,ij->i", rows @ square, rows)) * n / m,
            b=float(weighted @ weighted) / trace**3,
        )


def rv_null(x: RowSums, y: RowSums) -> ChanceLevel:
    """The chance level of linear CKA, from its first three moments over all n! permutations (Kazi-Aoual et
    al. 1995; Josse, Pagès and Husson 2008, eq. 2–3). Mean and variance are exact. The skewness is exact up to
    256 rows; for more rows, it is estimated from 256 of them.

    The upper end of the band is that of the Pearson III distribution with these moments. With one dimension,
    this is a χ² distribution; with many, it is nearly normal. The lower end comes from `_low_end`. The band
    was tested on 20 kinds of data (normal, skewed, clustered, heavy tails, few long axes) with 20 to 1,000
    rows. Of 2,400 to 16,000 permutations, 1.0 to 4.4 % were above the band, and 0 to 3.0 % below it. With few
    long axes or heavy tails, the lower part of the band is too wide.
    """
    # `dimensions`: the product of both effective dimensions tr(S)² / tr(S²).
    n = x.n
    dimensions = 1 / (x.t2 * y.t2)
    mean = np.sqrt(dimensions) / (n - 1)
    spread = 2 / ((n + 1) * (n - 1) ** 2 * (n - 2))
    excesses = 1.0
    for side in (x, y):  # τ, computed here, measures how unequal the squared lengths of the rows are
        beta = 1 / side.t2
        excess = n * (n + 1) * side.s2 / side.t2 - (n - 1) * (beta + 2)
        if n - 1 > beta:
            excesses *= (n - 1) / ((n - 3) * (n - 1 - beta)) * excess
        else:
            excesses = 0.0
        spread *= n - 1 - beta
    variance = spread * (1 + (n - 3) / (2 * n * (n - 1)) * excesses)
    # The skewness of tr(S πTπᵀ) over all permutations π, if it is defined. The mean is 1 / (n − 1).
    skewness = 0.0
    of_trace = variance / dimensions
    if n >= 6 and of_trace >= 1e-12 / n**2:
        third = third_moment(x, y) - 3 * of_trace / (n - 1) - 1 / (n - 1) ** 3
        skewness = float(np.clip(third / of_trace**1.5, -8, 8))
    null = ChanceLevel.from_moments(mean, variance, skewness=skewness)
    # Above the skewness of a gamma distribution that begins at zero, Pearson III would begin above zero.
    if (1 - 1e-9) * skewness * mean <= 2 * np.sqrt(max(variance, 0)):
        return replace(null, low=max(null.low, 0.0))
    return replace(null, low=_low_end(mean, variance, skewness))


def _low_end(mean: float, variance: float, skewness: float) -> float:
    """The 2.5 % quantile of scores with these moments, by the scaled F distribution (Wood 1989) or, if the
    skewness is too large for it, by the inverse gamma distribution. Both distributions begin at zero, as
    scores do. A Pearson III distribution would begin above the smallest scores."""
    from scipy.special import betaincinv, gammainccinv

    third = skewness * variance**1.5
    a = 4 * variance**2 * mean + third * (variance - mean**2)
    b = third * mean - 2 * variance**2
    if a <= 0:
        shape = 2 + mean**2 / variance
        return float(mean * (shape - 1) / gammainccinv(shape, 0.025))
    shapes = (
        2 * mean * (third * mean + mean**2 * variance - variance**2) / a,
        3 + 2 * variance * (variance + mean**2) / b,
    )
    share = betaincinv(*shapes, 0.025)
    return float(a / b * share / (1 - share))


def third_moment(x: RowSums, y: RowSums) -> float:
    """The third moment E tr(S πTπᵀ)³ over all permutations π, where S and T are the Gram matrices of the
    spaces, scaled to trace 1 (Kazi-Aoual et al. 1995). It is a symmetric bilinear form of the sums of the two
    spaces."""
    n = float(x.n)
    rows = _third_coefficients(n)
    form = np.array([(0.0,) * (8 - len(row)) + row for row in rows])
    form += np.triu(form, 1).T
    first = np.array([1, *astuple(x)[1:]])
    second = np.array([1, *astuple(y)[1:]])
    return float(first @ form @ second) / (n * (n - 1) * (n - 2) * (n - 3) * (n - 4) * (n - 5))


def _third_coefficients(n: float) -> tuple[tuple[float, ...], ...]:
    """The coefficients of 1, t2, t3, s2, s3, u, r and b in the third moment for n rows: the upper triangle of
    a symmetric matrix, row by row."""
    p = (n - 2) * 12
    m = n**2 - 5 * n
    return (
        (
            n**3 - 9 * n**2 + 23 * n - 14,
            6 * (n - 4),
            8,
            -3 * (n - 2) * (m + 2),
            2 * n * (n - 1) * (n - 2),
            -16,
            -2 * p,
            -(6 * n**2 - 30 * n + 24),
        ),
        (
            6 * (n**3 - 9 * n**2 + 24 * n - 14),
            24 * (n - 3),
            -6 * (n - 2) * (m + 6),
            12 * n * (n - 1) * (n - 2),
            -12 * (m + 8),
            -p * (m + 12),
            -24 * (m + 6),
        ),
        (
            8 * (n**3 - 9 * n**2 + 26 * n - 22),
            -4 * p,
            16 * n * (n - 1) * (n - 2),
            -8 * (3 * n**2 - 15 * n + 16),
            -2 * p * (m + 8),
            -24 * (m + 8),
        ),
        (
            3 * (n**4 - 4 * n**3 - 2 * n**2 + 9 * n - 12),
            -3 * n * (n - 1) ** 2 * (n + 4),
            12 * (n**2 - n + 4),
            12 * (n**3 - 2 * n**2 + 9 * n - 12),
            6 * (2 * n**3 - 7 * n**2 - 3 * n + 12),
        ),
        (
            n**2 * (n + 1) * (n**2 + 15 * n - 4),
            -4 * n * (n - 1) * (n**2 - n + 4),
            -12 * n * (n - 1) ** 2 * (n + 4),
            -6 * n * (n - 1) * (n**2 - n + 4),
        ),
        (
            4 * (n**4 - 8 * n**3 + 19 * n**2 - 4 * n - 16),
            24 * (n**3 - 3 * n**2 - 2 * n + 8),
            24 * (n**2 - n - 4),
        ),
        (12 * (n**4 - n**3 - 8 * n**2 + 36 * n - 48), 24 * (n**3 - 2 * n**2 - 3 * n + 12)),
        (6 * (n**4 - 8 * n**3 + 21 * n**2 - 6 * n - 24),),
    )


# Linear CKA and the mean cosine, as formulas of sums over rows.

_DECIDED = 0.05  # minimum change of CKA without a few rows for a note
_MOST_ROWS = 10
# Distance of the mean from zero, in spreads, at which float32 differences keep 8 of their 24 bits.
_FAR = 2.0**16


@dataclass(frozen=True)
class SpaceSums:
    """The sums of a space that linear CKA needs: ‖XᵀX‖²_F of its centred rows X, the sums for the chance
    level, the root mean square distance of the rows from their mean, and the length of the mean."""

    square: float
    sums: RowSums | None
    spread: float
    offset: float


@dataclass(frozen=True)
class CkaSums:
    """The sums of two spaces that linear CKA needs: ‖XᵀY‖²_F of their centred rows X and Y, and the sums of
    each space."""

    n: int
    xy: float
    x: SpaceSums
    y: SpaceSums

    @property
    def own_moments(self) -> tuple[OwnMoments, OwnMoments]:
        """The sums of each space, if they were computed from all rows."""
        x = self.x
        y = self.y
        assert isinstance(x, OwnMoments), "a pass keeps no lengths of rows"
        assert isinstance(y, OwnMoments), "a pass keeps no lengths of rows"
        return x, y

    def value(self, debiased: bool = False) -> float:
        """Linear CKA; NaN if all rows of a space are equal. With `debiased`, the sums of each space must be
        `OwnMoments`."""
        x = self.x
        y = self.y
        xy = self.xy
        xx = x.square
        yy = y.square
        if debiased:
            left, right = self.own_moments
            xy = _unbiased(xy, left, right)
            xx = _unbiased(xx, left, left)
            yy = _unbiased(yy, right, right)
        if xx * yy > 0:
            return xy / np.sqrt(xx * yy)
        return float("nan")

    def score(self, note: str = "", debiased: bool = False) -> Score:
        """Linear CKA with its chance level. The score gets the note `note`, followed by a warning if all rows
        are far from zero.

        Raises
        ------
        SpaceError
            Fewer than four rows; a space in which all rows are equal.
        """
        if self.n < 4:
            raise SpaceError(f"expected at least 4 rows, got {self.n}")
        if min(self.x.square, self.y.square) == 0:
            raise SpaceError("expected spaces with different rows, got one whose rows are all equal")
        far = ""
        for side, sums in (("second", self.y), ("first", self.x)):
            if sums.offset > _FAR * sums.spread:
                far = (
                    f" The mean row of the {side} space is {sums.offset / sums.spread:,.0f} times as long as"
                    f" the rows' spread, so for all scores float32 has lost digits of the rows. {CENTRE}"
                )
        x_sums = self.x.sums
        y_sums = self.y.sums
        assert x_sums is not None, "rows that differ have sums for the chance level"
        assert y_sums is not None, "rows that differ have sums for the chance level"
        null = rv_null(x_sums, y_sums)
        # The chance level has mean 0. Its spread is that of the biased score, up to a constant and O(1/n).
        if debiased:
            x, y = self.own_moments
            unbiased = _unbiased(x.square, x, x) * _unbiased(y.square, y, y)
            scale = np.sqrt(self.x.square * self.y.square / unbiased)
            null = ChanceLevel(0.0, (null.low - null.mean) * scale, (null.high - null.mean) * scale)
        convention = "debiased" if debiased else "linear"
        return Score(
            self.value(debiased),
            metric="cka",
            convention=convention,
            n=self.n,
            null=null,
            note=f"{note}{far}".strip(),
        )


def decisive_rows(squares: Sequence[np.ndarray]) -> np.ndarray:
    """The indices of a few rows that are so long that they make up most of ‖XᵀX‖² in one of the spaces.
    `squares` are the squared lengths (n,) in each space.

    At most 10 rows and at most 2 % of all rows are decisive, and only if they are at least twice as long as
    the next row. So if a distribution has many long rows, none of them is decisive.
    """
    rows = []
    for lengths in squares:
        longest = np.argpartition(-lengths, min(_MOST_ROWS, len(lengths) - 1))[: _MOST_ROWS + 1]
        rows.append(decisive_of_longest(len(lengths), longest, lengths[longest], float(np.sum(lengths**2))))
    return np.unique(np.concatenate(rows))


def decisive_of_longest(n: int, longest: np.ndarray, squares: np.ndarray, fourth: float) -> np.ndarray:
    """The decisive rows among the `longest` of n rows. `squares` are their squared lengths; `fourth` is the
    sum of the fourth powers of the lengths of all rows."""
    order = np.argsort(-squares)[: min(_MOST_ROWS, max(1, n // 50)) + 1]
    longest = longest[order]
    squares = squares[order]
    longer = squares >= 0.1 * squares.max()
    if (
        longer.all()
        or squares[longer].min() < 4 * squares[~longer].max()
        or 2 * np.sum(squares[longer] ** 2) <= fourth
    ):
        return np.empty(0, dtype=np.int64)
    return longest[longer]


def decided_note(value: float, without: float, n_rows: int, names: Callable[[], Sequence[str]]) -> str:
    """A note which says that a few long rows decide the score `value`, and gives the first three of their
    `names`. It is "" if the score `without` these rows is about the same."""
    if abs(without - value) <= _DECIDED:
        return ""
    named = quote(names())
    if n_rows > 3:
        named = f"{named}, …"
    if n_rows == 1:
        decide = f"One long row, {named}, decides"
    else:
        decide = f"{n_rows} long rows, {named}, decide"
    rest = f"CKA of the other rows is {short(without)}"
    if np.isnan(without):
        rest = "float32 cannot tell the other rows apart"
    return f"{decide} this score; {rest}."


def cka_influence(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The influence of each of m rows on linear CKA, (m,): the derivative of CKA by the weight of the row,
    times m.

    The standard deviation of the influences, divided by √m, is the standard error of CKA (infinitesimal
    jackknife: Efron 1982, § 6). For the difference of two scores, take the difference of their influences.
    """
    X = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    Y = Y.astype(np.float64) - Y.mean(axis=0, dtype=np.float64)
    pulls = []
    for left, right in ((X, Y), (X, X), (Y, Y)):
        product = left.T @ right
        pulls.append((np.einsum("ij,ij->i", left @ product, right), np.vdot(product, product)))
    (xy, xy_sum), (xx, xx_sum), (yy, yy_sum) = pulls
    cka = xy_sum / np.sqrt(xx_sum * yy_sum)
    return len(X) * cka * (2 * xy / xy_sum - xx / xx_sum - yy / yy_sum)


_FEW = 256  # number of rows of a block that stays in the processor's cache


@dataclass(frozen=True)
class OwnMoments(SpaceSums):
    """The `SpaceSums` of a space (n, d), for reuse if it is compared with several other spaces.

    `lengths` (n,) are the squared lengths of the rows after their `mean` (d,) is subtracted.
    """

    mean: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, null: bool = True) -> OwnMoments:
        """Compute the sums from the rows X (n, d). `null` says whether those for the chance level are
        included."""
        n = len(X)
        weighted = np.zeros(X.shape[1])
        product = np.zeros((X.shape[1],) * 2)
        lengths = np.empty(n)
        buffer = np.empty((min(n, ROWS_PER_BLOCK), X.shape[1]), dtype=np.float32)
        mean = mean_row(X)
        sample = sampled_rows(n)
        size = power_near(np.square(centred(X[sample], mean)).sum(axis=1))
        for block in row_blocks(n):
            part = buffer[: block.stop - block.start]
            for few in row_blocks(len(part), _FEW):
                centred(X[block][few], mean, part[few])
                squares = np.vecdot(part[few], part[few])
                lengths[block][few] = squares
                # Scale lengths to about 1, because cubes of large numbers exceed the range of float32.
                weighted += (squares * np.float32(1 / size)) @ part[few]
            product += part.T @ part
        square = float(np.vdot(product, product))
        sums = None
        if null and square > 0 and n > 1:
            powers = lengths.sum(), float(lengths @ lengths), float(np.vdot(lengths * lengths, lengths))
            rows = centred(X[sample], mean)
            sums = RowSums.from_sums(n, powers, rows, lengths[sample], product, size * weighted)
        spread = float(np.sqrt(lengths.mean()))
        offset = float(np.linalg.norm(mean.astype(np.float64)))
        return cls(square, sums, spread, offset, mean, lengths)


def power_near(squares: np.ndarray) -> float:
    """The power of two that is nearest to the mean of the numbers; 1 if the mean is 0."""
    mean = float(squares.mean())
    if 0 < mean < np.inf:
        return 2.0 ** round(np.log2(mean))
    return 1.0


@takes_kinds
def linear_cka(
    X: MatrixLike,
    Y: MatrixLike,
    *,
    debiased: bool = False,
    own: tuple[OwnMoments, OwnMoments] | None = None,
    ids: Sequence[str] | None = None,
) -> Score:
    """Linear centred kernel alignment (CKA) of row-aligned spaces (n, d_x) and (n, d_y): ‖XᵀY‖²_F / (‖XᵀX‖_F
    ‖YᵀY‖_F), 0 … 1.

    Columns are centred (Kornblith et al. 2019). It is computed in feature space, so there is no n × n matrix.
    Products of blocks are float32, sums are float64. CKA is Escoufier's RV coefficient, so the chance level
    follows from its moments over all permutations (`rv_null`). With `debiased`, each term is estimated
    without bias (Song et al. 2012). Then the score may be negative, its chance level is 0, and n must be at
    least 4. `own` are the `OwnMoments` of both spaces, if they are known. `ids` are the names of the rows for
    the note of the score.

    Raises
    ------
    SpaceError
        Row counts or ids that differ; too few rows; a space in which all rows are equal; numbers that are not
        finite.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import linear_cka
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(float(linear_cka(X, 2 * X @ rotation + 1)), 4)
    1.0
    """
    source, target = paired_matrices(X, Y, ("X", "Y"), by_block=True)
    names = checked_names(ids, len(source))
    if own is not None:
        _need_moments(own, len(source), partner_rows(X, Y) is None)
    return cka_of_arrays(source, target, debiased, own, lambda: ids_of(X) if names is None else names)


def _need_moments(own: Any, n: int, in_order: bool) -> None:
    fits = isinstance(own, tuple | list) and len(own) == 2
    if not (fits and all(isinstance(one, OwnMoments) and len(one.lengths) == n for one in own)):
        raise SpaceError(
            f"own: expected the OwnMoments of both spaces, with {n:,} rows each, got {brief(own, 60)}"
        )
    if not in_order:
        raise SpaceError("own: expected moments of rows in one order, got spaces in two; leave own out")


def cka_of_arrays(
    X: np.ndarray,
    Y: np.ndarray,
    debiased: bool = False,
    own: tuple[OwnMoments, OwnMoments] | None = None,
    names_of_rows: Callable[[], Texts | None] = lambda: None,
) -> Score:
    """The score of `linear_cka` for row-aligned arrays of finite numbers. `names_of_rows` returns the names
    of all rows, or None."""
    sums = _cka_sums(X, Y, own)
    note = ""
    rows = decisive_rows([side.lengths for side in sums.own_moments])
    if len(rows) and len(X) - len(rows) >= 4:
        rest = np.delete(np.arange(len(X)), rows)
        without = cka_value(X[rest], Y[rest], debiased)
        ids = names_of_rows()
        names = rows[:3].tolist() if ids is None else [ids[row] for row in rows[:3]]
        note = decided_note(sums.value(debiased), without, len(rows), lambda: names)
    return sums.score(note, debiased)


def cka_value(X: np.ndarray, Y: np.ndarray, debiased: bool = False) -> float:
    """The value of `linear_cka`, without a chance level."""
    return _cka_sums(X, Y, null=False).value(debiased)


def _cka_sums(
    X: np.ndarray, Y: np.ndarray, own: tuple[OwnMoments, OwnMoments] | None = None, null: bool = True
) -> CkaSums:
    x, y = own or (OwnMoments.of(X, null), OwnMoments.of(Y, null))
    product = Engine().moments(X, Y).products
    return CkaSums(len(X), float(np.vdot(product, product)), x, y)


def _unbiased(biased: float, left: OwnMoments, right: OwnMoments) -> float:
    """Return n (n − 3) · HSIC, computed from centred rows. HSIC is the unbiased estimate of Song et al. 2012,
    eq. 5."""
    n = len(left.lengths)
    p = left.lengths
    q = right.lengths
    return biased - n / (n - 2) * (p @ q) + p.sum() * q.sum() / ((n - 1) * (n - 2))


def cosine_score(
    n: int,
    paired: float,
    sums: Sequence[np.ndarray],
    products: Sequence[np.ndarray],
    between: np.ndarray | None = None,
) -> Score:
    """The mean cosine of n pairs of unit rows aᵢ, bᵢ, from Σ aᵢ·bᵢ (`paired`) and the two `sums` Σ aᵢ, Σ bᵢ
    and `products` Σ aᵢaᵢᵀ, Σ bᵢbᵢᵀ. `between` (w_a, w_b) maps aᵢ to the coordinates of bᵢ. The moments of the
    chance level are exact (Hoeffding 1951, theorem 2): the mean ā·b̄, and the variance ⟨A, B⟩ / (n² (n − 1)),
    where A = Σ (aᵢ − ā)(aᵢ − ā)ᵀ and B is the same for bᵢ.
    """
    null = None
    (a, b) = products
    means = [total / n for total in sums]
    a = a - n * np.outer(means[0], means[0])
    b = b - n * np.outer(means[1], means[1])
    if between is not None:
        a = a @ between
        b = between @ b
        means[0] = means[0] @ between
    if n > 1:
        variance = float(np.vdot(a, b) / ((n - 1) * n**2))
        null = ChanceLevel.from_moments(float(means[0] @ means[1]), variance)
    return Score(paired / n, metric="cosine", n=n, null=null)


@takes_kinds
def mean_cosine(source: MatrixLike, target: MatrixLike, *, of_unit_length: bool = False) -> Score:
    """The mean cosine of paired rows, −1 … 1, for row-aligned spaces (n, d) of the same width. It is 1 if all
    directions are equal.

    The chance level is exact: the mean and the variance of Σ aᵢ·b_π(i) over all permutations π follow from
    Σaᵢ, Σbᵢ and the d × d products of the centred unit rows (Hoeffding 1951, theorem 2). `of_unit_length`
    says that all rows already have length 1 (or 0).

    Raises
    ------
    SpaceError
        Row counts, ids or widths that differ; numbers that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import mean_cosine
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> round(mean_cosine(X, 3 * X), 3)
    1.0
    """
    need_columns_in_one_order(source, target)
    source, target = paired_matrices(source, target, ("source", "target"))
    if source.shape != target.shape:
        raise SpaceError(f"expected row-aligned spaces of one width, got {source.shape} and {target.shape}")
    if not of_unit_length:
        source = unit_rows(source)
        target = unit_rows(target)
    return cosine_of_units(source, target)


def cosine_of_units(source: np.ndarray, target: np.ndarray) -> Score:
    """The score of `mean_cosine` for row-aligned unit rows (n, d)."""
    both = source, target
    paired = float(np.vecdot(*both).sum(dtype=np.float64))
    sums = [rows.sum(axis=0, dtype=np.float64) for rows in both]
    products = [(rows.T @ rows).astype(np.float64) for rows in both]
    return cosine_score(len(source), paired, sums, products)
