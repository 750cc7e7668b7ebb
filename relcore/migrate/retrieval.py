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

    def grades(self, found: np.ndarray) -> np.ndarray:
        """The grade of each row that was found, (n_queries, k), 0 where it is not relevant; −1 stands for
        no row.
        """
        if not len(self.row):
            return np.zeros(found.shape)
        known = self.query * self.n_rows + self.row
        wanted = np.arange(self.n_queries)[:, None] * self.n_rows + found
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where((known[at] == wanted) & (found >= 0), self.grade[at], 0.0)

    def take(self, queries: np.ndarray) -> Relevance:
        """Of these queries, in this order."""
        place = np.full(self.n_queries, -1)
        place[queries] = np.arange(len(queries))
        kept = place[self.query] >= 0
        return Relevance.of(
            place[self.query[kept]], self.row[kept], self.grade[kept], len(queries), self.n_rows
        )


def ndcg(found: np.ndarray, relevance: Relevance, k: int = K) -> np.ndarray:
    r"""nDCG@k of each query, (n_queries,), 0 … 1; 1 where no order of the corpus is better, NaN without a
    relevant row.

    .. math:: \mathrm{DCG} = \sum_{i=1}^{k} g_i / \log_2(i + 1)

    over that of the best order of all relevant rows (Järvelin and Kekäläinen 2002, gains linear as in
    trec_eval).

    Parameters
    ----------
    found : rows (n_queries, ≥ k) in the order of the search, −1 for none
    """
    discount = 1 / np.log2(np.arange(2, k + 2))
    gains = relevance.grades(found[:, :k])
    best = _best(relevance, discount)
    reached = gains @ discount[: gains.shape[1]]
    return np.divide(reached, best, out=np.full(len(best), np.nan), where=best > 0)


def recall(found: np.ndarray, relevance: Relevance, k: int = K) -> np.ndarray:
    """Share of each query's relevant rows among the first k, (n_queries,), 0 … 1; NaN without a relevant
    row.
    """
    hits = np.count_nonzero(relevance.grades(found[:, :k]), axis=1)
    return np.divide(hits, relevance.counts, out=np.full(len(hits), np.nan), where=relevance.counts > 0)


def search(queries: np.ndarray, corpus: np.ndarray, k: int = K, own: np.ndarray | None = None) -> np.ndarray:
    """The k rows of `corpus` (n, d) with the largest product with each query (m, d), (m, k); −1 where there
    are fewer.

    Parameters
    ----------
    own : array (m,), optional
        The corpus row that each query is itself, which is not found.
    """
    depth = min(k + (own is not None), len(corpus))
    found = nearest(queries, corpus, depth)
    return padded(found if own is None else without(found, own), k)


def without(found: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Lists of rows (m, k) without each query's own row, or else without the last one: (m, k − 1)."""
    is_own = found == own[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    return found[~is_own].reshape(len(found), found.shape[1] - 1)


def padded(found: np.ndarray, k: int) -> np.ndarray:
    """The first k of each list, −1 where it ends earlier."""
    short = k - found.shape[1]
    return found[:, :k] if short <= 0 else np.pad(found, ((0, 0), (0, short)), constant_values=-1)


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
    found: dict[tuple[str, str], float] = {}
    for number, line in enumerate(read_lines(Path(path), "TREC judgements, such as '1 0 184 1'"), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 4 or not _GRADE.fullmatch(fields[3]):
            raise SpaceError(
                f"{Path(path).name}, line {number}: expected a query, an iteration, a document and a grade,"
                f" as in '1 0 184 1', got {line!r:.80}"
            )
        query, _, row, grade = fields
        if found.setdefault((query, row), float(grade)) != float(grade):
            raise SpaceError(
                f"{Path(path).name}, line {number}: expected one grade of {row!r:.40} for {query!r:.40},"
                " got two"
            )
        if len(found) > MOST_JUDGEMENTS:
            raise SpaceError(
                f"{Path(path).name}: expected at most {MOST_JUDGEMENTS:,} judgements, got more; sample the"
                " queries"
            )
    if not found:
        raise SpaceError(f"{Path(path).name}: expected TREC judgements, got none; is it this file?")
    return tuple(JudgedQuery(query, row, grade) for (query, row), grade in found.items())


def relevance_of(
    judgements: Sequence[JudgedQuery], queries: Sequence[str], rows: Sequence[str]
) -> tuple[Relevance, Mapping[str, int]]:
    """Judgements by ids as `Relevance`, and how many name an unknown query or an unknown row of the corpus.

    Raises
    ------
    SpaceError
        No judgement of a known query and a known row says that the row is relevant.
    """
    asked = pd.Index(queries).get_indexer([one.query for one in judgements])
    answered = pd.Index(rows).get_indexer([one.row for one in judgements])
    grade = np.array([one.grade for one in judgements])
    unknown = {
        "queries": int(np.count_nonzero(asked < 0)),
        "rows": int(np.count_nonzero((answered < 0) & (asked >= 0))),
    }
    known = (asked >= 0) & (answered >= 0)
    relevance = Relevance.of(asked[known], answered[known], grade[known], len(queries), len(rows))
    if not len(relevance.row):
        named = [
            one.row if asked[at] >= 0 else one.query for at, one in enumerate(judgements) if not known[at]
        ]
        got = f"unknown ids, first {quote(named[:_LISTED])}" if named else "no grade above 0"
        raise SpaceError(
            f"judgements: expected relevant rows by the ids of the queries and of the vectors, got {got}"
        )
    return relevance, unknown


def same_label(labels: np.ndarray, queries: np.ndarray) -> Relevance:
    """All other rows of a query's label are relevant: labels (n,), "" for none, and queries (m,), row
    numbers of the corpus.
    """
    codes = pd.factorize(np.asarray(labels, dtype=object))[0]
    codes[np.asarray(labels, dtype=object) == ""] = -1
    members = {code: np.flatnonzero(codes == code) for code in np.unique(codes[queries]) if code >= 0}
    none = np.empty(0, dtype=np.int64)
    rows = [np.setdiff1d(members.get(codes[row], none), row) for row in queries]
    numbers = np.repeat(np.arange(len(queries)), [len(one) for one in rows])
    together = np.concatenate(rows) if len(rows) else none
    return Relevance.of(numbers, together, np.ones(len(together)), len(queries), len(labels))


def neighbours_as_truth(found: np.ndarray, n_rows: int) -> Relevance:
    """The rows that a search has found are the relevant ones: (m, k), −1 for none."""
    numbers = np.repeat(np.arange(len(found)), found.shape[1])
    rows = found.ravel()
    return Relevance.of(numbers, rows, (rows >= 0).astype(float), len(found), n_rows)


def _best(relevance: Relevance, discount: np.ndarray) -> np.ndarray:
    """DCG of the best order of each query's relevant rows."""
    order = np.lexsort((-relevance.grade, relevance.query))
    query, grade = relevance.query[order], relevance.grade[order]
    starts = np.searchsorted(query, np.arange(relevance.n_queries))
    place = np.arange(len(query)) - starts[query]
    within = place < len(discount)
    weights = grade[within] * discount[place[within]]
    return np.bincount(query[within], weights=weights, minlength=relevance.n_queries)
