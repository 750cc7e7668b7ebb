"""Measurements of a migration: scores of search results, held-out pairs, cross-validation of adapters, and
learning curves.

An option is what an owner of an index can do about a new embedding model. "keep" searches with the old model.
"bridge" maps queries of the new model to the old vectors by an adapter; these are the bridged queries.
"twice" adds the scores of these two searches. In a "cascade", the new model ranks the results of the old
index, so only these are embedded. "re-embed" searches with the new model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import ndtri, stdtrit  # `scipy.stats` has the same functions, but its import takes long

from relcore.base.errors import SpaceError, quote
from relcore.base.names import ADAPTERS
from relcore.base.numbers import counted, short
from relcore.base.rows import row_blocks, unit_rows
from relcore.base.text import read_lines
from relcore.engine.engine import Engine, nearest, without_itself
from relcore.migrate.adapters import Adapter, WhitenedRelativeAdapter
from relcore.migrate.apply import standardised
from relcore.represent.similarity import rows_among, select_anchors
from relcore.runs.store import Progress, silent
from relcore.scores.score import Interval
from relcore.spaces.space import LatentSpace, Match, match, scored_rows
from relcore.spaces.split import TEST_FRACTION, derangement, row_keys, smallest_keys

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


def precision(lists: np.ndarray, relevance: csr_array, k: int = K) -> np.ndarray:
    """The share of relevant rows among the first k rows, (n_queries,), 0 … 1."""
    return np.count_nonzero(_grades(lists[:, :k], relevance), axis=1) / k


def search(queries: np.ndarray, corpus: np.ndarray, k: int = K, own: np.ndarray | None = None) -> np.ndarray:
    """For each query (m, d), the k rows of `corpus` (n, d) with the largest inner products, an array (m, k).
    If a query is itself a row of the corpus, that row is left out: `own` (m,) has its number, −1 for other
    queries.
    """
    lists = nearest(queries, corpus, min(k + (own is not None), len(corpus)), unit=False).rows
    if own is not None:
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
        unknown = [judgements[at] for at in np.flatnonzero(~known)]
        named = [item.row if item.query in set(queries) else item.query for item in unknown[:3]]
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
    query = np.repeat(np.arange(len(queries)), list(map(len, lists)))
    rows = np.concatenate(lists)
    return relevance_matrix(query, rows, np.ones(len(rows)), len(queries), len(labels))


def neighbours_as_truth(lists: np.ndarray, n_rows: int) -> csr_array:
    """The relevance matrix in which the rows that a search found count as relevant. `lists` (m, k) has them
    for each query; −1 is ignored."""
    query = np.repeat(np.arange(len(lists)), lists.shape[1])
    row = lists.ravel()
    return relevance_matrix(query, row, row >= 0, len(lists), n_rows)


# A test that pairs belong together. New rows that are held out of a fit must find their partners better than
# by chance, and better than if the rows of one file are shifted.

FEWEST = 25
SHIFTS = range(-5, 6)
_MOST_ROWS = 240
_CLEAR = 3.1  # minimum standard errors above chance; unrelated pairs exceed them once in 1,000 times
# from 50 rows on, a stricter limit than _CLEAR; true pairs on Cranfield exceed 9
_MANY = 50
_CLEARER = 4.5
_REPEATED = 0.05
_REPEATED_LESS = 0.2
_UNIT = 1e-2


@dataclass(frozen=True)
class Pairing:
    """The result of `check_pairs`, a test whether row i of one space belongs to row i of another one. `score`
    is the mean reciprocal rank of the partners of n held-out rows. `chance` and `error` are the mean and the
    standard error of this score for random ranks.

    `behind` is the mean share of rows that rank behind the partner (.5 by chance). If one file seems to be
    shifted by some rows, `shift` is the number of rows, and `shifted` is the score after the shift is undone.
    """

    score: float
    chance: float
    error: float
    behind: float
    n: int
    shift: int = 0
    shifted: float = 0.0

    @property
    def is_clear(self) -> bool:
        # Also test the share behind, because a few unrelated rows that rank first can raise the mean.
        clear = _CLEAR if self.n < _MANY else _CLEARER
        return self.score > self.chance + clear * self.error and self.behind > 0.5 + clear / np.sqrt(
            12 * self.n
        )

    def need(self) -> None:
        """Raise a SpaceError if the pairs do not belong together. If a shift explains this, the error names
        it."""
        score = f"mean reciprocal rank {short(self.score)}"
        if self.shift:
            place = f"{counted(abs(self.shift), 'row')} further {'down' if self.shift > 0 else 'up'}"
            raise SpaceError(
                f"pairs: expected each new row to belong to the old row of the same id ({score}), got"
                f" partners that are found {place} ({short(self.shifted)}): the rows are shifted by"
                f" {self.shift:+d}; look for a header or a missing row in one of the files"
            )
        if not self.is_clear:
            raise SpaceError(
                "pairs: expected new rows that belong to the old rows of the same ids, got"
                f" {self.n:,} held-out rows that find their partners no better than by chance ({score},"
                f" chance {short(self.chance)}); the rows are in another order, or the models have nothing in"
                " common"
            )


def check_pairs(
    new: np.ndarray, old: np.ndarray, random_state: int = 0, names: Sequence[str] = ()
) -> Pairing:
    """Test whether row i of `new` (m, d_new) and row i of `old` (m, d_old) describe the same item. An adapter
    is fitted on one half of the pairs; the mapped new rows of the other half then search their partners among
    the old rows. The halves are exchanged.

    The test is repeated with row i + s of `old` in place of row i, for shifts s from −5 to 5. Raises a
    SpaceError, with the `names` of the two spaces, for fewer than 25 pairs.
    """
    m = len(new)
    reach = max(SHIFTS)
    if m < FEWEST:
        where = ""
        if names:
            where = f" in {' and '.join(map(repr, names))}"
        raise SpaceError(
            f"pairs: expected {FEWEST} rows or more that both models have embedded, got {m}{where}; embed"
            " some more"
        )
    if m >= FEWEST + 2 * reach:
        shifts = SHIFTS
    else:
        shifts = (0,)
    ends = np.concatenate([np.arange(reach), np.arange(m - reach, m)])  # rows without a partner at some shift
    rows = smallest_keys(m, _MOST_ROWS, "pairing", random_state, ends if len(shifts) > 1 else None)
    n = len(rows)
    odd = np.arange(n) % 2 == 1
    sizes = np.where(odd, odd.sum(), (~odd).sum())  # the number of rows among which a partner is ranked
    terms = [1 / np.arange(1, size + 1) for size in sizes]
    chance = float(np.mean([term.mean() for term in terms]))
    error = float(np.sqrt(sum(term.var() for term in terms)) / n)
    ranks = {}
    tried = {}
    for shift in shifts:
        ranks[shift] = reciprocal = _reciprocal_ranks(unit_rows(new[rows]), unit_rows(old[rows + shift]), odd)
        behind = float(((sizes - 1 / reciprocal) / (sizes - 1)).mean())
        tried[shift] = Pairing(float(reciprocal.mean()), chance, error, behind, n)
    best = max(tried, key=lambda shift: tried[shift].score)
    gain = ranks[best] - ranks[0]
    if tried[best].is_clear and gain.mean() > _CLEAR * gain.std() / np.sqrt(len(gain)):
        return replace(tried[0], shift=best, shifted=tried[best].score)
    return tried[0]


def _reciprocal_ranks(new: np.ndarray, old: np.ndarray, odd: np.ndarray) -> np.ndarray:
    reciprocal = np.empty(len(new))
    for held in (odd, ~odd):
        adapter = WhitenedRelativeAdapter().fit(new[~held], old[~held])
        scores = adapter.transform(new[held]) @ adapter.corpus(old[held]).T
        own = np.diag(scores)[:, None]
        tied = (np.isclose(scores, own, atol=1e-6).sum(axis=1) - 1) / 2
        reciprocal[held] = 1 / (1 + (scores > own).sum(axis=1) + tied)
    return reciprocal


def preprocessing_cautions(new: np.ndarray, old: np.ndarray) -> list[str]:
    """Warnings to show if exact duplicates are much more frequent among the rows of one model than of the
    other. This suggests that one model saw only the beginnings of the texts.
    """
    shares = [1 - len(np.unique(np.asarray(rows, np.float32), axis=0)) / len(rows) for rows in (new, old)]
    sides = (("new", "old", *shares), ("old", "new", *shares[::-1]))
    return [
        f"{short(share, 2)} of the {name} rows repeat another {name} row, and {short(less, 2)} of the {other}"
        f" ones do: the {name} model's texts may have been cut, or prepared in another way."
        for name, other, share, less in sides
        if share > _REPEATED and less < _REPEATED_LESS * share
    ]


def length_cautions(corpus: np.ndarray, queries: np.ndarray, name: str) -> list[str]:
    is_unit = [bool(np.abs(np.linalg.norm(X[:1000], axis=1) - 1).max() < _UNIT) for X in (corpus, queries)]
    if is_unit[0] == is_unit[1]:
        return []
    if is_unit[0]:
        some = "rows"
        others = "queries"
    else:
        some = "queries"
        others = "rows"
    return [
        f"The {name} model's {some} have length 1 and its {others} have not: they may have been prepared"
        " differently."
    ]


MOST_FITTED = 20_000


class PairSplit(NamedTuple):
    """A split of pairs, as ascending row numbers: the pairs to fit an adapter on, and held-out pairs to test
    it on. Pairs with the same vector as a fitted pair are not held out; `n_repeated` is their number.

    Fitted rows are neither used as queries nor searched, because an adapter maps them better than other rows.
    """

    fitted: np.ndarray
    held_out: np.ndarray
    n_repeated: int


def parts_of(paired: Match, n_pairs: int, strategy: str, judged: bool, random_state: int = 0) -> PairSplit:
    """Split the pairs into those to fit on, which are selected by the strategy in the old space, and held-out
    ones, which are drawn by a hash of their ids. Pairs that were only guessed are never held out.

    The source of `paired` is the old space. If `n_pairs` is 0, all pairs that are not held out are used to
    fit. If `judged`, there are other queries, so no pair needs to be held out. Raises a SpaceError for too
    few pairs.
    """
    n = len(paired)
    least = 0 if judged else FEWEST
    if 0 < n_pairs < FEWEST or max(n_pairs, FEWEST) > n - least:
        wanted = f"{FEWEST} or more to fit on" + (f" and {least} held out" if least else "")
        raise SpaceError(
            f"pairs: expected {wanted}, got {n_pairs or 'all'} of {n:,} rows that both models have embedded;"
            " choose another number, or embed more"
        )
    order = np.argsort(row_keys(paired.ids, "pairs", random_state), kind="stable")
    known = scored_rows(paired.ids)
    order = np.r_[order[~known[order]], order[known[order]]]
    n_held = max(least, int(n * TEST_FRACTION))
    if strategy == "random" or not n_pairs:
        n_fitted = min(n_pairs or (n if judged else n - n_held), MOST_FITTED)
        fitted = order[:n_fitted]
        held = order[n_fitted:]
    else:
        n_held = min(n - n_pairs, n_held)
        held = order[n - n_held :]
        candidates = np.sort(order[: n - n_held])
        chosen = select_anchors(paired.source.take(candidates), n_pairs, strategy, random_state=random_state)
        fitted = paired.source.rows(chosen)
    held = held[known[held]]
    if len(held) < least:
        raise SpaceError(
            f"pairs: expected {least} or more to hold out, got {len(held)}: of links that are guesses,"
            " only those that you confirmed are scored; confirm more in Connect, Link"
        )
    repeated = np.zeros(len(held), dtype=bool)
    for side in (paired.source, paired.target):
        repeated |= rows_among(side.vectors[held], side.vectors[fitted])
    return PairSplit(fitted, np.sort(held[~repeated]), int(repeated.sum()))


# Query both models: add the scores of an old query and of a bridged new query. Scores are standardised per
# query over the whole corpus. Their variance is qᵀ Σ q, where Σ is the covariance of the corpus; their mean
# does not change the order. So the sum of both z-scores is an inner product of a longer query and a longer
# row. If both searches use the old vectors, it is an inner product of one query and an old vector.


def covariance(corpus: np.ndarray) -> np.ndarray:
    return Engine().moments(corpus).products / len(corpus)


def added_scores(
    old: np.ndarray,
    new: np.ndarray,
    corpora: tuple[np.ndarray, np.ndarray],
    weight: float | np.ndarray = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Join two searches into one that adds their scores. Returns queries and a corpus whose inner products
    are z_old + weight · z_new, up to a constant per query. Here z_old and z_new are the scores of the two
    searches, standardised for each query.

    The old queries `old` (m, d_old) search the first of the `corpora` (n, d_old), and the bridged queries
    `new` (m, d) the second (n, d). If both corpora are the old vectors, pass the same object twice. The
    weight is a number, or an array with one number per query (m,).
    """
    shared = corpora[0] is corpora[1]
    spread = covariance(corpora[0])
    old = standardised(old, spread)
    new = np.reshape(np.float32(weight), (-1, 1)) * standardised(
        new, spread if shared else covariance(corpora[1])
    )
    if shared:
        return (old + new, corpora[0])
    return (np.column_stack([old, new]), np.column_stack(corpora))


