"""Counts of similarities in narrow bins, from which cut-offs are chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.migrate.cut_offs import PassCounts
from relcore.migrate.similarities import Similarities

_FEWEST_BINS = 10_000
_SHOWN_BINS = 60
_SHOWN = 1e-4  # share of the rows beyond each end of a histogram
_ROUNDING = 1e-3  # of a bin: a float32 just below an edge counts as on it


@dataclass(frozen=True, eq=False)
class Histogram:
    """The distribution of scores: bins with `edges` (b + 1,), in units of the score, and the numbers (b,) of
    pairs in each that are relevant, and of others; if nothing is judged, all are others."""

    edges: np.ndarray
    relevant: np.ndarray
    others: np.ndarray


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """The numbers of pairs in bins of similarity. Bins are between 1 / 100,000 and 1 / 10,000 of the range
    wide, and their edges have few decimals, so that a cut-off can be printed exactly.

    Attributes
    ----------
    low, width : float
        The lowest edge, and the width of a bin, a power of ten.
    all, relevant : arrays (b,)
        Numbers of all pairs and of relevant pairs in each bin.
    sign : int
        −1 if similarities are negated distances.
    """

    low: float
    width: float
    all: np.ndarray
    relevant: np.ndarray
    sign: int = 1

    @classmethod
    def of(cls, similarities: Similarities, pairs: np.ndarray) -> ScoreBins:
        """Count all pairs. `pairs` (2, j) are the indexes of the queries and rows of relevant pairs."""
        lowest, highest = similarities.range
        reach = max(highest - lowest, 1e-9)
        width = 10.0 ** np.floor(np.log10(reach / _FEWEST_BINS))
        low = np.floor(lowest / width) * width
        n_bins = int(np.ceil((highest - low) / width)) + 2
        empty = cls(float(low), float(width), np.zeros(n_bins), np.zeros(n_bins), similarities.sign)
        counts = np.zeros(n_bins + 1, np.int64)  # first of NaN, whose bin is −1, then of each bin
        for _, block in similarities.blocks():
            counts += np.bincount(empty.bins(block).ravel() + 1, minlength=n_bins + 1)
        relevant = np.bincount(empty.bins(similarities.of_pairs(*pairs)), minlength=n_bins)
        return cls(empty.low, empty.width, counts[1:], relevant, similarities.sign)

    def bins(self, similarities: np.ndarray) -> np.ndarray:
        """The bin of each similarity; −1 for NaN."""
        places = np.floor((similarities - self.low) / self.width + _ROUNDING)
        return np.nan_to_num(places, nan=-1).astype(np.int32).clip(-1, len(self.all) - 1)

    def edge(self, bins: np.ndarray) -> np.ndarray:
        """The lower edges of bins. They are rounded, so that they have no more decimals than a bin."""
        return np.round(self.low + bins * self.width, max(0, round(-np.log10(self.width))))

    def cut_passed_by(self, n: int) -> float:
        """The strictest cut-off that n pairs or more pass, or the loosest one if there are fewer pairs."""
        above = self.all[::-1].cumsum()[::-1]
        return float(self.edge(np.array(max(np.count_nonzero(above >= n) - 1, 0))))

    def places(self, n: int) -> np.ndarray:
        """About 2 n cut-offs, ascending: n that pass from one pair to all pairs, in equal ratios, and n that
        pass from one relevant pair to all relevant pairs, in equal steps."""
        bins = []
        for counts, spaced in ((self.all, np.geomspace), (self.relevant, np.linspace)):
            above = counts[::-1].cumsum()[::-1]
            total = int(above[0])
            if total:
                ranks = np.unique(spaced(1, total, n).round())
                bins.append(np.searchsorted(-above, -ranks, side="right") - 1)
        return self.edge(np.unique(np.concatenate(bins)))

    def counts(
        self, similarities: Similarities, pairs: np.ndarray, cuts: np.ndarray, weight: float = 1.0
    ) -> PassCounts:
        """The numbers of rows that pass each of the cut-offs (g,), ascending, for each query. Rows that are
        not relevant count `weight` times."""
        n_queries = similarities.shape[0]
        g = len(cuts) + 1
        passed = np.zeros(n_queries * g)
        first = np.arange(n_queries)[:, None] * g
        for _, block in similarities.blocks():
            # NaN sorts after all numbers, so it is moved below them
            low = np.nan_to_num(block, nan=-np.inf)
            passed += np.bincount((first + self._place(low, cuts)).ravel(), minlength=n_queries * g)
        query, row = pairs
        place = self._place(similarities.of_pairs(query, row), cuts)
        found = np.bincount(query * g + place, minlength=n_queries * g)
        passed_by_cut = _from_above(passed, n_queries)
        found_by_cut = _from_above(found, n_queries)
        return PassCounts(
            cuts,
            found_by_cut + weight * (passed_by_cut - found_by_cut),
            found_by_cut,
            np.bincount(query, minlength=n_queries),
        )

    def _place(self, similarities: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        """How many of the cut-offs each similarity passes."""
        return np.searchsorted(cuts - _ROUNDING * self.width, similarities, side="right")

    def histogram(self) -> Histogram:
        """About 60 bins from the lowest to the highest similarity, but for one in 10,000 at both ends."""
        below = self.all.cumsum()
        total = below[-1]
        start = int(np.searchsorted(below, _SHOWN * total))
        stop = int(np.searchsorted(below, (1 - _SHOWN) * total)) + 1
        reached = np.flatnonzero(self.relevant)
        if len(reached):
            start = min(start, int(reached[0]))
            stop = max(stop, int(reached[-1]) + 1)
        step = max(1, -(-(stop - start) // _SHOWN_BINS))
        starts = np.arange(start, stop, step)
        stops = np.append(starts[1:], starts[-1] + step)
        every = np.add.reduceat(self.all[: stops[-1]], starts)
        relevant = np.add.reduceat(self.relevant[: stops[-1]], starts)
        edges = self.edge(np.append(starts, stops[-1]))
        if self.sign < 0:
            return Histogram(-edges[::-1], relevant[::-1], (every - relevant)[::-1])
        return Histogram(edges, relevant, every - relevant)


def _from_above(counts: np.ndarray, n_queries: int) -> np.ndarray:
    """The numbers (q, g) of rows that pass each of g cut-offs, from the numbers that pass exactly 0, 1, …, g
    of them."""
    counts = counts.reshape(n_queries, -1)
    return counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
