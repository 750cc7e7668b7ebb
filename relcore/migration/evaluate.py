"""The four options measured on the same queries: each finds rows of the same corpus, and is scored per query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from relcore.evaluation import smallest_keys
from relcore.migration.adapter import Adapter
from relcore.migration.fusion import searched_twice
from relcore.migration.retrieval import K, Relevance, search

OPTIONS = ("keep", "bridge", "twice", "re-embed")  # from the cheapest to the dearest


@dataclass(frozen=True, eq=False)
class Trial:
    """Queries, the corpus that they search, and what they should find.

    Attributes
    ----------
    old_queries, new_queries : arrays (q, d_old), (q, d_new)
        The same queries by both models, of length 1.
    old_corpus : array (n, d_old)
    new_corpus : array (n, d_new) or None
        The same rows; None where not all of them have new vectors, and re-embedding cannot be measured.
    relevance : Relevance
    own : array (q,) or None
        The corpus row that each query is itself, where queries are rows of the corpus.
    rows : array (n,)
        Where the corpus rows are in the old space.
    """

    old_queries: np.ndarray
    new_queries: np.ndarray
    old_corpus: np.ndarray
    new_corpus: np.ndarray | None
    relevance: Relevance
    own: np.ndarray | None
    rows: np.ndarray

    def found(
        self, adapter: Adapter | None, weight: float = 1.0, fusion: str = "z", k: int = K, options: tuple[str, ...] = OPTIONS
    ) -> dict[str, np.ndarray]:
        """What each option finds: corpus rows (q, k), the best first, −1 for none. Without an adapter, what needs none."""
        found = {}
        if "keep" in options:
            found["keep"] = search(self.old_queries, self.old_corpus, k, self.own)
        if adapter is not None and {"bridge", "twice"} & set(options):
            queries = adapter.transform(self.new_queries)
            corpus = self.old_corpus if len(adapter.corpus_steps_) == 1 else adapter.corpus(self.old_corpus)
            if "bridge" in options:
                found["bridge"] = search(queries, corpus, k, self.own)
            if "twice" in options:
                sides = (self.old_queries, queries, (self.old_corpus, corpus))
                found["twice"] = searched_twice(*sides, k, fusion=fusion, weight=weight, own=self.own)
        if self.new_corpus is not None and "re-embed" in options:
            found["re-embed"] = search(self.new_queries, self.new_corpus, k, self.own)
        return found

    def with_fewer_rows(self, most: int, random_state: int = 0) -> Trial:
        """The relevant rows, the queries' own ones, and others drawn at random, `most` together or a little more."""
        n = len(self.rows)
        if n <= most:
            return self
        needed = np.unique(np.concatenate([self.relevance.row, self.own if self.own is not None else []])).astype(np.int64)
        kept = fewer_rows(n, needed, most, random_state)
        return replace(
            self,
            old_corpus=self.old_corpus[kept],
            new_corpus=None if self.new_corpus is None else self.new_corpus[kept],
            relevance=among(self.relevance, kept),
            own=None if self.own is None else np.searchsorted(kept, self.own),
            rows=self.rows[kept],
        )


def fewer_rows(n: int, needed: np.ndarray, most: int, random_state: int = 0) -> np.ndarray:
    """The rows `needed` of a corpus of n rows, and others drawn at random, `most` together or a little more; ascending."""
    others = smallest_keys(n, most - len(needed), "corpus", random_state, needed)
    return np.sort(np.concatenate([needed, others]))


def among(relevance: Relevance, kept: np.ndarray) -> Relevance:
    """Of a corpus that consists of these of its rows, ascending; all relevant ones are among them."""
    rows = np.searchsorted(kept, relevance.row)
    return Relevance.of(relevance.query, rows, relevance.grade, relevance.n_queries, len(kept))


@dataclass(frozen=True)
class Interval:
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


class Bootstrap:
    """Means over queries and their differences, each with the middle 95 % of 2,000 resamples of the queries.

    All share the same resamples, so that a difference of two options is that of scores of the same queries.
    """

    def __init__(self, n_queries: int, draws: int = 2000, random_state: int = 0) -> None:
        rng = np.random.default_rng(random_state)
        shares = np.full(n_queries, 1 / n_queries)
        self._weights = rng.multinomial(n_queries, shares, size=draws).astype(np.float32) / np.float32(n_queries)

    def mean(self, values: np.ndarray) -> Interval:
        """Of one number per query, (q,)."""
        drawn = self._weights @ values.astype(np.float32)
        low, high = np.quantile(drawn, [0.025, 0.975])
        return Interval(float(values.mean(dtype=np.float64)), float(low), float(high))

    def difference(self, now: np.ndarray, before: np.ndarray) -> Interval:
        """Mean of now − before."""
        return self.mean(now - before)

    def ratio(self, now: np.ndarray, before: np.ndarray) -> Interval:
        """Mean of now over that of before; infinite where that is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = (self._weights @ now.astype(np.float32)) / (self._weights @ before.astype(np.float32))
            low, high = np.quantile(np.nan_to_num(drawn, nan=1.0, posinf=1e9), [0.025, 0.975])
            return Interval(float(now.mean() / before.mean()) if before.any() else np.inf, float(low), float(high))


def differences(scores: Mapping[str, np.ndarray], to: str, bootstrap: Bootstrap) -> dict[str, Interval]:
    """Of each other option to this one."""
    return {name: bootstrap.difference(one, scores[to]) for name, one in scores.items() if name != to and to in scores}