# In order of cost, the cheapest option first.
OPTIONS = ("keep", "bridge", "twice", "cascade", "re-embed")
ADAPTED = ("bridge", "twice", "cascade")  # the options that use the adapter


N_CANDIDATES = 50


class Candidates(NamedTuple):
    """The search results that the new model ranks in a cascade: the first `n` results of the old query
    ("old"), of the bridged query ("bridged"), or alternately of both ("both").
    """

    lists: str = "both"
    n: int = N_CANDIDATES

    def of(self, old: np.ndarray, bridged: np.ndarray) -> np.ndarray:
        """Select the candidates (q, n), −1 for none, from the results of the old and of the bridged queries,
        each (q, ≥ n)."""
        return interleave([*[old] * (self.lists != "bridged"), *[bridged] * (self.lists != "old")], self.n)


def interleave(lists: Sequence[np.ndarray], n: int) -> np.ndarray:
    """Merge several ranked lists of each query: the first of every list, then the second of every list, and
    so on. Returns the first n distinct rows (q, n), −1 for none; each list is (q, ≥ n).
    """
    found = np.full((len(lists[0]), n), -1)
    for place, rows in enumerate(np.stack([one[:, :n] for one in lists], axis=2).reshape(len(found), -1)):
        distinct = [row for row in dict.fromkeys(rows.tolist()) if row >= 0][:n]
        found[place, : len(distinct)] = distinct
    return found


