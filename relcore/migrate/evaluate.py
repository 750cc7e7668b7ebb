"""The four options measured on the same queries: each finds rows of the same corpus, and is scored per
query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.migrate.adapters import Adapter
from relcore.migrate.pairs import FEWEST, PairSplit
from relcore.migrate.retrieval import (
    JudgedQuery,
    K,
    Relevance,
    ndcg,
    neighbours_as_truth,
    relevance_of,
    same_label,
    search,
)
from relcore.represent.similarity import row_blocks, unit_rows
from relcore.runs.progress import Report, silent
from relcore.spaces.space import LatentSpace, Match, match
from relcore.spaces.split import drawn_rows, row_keys, smallest_keys

# Query both models: the scores of an old query and of a bridged new one, added; or their ranks.
#
# Scores of two models have different means and spreads, so they are standardised for each query, over the
# whole corpus: a z-score over the first results only would depend on how many there are, and would have none
# for a row that one of the searches lacks.
#
# That costs nothing. The scores of a query q have the mean q·c̄ and the variance qᵀ Σ q, with c̄ and Σ the
# mean and the covariance of the corpus. So the sum of the two z-scores is, up to a number of the query's own,
# the product of one longer query with one longer corpus row; and where bridged queries search the old vectors
# as they are, of one query with the old vectors themselves.

FUSIONS = {"z": "z-scores, added", "reciprocal": "reciprocal ranks, added"}
DEPTH = 1000  # of the lists whose ranks are added
_RANK_OFFSET = 60  # Cormack, Clarke and Büttcher 2009


def covariance(corpus: np.ndarray) -> np.ndarray:
    """Of the rows (n, d), (d, d) float64, block by block."""
    total, products = np.zeros(corpus.shape[1]), np.zeros((corpus.shape[1],) * 2)
    for block in row_blocks(len(corpus)):
        rows = corpus[block].astype(np.float64)
        total += rows.sum(axis=0)
        products += rows.T @ rows
    mean = total / len(corpus)
    return products / len(corpus) - np.outer(mean, mean)


def standardised(queries: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Queries (m, d) whose scores over the corpus have variance 1; a query whose scores are all equal
    becomes zero.
    """
    wide = queries.astype(np.float64)
    spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", wide, covariance, wide, optimize=True), 0))
    factors = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    return (wide * factors[:, None]).astype(np.float32)


