"""Scores over whole spaces with exact nulls: linear CKA, and the mean cosine of paired rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relcore.evaluation import Split
from relcore.metrics.calibration import Null, Score
from relcore.metrics.metric import AlignedPair, Metric
from relcore.metrics.paired import Difference, cka_influence, difference, mean_difference
from relcore.metrics.rv_null import SAMPLED_ROWS, RowSums, rv_null
from relcore.similarity import ROWS_PER_BLOCK, mean_row, row_blocks, unit_rows
from relcore.spaces import LatentSpace, SpaceError

_DIFFERENCE_ROWS, _INFLUENCE_ROWS = 4000, 1000  # rows that tell a difference, and how sure it is: a score takes all


@dataclass(frozen=True)
class OwnMoments:
    """The part of linear CKA that depends on one space.

    Its mean row (d,), ‖XᵀX‖²_F of the centred rows, their squared lengths (n,), and the sums for the chance level.
    """

    mean: np.ndarray
    square: float
    rows: np.ndarray
    sums: RowSums | None

    @classmethod
    def of(cls, X: np.ndarray) -> OwnMoments:
        """Of a space (n, d), once, where it is compared with several others."""
        centred = _Centred((X,), (_mean_row(X),))
        return cls.from_products(X, centred, 0, centred.products({"xx": (0, 0)})["xx"])

    @classmethod
    def from_products(cls, X: np.ndarray, centred: _Centred, side: int, product: np.ndarray) -> OwnMoments:
        """From XᵀX (d, d), once it has been formed."""
        mean, rows, square = centred.means[side], centred.lengths[side], float(np.vdot(product, product))
        if square == 0 or len(X) < 2:
            return cls(mean, square, rows, None)
        sample = np.arange(len(X))
        if len(X) > SAMPLED_ROWS:
            sample = np.sort(np.random.default_rng(0).choice(len(X), SAMPLED_ROWS, replace=False))
        return cls(mean, square, rows, RowSums.of(X[sample] - mean, sample, product, rows, centred.weighted[side]))


class _Centred:
    """Products of centred spaces (blocks in float32, sums in float64), and further sums from the same pass.

    Attributes
    ----------
    lengths : squared row lengths (n,) of each space
    weighted : Σ ‖xᵢ‖² xᵢ (d,) of each space
    """

    def __init__(self, spaces: Sequence[np.ndarray], means: Sequence[np.ndarray]) -> None:
        self.spaces, self.means = spaces, means
        self.lengths = [np.empty(len(X)) for X in spaces]
        self.weighted = [np.zeros(X.shape[1]) for X in spaces]

    def products(self, wanted: Mapping[str, tuple[int, int]], rows: bool = True) -> dict[str, np.ndarray]:
        """XᵀY of the named pairs; lengths and weighted sums too where `rows` are wanted."""
        n = len(self.spaces[0])
        widths = [X.shape[1] for X in self.spaces]
        sums = {name: np.zeros((widths[left], widths[right])) for name, (left, right) in wanted.items()}
        buffers = [np.empty((min(n, ROWS_PER_BLOCK), width), dtype=np.float32) for width in widths]
        for block in row_blocks(n):
            size = block.stop - block.start
            parts = [
                np.subtract(X[block], mean, out=out[:size])
                for X, mean, out in zip(self.spaces, self.means, buffers, strict=True)
            ]
            for name, (left, right) in wanted.items():
                sums[name] += parts[left].T @ parts[right]
            for side, part in enumerate(parts if rows else ()):
                lengths = np.vecdot(part, part)
                self.lengths[side][block] = lengths
                self.weighted[side] += lengths @ part
        return sums


def linear_cka(
    X: np.ndarray, Y: np.ndarray, *, debiased: bool = False, own: tuple[OwnMoments, OwnMoments] | None = None
) -> Score:
    """Linear centred kernel alignment of row-aligned spaces (n, d_x), (n, d_y): ‖XᵀY‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F), 0 … 1.

    On centred columns (Kornblith et al. 2019), in feature space: no n × n matrix; products of blocks in float32, sums in
    float64. It is Escoufier's RV coefficient, so the moments of its permutation null are known exactly. `debiased` takes the
    unbiased estimator of each term (Song et al. 2012); it may be negative, chance is 0, and n must be at least 4. `own`
    reuses results of other pairs.

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
        raise SpaceError(f"expected row-aligned spaces, got {len(X)} and {len(Y)} rows; pair them with match()")
    if len(X) < 4:
        raise SpaceError(f"expected at least 4 rows, got {len(X)}")
    moments = _Moments.of(X, Y, own)
    if moments.x.square == 0 or moments.y.square == 0:
        raise SpaceError("expected spaces with different rows, got one whose rows are all equal")
    if debiased:
        value = moments.unbiased("xy") / np.sqrt(moments.unbiased("xx") * moments.unbiased("yy"))
        return Score(value, metric="cka", convention="debiased", n=len(X), null=moments.debiased_null())
    value = moments.xy / np.sqrt(moments.x.square * moments.y.square)
    return Score(value, metric="cka", convention="linear", n=len(X), null=moments.null())