def rerank(queries: np.ndarray, corpus: np.ndarray, candidates: np.ndarray, k: int = K) -> np.ndarray:
    """For each query, the k `candidates` (q, n) with the largest inner products, an array (q, k); −1 for
    none."""
    found = np.full((len(queries), k), -1, dtype=np.int64)
    for block in row_blocks(len(queries), 64):
        rows = candidates[block]
        scores = np.einsum("qd,qnd->qn", queries[block], corpus[rows])
        order = np.argsort(np.where(rows >= 0, -scores, np.inf), axis=1, kind="stable")[:, :k]
        found[block, : order.shape[1]] = np.take_along_axis(rows, order, axis=1)
    return found


class Sides(NamedTuple):
    """The queries and the corpus of three searches: by the old model, through the adapter, and by the new
    model. If some rows have no vector by the new model, the corpus of the new model is None.
    """

    old: tuple[np.ndarray, np.ndarray]
    bridged: tuple[np.ndarray, np.ndarray]
    new: tuple[np.ndarray, np.ndarray | None]


@dataclass(frozen=True, eq=False)
class RetrievalTask:
    """A retrieval task: queries, the corpus that they search, and the rows that are relevant to them.

    Attributes
    ----------
    old_queries, new_queries : arrays (q, d_old), (q, d_new)
        The same queries by both models, of length 1.
    old_corpus : array (n, d_old)
    new_corpus : array (n, d_new) or None
        None if some rows have no new vector.
    relevance : as from `relevance_matrix`
    own : array (q,) or None
        If queries are rows of the corpus, the index of each query's own row.
    rows : array (n,)
        Row numbers, in the old space, of the rows of the corpus.
    is_judged : bool
        False if the neighbours by the new model count as relevant; these cannot tell which model is better.
    candidates : Candidates
        The rows that a cascade ranks.
    """

    old_queries: np.ndarray
    new_queries: np.ndarray
    old_corpus: np.ndarray
    new_corpus: np.ndarray | None
    relevance: csr_array
    own: np.ndarray | None
    rows: np.ndarray
    is_judged: bool = True
    candidates: Candidates = Candidates()

    def score(self, lists: np.ndarray, k: int = K) -> np.ndarray:
        """The score (q,) of each query for the rows that it finds, `lists` (q, ≥ k): nDCG@k. If nothing is
        judged, it is the share of the k nearest rows by the new model that are found.
        """
        return (ndcg if self.is_judged else precision)(lists, self.relevance, k)

    def chance(self, lists: np.ndarray, k: int = K, random_state: int = 0) -> float:
        """The chance level: the mean score if each query gets the list of another query, drawn at random."""
        rng = np.random.default_rng(random_state)
        queries = len(lists)
        return float(np.mean([self.score(lists[derangement(queries, rng)], k) for _ in range(CHANCE_DRAWS)]))

    def search(
        self,
        adapter: Adapter,
        weight: float | np.ndarray = 1.0,
        k: int = K,
        options: tuple[str, ...] = OPTIONS,
    ) -> dict[str, np.ndarray]:
        """Search all queries by each option, such as "keep" or "bridge". Returns, by option, the rows of the
        corpus (q, k), best first; −1 for none."""
        return self.lists(self.sides(adapter), weight, k, options)

    def sides(self, adapter: Adapter) -> Sides:
        if adapter.rewrites_corpus:
            corpus = adapter.corpus(self.old_corpus)
        else:
            corpus = self.old_corpus
        bridged = adapter.transform(self.new_queries), corpus
        return Sides((self.old_queries, self.old_corpus), bridged, (self.new_queries, self.new_corpus))

    def lists(
        self,
        sides: Sides,
        weight: float | np.ndarray = 1.0,
        k: int = K,
        options: tuple[str, ...] = OPTIONS,
        find: Callable[[str, np.ndarray, np.ndarray, int], np.ndarray] | None = None,
    ) -> dict[str, np.ndarray]:
        """The same as `search`, but with other queries and corpora, such as compressed ones. A cascade still
        ranks by the uncompressed new vectors.

        `find` replaces the function `relcore.migrate.evaluate.search`. Its arguments are the name of the side
        ("old", "bridged", "new" or "twice"), the queries, the corpus, and the number of rows to find.
        """
        find = find or (lambda _, queries, corpus, depth: search(queries, corpus, depth, self.own))
        is_new = self.new_corpus is not None
        found = {}
        cascaded = "cascade" in options and is_new
        for option, side in (("keep", "old"), ("bridge", "bridged")):
            if option in options or cascaded:
                depth = max(k, self.candidates.n * cascaded)
                found[option] = find(side, *getattr(sides, side), depth)
        if "twice" in options:
            queries, corpora = zip(sides.old, sides.bridged, strict=True)
            found["twice"] = find("twice", *added_scores(*queries, corpora, weight), k)
        if cascaded:
            candidates = self.candidates.of(found["keep"], found["bridge"])
            found["cascade"] = rerank(self.new_queries, self.new_corpus, candidates, k)
        if "re-embed" in options and is_new:
            found["re-embed"] = find("new", *sides.new, k)
        return {name: found[name][:, :k] for name in OPTIONS if name in options and name in found}

    def with_fewer_rows(self, most: int, random_state: int = 0) -> RetrievalTask:
        """The same task with a corpus of about `most` rows: the relevant rows, rows that are queries, and
        random other rows."""
        if len(self.rows) <= most:
            return self
        own = [] if self.own is None else self.own
        needed = np.unique(np.concatenate([self.relevance.indices, own])).astype(np.int64)
        others = smallest_keys(len(self.rows), most - len(needed), "corpus", random_state, needed)
        kept = np.sort(np.concatenate([needed, others]))
        return replace(
            self,
            old_corpus=self.old_corpus[kept],
            new_corpus=None if self.new_corpus is None else self.new_corpus[kept],
            relevance=self.relevance[:, kept],
            own=None if self.own is None else np.searchsorted(kept, own),
            rows=self.rows[kept],
        )

    def with_fewer_queries(self, most: int) -> RetrievalTask:
        q = len(self.old_queries)
        if q <= most:
            return self
        return self.take(np.linspace(0, q - 1, most).round().astype(int))

    def take(self, queries: np.ndarray) -> RetrievalTask:
        return replace(
            self,
            old_queries=self.old_queries[queries],
            new_queries=self.new_queries[queries],
            relevance=self.relevance[queries],
            own=None if self.own is None else self.own[queries],
        )


