"""How good a search is: nDCG and recall per query, from judgements of which rows are relevant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.text import read_lines
from relcore.scores.search import nearest

K = 10
MOST_JUDGEMENTS = 2_000_000
_GRADE = re.compile(r"[+-]?[0-9]{1,4}(?:\.[0-9]{1,4})?")
_LISTED = 3


@dataclass(frozen=True, eq=False)
class Relevance:
    """Which rows of a corpus are relevant to each query, and by how much.

    Attributes
    ----------
    query, row : arrays (j,) int64
        Ascending by query, then by row; no pair twice.
    grade : array (j,)
        Above 0; 1 everywhere where judgements are binary.
    n_queries, n_rows : int
    """

    query: np.ndarray
    row: np.ndarray
    grade: np.ndarray
    n_queries: int
    n_rows: int

    @classmethod
    def of(
        cls, query: np.ndarray, row: np.ndarray, grade: np.ndarray, n_queries: int, n_rows: int
    ) -> Relevance:
        """In any order; grades of 0 and below are not relevant and are left out."""
        query, row, grade = (np.asarray(one)[np.asarray(grade) > 0] for one in (query, row, grade))
        order = np.lexsort((row, query))
        return cls(
            query[order].astype(np.int64), row[order].astype(np.int64), grade[order], n_queries, n_rows
        )

    @property
    def counts(self) -> np.ndarray:
        """Number of relevant rows of each query, (n_queries,)."""
        return np.bincount(self.query, minlength=self.n_queries)

    def grades(self, lists: np.ndarray) -> np.ndarray:
        """The grade of each row of the lists (n_queries, k), 0 where it is not relevant; −1 stands for no
        row.
        """
        if not len(self.row):
            return np.zeros(lists.shape)
        known = self.query * self.n_rows + self.row
        wanted = np.arange(self.n_queries)[:, None] * self.n_rows + lists
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where((known[at] == wanted) & (lists >= 0), self.grade[at], 0.0)

    def take(self, queries: np.ndarray) -> Relevance:
        """Of these queries, in this order."""
        place = np.full(self.n_queries, -1)
        place[queries] = np.arange(len(queries))
        kept = place[self.query] >= 0
        return Relevance.of(
            place[self.query[kept]], self.row[kept], self.grade[kept], len(queries), self.n_rows
        )


def ndcg(lists: np.ndarray, relevance: Relevance, k: int = K) -> np.ndarray:
    r"""nDCG@k of each query, (n_queries,), 0 … 1; 1 where no order of the corpus is better, NaN without a
    relevant row.

    .. math:: \mathrm{DCG} = \sum_{i=1}^{k} g_i / \log_2(i + 1)

    over that of the best order of all relevant rows (Järvelin and Kekäläinen 2002, gains linear as in
    trec_eval).

    Parameters
    ----------
    lists : rows (n_queries, ≥ k) in the order of the search, −1 for none
    """
    discount = 1 / np.log2(np.arange(2, k + 2))
    gains = relevance.grades(lists[:, :k])
    reached = gains @ discount[: gains.shape[1]]
    order = np.lexsort((-relevance.grade, relevance.query))
    query, grade = relevance.query[order], relevance.grade[order]
    place = np.arange(len(query)) - np.searchsorted(query, np.arange(relevance.n_queries))[query]
    within = place < k
    weights = grade[within] * discount[place[within]]
    best = np.bincount(query[within], weights=weights, minlength=relevance.n_queries)
    return np.divide(reached, best, out=np.full(len(best), np.nan), where=best > 0)


def recall(lists: np.ndarray, relevance: Relevance, k: int = K) -> np.ndarray:
    """Share of each query's relevant rows among the first k, (n_queries,), 0 … 1; NaN without a relevant
    row.
    """
    hits = np.count_nonzero(relevance.grades(lists[:, :k]), axis=1)
    return np.divide(hits, relevance.counts, out=np.full(len(hits), np.nan), where=relevance.counts > 0)


def search(queries: np.ndarray, corpus: np.ndarray, k: int = K, own: np.ndarray | None = None) -> np.ndarray:
    """The k rows of `corpus` (n, d) with the largest product with each query (m, d), (m, k); −1 where there
    are fewer.

    Parameters
    ----------
    own : array (m,), optional
        The corpus row that each query is itself, which is left out.
    """
    lists = nearest(queries, corpus, min(k + (own is not None), len(corpus)))
    if own is not None:
        is_own = lists == own[:, None]
        is_own[~is_own.any(axis=1), -1] = True
        lists = lists[~is_own].reshape(len(lists), lists.shape[1] - 1)
    return np.pad(lists, ((0, 0), (0, max(0, k - lists.shape[1]))), constant_values=-1)


@dataclass(frozen=True)
class JudgedQuery:
    """A document's grade for a query, as a line of a qrels file has it; not relevant from 0 down."""

    query: str
    row: str
    grade: float