@dataclass(frozen=True)
class _Moments:
    """Sums over centred rows: xy = ‖XᵀY‖²_F, and what each space has of its own."""

    n: int
    xy: float
    x: OwnMoments
    y: OwnMoments

    @classmethod
    def of(cls, X: np.ndarray, Y: np.ndarray, own: tuple[OwnMoments, OwnMoments] | None = None) -> _Moments:
        if own:
            product = _Centred((X, Y), (own[0].mean, own[1].mean)).products({"xy": (0, 1)}, rows=False)["xy"]
        else:
            centred = _Centred((X, Y), (_mean_row(X), _mean_row(Y)))
            products = centred.products({"xx": (0, 0), "yy": (1, 1), "xy": (0, 1)})
            product = products["xy"]
            own = tuple(
                OwnMoments.from_products(Z, centred, side, products[name])
                for side, (Z, name) in enumerate(((X, "xx"), (Y, "yy")))
            )
        return cls(len(X), float(np.vdot(product, product)), *own)

    def unbiased(self, name: str) -> float:
        """n (n − 3) times the unbiased HSIC of Song et al. 2012, eq. 5, from centred features."""
        biased = {"xx": self.x.square, "yy": self.y.square, "xy": self.xy}[name]
        left, right = ({"x": self.x.rows, "y": self.y.rows}[side] for side in name)
        n = self.n
        return biased - n / (n - 2) * (left @ right) + left.sum() * right.sum() / ((n - 1) * (n - 2))

    def null(self) -> Null:
        """See `rv_null`."""
        return rv_null(self.x.sums, self.y.sums)

    def debiased_null(self) -> Null:
        """Mean 0 by construction; the spread is that of the biased score, which differs from it by a constant and O(1/n)."""
        biased = self.null()
        scale = np.sqrt(self.x.square * self.y.square / (self.unbiased("xx") * self.unbiased("yy")))
        return Null(0.0, (biased.low - biased.mean) * scale, (biased.high - biased.mean) * scale)


def _mean_row(X: np.ndarray) -> np.ndarray:
    """Float32 within blocks, float64 between them: half the time of float64 throughout.

    The error, below 1e-5 of the values, shifts the centre so little that its square is negligible in a sum of squares.
    """
    sums = [X[block].sum(axis=0) for block in row_blocks(len(X), 512)]
    return (np.sum(sums, axis=0, dtype=np.float64) / len(X)).astype(np.float32)


def mean_cosine(source: np.ndarray, target: np.ndarray, *, of_unit_length: bool = False) -> Score:
    """Mean cosine of paired rows, −1 … 1, of row-aligned spaces of one width (n, d); 1: equal directions.

    The null is exact: over all permutations π the mean of Σ aᵢ·b_π(i) and its variance follow from the sums Σaᵢ, Σbᵢ and the
    d × d products of the centred unit rows (Hoeffding 1951, theorem 2). `of_unit_length` says that all rows have length 1
    (or 0) already.

    Raises
    ------
    SpaceError
        Shapes that differ.
    """
    if source.shape != target.shape:
        raise SpaceError(f"expected row-aligned spaces of one width, got {source.shape} and {target.shape}")
    n = len(source)
    a, b = (source, target) if of_unit_length else (unit_rows(source), unit_rows(target))
    mean_a, mean_b = a.mean(axis=0, dtype=np.float64), b.mean(axis=0, dtype=np.float64)
    gram_a, gram_b = (_centred_gram(rows, mean) for rows, mean in ((a, mean_a), (b, mean_b)))
    null = Null.from_moments(mean_a @ mean_b, np.vdot(gram_a, gram_b) / ((n - 1) * n**2)) if n > 1 else None
    return Score(np.einsum("ij,ij->i", a, b).mean(dtype=np.float64), metric="cosine", n=n, null=null)


def _centred_gram(rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return (rows.T @ rows).astype(np.float64) - len(rows) * np.outer(mean, mean)


class LinearCKA(Metric):
    """`linear_cka` as a metric."""

    debiased = False

    def score(self, pair: AlignedPair) -> Score:
        return linear_cka(pair.source, pair.target, debiased=self.debiased)

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference:
        """Of samples of the held-out rows; the interval is by `cka_influence`."""
        split = before.split
        drawn = Split.held_out(split.ids[split.test], random_state=split.random_state)
        rows, few = drawn.queries(_DIFFERENCE_ROWS), drawn.queries(_INFLUENCE_ROWS)
        scores = [linear_cka(pair.source[rows], pair.target[rows], debiased=self.debiased) for pair in (before, now)]
        pulls = [cka_influence(pair.source[few], pair.target[few]) for pair in (before, now)]
        error = np.std(pulls[1] - pulls[0], ddof=1) / np.sqrt(len(split.test))
        return difference(scores[1] - scores[0], error)

    def own(self, space: LatentSpace, settings: Any) -> OwnMoments:
        return OwnMoments.of(space.vectors)

    def between(self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any) -> Score:
        return linear_cka(first.vectors, second.vectors, debiased=self.debiased, own=(own(first), own(second)))

    def forms(self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any) -> tuple[list[np.ndarray], bool]:
        sampled = [space.vectors[rows] for space in spaces]
        centred = [X - mean_row(X) for X in sampled]
        return [X @ X.T for X in centred], True


class DebiasedCKA(LinearCKA):
    """`linear_cka` without its bias for few rows."""

    debiased = True


class MeanCosine(Metric):
    """`mean_cosine` as a metric."""

    def score(self, pair: AlignedPair) -> Score | None:
        found = pair.neighbours if pair.same_width else None
        return mean_cosine(found.source, found.target, of_unit_length=True) if found else None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference | None:
        if not before.same_width:
            return None
        return mean_difference(*(np.vecdot(one.neighbours.source, one.neighbours.target) for one in (before, now)))