class QueryScores(NamedTuple):
    """The score of each query (`queries`, (q,)), and the deviations (`moved`, (s,)) of the mean score when
    the adapter is fitted on other draws of the pairs.
    """

    queries: np.ndarray
    moved: np.ndarray | float = 0.0


class Bootstrap:
    """Computes means over queries and differences of such means, with 95 % intervals for the choice of the
    queries. The intervals are for the fitted adapter, which is the one that is exported.

    All means use the same 2,000 resamples of the queries. If `splits` is given, the intervals also account
    for the choice of the pairs: each resampled mean gets a normal deviation with the covariance of the
    `splits` deviations in `QueryScores.moved`.
    """

    def __init__(self, n_queries: int, splits: int = 0, draws: int = 2000, random_state: int = 0) -> None:
        n = n_queries
        rng = np.random.default_rng(random_state)
        self._weights = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float32) / np.float32(n)
        # Student's t and the unbiased variance are used, because resamples of few queries vary too little.
        self._few = float(stdtrit(n - 1, 0.975) / ndtri(0.975) * np.sqrt(n / (n - 1)))
        self._normal = rng.normal(size=(draws, splits)) / np.sqrt(max(splits, 1))
        self._unseen = rng.normal(size=draws) / n

    def mean(self, one: QueryScores, least: float = 0.0) -> Interval:
        """The mean of numbers from `least` to 1, with its 95 % bootstrap interval.

        If all queries have the same score, the bootstrap interval would have no width. Then its width is that
        of the exact binomial interval for 0 successes in q trials.
        """
        n = len(one.queries)
        value = float(one.queries.mean(dtype=np.float64))
        low, high = value + np.quantile(self._deviations(one), [0.025, 0.975])
        if high - low < NO_WIDTH:
            share = 1 - 0.025 ** (1 / n)
            low = value - share * (value - least)
            high = value + share * (1 - value)
        return Interval(value, float(max(low, least)), float(min(high, 1)))

    def difference(self, now: QueryScores, before: QueryScores, usual: float = 0.0) -> Interval:
        """The mean of `now` less that of `before`, with its 95 % interval.

        Where few queries change, others may that are not among them. So the interval is as wide as if a
        further query changed, in proportion to the share of queries without a change, by as much as others
        do: the root mean square of the changes, or `usual` if no query changes. Without `usual`, it is that
        of the difference between the scores of two queries.
        """
        change = QueryScores(now.queries - before.queries, now.moved - before.moved)
        is_changed = np.abs(change.queries) > NO_WIDTH
        if is_changed.any():
            usual = float(np.sqrt(np.mean(np.square(change.queries[is_changed], dtype=np.float64))))
        elif not usual:
            usual = float(np.sqrt(2) * np.std(before.queries))
        unseen = usual * np.sqrt(1 - is_changed.mean())
        drawn = self._deviations(change) + self._few * unseen * self._unseen
        low, high = np.quantile(drawn, [0.025, 0.975])
        if high - low < NO_WIDTH:
            return self.mean(change, least=-1.0)
        value = float(change.queries.mean(dtype=np.float64))
        return Interval(value, float(max(value + low, -1)), float(min(value + high, 1)))

    def _deviations(self, one: QueryScores) -> np.ndarray:
        value = one.queries.mean(dtype=np.float64)
        drawn = self._few * (self._weights @ (one.queries - value).astype(np.float32))
        if np.ndim(one.moved):
            drawn = drawn + self._normal @ one.moved
        return drawn


