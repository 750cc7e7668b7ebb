"""Which rows are relevant to which query, and the scores of search results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from relcore.base.errors import SpaceError, quote
from relcore.base.text import read_lines
from relcore.engine.nearest import nearest, without_itself

K = 10
MOST_JUDGEMENTS = 2_000_000
_GRADE = re.compile(r"[+-]?[0-9]{1,4}(?:\.[0-9]{1,4})?")


def relevance_matrix(
    query: np.ndarray, row: np.ndarray, grade: np.ndarray, n_queries: int, n_rows: int
) -> csr_array:
    """The sparse matrix (n_queries, n_rows) of relevance grades, from triples of query number, row number and
    grade. Only grades above 0 are kept. No pair of query and row may occur twice."""
    kept = np.asarray(grade) > 0
    return csr_array((grade[kept].astype(float), (query[kept], row[kept])), shape=(n_queries, n_rows))


def _grades(lists: np.ndarray, relevance: csr_array) -> np.ndarray:
    queries = np.broadcast_to(np.arange(len(lists))[:, None], lists.shape)
    return np.where(lists >= 0, relevance[queries, np.maximum(lists, 0)].toarray(), 0.0)


def ndcg(lists: np.ndarray, relevance: csr_array, k: int = K) -> np.ndarray:
    r"""The nDCG@k of each query, (n_queries,), 0 … 1; NaN for queries without a relevant row.

    .. math:: \mathrm{DCG} = \sum_{i=1}^{k} g_i / \log_2(i + 1)

    The DCG is divided by the DCG of the best order (Järvelin and Kekäläinen 2002, linear gains as in
    trec_eval). `lists` (n_queries, ≥ k) are the row numbers that a search found, best first; −1 stands for
    none.
    """
    discount = 1 / np.log2(np.arange(2, k + 2))
    counts = np.diff(relevance.indptr)
    gains = _grades(lists[:, :k], relevance)
    reached = gains @ discount[: gains.shape[1]]
    query = np.repeat(np.arange(len(counts)), counts)
    grade = relevance.data[np.lexsort((-relevance.data, query))]
    place = np.arange(len(query)) - relevance.indptr[query]
    within = place < k
    best = np.bincount(query[within], weights=grade[within] * discount[place[within]], minlength=len(counts))
    return np.divide(reached, best, out=np.full(len(best), np.nan), where=best > 0)


def discounted_precision(lists: np.ndarray, relevance: csr_array, k: int = K) -> np.ndarray:
    """The share of relevant rows among the first k rows, (n_queries,), 0 … 1, in which the row at rank i
    counts 1 / log2(i + 1): the DCG, divided by that of k relevant rows. Unlike nDCG, it does not depend on
    relevant rows that no search found, which a judge of search results never sees."""
    discount = 1 / np.log2(np.arange(2, k + 2))
    relevant = _grades(lists[:, :k], relevance) > 0
    return relevant @ discount[: relevant.shape[1]] / discount.sum()


def precision(lists: np.ndarray, relevance: csr_array, k: int = K) -> np.ndarray:
    """The share of relevant rows among the first k rows, (n_queries,), 0 … 1."""
    return np.count_nonzero(_grades(lists[:, :k], relevance), axis=1) / k


def search(queries: np.ndarray, corpus: np.ndarray, k: int = K, own: np.ndarray | None = None) -> np.ndarray:
    """For each query (m, d), the k rows of `corpus` (n, d) with the largest inner products, an array (m, k).
    If a query is itself a row of the corpus, that row is left out: `own` (m,) has its number, −1 for other
    queries.
    """
    if own is None:
        lists = nearest(queries, corpus, min(k, len(corpus)), unit=False).rows
    else:
        lists = nearest(queries, corpus, min(k + 1, len(corpus)), unit=False).rows
        lists = without_itself(own, lists)
    return np.pad(lists, ((0, 0), (0, max(0, k - lists.shape[1]))), constant_values=-1)


@dataclass(frozen=True)
class JudgedQuery:
    """The relevance grade of a document for a query. Grades of 0 and below mean that it is not relevant."""

    query: str
    row: str
    grade: float


def read_qrels(path: Path) -> tuple[JudgedQuery, ...]:
    """Read relevance judgements in the format of TREC. Each line has four fields: query, iteration (ignored),
    document, grade.

    Raises
    ------
    SpaceError
        A malformed line; a pair with two grades; too many lines; no judgements; see also
        `base.text.read_lines`.
    """
    grades: dict[tuple[str, str], float] = {}
    name = Path(path).name
    for number, line in enumerate(read_lines(Path(path), "TREC judgements, such as '1 0 184 1'"), start=1):
        fields = line.split()
        if not fields:
            continue
        where = f"{name}, line {number}: expected"
        if len(fields) != 4 or not _GRADE.fullmatch(fields[3]):
            example = "a query, an iteration, a document and a grade, as in '1 0 184 1'"
            raise SpaceError(f"{where} {example}, got {line!r:.80}")
        query, _, row, grade = fields
        if grades.setdefault((query, row), float(grade)) != float(grade):
            raise SpaceError(f"{where} one grade of {row!r:.40} for {query!r:.40}, got two")
        if len(grades) > MOST_JUDGEMENTS:
            raise SpaceError(f"{where} {MOST_JUDGEMENTS:,} judgements at most, got more; sample the queries")
    if not grades:
        raise SpaceError(f"{name}: expected TREC judgements, got none; is it the right file?")
    return tuple(JudgedQuery(query, row, grade) for (query, row), grade in grades.items())


def relevance_of(
    judgements: Sequence[JudgedQuery], queries: Sequence[str], rows: Sequence[str]
) -> tuple[csr_array, Mapping[str, int]]:
    """The `relevance_matrix` of judgements, and a dict with the numbers of judgements whose query or whose
    row is unknown.

    Raises a SpaceError if no known row is relevant to a known query.
    """
    query = pd.Index(queries).get_indexer([item.query for item in judgements])
    row = pd.Index(rows).get_indexer([item.row for item in judgements])
    grade = np.array([item.grade for item in judgements])
    known = (query >= 0) & (row >= 0)
    relevance = relevance_matrix(query[known], row[known], grade[known], len(queries), len(rows))
    if not relevance.nnz:
        named = []
        for place in np.flatnonzero(~known)[:3]:
            if query[place] < 0:
                named.append(judgements[place].query)
            else:
                named.append(judgements[place].row)
        got = "no grade above 0"
        if named:
            got = f"unknown ids, first {quote(named)}"
        raise SpaceError(f"judgements: expected relevant rows, with known ids of queries and rows, got {got}")
    unknown = {"queries": query < 0, "rows": (row < 0) & (query >= 0)}
    return relevance, {name: int(np.count_nonzero(flags)) for name, flags in unknown.items()}


def same_label(labels: np.ndarray, queries: np.ndarray) -> csr_array:
    """The relevance matrix (m, n) in which a row is relevant to a query if both have the same label.
    `queries` (m,) are row numbers; a query is not relevant to itself. `labels` (n,) are "" for rows without a
    label.
    """
    labels = np.asarray(labels, dtype=object)
    lists = [np.flatnonzero((labels == labels[row]) & (labels[row] != "")) for row in queries]
    lists = [rows[rows != row] for rows, row in zip(lists, queries, strict=True)]
    query = np.repeat(np.arange(len(queries)), [len(rows) for rows in lists])
    rows = np.concatenate(lists)
    return relevance_matrix(query, rows, np.ones(len(rows)), len(queries), len(labels))


def neighbours_as_truth(lists: np.ndarray, n_rows: int) -> csr_array:
    """The relevance matrix in which the rows that a search found count as relevant. `lists` (m, k) has them
    for each query; −1 is ignored."""
    query = np.repeat(np.arange(len(lists)), lists.shape[1])
    row = lists.ravel()
    return relevance_matrix(query, row, row >= 0, len(lists), n_rows)
