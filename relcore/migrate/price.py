"""The cost of each option of a migration. In a cascade, a row is embedded when a query first finds it, so the
cost is estimated from a log of queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, stdtrit

from relcore.base.numbers import counted, percent
from relcore.migrate.evaluate import Candidates

DEPTHS = (20, 50, 100, 200)
_POINTS = 25  # maximum number of points of `Price.curve`
MOST_SHARE = 0.5  # share of the corpus; if a log finds more of it, re-embedding becomes cheaper


@dataclass(frozen=True)
class Need:
    """The number of distinct rows that a cascade with `n_candidates` per query embeds for a log of queries,
    and the 95 % interval of this number for another log of the same length.
    """

    n_candidates: int
    rows: int
    low: float
    high: float


@dataclass(frozen=True)
class Price:
    """How many of the `n_rows` rows of a corpus a cascade embeds for a log of `n_queries` queries.

    Attributes
    ----------
    need : Need
        The rows for the number of candidates of the migration.
    others : tuple of Need
        The rows for other numbers of candidates.
    next_query : float
        Expected number of rows that one more query adds.
    curve : tuple of (queries, rows)
        Expected number of embedded rows after some of the queries, averaged over their order.
    """

    n_queries: int
    n_rows: int
    need: Need
    others: tuple[Need, ...]
    next_query: float
    curve: tuple[tuple[int, float], ...]

    @property
    def share(self) -> float:
        return self.need.rows / self.n_rows

    @property
    def saves(self) -> bool:
        """Whether the queries of the log need less than half of the rows of the corpus."""
        return self.share < MOST_SHARE

    def cells(self) -> list[list[str]]:
        """The cells of a table with the costs for each number of candidates. The first row is the table's
        head."""
        shown = [["candidates per query", "rows to embed", "of the corpus", "another log as long, 95 %"]]
        for need in sorted((self.need, *self.others), key=lambda one: one.n_candidates):
            ends = f"{need.low:,.0f} to {need.high:,.0f}"
            share = percent(need.rows / self.n_rows)
            shown.append([f"{need.n_candidates:,}", f"{need.rows:,}", share, ends])
        return shown

    def describe(self) -> str:
        need = self.need
        more = f", and a further query adds {self.next_query:.0f}" * (self.next_query >= 0.5)
        return (
            f"to rank {need.n_candidates:,} candidates each, {counted(self.n_queries, 'query', 'queries')}"
            f" need {need.rows:,} of {self.n_rows:,} rows embedded ({percent(self.share)}; another log of"
            f" this length: {need.low:,.0f}–{need.high:,.0f}){more}"
            f"{', which saves too little' * (not self.saves)}"
        )


def price_of(old: np.ndarray, bridged: np.ndarray, n_rows: int, candidates: Candidates) -> Price:
    """Estimate the cost of a cascade from a log of q queries: the rows `old` (q, ≥ n) that the old model
    finds, best first, and the rows `bridged` that the bridged queries find.
    """
    depths = sorted({n for n in DEPTHS if n <= n_rows and n <= old.shape[1]} | {candidates.n})
    lists = {n: candidates._replace(n=n).of(old, bridged) for n in depths}
    needs = {n: _need(rows, n_rows) for n, rows in lists.items()}
    counts, _ = _touch_counts(lists[candidates.n], n_rows)
    q = len(old)
    sizes = np.unique(np.linspace(1, q, min(q, _POINTS)).round().astype(int))
    expected = expected_rows(counts, q, sizes)
    return Price(
        q,
        n_rows,
        needs[candidates.n],
        tuple(need for n, need in needs.items() if n != candidates.n),
        float(np.count_nonzero(counts == 1) / q),
        tuple(zip(sizes.tolist(), expected.tolist(), strict=True)),
    )


def expected_rows(counts: np.ndarray, q: int, sizes: Sequence[int]) -> np.ndarray:
    """The expected number of distinct rows that m of q queries find, for each m in `sizes`: Hurlbert's
    rarefaction (1971).

    .. math:: E(m) = \\sum_r 1 - \\binom{q - c_r}{m} / \\binom{q}{m}

    `counts` (r,) has the number of queries that find each row, cᵣ.
    """
    values, times = np.unique(counts[counts > 0], return_counts=True)
    m = np.asarray(sizes, dtype=float)[:, None]
    c = values[None].astype(float)

    def log_binomial(n: np.ndarray | float, of: np.ndarray) -> np.ndarray:
        return gammaln(n + 1) - gammaln(of + 1) - gammaln(np.maximum(n - of, 0) + 1)

    untouched = np.where(m <= q - c, np.exp(log_binomial(q - c, m) - log_binomial(q, m)), 0.0)
    return (times * (1 - untouched)).sum(axis=1)


def _touch_counts(lists: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays: (n_rows,), for each row the number of queries that find it; and (q,), for each query the
    number of rows that no other query finds.
    """
    flat = lists.ravel()
    counts = np.bincount(flat[flat >= 0], minlength=n_rows)
    return counts, ((lists >= 0) & (counts[np.maximum(lists, 0)] == 1)).sum(axis=1)


def _need(lists: np.ndarray, n_rows: int) -> Need:
    """The number of rows that these queries find, with its interval. For a single query, the interval is from
    0 to all rows.

    Without query i, the log finds `alone[i]` rows fewer. So the jackknife variance of the number is about the
    sum of the squared deviations of `alone` (Efron and Stein 1981: on average, it is not too small). The
    number for another log has the same variance, so the variance of the difference is twice as large.
    """
    q = len(lists)
    counts, alone = _touch_counts(lists, n_rows)
    rows = int(np.count_nonzero(counts))
    if q < 2:
        return Need(lists.shape[1], rows, 0.0, float(n_rows))
    spread = np.sqrt(2 * (q - 1) / q * np.square(alone - alone.mean()).sum())
    half = float(stdtrit(q - 1, 0.975)) * max(spread, 1.0)
    return Need(lists.shape[1], rows, max(0.0, rows - half), float(min(n_rows, rows + half)))


@dataclass(frozen=True)
class Cost:
    """The cost of an option: the numbers of rows that the new model embeds now and with each query, the
    models and searches per query, and the bytes of the index (float32 vectors, without a graph). `rewrites`
    says whether all vectors in the index must be written again.
    """

    rows_now: int
    rows_per_query: float
    models_per_query: int
    searches_per_query: int
    index_bytes: int
    rewrites: bool


class Rate(NamedTuple):
    """The time and price of embedding: seconds per row, price per million tokens, and tokens per row; 0 if
    unknown."""

    seconds: float = 0.0
    price: float = 0.0
    tokens: float = 0.0

    @property
    def title(self) -> str:
        kinds = ["time"] * bool(self.seconds) + ["price"] * bool(self.price and self.tokens)
        return f"embedding: {' · '.join(kinds)}"

    def of(self, rows: float) -> str:
        """The time and price of embedding this many rows, as text; "" if neither is known."""
        found = []
        if self.seconds:
            seconds = rows * self.seconds
            found.append(f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 3600:,.1f} h")
        if self.price and self.tokens:
            money = rows * self.tokens * self.price / 1e6
            found.append("under 0.01" if 0 < money < 0.01 else f"{money:,.2f}")
        return " · ".join(found)


UNKNOWN = Rate()