NO_WIDTH = 1e-6  # smaller differences are rounding errors of float32


# Tasks: judged queries that search the whole corpus, and held-out pairs that search each other.

MOST_QUERIES = 2_000
CHANCE_DRAWS = 5
MOST_TRIAL_ROWS = 100_000


def judged_trial(
    spaces: Sequence[LatentSpace], judgements: Sequence[JudgedQuery], random_state: int = 0
) -> tuple[RetrievalTask, tuple[str, ...], list[str]]:
    """Make a retrieval task from judged queries. Returns the task, on at most 100,000 rows of the old corpus;
    the ids of the queries; and warnings to show.

    Raises a SpaceError if there are no queries, and if no known row is relevant to a known query.
    """
    if len(spaces) != 4:
        raise SpaceError("judgements: expected also the queries, embedded by both models; add both")
    old, new, old_queries, new_queries = spaces
    paired = match(old_queries, new_queries)
    relevance, unknown = relevance_of(judgements, paired.ids, old.ids)
    answered = sample_rows(paired.ids, np.flatnonzero(np.diff(relevance.indptr)), random_state, MOST_QUERIES)
    if len(answered) < 2:
        raise SpaceError("judgements: expected two queries or more with relevant rows, got one; judge more")
    place = new.index.get_indexer(old.index)
    trial = RetrievalTask(
        old_queries=unit_rows(paired.source.vectors[answered]),
        new_queries=unit_rows(paired.target.vectors[answered]),
        old_corpus=unit_rows(old.vectors),
        new_corpus=unit_rows(new.vectors[place]) if (place >= 0).all() else None,
        relevance=relevance[answered],
        own=None,
        rows=np.arange(len(old)),
    )
    cautions = [
        f"{unknown[name]:,} judgements name {what}, and are left out."
        for name, what in (("queries", "unknown queries"), ("rows", "rows that the old vectors lack"))
        if unknown[name]
    ]
    if trial.new_corpus is None:
        cautions.append(
            f"Re-embedding and the cascade are not measured: {np.count_nonzero(place >= 0):,} of"
            f" {len(old):,} rows have a new vector."
        )
    return trial.with_fewer_rows(MOST_TRIAL_ROWS, random_state), tuple(paired.ids[answered]), cautions


