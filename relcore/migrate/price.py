"""The cost of each option of a migration. In a cascade, a row is embedded when a query first finds it, so the
cost is estimated from a log of queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, stdtrit

from relcore.base.numbers import counted, percent
from relcore.migrate.trial import Candidates

DEPTHS = (20, 50, 100, 200)
_NO_ROWS = np.empty(0, dtype=np.int64)
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
    embedded : int
        The rows of `need` and the pairs that the adapter is fitted on, each row counted once.
    """

    n_queries: int
    n_rows: int
    need: Need
    others: tuple[Need, ...]
    next_query: float
    curve: tuple[tuple[int, float], ...]
    embedded: int = 0

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
        rows = [["candidates per query", "rows found", "of the corpus", "another log as long, 95 %"]]
        for need in sorted((self.need, *self.others), key=lambda one: one.n_candidates):
            ends = f"{need.low:,.0f} to {need.high:,.0f}"
            share = percent(need.rows / self.n_rows)
            rows.append([f"{need.n_candidates:,}", f"{need.rows:,}", share, ends])
        return rows

    def describe(self) -> str:
        need = self.need
        more = ""
        if self.next_query >= 0.5:
            more = f", and a further query adds {self.next_query:.0f}"
        if not self.saves:
            more += ", which saves too little"
        return (
            f"to rank {need.n_candidates:,} candidates each, {counted(self.n_queries, 'query', 'queries')}"
            f" need {need.rows:,} of {self.n_rows:,} rows embedded ({percent(self.share)}; another log of"
            f" this length: {need.low:,.0f}–{need.high:,.0f}){more}"
        )


