"""Scores over whole spaces with exact nulls: linear CKA, and the mean cosine of paired rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relcore.evaluation import Split
from relcore.magnitude import brought, centred, scaled, spread_and_offset, within
from relcore.metrics.calibration import Null, Score
from relcore.metrics.cautions import decisive_rows
from relcore.metrics.cka_sums import CosineSums, alignment, decided_note, need_different_rows, offset_note
from relcore.metrics.metric import AlignedPair, Metric
from relcore.metrics.paired import Difference, cka_influence, difference, mean_difference
from relcore.metrics.rv_null import RowSums, rv_null, sampled_rows
from relcore.similarity import ROWS_PER_BLOCK, mean_row, row_blocks, unit_rows
from relcore.spaces import LatentSpace, SpaceError

_NEAR_ZERO = 64  # times the spread of the rows
_FEW = 256  # rows that stay in cache between their passes
_DIFFERENCE_ROWS, _INFLUENCE_ROWS = 4000, 1000  # rows that tell a difference, and how sure it is: a score takes all


@dataclass(frozen=True)
class OwnMoments:
    """The part of linear CKA that depends on one space.

    Its frame, ‖XᵀX‖²_F of the rows in it, their squared lengths (n,), and the sums for the chance level.
    """

    frame: Frame
    square: float
    rows: np.ndarray
    sums: RowSums | None

    @classmethod
    def of(cls, X: np.ndarray) -> OwnMoments:
        """Of a space (n, d), once, where it is compared with several others."""
        centred, products = _Centred.of((X,), {"xx": (0, 0)})
        return cls.from_products(X, centred, 0, products["xx"])

    @classmethod
    def from_products(cls, X: np.ndarray, centred: _Centred, side: int, product: np.ndarray, null: bool = True) -> OwnMoments:
        """From XᵀX (d, d), once it has been formed; without the sums for the chance level unless `null`."""
        frame, rows, square = centred.frames[side], centred.lengths[side], float(np.vdot(product, product))
        if square == 0 or len(X) < 2 or not null:
            return cls(frame, square, rows, None)
        sample = sampled_rows(len(X))
        return cls(frame, square, rows, RowSums.of(frame.rows(X[sample]), sample, product, rows, centred.weighted[side]))


@dataclass(frozen=True)
class Frame:
    """How a space is brought to numbers that float32 can square: times 2^−exponent, which is exact, less a mean row (d,)."""

    mean: np.ndarray
    exponent: int = 0

    @classmethod
    def of(cls, X: np.ndarray, exponent: int = 0) -> Frame:
        return cls(_mean_row(scaled(X, exponent)), exponent)

    def rows(self, X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Rows of the space (m, d) in the frame, float32."""
        return centred(scaled(X, self.exponent), self.mean, out)


class _Centred:
    """Products of spaces in their frames (blocks in float32, sums in float64), and further sums from the same pass.

    Attributes
    ----------
    lengths : squared row lengths (n,) of each space
    weighted : Σ ‖xᵢ‖² xᵢ (d,) of each space
    """

    def __init__(self, spaces: Sequence[np.ndarray], frames: Sequence[Frame]) -> None:
        self.spaces, self.frames = spaces, frames
        self.lengths = [np.empty(len(X)) for X in spaces]
        self.weighted = [np.zeros(X.shape[1]) for X in spaces]

    @classmethod
    def of(cls, spaces: Sequence[np.ndarray], wanted: Mapping[str, tuple[int, int]]) -> tuple[_Centred, dict[str, np.ndarray]]:
        """With the products; computed again with a power of two where the longest rows show that float32 cannot square them."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = cls(spaces, [Frame.of(X) for X in spaces])
            products = found.products(wanted)
        longest = np.array([lengths.max() for lengths in found.lengths])
        if within(longest).all():
            return found, products
        found = cls(spaces, [Frame.of(X, brought(X)[1]) for X in spaces])
        return found, found.products(wanted)

    def products(self, wanted: Mapping[str, tuple[int, int]], rows: bool = True) -> dict[str, np.ndarray]:
        """XᵀY of the named pairs; lengths and weighted sums too where `rows` are wanted."""
        n = len(self.spaces[0])
        widths = [X.shape[1] for X in self.spaces]
        sums = {name: np.zeros((widths[left], widths[right])) for name, (left, right) in wanted.items()}
        buffers = [np.empty((min(n, ROWS_PER_BLOCK), width), dtype=np.float32) for width in widths]
        for block in row_blocks(n):
            size = block.stop - block.start
            parts = [out[:size] for out in buffers]
            for side, part in enumerate(parts):
                self._centre(side, block, part, rows)
            for name, (left, right) in wanted.items():
                sums[name] += parts[left].T @ parts[right]
        return sums

    def _centre(self, side: int, block: slice, out: np.ndarray, rows: bool) -> None:
        """Rows of a space into `out`, a few at a time, which are still in cache when their lengths are taken."""
        X, frame, lengths = self.spaces[side][block], self.frames[side], self.lengths[side][block]
        for few in row_blocks(len(X), _FEW):
            part = frame.rows(X[few], out[few])
            if rows:
                squares = np.vecdot(part, part)
                lengths[few] = squares
                self.weighted[side] += squares @ part


def linear_cka(
    X: np.ndarray,
    Y: np.ndarray,
    *,
    debiased: bool = False,
    own: tuple[OwnMoments, OwnMoments] | None = None,
    ids: Sequence[str] | None = None,
) -> Score:
    """Linear centred kernel alignment of row-aligned spaces (n, d_x), (n, d_y): ‖XᵀY‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F), 0 … 1.

    On centred columns (Kornblith et al. 2019), in feature space: no n × n matrix; products of blocks in float32, sums in
    float64. It is Escoufier's RV coefficient, so the moments of its permutation null are known exactly. `debiased` takes the
    unbiased estimator of each term (Song et al. 2012); it may be negative, chance is 0, and n must be at least 4. `own`
    reuses results of other pairs; `ids` name the rows in the score's note.

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
    moments = _Moments.of(X, Y, own)
    need_different_rows(moments.x.square, moments.y.square)
    value, note = moments.value(debiased), moments.far_from_zero()
    rows = decisive_rows((moments.x.rows, moments.y.rows))
    if len(rows) and len(X) - len(rows) >= 4:
        rest = np.delete(np.arange(len(X)), rows)
        without = _Moments.of(X[rest], Y[rest]).value(debiased)
        note = f"{decided_note(value, without, rows, ids)} {note}".strip()
    null = moments.debiased_null() if debiased else moments.null()
    return Score(value, metric="cka", convention="debiased" if debiased else "linear", n=len(X), null=null, note=note)