def held_out_trial(
    paired: Match, parts: PairSplit, relevance: str, k: int, random_state: int = 0
) -> RetrievalTask:
    """Make a retrieval task from held-out pairs: at most 2,000 of them are the queries, which search all
    held-out rows.

    If `relevance` is "labels", all rows with the label of the query are relevant. If it is "neighbours", or
    fewer than 25 queries or 2 labels remain, the k nearest rows by the new model are relevant. Raises a
    SpaceError for too few held-out rows.
    """
    if len(parts.held_out) < FEWEST:
        got = f"{len(parts.held_out)} that repeat no fitted row; embed more rows"
        raise SpaceError(f"pairs: expected {FEWEST} or more held out, got {got}")
    held = np.sort(sample_rows(paired.ids, parts.held_out, random_state, MOST_TRIAL_ROWS))
    old = unit_rows(paired.source.vectors[held])
    new = unit_rows(paired.target.vectors[held])
    queries = np.sort(sample_rows(paired.ids[held], np.arange(len(held)), random_state, MOST_QUERIES))
    if paired.source.labels is not None:
        labels = paired.source.labels
    else:
        labels = paired.target.labels
    if relevance == "labels" and labels is not None:
        relevant = same_label(labels[held], queries)
        kept = np.flatnonzero(np.diff(relevant.indptr))
        if len(kept) >= FEWEST and len(set(labels[held][queries[kept]])) > 1:
            queries = queries[kept]
            return RetrievalTask(old[queries], new[queries], old, new, relevant[kept], queries, held)
    relevant = neighbours_as_truth(search(new[queries], new, min(k, len(held) - 1), queries), len(held))
    return RetrievalTask(old[queries], new[queries], old, new, relevant, queries, held, is_judged=False)


def sample_rows(ids: np.ndarray, rows: np.ndarray, random_state: int, most: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.argsort(row_keys(ids[rows], "queries", random_state))[:most])]


class Pairs(NamedTuple):
    """Paired unit rows `new` (m, d_new) and `old` (m, d_old), which an adapter can be fitted on, and their
    ids (m,)."""

    new: np.ndarray
    old: np.ndarray
    ids: np.ndarray

    def take(self, rows: np.ndarray) -> Pairs:
        return Pairs(*(part[rows] for part in self))

    def fit(self, adapter: str) -> Adapter:
        return ADAPTERS[adapter].load()().fit(self.new, self.old)


# Adapter and weight are chosen by cross-validation: for each query, by the scores of other queries.

