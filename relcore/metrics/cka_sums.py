"""The formulas of linear CKA and of the mean cosine from sums over rows, however these came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.metrics.calibration import Null, Score
from relcore.metrics.cautions import far_from_zero
from relcore.metrics.rv_null import RowSums, rv_null
from relcore.numbers import short
from relcore.spaces import SpaceError, quote

_DECIDED = 0.05  # change of CKA without a few rows that is worth a note


@dataclass(frozen=True)
class SpaceSums:
    """What linear CKA needs of one space: ‖XᵀX‖²_F of its n centred rows, the sums of its chance level, the root mean square
    of the rows' distances from their mean, and the length of the mean."""

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
        return Score(self.value, metric="cka", convention="linear", n=self.n, null=null, note=f"{note} {far}".strip())


def need_different_rows(*squares: float) -> None:
    """Raise a SpaceError where ‖XᵀX‖²_F of a space is 0."""
    if min(squares) == 0:
        raise SpaceError("expected spaces with different rows, got one whose rows are all equal")


def alignment(xy: float, xx: float, yy: float) -> float:
    """xy / √(xx · yy); NaN where all rows of a space are equal."""
    return xy / np.sqrt(xx * yy) if xx * yy > 0 else float("nan")


def offset_note(spreads: Sequence[float], offsets: Sequence[float]) -> str:
    """See `cautions.far_from_zero`; of the first space that lies far from zero."""
    told = (far_from_zero(*facts) for facts in zip(("first", "second"), spreads, offsets, strict=True))
    return next(filter(None, told), "")


def decided_note(value: float, without: float, rows: np.ndarray, ids: Sequence[str] | None) -> str:
    """Says that a few long rows decide a score that is another without them; "" where they do not."""
    if abs(without - value) <= _DECIDED:
        return ""
    named = quote(rows[:3].tolist() if ids is None else ids[rows[:3]]) + (", …" if len(rows) > 3 else "")
    told = f"One long row, {named}, decides" if len(rows) == 1 else f"{len(rows)} long rows, {named}, decide"
    return f"{told} this score; CKA of the other rows is {short(without)}."


@dataclass(frozen=True)
class CosineSums:
    """What the mean cosine needs of n pairs of unit rows aᵢ, bᵢ: mean aᵢ·bᵢ, ā·b̄, and ⟨A, B⟩ of A = Σ (aᵢ − ā)(aᵢ − ā)ᵀ and
    B alike."""

    n: int
    mean: float
    of_means: float
    of_products: float

    def score(self) -> Score:
        """The chance level is exact (Hoeffding 1951, theorem 2)."""
        n = self.n
        null = Null.from_moments(self.of_means, self.of_products / ((n - 1) * n**2)) if n > 1 else None
        return Score(self.mean, metric="cosine", n=n, null=null)