def read_qrels(path: Path) -> tuple[JudgedQuery, ...]:
    """TREC judgements: per line a query, an iteration that is not used, a document and a grade, separated by
    white space.

    Raises
    ------
    SpaceError
        A line of other fields, a grade that is no number, a pair with two grades, too many lines, no
        judgement; see `base.text.read_lines`.
    """
    grades: dict[tuple[str, str], float] = {}
    name = Path(path).name
    for number, line in enumerate(read_lines(Path(path), "TREC judgements, such as '1 0 184 1'"), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 4 or not _GRADE.fullmatch(fields[3]):
            raise SpaceError(
                f"{name}, line {number}: expected a query, an iteration, a document and a grade, as in"
                f" '1 0 184 1', got {line!r:.80}"
            )
        query, _, row, grade = fields
        if grades.setdefault((query, row), float(grade)) != float(grade):
            expected = f"one grade of {row!r:.40} for {query!r:.40}"
            raise SpaceError(f"{name}, line {number}: expected {expected}, got two")
        if len(grades) > MOST_JUDGEMENTS:
            got = "more; sample the queries"
            raise SpaceError(f"{name}: expected at most {MOST_JUDGEMENTS:,} judgements, got {got}")
    if not grades:
        raise SpaceError(f"{name}: expected TREC judgements, got none; is it this file?")
    return tuple(JudgedQuery(query, row, grade) for (query, row), grade in grades.items())


def relevance_of(
    judgements: Sequence[JudgedQuery], queries: Sequence[str], rows: Sequence[str]
) -> tuple[Relevance, Mapping[str, int]]:
    """Judgements by ids as `Relevance`, and how many name an unknown query or an unknown row of the corpus.

    Raises
    ------
    SpaceError
        No judgement of a known query and a known row says that the row is relevant.
    """
    query = pd.Index(queries).get_indexer([one.query for one in judgements])
    row = pd.Index(rows).get_indexer([one.row for one in judgements])
    grade = np.array([one.grade for one in judgements])
    known = (query >= 0) & (row >= 0)
    relevance = Relevance.of(query[known], row[known], grade[known], len(queries), len(rows))
    if not len(relevance.row):
        named = [
            one.row if query[at] >= 0 else one.query for at, one in enumerate(judgements) if not known[at]
        ]
        got = f"unknown ids, first {quote(named[:_LISTED])}" if named else "no grade above 0"
        raise SpaceError(
            f"judgements: expected relevant rows by the ids of the queries and of the vectors, got {got}"
        )
    unknown = {"queries": query < 0, "rows": (row < 0) & (query >= 0)}
    return relevance, {name: int(np.count_nonzero(flags)) for name, flags in unknown.items()}


def same_label(labels: np.ndarray, queries: np.ndarray) -> Relevance:
    """All other rows of a query's label are relevant: labels (n,), "" for none, and queries (m,), row
    numbers of the corpus.
    """
    labels = np.asarray(labels, dtype=object)
    codes = np.where(labels == "", -1, pd.factorize(labels)[0])
    members = {code: np.flatnonzero(codes == code) for code in np.unique(codes[queries]) if code >= 0}
    none = np.empty(0, dtype=np.int64)
    lists = [np.setdiff1d(members.get(codes[row], none), row) for row in queries]
    query = np.repeat(np.arange(len(queries)), [len(rows) for rows in lists])
    rows = np.concatenate([none, *lists])
    return Relevance.of(query, rows, np.ones(len(rows)), len(queries), len(labels))


def neighbours_as_truth(lists: np.ndarray, n_rows: int) -> Relevance:
    """The rows of a search's lists (m, k) are the relevant ones; −1 for none."""
    query, row = np.repeat(np.arange(len(lists)), lists.shape[1]), lists.ravel()
    return Relevance.of(query, row, (row >= 0).astype(float), len(lists), n_rows)