FOLDS = 5
MOST_CHOICE_ROWS = 10_000
USUAL = "inverse"  # mostly the best adapter of those that leave the corpus unchanged
WEIGHTS = (1.0, 0.5, 2.0, 0.25, 4.0, 0.125, 0.0625)  # of equally good weights, the first one is chosen

# Standard errors that are subtracted from a mean gain, so that a gain by chance does not count. The smaller
# number is for an adapter's gain over the usual one. The larger one is for a weight's gain over keeping the
# old model, for adapters that rewrite the corpus, and for all adapters without judgements.
_BY_CHANCE = 0.5
_CAUTIOUS = 2.0


@dataclass(frozen=True)
class Candidate:
    """A candidate among the adapters: its name, the mean score of the option "bridge" with it, the 95 %
    interval over queries, and whether the old vectors must be rewritten for it."""

    adapter: str
    score: float
    low: float
    high: float
    rewrites_corpus: bool = False


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """The result of `cross_fitted`: the adapter and the weight with the best scores on all queries, the
    candidate adapters (best first), and the rows that each option finds.

    `weight` is the weight of the bridged search; the old search has weight 1. `found` has the rows (q, k) of
    each option. `moved` has, for "bridge" and "twice", the deviations of the mean score with the choices of
    the five folds, as in `QueryScores`.
    """

    adapter: str
    weight: float
    candidates: tuple[Candidate, ...]
    found: Mapping[str, np.ndarray]
    moved: Mapping[str, np.ndarray]


def cross_fitted(
    trial: RetrievalTask, fits: Mapping[str, Adapter], k: int = K, random_state: int = 0
) -> CrossFitted:
    """Choose the best of the fitted adapters for a bridge, and the best weight to query both models with it,
    by cross-validation over queries.

    The best adapter has the largest mean gain over the usual adapter, after a multiple of its standard error
    is subtracted; the best weight has the largest gain over the option "keep". An adapter that rewrites the
    corpus must be better by two standard errors than the best one that does not. The queries are divided into
    five folds. Each is searched with the adapter and weight that are best for the other four folds, so that
    its score is not optimistic. Without judgements, the weight is 1. Choices are made on at most 10,000 rows.
    """
    small = trial.with_fewer_rows(MOST_CHOICE_ROWS, random_state)
    q = len(trial.old_queries)
    folds = np.random.default_rng(random_state).permutation(q) % FOLDS
    names = list(fits)
    weights = np.array(WEIGHTS if trial.is_judged else WEIGHTS[:1])

    def scored(name: str, option: str, weight: float = 1.0) -> np.ndarray:
        return small.score(small.search(fits[name], weight, k, (option,))[option], k)

    bridges = np.stack([scored(name, "bridge") for name in names])
    keep = scored(names[0], "keep")
    rewritten = np.array([fits[name].rewrites_corpus for name in names])
    margin = _CAUTIOUS
    if trial.is_judged:
        margin = _BY_CHANCE

    def adapter(queries: np.ndarray) -> int:
        some = bridges[:, queries]
        alone = np.flatnonzero(~rewritten)
        if not len(alone):
            return _best(some - some[0], margin)
        if USUAL in names:
            usual = names.index(USUAL)
        else:
            usual = alone[0]
        first = alone[_best(some[alone] - some[usual], margin)]
        others = np.r_[first, np.flatnonzero(rewritten)]
        return int(others[_best(some[others] - some[first], _CAUTIOUS)])

    best, best_of = _cross_validated_choice(adapter, folds)
    found = trial.search(fits[names[best]], 1.0, k)
    weight_by = {}
    fold_means = {"bridge": np.empty(FOLDS), "twice": np.empty(FOLDS)}
    for number in {best, *best_of}:
        name = names[number]
        queries = np.flatnonzero(best_of == number)
        both = np.stack([scored(name, "twice", one) for one in weights])
        weight_by[number], weight_of = _cross_validated_choice(
            lambda some, gains=both - keep: _best(gains[:, some], _CAUTIOUS), folds
        )
        for fold in np.unique(folds[queries]):
            chosen = weight_of[folds == fold][0]
            fold_means["bridge"][fold] = bridges[number].mean()
            fold_means["twice"][fold] = both[chosen].mean()
        if len(queries):
            part = trial.take(queries).search(fits[name], weights[weight_of[queries]], k, ADAPTED)
            for option, rows in part.items():
                found[option][queries] = rows
    bootstrap = Bootstrap(q)
    means = [bootstrap.mean(QueryScores(scores)) for scores in bridges]
    order = np.argsort([-mean.value for mean in means], kind="stable")
    candidates = [
        Candidate(names[one], means[one].value, means[one].low, means[one].high, bool(rewritten[one]))
        for one in order
    ]
    # A jackknife over folds: other queries would have led to other choices.
    moved = {option: (means - means.mean()) * np.sqrt(FOLDS - 1) for option, means in fold_means.items()}
    return CrossFitted(names[best], float(weights[weight_by[best]]), tuple(candidates), found, moved)