def added_scores(
    old: np.ndarray, new: np.ndarray, corpora: tuple[np.ndarray, np.ndarray], weight: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Queries and corpus whose products order rows by z_old + weight · z_new.

    Parameters
    ----------
    old, new : arrays (m, d_old), (m, d)
        The old queries, and the bridged ones.
    corpora : arrays (n, d_old), (n, d)
        What each of them searches; the same object where both search the old vectors.
    weight : float
        0 is the old model alone.
    """
    shared = corpora[0] is corpora[1]
    spread = covariance(corpora[0])
    old = standardised(old, spread)
    new = np.float32(weight) * standardised(new, spread if shared else covariance(corpora[1]))
    return (old + new, corpora[0]) if shared else (np.column_stack([old, new]), np.column_stack(corpora))


def reciprocal_ranks(
    lists: tuple[np.ndarray, np.ndarray], k: int, weight: float = 1.0, offset: int = _RANK_OFFSET
) -> np.ndarray:
    """The k rows with the largest Σ w / (60 + rank) over two lists of rows (m, depth), (m, k); −1 where both
    lists end.

    The second list counts `weight` times as much; equal sums in the order of the first list, then of the
    second.
    """
    m, depth = lists[0].shape
    rows = np.concatenate(lists, axis=1)
    scores = np.concatenate([np.ones(depth), np.full(lists[1].shape[1], weight)]) / np.concatenate(
        [offset + 1 + np.arange(ranked.shape[1]) for ranked in lists]
    )
    fused = np.full((m, k), -1, dtype=np.int64)
    for number in range(m):
        kept = rows[number] >= 0
        distinct, first, place = np.unique(rows[number][kept], return_index=True, return_inverse=True)
        sums = np.bincount(place, weights=scores[kept])
        order = np.lexsort((first, -sums))[:k]
        fused[number, : len(order)] = distinct[order]
    return fused


def search_by_both(
    old: np.ndarray,
    new: np.ndarray,
    corpora: tuple[np.ndarray, np.ndarray],
    k: int,
    *,
    fusion: str = "z",
    weight: float = 1.0,
    own: np.ndarray | None = None,
) -> np.ndarray:
    """Rows (m, k) that old and bridged queries find together; arguments as in `added_scores`, and `own` as
    in `search`.
    """
    if fusion == "z":
        return search(*added_scores(old, new, corpora, weight), k, own)
    depth = min(DEPTH, len(corpora[0]) - (own is not None))
    lists = tuple(search(*side, depth, own) for side in zip((old, new), corpora, strict=True))
    return reciprocal_ranks(lists, k, weight)


OPTIONS = (
    "keep",
    "bridge",
    "twice",
    "re-embed",
)  # from the cheapest to the dearest; "twice": query both models


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
        self,
        adapter: Adapter,
        weight: float = 1.0,
        fusion: str = "z",
        k: int = K,
        options: tuple[str, ...] = OPTIONS,
    ) -> dict[str, np.ndarray]:
        """What each option finds: corpus rows (q, k), the best first, −1 for none."""
        lists = {}
        if "keep" in options:
            lists["keep"] = search(self.old_queries, self.old_corpus, k, self.own)
        queries = adapter.transform(self.new_queries)
        corpus = self.old_corpus if len(adapter.corpus_steps_) == 1 else adapter.corpus(self.old_corpus)
        if "bridge" in options:
            lists["bridge"] = search(queries, corpus, k, self.own)
        if "twice" in options:
            corpora = self.old_corpus, corpus
            settings = {"fusion": fusion, "weight": weight, "own": self.own}
            lists["twice"] = search_by_both(self.old_queries, queries, corpora, k, **settings)
        if self.new_corpus is not None and "re-embed" in options:
            lists["re-embed"] = search(self.new_queries, self.new_corpus, k, self.own)
        return lists

    def with_fewer_rows(self, most: int, random_state: int = 0) -> Trial:
        """The relevant rows, the queries' own ones, and others drawn at random, `most` together or a
        little more.
        """
        n, own, relevance = len(self.rows), self.own, self.relevance
        if n <= most:
            return self
        needed = np.unique(np.concatenate([relevance.row, own if own is not None else []])).astype(np.int64)
        others = smallest_keys(n, most - len(needed), "corpus", random_state, needed)
        kept = np.sort(np.concatenate([needed, others]))
        return replace(
            self,
            old_corpus=self.old_corpus[kept],
            new_corpus=None if self.new_corpus is None else self.new_corpus[kept],
            relevance=replace(relevance, row=np.searchsorted(kept, relevance.row), n_rows=len(kept)),
            own=None if own is None else np.searchsorted(kept, own),
            rows=self.rows[kept],
        )

    def with_fewer_queries(self, most: int) -> Trial:
        """At most this number of queries, evenly spaced."""
        if len(self.old_queries) <= most:
            return self
        kept = np.linspace(0, len(self.old_queries) - 1, most).round().astype(int)
        return replace(
            self,
            old_queries=self.old_queries[kept],
            new_queries=self.new_queries[kept],
            relevance=self.relevance.take(kept),
            own=None if self.own is None else self.own[kept],
        )


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
        self._weights = rng.multinomial(n_queries, shares, size=draws).astype(np.float32) / np.float32(
            n_queries
        )

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
            value = float(now.mean() / before.mean()) if before.any() else np.inf
        return Interval(value, float(low), float(high))


# What a search should find where nobody has judged it: neighbours in the new model, in the old one, or in
# both together.
#
# Whose neighbours are the truth decides the verdict, and no measurement on vectors alone can say which model
# serves users better. What can be measured is which of the two contains the other's information. The
# information imbalance (Glielmo, Zeni, Cheng, Csányi and Laio 2022) is the mean rank, in one space, of a
# row's nearest neighbours in the other: near 0 where they are nearest there, too, 1 where they are any rows.
# Where it is clearly smaller from the new model to the old one, the new one contains what the old one knows,
# and more, so its neighbours are the truth; and the reverse. Else both count alike. Noise that a model adds
# looks like knowledge that the other one lacks: no vectors can tell the two apart, and judged queries are
# worth more.

MOST_ROWS = 2_000
# Imbalances whose ratio may be nearer to 1 are alike. Chosen on nine pairs of models on Cranfield and
# Wikipedia sentences: it sorts eight of these as judgements or labels do, and leaves one undecided. They are
# few, and it was tried on no others.
CLEAR = 1.02
_NEAR = 0.03  # share of the rows whose ranks are looked at; few of them are noisy, many are mostly alike


def imbalance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Mean rank in `second` of the 3 % of the rows nearest to each row in `first`, (n,), over half of n; 1 by
    chance.

    Parameters
    ----------
    first, second : arrays (n, d1), (n, d2)
        The same rows, of length 1.
    """
    n = len(first)
    k = min(max(5, round(_NEAR * n)), n - 1)
    mean_ranks = np.empty(n)
    for block in row_blocks(n, 256):
        rows = np.arange(block.start, block.stop)
        own = rows - block.start, rows
        near, far = (side[block] @ side.T for side in (first, second))
        near[own], far[own] = -np.inf, -np.inf
        nearest = np.argpartition(-near, k - 1, axis=1)[:, :k]
        ranks = np.empty_like(far)
        np.put_along_axis(ranks, np.argsort(-far, axis=1), np.arange(n, dtype=far.dtype)[None], axis=1)
        mean_ranks[block] = np.take_along_axis(ranks, nearest, axis=1).mean(axis=1)
    return mean_ranks * 2 / n


def richer(old: np.ndarray, new: np.ndarray, random_state: int = 0) -> tuple[str, Interval]:
    """ "new", "old" or "both": which of the models contains what the other one knows; and the ratio of the
    imbalances.

    Parameters
    ----------
    old, new : arrays (n, d_old), (n, d_new)
        Paired rows of length 1; at most 2,000 of them are looked at.
    """
    kept = drawn_rows(len(old), MOST_ROWS, random_state)
    from_old, from_new = imbalance(old[kept], new[kept]), imbalance(new[kept], old[kept])
    ratio = Bootstrap(len(kept), random_state=random_state).ratio(from_old, from_new)
    if ratio.low > CLEAR:
        return "new", ratio
    return ("old" if ratio.high < 1 / CLEAR else "both"), ratio


def neighbours_of(truth: str, old: np.ndarray, new: np.ndarray, queries: np.ndarray, k: int) -> Relevance:
    """The k nearest rows of each query, a row of the corpus itself, by the new model, the old one, or both.

    Ranks of both are added, not z-scores: a model whose best scores stand out more would count for more than
    the other.

    Parameters
    ----------
    old, new : arrays (n, d_old), (n, d_new)
        The corpus by both models, of length 1.
    queries : array (q,)
        Rows of it.
    """
    if truth == "both":
        lists = search_by_both(old[queries], new[queries], (old, new), k, fusion="reciprocal", own=queries)
    else:
        side = new if truth == "new" else old
        lists = search(side[queries], side, k, queries)
    return neighbours_as_truth(lists, len(old))


# Trials: judged queries on the whole corpus, or held-out pairs as queries on each other.

MOST_QUERIES = 2_000
MOST_TRIAL_ROWS = 100_000


def judged_trial(
    spaces: Sequence[LatentSpace], judgements: Sequence[JudgedQuery], random_state: int = 0
) -> tuple[Trial, tuple[str, ...], list[str]]:
    """Queries with a relevant row, on the old corpus, of which at most 100,000 rows; their ids, and cautions.

    The pairs stay in the corpus, as they will in use. Re-embedding is measured where every row has a new
    vector.

    Raises
    ------
    SpaceError
        No queries, no relevant row among known ids.
    """
    if len(spaces) != 4:
        raise SpaceError("judgements: expected the queries by the old and by the new model, too; add both")
    old, new, old_queries, new_queries = spaces
    paired = match(old_queries, new_queries)
    relevance, unknown = relevance_of(judgements, paired.ids, old.ids)
    answered = _sampled(paired.ids, np.flatnonzero(relevance.counts), random_state, MOST_QUERIES)
    place = new.index.get_indexer(old.index)
    trial = Trial(
        old_queries=unit_rows(paired.source.vectors[answered]),
        new_queries=unit_rows(paired.target.vectors[answered]),
        old_corpus=unit_rows(old.vectors),
        new_corpus=unit_rows(new.vectors[place]) if (place >= 0).all() else None,
        relevance=relevance.take(answered),
        own=None,
        rows=np.arange(len(old)),
    )
    cautions = [
        f"{unknown[name]:,} judgements name {what}, and are left out."
        for name, what in (("queries", "unknown queries"), ("rows", "rows that the old vectors lack"))
        if unknown[name]
    ]
    if trial.new_corpus is None:
        n = int((place >= 0).sum())
        cautions.append(f"Re-embedding is not measured: {n:,} of {len(old):,} rows have a new vector.")
    return trial.with_fewer_rows(MOST_TRIAL_ROWS, random_state), tuple(paired.ids[answered]), cautions


def held_out_trial(
    paired: Match, parts: PairSplit, relevance: str, truth: str, k: int, random_state: int = 0
) -> Trial:
    """Held-out pairs as queries, at most 2,000, that search the held-out rows: the fitted ones are not
    searched.

    Parameters
    ----------
    relevance : "neighbours" or "labels"
        What is relevant: the k rows that `neighbours_of` finds, or all rows of the query's label.

    Raises
    ------
    SpaceError
        No labels, or labels that no two held-out rows share; too few held-out rows.
    """
    if len(parts.held_out) < FEWEST:
        got = f"{len(parts.held_out)} that repeat no fitted row; embed more rows"
        raise SpaceError(f"pairs: expected {FEWEST} or more held out, got {got}")
    held = np.sort(_sampled(paired.ids, parts.held_out, random_state, MOST_TRIAL_ROWS))
    old, new = unit_rows(paired.source.vectors[held]), unit_rows(paired.target.vectors[held])
    queries = np.sort(_sampled(paired.ids[held], np.arange(len(held)), random_state, MOST_QUERIES))
    if relevance == "labels":
        labels = paired.source.labels if paired.source.labels is not None else paired.target.labels
        if labels is None:
            raise SpaceError(
                "labels: expected a label per row of the old or of the new vectors, got none; leave this out"
            )
        relevant = same_label(labels[held], queries)
        kept = np.flatnonzero(relevant.counts)
        if len(kept) < FEWEST:
            raise SpaceError(
                f"labels: expected {FEWEST} held-out rows or more that share a label, got {len(kept)}"
            )
        queries, relevant = queries[kept], relevant.take(kept)
    else:
        relevant = neighbours_of(truth, old, new, queries, min(k, len(held) - 1))
    return Trial(old[queries], new[queries], old, new, relevant, queries, held)


def _sampled(ids: np.ndarray, rows: np.ndarray, random_state: int, most: int) -> np.ndarray:
    """At most this number of the rows, by their ids' keys, in the order of the rows."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.argsort(row_keys(ids[rows], "queries", random_state))[:most])]


# Choosing an adapter by cross-validation on the pairs alone, never by the judged queries.

FOLDS = 5
MOST_PAIRS = 2_000  # more tell adapters apart no better
MOST_CHOICE_ROWS = 10_000
# Left out of the automatic choice: the network, which takes minutes; least squares without a penalty, which
# finds partners well and little else; and the baseline as published.
AUTOMATIC = tuple(name for name in ADAPTERS if name not in ("residual", "affine", "relative"))


@dataclass(frozen=True)
class Candidate:
    """An adapter in cross-validation.

    Attributes
    ----------
    adapter : a name of `names.ADAPTERS`
    score : float
        The geometric mean of the other two; the best adapter has the largest one.
    partner : float
        Mean reciprocal rank, 0 … 1, of held-out new rows' partners among old rows of the whole corpus.
    neighbours : float
        nDCG@10, 0 … 1, of held-out new rows that search the old rows of the pairs, their neighbours in the
        new model as truth.
    """

    adapter: str
    score: float
    partner: float
    neighbours: float


class Pairs(NamedTuple):
    """Unit rows new (m, d_new) and old (m, d_old) that an adapter may be fitted on, and their ids (m,)."""

    new: np.ndarray
    old: np.ndarray
    ids: np.ndarray

    def take(self, rows: np.ndarray) -> Pairs:
        """Those of some rows."""
        return Pairs(*(part[rows] for part in self))

    def sample(self, random_state: int) -> Pairs:
        """At most 2,000, by their ids' keys."""
        kept = np.sort(np.argsort(row_keys(self.ids, "chosen on", random_state))[:MOST_PAIRS])
        # Lengths of 1 to the last bit: where a model has silent directions, Procrustes turns on it.
        return Pairs(unit_rows(self.new[kept]), unit_rows(self.old[kept]), self.ids[kept])

    def fit(self, adapter: str) -> Adapter:
        """The adapter of this name."""
        return ADAPTERS[adapter].load()().fit(self.new, self.old)

    def folds(self, random_state: int) -> Iterator[tuple[np.ndarray, Pairs]]:
        """Row numbers of each of five parts, equal numbers in the order of the ids' keys; and the others."""
        folds = np.empty(len(self.ids), dtype=np.int64)
        order = np.argsort(row_keys(self.ids, "folds", random_state), kind="stable")
        folds[order] = np.arange(len(self.ids)) % FOLDS
        for fold in np.unique(folds):
            yield np.flatnonzero(folds == fold), self.take(folds != fold)


def choose(
    pairs: Pairs,
    corpus: np.ndarray,
    *,
    adapters: Sequence[str] = AUTOMATIC,
    random_state: int = 0,
) -> tuple[Candidate, ...]:
    """Adapters, the best first, by five folds of the pairs; folds go by ids.

    Either score alone goes wrong. Measured on Cranfield, in 54 cases (six ordered pairs of models, 100, 300
    and 1,000 pairs, three draws) the adapter chosen is within .01 nDCG@10 of the best one on judged queries
    in 51 by the partners, which favour ridge where the old model is poor, in 43 by the neighbours, and in 54
    by both.

    Parameters
    ----------
    corpus : array (n, d_old)
        Old rows among which partners are searched; the pairs' own ones need not be there.
    """
    pairs = pairs.sample(random_state)
    others = corpus[drawn_rows(len(corpus), MOST_CHOICE_ROWS, random_state)]
    m = len(pairs.ids)
    truth = neighbours_as_truth(search(pairs.new, pairs.new, min(K, m - 1), np.arange(m)), m)
    candidates = []
    for name in adapters:
        partners, neighbours = np.zeros(m), np.zeros(m)
        for held, known in pairs.folds(random_state):
            adapter = known.fit(name)
            queries, old = adapter.transform(pairs.new[held]), adapter.corpus(pairs.old)
            partners[held] = 1 / (1 + _ranks(queries, old[held], adapter.corpus(others)))
            neighbours[held] = ndcg(search(queries, old, K, held), truth.take(held))
        partner, neighbour = float(partners.mean()), float(neighbours.mean())
        candidates.append(Candidate(name, float(np.sqrt(partner * neighbour)), partner, neighbour))
    return tuple(sorted(candidates, key=lambda one: -one.score))


def _ranks(
    queries: np.ndarray, partners: np.ndarray, corpus: np.ndarray, tolerance: float = 1e-5
) -> np.ndarray:
    """Number of corpus rows before each query's partner, (m,).

    Rows as similar as the partner count by half, so that a corpus of equal rows does not look well searched;
    the partner itself does not count.
    """
    own = np.vecdot(queries, partners)
    scores = queries @ corpus.T
    before = (scores > own[:, None] + tolerance).sum(axis=1).astype(float)
    level = np.abs(scores - own[:, None]) <= tolerance
    same = partners @ corpus.T > 1 - tolerance
    return before + (level & ~same).sum(axis=1) / 2


# How much a bridged search counts beside the old model's, from pairs alone.

# Of the new model, where the old one counts 1. Regression shrinks b where pairs are few, so 1 would be too
# little for "both". Chosen on Cranfield, where larger counts lose at 100 pairs and smaller ones at 1,000.
COUNTS = {"old": 0.0, "both": 1.5, "new": 3.0}


def fused_weight(adapter: str, pairs: Pairs, truth: str, random_state: int = 0) -> float:
    """The weight w of z_old + w · z_bridged that comes nearest to the search that the truth describes, 0 … 3.

    A bridged score is a noisy copy of the true new score. Over held-out rows (a query and a document of the
    same fold, by an adapter of the other folds) the true one is regressed on both scores that a search has:
    z_new ≈ a·z_old + b·z_bridged. The search wanted, z_old + c·z_new, is then best replaced by (1 +
    c·a)·z_old + c·b·z_bridged, so w = c·b / (1 + c·a). The new model alone (w = b / a) would leave out an old
    search that still helps where pairs are few, so c is at most 3; where the old one is the truth, it is 0.
    """
    count = COUNTS[truth]
    if not count:
        return 0.0
    pairs = pairs.sample(random_state)
    products, targets = np.zeros((2, 2)), np.zeros(2)
    for held, known in pairs.folds(random_state):
        fitted, (new, old, _) = known.fit(adapter), pairs.take(held)
        bridged = fitted.transform(new), fitted.corpus(old)
        z_old, z_bridged, z_new = (_z_scores(*side) for side in ((old, old), bridged, (new, new)))
        seen = np.stack([z_old, z_bridged])
        products += seen @ seen.T
        targets += seen @ z_new
    a, b = np.linalg.lstsq(products, targets, rcond=None)[0]
    return float(np.clip(count * b / (1 + count * max(a, 0)), 0, count))


def _z_scores(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    """Scores of each query over all rows but its own one, standardised, in one array."""
    scores = queries @ corpus.T
    others = scores[~np.eye(len(scores), dtype=bool)].reshape(len(scores), -1).astype(np.float64)
    others -= others.mean(axis=1, keepdims=True)
    spread = others.std(axis=1, keepdims=True)
    return np.divide(others, spread, out=np.zeros_like(others), where=spread > 1e-9).ravel()


# Quality over the number of pairs: each adapter fitted on 25 to 5,000 of them, several draws each.

SIZES = (25, 50, 100, 250, 500, 1000, 2500, 5000)
MOST_CURVE_ROWS = 20_000


@dataclass(frozen=True)
class CurvePoint:
    """An option with one adapter at one number of pairs: nDCG@k, the mean over draws, its 95 % interval
    over queries.
    """

    n_pairs: int
    adapter: str
    option: str
    value: float
    low: float
    high: float
    draws: int


def curve_of(
    trial: Trial,
    pairs: Pairs,
    truth: str,
    adapters: Sequence[str],
    *,
    sizes: Sequence[int] = SIZES,
    draws: int = 3,
    k: int = K,
    fusion: str = "z",
    random_state: int = 0,
    report: Report = silent,
) -> tuple[CurvePoint, ...]:
    """Points of each adapter and size, and of all pairs, on at most 20,000 rows of the trial's corpus; none
    without sizes. Smaller sizes of a draw are part of its larger ones.

    Parameters
    ----------
    truth : see `fused_weight`
    adapters : names
        Each as a bridge; the first one also for querying both models.
    """
    if not sizes:
        return ()
    trial, m = trial.with_fewer_rows(MOST_CURVE_ROWS, random_state), len(pairs.ids)
    bootstrap = Bootstrap(len(trial.old_queries))
    sizes = [size for size in sizes if size < m] + [m]
    orders = [np.argsort(row_keys(pairs.ids, f"draw {draw}", random_state)) for draw in range(draws)]
    points = []
    for number, size in enumerate(sizes):
        report(number, len(sizes), f"curve: {size:,} pairs")
        drawn = [pairs.take(np.sort(order[:size])) for order in (orders[:1] if size == m else orders)]
        for adapter in dict.fromkeys(adapters):
            options = ("bridge", "twice") if adapter == adapters[0] else ("bridge",)
            scores = {option: [] for option in options}
            for known in drawn:
                weight = fused_weight(adapter, known, truth, random_state) if "twice" in options else 1.0
                lists = trial.found(known.fit(adapter), weight, fusion, k, options)
                for option, rows in lists.items():
                    scores[option].append(ndcg(rows, trial.relevance, k))
            for option, values in scores.items():
                mean = bootstrap.mean(np.mean(values, axis=0))
                points.append(CurvePoint(size, adapter, option, mean.value, mean.low, mean.high, len(drawn)))
    return tuple(points)