def price_of(
    old: np.ndarray,
    bridged: np.ndarray,
    n_rows: int,
    candidates: Candidates,
    pairs: np.ndarray = _NO_ROWS,
) -> Price:
    """Estimate the cost of a cascade from a log of q queries: the rows `old` (q, ≥ n) that the old model
    finds, best first, and the rows `bridged` that the bridged queries find. `pairs` are the rows that are
    embedded for the adapter.
    """
    depths = sorted({n for n in DEPTHS if n <= n_rows and n <= old.shape[1]} | {candidates.n})
    lists = {n: candidates._replace(n=n).of(old, bridged) for n in depths}
    needs = {n: _need(rows, n_rows) for n, rows in lists.items()}
    counts, _ = _touch_counts(lists[candidates.n], n_rows)
    is_new = np.ones(n_rows, dtype=bool)
    is_new[pairs] = False
    q = len(old)
    sizes = np.unique(np.linspace(1, q, min(q, _POINTS)).round().astype(int))
    expected = expected_rows(counts, q, sizes)
    return Price(
        q,
        n_rows,
        needs[candidates.n],
        tuple(need for n, need in needs.items() if n != candidates.n),
        float(np.count_nonzero((counts == 1) & is_new) / q),
        tuple(zip(sizes.tolist(), expected.tolist(), strict=True)),
        int(np.count_nonzero((counts > 0) | ~is_new)),
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


# The number of rows that two queries may share without a trace in the log, as a share of the rows that a
# query finds alone. It was chosen with random words as queries; benchmarks/migrate_intervals.md has the
# coverage on other data.
_UNSEEN_SHARE = 0.4


def _need(lists: np.ndarray, n_rows: int) -> Need:
    """The number of rows that these queries find, with its interval. For a single query, the interval is from
    0 to all rows.

    Without query i, the log finds `alone[i]` rows fewer. The sum J of the squared deviations of `alone` is
    the jackknife variance of the number, which is too large (Efron and Stein 1981): a part of the variance
    that depends on k queries at once is counted k times. Where queries share few rows, most of it depends on
    pairs. The squared residuals S of the rows that only a pair finds count such a part k (k − 1) / 2 times.
    So J² / (J + S) is right for k = 1, and for k = 2 it is 4 / 3 of the variance, where J is twice as large.

    The number for another log has the same variance, so the variance of the difference is twice as large. If
    few pairs of queries find the same rows, as in a large corpus, this variance is uncertain. So one further
    pair is assumed, with an overlap of usual size.
    """
    q, n = lists.shape
    counts, alone = _touch_counts(lists, n_rows)
    rows = int(np.count_nonzero(counts))
    if q < 2:
        return Need(n, rows, 0.0, float(n_rows))
    jackknife = (q - 1) / q * np.square(alone - alone.mean()).sum()
    common, pairs = _rows_of_pairs(lists, counts)
    variance = 0.0
    if jackknife:
        variance = 2 * jackknife**2 / (jackknife + pairs)
    unseen = np.square(np.append(common, _UNSEEN_SHARE * alone.mean())).mean()
    half = float(stdtrit(q - 1, 0.975)) * float(np.sqrt(variance + unseen))
    most = min(n_rows, int(np.count_nonzero(lists >= 0)))  # reached if no two queries find the same row
    return Need(n, rows, max(0.0, rows - half), float(min(most, rows + half)))


def _rows_of_pairs(lists: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Count the rows that exactly two queries find, for each pair of queries. Returns the counts above 0, and
    the sum of the squared residuals over all pairs.

    The residuals are those of the least-squares fit of a count as mean + effect of one query + effect of the
    other. All pairs i < j have a count, so the fit has a closed form: effectᵢ = (totalᵢ − (q − 1) mean) /
    (q − 2).
    """
    q = len(lists)
    query = np.broadcast_to(np.arange(q)[:, None], lists.shape)
    is_of_pair = (lists >= 0) & (counts[np.maximum(lists, 0)] == 2)
    entries = np.ones(int(np.count_nonzero(is_of_pair)), dtype=np.float32)
    found = csr_array((entries, (query[is_of_pair], lists[is_of_pair])), shape=(q, len(counts)))
    both = (found @ found.T).tocoo()
    is_pair = both.row < both.col
    common = both.data[is_pair].astype(np.float64)
    if q < 3:
        return common, 0.0
    n_pairs = q * (q - 1) / 2
    mean = common.sum() / n_pairs
    totals = np.bincount(both.row[is_pair], common, q) + np.bincount(both.col[is_pair], common, q)
    effects = (totals - (q - 1) * mean) / (q - 2)
    explained = n_pairs * mean**2 + (q - 2) * np.square(effects).sum()
    residual = np.square(common).sum() - explained
    return common, float(max(0.0, residual))


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

    def rows_of_year(self, queries: int, n_corpus: int) -> int:
        """The largest number of rows that are embedded until the end of a year with this many queries. Later
        queries of a cascade add fewer rows than the first ones, so this is an upper limit."""
        return int(min(self.rows_now + queries * self.rows_per_query, n_corpus))


QUERIES_OF_YEAR = 10_000
QUERY_TOKENS = 16  # a search query of about twelve words
LEAST_ROWS = 100_000
LEAST_MONEY = 100.0


class Rate(NamedTuple):
    """The time and price of embedding, and what counts as a small saving.

    Attributes
    ----------
    seconds, price, tokens : float
        Seconds per row, price per million tokens, and tokens per row; 0 if unknown. A query has 16 tokens, or
        `tokens` if these are fewer, and takes as long as a row.
    currency : str
        The currency of `price` and of `least_money`: a name, or a symbol such as "€".
    queries : int
        Number of queries in a year.
    least_money, least_rows : float
        The smallest saving in a year for which a less simple option is recommended: in the currency if the
        price is known, and otherwise in rows.
    """

    seconds: float = 0.0
    price: float = 0.0
    tokens: float = 0.0
    currency: str = "USD"
    queries: int = QUERIES_OF_YEAR
    least_money: float = LEAST_MONEY
    least_rows: int = LEAST_ROWS

    @property
    def has_price(self) -> bool:
        return bool(self.price and self.tokens)

    @property
    def is_known(self) -> bool:
        return bool(self.seconds) or self.has_price

    @property
    def least(self) -> str:
        """The smallest saving that counts, as text."""
        if self.has_price:
            return self.in_currency(self.least_money).replace(".00", "")
        return f"{self.least_rows:,} rows"

    def of(self, rows: float, queries: float = 0.0) -> str:
        """The time and price of embedding rows and queries, as text; "" if neither is known."""
        found = []
        if self.seconds:
            seconds = (rows + queries) * self.seconds
            if seconds < 120:
                found.append(f"{seconds:,.0f} s")
            elif seconds < 3600:
                found.append(f"{seconds / 60:,.0f} min")
            else:
                found.append(f"{seconds / 3600:,.1f} h")
        if self.has_price:
            money = self.money(rows, queries)
            if 0 < money < 0.01:
                found.append(f"under {self.in_currency(0.01)}")
            else:
                found.append(self.in_currency(money))
        return " · ".join(found)

    def beside_a_gain(self, rows: float) -> str:
        """The time and price of embedding rows as the end of a sentence; "" if neither is known."""
        if not self.is_known:
            return ""
        return f" and embedding costs {self.of(rows).replace(' · ', ' and ')}"

    def in_currency(self, money: float) -> str:
        """A sum as text: "$1.50" for a symbol, "1.50 USD" for a name."""
        if self.currency and not self.currency[-1].isalnum():
            return f"{self.currency}{money:,.2f}"
        return f"{money:,.2f} {self.currency}".strip()

    def size_of_year(self, cost: Cost, n_corpus: int) -> float:
        """The cost of a year as a number, to compare options: money if the price is known, else seconds if
        these are known, else rows."""
        rows = cost.rows_of_year(self.queries, n_corpus)
        queries = self.queries * cost.models_per_query
        if self.has_price:
            return self.money(rows, queries)
        if self.seconds:
            return (rows + queries) * self.seconds
        return float(rows)

    def money(self, rows: float, queries: float = 0.0) -> float:
        tokens = rows * self.tokens + queries * min(self.tokens, QUERY_TOKENS)
        return tokens * self.price / 1e6

    def saves(self, cost: Cost, other: Cost, n_corpus: int) -> bool:
        """Whether an option with `cost` saves enough in a year, compared with one with the cost `other`."""
        least: float = self.least_rows
        if self.has_price:
            least = self.least_money
        return self.saving(cost, other, n_corpus) >= least

    def saving(self, cost: Cost, other: Cost, n_corpus: int) -> float:
        """What an option with `cost` saves in a year, compared with one with the cost `other`: money if the
        price is known, else rows to embed."""
        rows = cost.rows_of_year(self.queries, n_corpus)
        others = other.rows_of_year(self.queries, n_corpus)
        if not self.has_price:
            return others - rows
        models = self.queries * (other.models_per_query - cost.models_per_query)
        return self.money(others - rows, models)


UNKNOWN = Rate()
# The simplest option first: no adapter before an adapter, one model before two, one search before two.
_SIMPLEST = ("keep", "re-embed", "bridge", "twice", "cascade")


def in_order_of_cost(costs: Mapping[str, Cost], rate: Rate, n_corpus: int) -> tuple[str, ...]:
    """Sort options by their cost: an option is worth it only if it is clearly better than those before it.
    The simplest one comes first, but one that saves enough by `rate.saves` comes before a simpler one."""
    ordered: list[str] = []
    for name in _SIMPLEST:
        if name in costs:
            place = len(ordered)
            while place and rate.saves(costs[name], costs[ordered[place - 1]], n_corpus):
                place -= 1
            ordered.insert(place, name)
    return tuple(ordered)