@dataclass(frozen=True)
class _Moments:
    """Sums over centred rows: xy = ‖XᵀY‖²_F, and what each space has of its own."""

    n: int
    xy: float
    x: OwnMoments
    y: OwnMoments

    @classmethod
    def of(cls, X: np.ndarray, Y: np.ndarray, own: tuple[OwnMoments, OwnMoments] | None = None, null: bool = True) -> _Moments:
        if len(X) < 4:
            raise SpaceError(f"expected at least 4 rows, got {len(X)}")
        if own:
            product = _Centred((X, Y), (own[0].frame, own[1].frame)).products({"xy": (0, 1)}, rows=False)["xy"]
        else:
            found, products = _Centred.of((X, Y), {"xx": (0, 0), "yy": (1, 1), "xy": (0, 1)})
            product = products["xy"]
            own = tuple(
                OwnMoments.from_products(Z, found, side, products[name], null=null)
                for side, (Z, name) in enumerate(((X, "xx"), (Y, "yy")))
            )
        return cls(len(X), float(np.vdot(product, product)), *own)

    def value(self, debiased: bool) -> float:
        """The score; NaN where all rows of a space are equal."""
        names = [self.unbiased(name) for name in ("xy", "xx", "yy")] if debiased else [self.xy, self.x.square, self.y.square]
        return alignment(*names)

    def far_from_zero(self) -> str:
        """See `cautions.far_from_zero`."""
        sides = (self.x, self.y)
        return offset_note([np.sqrt(one.rows.mean()) for one in sides], [np.linalg.norm(one.frame.mean) for one in sides])

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

    The error, below 1e-5 of the values, shifts the centre so little that its square is negligible in a sum of squares, unless
    the rows lie far from zero.
    """
    one = np.ones(512, dtype=np.float32)
    sums = [one[: block.stop - block.start] @ X[block] for block in row_blocks(len(X), len(one))]
    mean = (np.sum(sums, axis=0, dtype=np.float64) / len(X)).astype(np.float32)
    spread, offset = spread_and_offset(X, mean)
    return mean if offset <= _NEAR_ZERO * spread else mean_row(X)


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
    paired = np.einsum("ij,ij->i", a, b).mean(dtype=np.float64)
    return CosineSums(n, paired, mean_a @ mean_b, np.vdot(gram_a, gram_b)).score()


def _centred_gram(rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return (rows.T @ rows).astype(np.float64) - len(rows) * np.outer(mean, mean)


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
        moments = _Moments.of(X, Y, null=False)
        need_different_rows(moments.x.square, moments.y.square)
        return moments.value(self.debiased)

    def own(self, space: LatentSpace, settings: Any) -> OwnMoments:
        return OwnMoments.of(space.vectors)

    def between(self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any) -> Score:
        both = own(first), own(second)
        return linear_cka(first.vectors, second.vectors, debiased=self.debiased, own=both, ids=first.ids)

    def forms(self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any) -> tuple[list[np.ndarray], bool]:
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
