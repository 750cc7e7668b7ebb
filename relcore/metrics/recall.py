"""Recall: how many of the true neighbours an approximate search found, and what a score can lose by it."""

from __future__ import annotations

from dataclasses import dataclass

from relcore.numbers import band, short


@dataclass(frozen=True)
class Recall:
    """Measured on `n` random queries whose true neighbours are known.

    Attributes
    ----------
    search, setting : str
        ``"IVF"``, ``"nprobe 8 of 1,264 lists"``.
    value, low, high : float
        Mean share of the true k nearest rows that were found, 0 … 1, with its 95 % interval.
    n : int
        Queries that were also searched exactly.
    target : float
        What the setting was chosen for, on other queries.
    change, reach : float
        How far the mean Jaccard overlap of these queries moved by the approximation, ± its 95 % interval.
    """

    search: str
    setting: str
    value: float
    low: float
    high: float
    n: int
    target: float
    change: float
    reach: float

    @property
    def most(self) -> float:
        """The most by which missed neighbours can change a mean Jaccard overlap, by the lower end of the recall's interval.

        A list without a share m of its neighbours changes the number that two lists of k share by at most m k, and the
        overlap i / (2k − i) by at most 2 / k for each: 2 (m₁ + m₂) for two lists, 4 (1 − recall) with the mean of both.
        """
        return min(1.0, 4 * (1 - self.low))

    def facts(self) -> dict[str, float | int | str]:
        """Columns of a table."""
        interval = {"recall_low": self.low, "recall_high": self.high, "recall_queries": self.n}
        return {"search": f"{self.search}, {self.setting}", "recall": self.value, **interval}

    def describe(self, k: int | None) -> str:
        """``IVF, nprobe 8 of 1,264 lists: recall@10 .962 (.955 … .969; 400 queries searched exactly, too)``."""
        at = f"@{k}" if k else ""
        measured = f"{self.n:,} queries searched exactly, too"
        return f"{self.search}, {self.setting}: recall{at} {short(self.value)} ({band(self.low, self.high)}; {measured})"

    def caution(self, k: int | None) -> str:
        """The recall, whether it was reached, and what it means for the scores."""
        missed = "" if self.value >= self.target else f" That is below the {short(self.target)} it was set for."
        return (
            f"approximate neighbours. {self.describe(k)}.{missed} On these queries the approximation changed Jaccard by "
            f"{short(self.change)} ± {short(self.reach)}; missed neighbours can change it by at most {short(self.most)}."
        )
