"""A trial: queries, rows and relevance, on which the options of a migration are scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from relcore.base.errors import SpaceError
from relcore.base.rows import row_blocks, unit_rows
from relcore.engine.engine import Engine
from relcore.migrate.adapters import Adapter
from relcore.migrate.apply import standardised
from relcore.migrate.pairing import FEWEST_PAIRS, PairSplit
from relcore.scores.relevance import (
    JudgedQuery,
    K,
    ndcg,
    neighbours_as_truth,
    precision,
    relevance_of,
    same_label,
    search,
)
from relcore.spaces.matching import Match, match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import derangement, row_keys, smallest_keys

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
        if self.lists == "old":
            return interleave([old], self.n)
        if self.lists == "bridged":
            return interleave([bridged], self.n)
        return interleave([old, bridged], self.n)


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
        if self.is_judged:
            return ndcg(lists, self.relevance, k)
        return precision(lists, self.relevance, k)

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

        `find` replaces the function `relcore.scores.relevance.search`. Its arguments are the name of the
        side ("old", "bridged", "new" or "twice"), the queries, the corpus, and the number of rows to find.
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
        needed = self.relevance.indices
        if self.own is not None:
            needed = np.concatenate([needed, self.own])
        needed = np.unique(needed).astype(np.int64)
        others = smallest_keys(len(self.rows), most - len(needed), "corpus", random_state, needed)
        kept = np.sort(np.concatenate([needed, others]))
        fewer = replace(
            self,
            old_corpus=self.old_corpus[kept],
            relevance=self.relevance[:, kept],
            rows=self.rows[kept],
        )
        if self.new_corpus is not None:
            fewer = replace(fewer, new_corpus=self.new_corpus[kept])
        if self.own is not None:
            fewer = replace(fewer, own=np.searchsorted(kept, self.own))
        return fewer

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
    new_corpus = None
    if (place >= 0).all():
        new_corpus = unit_rows(new.vectors[place])
    trial = RetrievalTask(
        old_queries=unit_rows(paired.source.vectors[answered]),
        new_queries=unit_rows(paired.target.vectors[answered]),
        old_corpus=unit_rows(old.vectors),
        new_corpus=new_corpus,
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
    if len(parts.held_out) < FEWEST_PAIRS:
        got = f"{len(parts.held_out)} that repeat no fitted row; embed more rows"
        raise SpaceError(f"pairs: expected {FEWEST_PAIRS} or more held out, got {got}")
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
        if len(kept) >= FEWEST_PAIRS and len(set(labels[held][queries[kept]])) > 1:
            queries = queries[kept]
            return RetrievalTask(old[queries], new[queries], old, new, relevant[kept], queries, held)
    relevant = neighbours_as_truth(search(new[queries], new, min(k, len(held) - 1), queries), len(held))
    return RetrievalTask(old[queries], new[queries], old, new, relevant, queries, held, is_judged=False)


def sample_rows(ids: np.ndarray, rows: np.ndarray, random_state: int, most: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.argsort(row_keys(ids[rows], "queries", random_state))[:most])]
