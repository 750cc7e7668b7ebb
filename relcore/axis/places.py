"""Where rows lie on an axis between two poles, in two spaces, and how well the two agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.numbers import counted, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import row_blocks
from relcore.base.text import shortened
from relcore.scores.estimate import Estimate, correlation
from relcore.spaces.space import LatentSpace

_USUAL = (0.25, 0.75)  # shares of the random axes below ρ between which the agreement is usual
N_EXTREME = 12  # number of rows that differ most, in the report and in the chart
_LONGEST = 40  # letters of the name of a pole


@dataclass(frozen=True, eq=False, repr=False)
class AxisPlaces(Reported):
    """The places of n rows on an axis between two poles, in two spaces.

    Attributes
    ----------
    names : the names of the two spaces
    ids : n texts
    start, end : texts
        The ids of the rows of each pole. Their mean is the pole.
    places : array (2, n)
        The place of each row in each space: −.5 is the pole `start`, .5 the pole `end`. Rows may lie beyond.
    poles : array (n,) of int
        −1 for the rows of `start`, 1 for those of `end`, 0 for all others.
    agreement : Estimate
        Spearman's ρ of the two places, over the rows that are in no pole, with its 95 % interval.
    random_agreement : array (r,), ascending
        ρ of axes between random rows of the same spaces.
    start_name, end_name : str
        What the report calls each pole; "" for a name made of its ids.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import axis
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> axis(X, 2 * X, "3", "7").places[:, [3, 7]].round(2).tolist()
    [[-0.5, 0.5], [-0.5, 0.5]]
    """

    names: tuple[str, str]
    ids: tuple[str, ...]
    start: tuple[str, ...]
    end: tuple[str, ...]
    places: np.ndarray
    poles: np.ndarray
    agreement: Estimate
    random_agreement: np.ndarray
    start_name: str = ""
    end_name: str = ""

    @property
    def n_below(self) -> int:
        """The number of random axes on which the spaces agree less than on this one."""
        return int((self.random_agreement < self.agreement.value).sum())

    @property
    def pole_names(self) -> tuple[str, str]:
        return pole_name(self.start, self.start_name), pole_name(self.end, self.end_name)

    @property
    def headline(self) -> str:
        first, second = self.names
        start, end = self.pole_names
        n = len(self.random_agreement)
        return (
            f"From {start} to {end}, {first} and {second} agree with ρ {self.agreement:2} on"
            f" {counted(self.agreement.n, 'other row')}. That is more than on {self.n_below} of {n} axes"
            f" between random rows (median {short(self.median_random, 2)}): {self._verdict()}."
        )

    @property
    def median_random(self) -> float:
        return float(np.median(self.random_agreement))

    def _verdict(self) -> str:
        n = len(self.random_agreement)
        low, high = (round(share * n) for share in _USUAL)
        if self.n_below < low:
            return f"lower than most. Usual for these models is {low} to {high} of {n}"
        if self.n_below > high:
            return f"higher than most. Usual for these models is {low} to {high} of {n}"
        return f"usual for these models, as {low} to {high} of {n} are"

    def table(self) -> pd.DataFrame:
        """One row for each row that is in no pole, the largest difference first.

        Percentiles, 0 … 100, are the share of the rows that lie nearer to `start`. `difference` is the
        percentile in the target minus that in the source.
        """
        others = np.flatnonzero(self.poles == 0)
        source, target = (self.places[side, others] for side in (0, 1))
        first, second = (_percentiles(one) for one in (source, target))
        table = pd.DataFrame(
            {
                "id": np.array(self.ids, dtype=object)[others],
                "source place": source,
                "target place": target,
                "source percentile": first,
                "target percentile": second,
                "difference": second - first,
            }
        )
        order = np.argsort(-np.abs(table["difference"].to_numpy()), kind="stable")
        return table.iloc[order].reset_index(drop=True)

    def report(self, **figures: Any) -> Report:
        """The agreement and its place among random axes, and the rows that differ most."""
        low, high = np.quantile(self.random_agreement, [0.025, 0.975]).tolist()
        facts = {
            "rho": self.agreement.value,
            "interval": [self.agreement.low, self.agreement.high],
            "n": self.agreement.n,
            "random_axes": len(self.random_agreement),
            "more_than": self.n_below,
            "random_median": self.median_random,
            "random_range": [low, high],
        }
        table = self.table()
        cells = [["id", *(f"percentile, {name}" for name in self.names), "difference"]]
        for row in table.head(N_EXTREME).itertuples(index=False):
            numbers = [f"{value:.0f}".replace("-", "−") for value in row[3:]]
            cells.append([str(row[0]), *numbers])
        start, end = self.pole_names
        caption = f"Rows that differ most. Percentile 0 is nearest to {start}, 100 to {end}."
        notes = [
            f"ρ of random axes: {short(low, 2)} to {short(high, 2)} (95 % of them). Compare ρ with them, not"
            " with 0: models that share anything agree on nearly every axis.",
            "The rows of the poles are left out of ρ.",
        ]
        return Report(self.headline, [Table("rows", table, cells, caption=caption)], facts, notes, figures)


def pole_name(ids: Sequence[str], given: str = "") -> str:
    """The name of a pole: the given one, its row, or its first row and how many follow."""
    if given:
        return given
    name = f"“{shortened(ids[0], _LONGEST)}”"
    if len(ids) == 1:
        return name
    return f"{name} and {counted(len(ids) - 1, 'more row')}"


def _percentiles(values: np.ndarray) -> np.ndarray:
    ranks = pd.Series(values).rank().to_numpy()
    return 100 * (ranks - 1) / max(1, len(values) - 1)


def pole_rows(space: LatentSpace, ids: Sequence[str], pole: str) -> np.ndarray:
    """The row numbers of a pole. A text that is no id stands for the rows of its words, if all are ids.

    Raises
    ------
    SpaceError
        The pole is empty, or names a row that the space lacks.
    """
    names: list[str] = []
    for identifier in ids:
        words = identifier.split()
        is_phrase = identifier not in space.index and len(words) > 1
        if is_phrase and all(word in space.index for word in words):
            names += words
        else:
            names.append(identifier)
    if not names:
        raise SpaceError(f"{pole}: expected the id of a row, got none; name one row or several")
    unknown = [name for name in names if name not in space.index]
    if unknown:
        raise SpaceError(
            f"{pole}: expected ids of rows that both spaces have, got {len(unknown)} unknown:"
            f" {quote(unknown[:3])}; check the spelling"
        )
    return np.unique(space.rows(names))


def places_on_axis(X: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The places (n,) of rows X (n, d) on the axis from the mean of the rows `start` to that of the rows
    `end`.

    With the poles a and b, a row x is at

    .. math:: \\frac{(x - (a + b) / 2) \\cdot (b - a)}{\\lVert b - a \\rVert^2}

    so a is at −.5 and b at .5. A rotation, a shift and a scale of X change nothing, and swapped poles change
    the sign.

    Source: semantic projection, Grand, Blank, Pereira and Fedorenko 2022 (Nature Human Behaviour 6); the
    direction between two words as in Bolukbasi et al. 2016 and, with poles of several words, Kozlowski, Taddy
    and Evans 2019.

    Raises
    ------
    SpaceError
        The two poles are the same point.
    """
    a = X[start].mean(axis=0, dtype=np.float64)
    b = X[end].mean(axis=0, dtype=np.float64)
    direction = b - a
    squared = float(direction @ direction)
    if not squared > 0:
        raise SpaceError("axis: expected two poles that differ, got two with the same vector; choose others")
    places = np.empty(len(X))
    for block in row_blocks(len(X)):
        places[block] = (X[block].astype(np.float64) - (a + b) / 2) @ direction
    return places / squared


def agreement_on_axis(places: np.ndarray, without: np.ndarray) -> Estimate:
    """Spearman's ρ of two rows of `places` (2, n), without the rows with these numbers."""
    kept = np.ones(places.shape[1], dtype=bool)
    kept[without] = False
    return correlation(places[0, kept], places[1, kept], "spearman")