def _best(gains: np.ndarray, margin: float) -> int:
    """The index of the candidate whose `gains` (c, q) over q queries have the largest mean, after `margin`
    standard errors are subtracted.
    """
    return int(np.argmax(gains.mean(axis=1) - margin * gains.std(axis=1) / np.sqrt(gains.shape[1])))


def _cross_validated_choice(choice: Callable[[np.ndarray], int], folds: np.ndarray) -> tuple[int, np.ndarray]:
    """Apply `choice` to all queries, and for each fold to the queries outside it. Returns the first choice,
    and an array (q,) with the choice that was made without the fold of each query."""
    return choice(folds >= 0), np.array([choice(folds != fold) for fold in range(FOLDS)])[folds]


# A jackknife measures how a score varies with the drawn pairs. Fits on halves would vary too little where
# half of the pairs is too few for the adapter to learn anything.

PARTS = 10
_MOST_MOVED = 500


def jackknife_deviations(
    trial: RetrievalTask,
    pairs: Pairs,
    adapter: str,
    weight: float,
    k: int = K,
    random_state: int = 0,
) -> dict[str, np.ndarray]:
    """Measure how much the mean score of each option depends on the pairs that the adapter is fitted on: ten
    deviations (10,), each without a tenth of the pairs.

    They are scaled so that their mean square estimates the variance of the difference between two draws of
    the pairs. So an interval with this variance covers the score that another draw of the pairs would give.
    """
    small = trial.with_fewer_rows(MOST_CHOICE_ROWS, random_state).with_fewer_queries(_MOST_MOVED)
    parts = np.empty(len(pairs.ids), dtype=np.int64)
    parts[np.argsort(row_keys(pairs.ids, "parts", random_state))] = np.arange(len(parts)) % PARTS
    means: dict[str, list[float]] = {}
    for part in range(PARTS):
        lists = small.search(pairs.take(parts != part).fit(adapter), weight, k, ADAPTED)
        for option, rows in lists.items():
            means.setdefault(option, []).append(float(small.score(rows, k).mean()))
    return {
        option: (np.array(one) - np.mean(one)) * np.sqrt(2 * (PARTS - 1)) for option, one in means.items()
    }


# Learning curves: scores by number of pairs. With these sizes and a dozen draws, all fits take at most as
# long as one fit on 53,000 pairs.
SIZES = (25, 50, 100, 250, 500, 1000, 2500)
MOST_CURVE_ROWS = 20_000


@dataclass(frozen=True)
class CurvePoint:
    """A point of a learning curve: the mean score of an option with adapters that are fitted on `draws`
    samples of `n_pairs` pairs. The 95 % interval is for a single sample.
    """

    n_pairs: int
    adapter: str
    option: str
    value: float
    low: float
    high: float
    draws: int


def curve_of(
    trial: RetrievalTask,
    pairs: Pairs,
    adapters: Sequence[str],
    weight: float,
    *,
    sizes: Sequence[int] = SIZES,
    draws: int = 3,
    k: int = K,
    random_state: int = 0,
    report: Progress = silent,
) -> tuple[CurvePoint, ...]:
    """Compute learning curves: the score of each adapter for each number of pairs in `sizes`, and for all
    pairs. The first adapter gets no point for all pairs, because the result of the migration already has this
    score.

    At most 20,000 rows are searched. In a draw, the pairs of a smaller size are part of those of a larger
    size. Each adapter is used as a bridge; the first one is also used for the options "twice", with this
    `weight`, and "cascade". If `sizes` is empty, there are no points.
    """
    if not sizes:
        return ()
    trial = trial.with_fewer_rows(MOST_CURVE_ROWS, random_state)
    m = len(pairs.ids)
    sizes = [size for size in sizes if size < m] + [m]
    orders = [np.argsort(row_keys(pairs.ids, f"draw {draw}", random_state)) for draw in range(draws)]
    points = []
    for number, size in enumerate(sizes):
        report(number, len(sizes), f"curve: {size:,} pairs")
        drawn = [pairs.take(np.sort(order[:size])) for order in (orders[:1] if size == m else orders)]
        spread = np.sqrt(len(drawn) / max(len(drawn) - 1, 1))
        bootstrap = Bootstrap(len(trial.old_queries), len(drawn))
        for adapter in list(dict.fromkeys(adapters))[size == m :]:
            if adapter == adapters[0]:
                options = ADAPTED
            else:
                options = ("bridge",)
            found = [trial.search(known.fit(adapter), weight, k, options) for known in drawn]
            for option in found[0]:
                values = np.stack([trial.score(lists[option], k) for lists in found])
                moved = (values.mean(axis=1) - values.mean()) * spread
                mean = bootstrap.mean(QueryScores(values.mean(axis=0), moved))
                points.append(CurvePoint(size, adapter, option, mean.value, mean.low, mean.high, len(drawn)))
    return tuple(points)
