"""A similarity threshold after a change of model: the new cut-off that keeps the precision, the recall or the
number of hits of the old one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.kinds import takes_kinds
from relcore.base.names import ADAPTERS
from relcore.base.numbers import counted, percent
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.catalog.task import Task
from relcore.migrate.cut_offs import FEWEST_QUERIES, KindCutOffs, PassCounts, ratio_interval
from relcore.migrate.migration import Migration, MigrationData
from relcore.migrate.moved_threshold import MovedThreshold, NearPairs
from relcore.migrate.score_bins import ScoreBins
from relcore.migrate.similarities import SCORES, Similarities
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.score import Interval
from relcore.spaces.matching import as_pair, as_spaces
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import derangement

KEEP = {"hits": "Number of hits", "precision": "Precision", "recall": "Recall"}
MOST_JUDGED = 500  # number of queries; with 20,000 rows, a matrix of their scores takes 40 MB
SYSTEMS = {"bridge": "bridged queries", "re-embed": "the new model"}
SAME_ROWS = 0.9  # share of rows that make two sets of rows the same collection
_SAME = 0.999  # cosine of two vectors of the same row
_PERMUTATIONS = 100
_PER_QUERY = 10  # number of rows per query that reach the default threshold
_PLACES = 512
_KEPT_PLACES = 128  # number of cut-offs in a result
_KEPT_PAIRS = 10_000


def check_collection(found_on: LatentSpace, old: LatentSpace) -> None:
    """Raise a SpaceError unless a threshold that was chosen on the rows of `found_on` was chosen on these old
    rows: at least 90 % of them are in `found_on`, with the same id and the same vector.

    A threshold that is moved without judgements to another collection passes .5 to 2 times as many rows as
    wanted in only 27 % of 724 moves (our measurement), and nothing in the scores warns of the others.
    """
    share = 0.0
    if found_on.dimension == old.dimension:
        places = found_on.index.get_indexer(old.index)
        rows = np.flatnonzero(places >= 0)
        cosines = np.einsum(
            "nd,nd->n", unit_rows(old.vectors[rows]), unit_rows(found_on.vectors[places[rows]])
        )
        share = np.count_nonzero(cosines >= _SAME) / len(old)
    if share < SAME_ROWS:
        raise SpaceError(
            "threshold: expected one that was chosen on these rows, got one of another collection"
            f" ({found_on.name!r} has {percent(share)} of the rows of {old.name!r}); without judgements, no"
            " threshold can be moved to other rows: pass judgements of some queries"
        )


@dataclass(frozen=True)
class Wanted:
    """What a new cut-off must keep: see `move_threshold`. `weight` is the number of rows that each row
    which is not relevant stands for, if these are a sample."""

    threshold: float | None = None
    keep: str = "hits"
    new_threshold: float | None = None
    n_new: int = 0
    random_state: int = 0
    weight: float = 1.0


@takes_kinds
def move_threshold(
    old: tuple[MatrixLike, MatrixLike],
    new: tuple[MatrixLike, MatrixLike],
    threshold: float | None = None,
    *,
    relevant: np.ndarray | csr_array | None = None,
    keep: str = "hits",
    score: str = "cosine",
    kinds: Sequence[str] | None = None,
    found_on: MatrixLike | None = None,
    n_new: int = 0,
) -> MovedThreshold:
    """Find the cut-off of a new model that keeps what a threshold of the old model achieves.

    Parameters
    ----------
    old, new : pairs of (q, d) and (n, d)
        The vectors of the same queries and rows by each model.
    threshold : float, optional
        A cut-off of the old model's scores. By default, ten rows per query pass.
    relevant : (q, n) of bool or of grades, optional
        The relevant rows, whose grade is above 0. Rows that nobody judged count as not relevant.
    keep : "hits", "precision" or "recall"
        What the new cut-off keeps. Precision and recall need `relevant`.
    score : "cosine", "inner" or "l2"
        Rows pass with at least this cosine or inner product, or with at most this L2 distance.
    kinds : q texts, optional
        The kind of each query, "" for none: a cut-off for each kind is tried, too.
    found_on : (r, d_old), optional
        The old vectors of the rows on which the threshold was chosen, if these are other rows.
    n_new : int
        The number of new queries that intervals are for; 0 stands for as many as there are.

    Raises
    ------
    SpaceError
        Fewer than 20 queries; an impossible threshold; precision or recall without `relevant`; and, without
        `relevant`, a threshold of another collection (see `check_collection`), or one that fewer than 10
        queries pass.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import move_threshold
    >>> rng = np.random.default_rng(0)
    >>> rows, queries = rng.normal(size=(300, 8)), rng.normal(size=(40, 8))
    >>> turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    >>> moved = move_threshold((queries, rows), (queries @ turn, rows @ turn), 0.6)
    >>> round(moved.new_threshold, 2), moved.is_judged
    (0.6, False)
    """
    need_one_of("score", score, SCORES)
    old_queries, new_queries = _paired(old[0], new[0], "queries")
    old_rows, new_rows = _paired(old[1], new[1], "rows")
    by_old = _side(old_queries, old_rows, score)
    by_new = _side(new_queries, new_rows, score)
    if relevant is not None:
        relevant = _relevant_pairs(relevant, by_old.shape)
    elif found_on is not None:
        check_collection(*as_spaces((found_on, old[1]), ("found_on", "rows")))
    names = None
    if kinds is not None:
        names = np.array(kinds, dtype=object)
    return moved(by_old, by_new, relevant, Wanted(threshold, keep, n_new=n_new), names)


def _paired(old: MatrixLike, new: MatrixLike, what: str) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of the same items by both models, in the order of the old ones."""
    first, second = as_pair(old, new)
    if np.array_equal(first.ids, second.ids):
        return first.vectors, second.vectors
    places = second.index.get_indexer(first.index)
    if len(first) != len(second) or (places < 0).any():
        raise SpaceError(
            f"threshold: expected the same {what} by both models, got other ids; pair them with match()"
        )
    return first.vectors, second.vectors[places]


def _relevant_pairs(relevant: Any, shape: tuple[int, int]) -> csr_array:
    """Whether each row is relevant to each query, (q, n)."""
    try:
        pairs = csr_array(csr_array(relevant) > 0)
    except (TypeError, ValueError) as error:
        raise SpaceError(
            f"relevant: expected a matrix of grades with the shape {shape}, got {relevant!r:.40}"
        ) from error
    if pairs.shape != shape:
        raise SpaceError(f"relevant: expected a row for each query, got the shape {pairs.shape}")
    return pairs


def _side(queries: np.ndarray, rows: np.ndarray, score: str) -> Similarities:
    """The similarities of the queries and the rows of one model."""
    if score == "cosine":
        return Similarities(unit_rows(queries), unit_rows(rows))
    return Similarities(queries, rows, score)


def moved(
    old: Similarities,
    new: Similarities,
    relevant: csr_array | None,
    wanted: Wanted,
    kinds: np.ndarray | None = None,
) -> MovedThreshold:
    """The same as `move_threshold`, for similarities. `relevant` (q, n) has True for relevant rows."""
    _check(old, relevant, wanted)
    pairs = np.zeros((2, 0), np.int64)
    if relevant is not None:
        pairs = np.stack(relevant.nonzero()).astype(np.int64)
    old_bins = ScoreBins.of(old, pairs)
    new_bins = ScoreBins.of(new, pairs)
    cut = _old_cut(old, old_bins, wanted)
    at_old = old_bins.counts(old, pairs, np.array([cut]), wanted.weight)
    if relevant is None:
        _need_passing(at_old, old.sign * cut)
    # The exact cut-off is among those that are measured.
    exact = new_bins.cut_passed_by(round(float(at_old.passed.sum())))
    if wanted.new_threshold is not None:
        exact = new.sign * wanted.new_threshold
    cuts = np.union1d(new_bins.places(_PLACES), exact)
    counts = new_bins.counts(new, pairs, cuts, wanted.weight)
    old_rates = at_old.rates(0, wanted.n_new)
    place, refusal = _place(counts, old_rates, new.sign, wanted)
    found = MovedThreshold(
        score=old.score,
        keep=wanted.keep,
        threshold=old.sign * float(cut),
        refusal=refusal,
        old=old_rates,
        counts=counts,
        old_histogram=old_bins.histogram(),
        new_histogram=new_bins.histogram(),
        pairs=_near_pairs(old, new, new_bins.cut_passed_by(_KEPT_PAIRS), relevant),
        is_judged=relevant is not None,
        is_given=wanted.new_threshold is not None,
        n_new=wanted.n_new or old.shape[0],
    )
    kept = {place}
    if relevant is not None:
        separability = counts.separability(wanted.random_state)
        by_kind = None
        if kinds is not None:
            by_kind = KindCutOffs.of(counts, kinds, wanted.random_state)
        found = replace(found, separability=separability, by_kind=by_kind)
        kept.add(counts.nearest(separability.cut))
    found = replace(found, counts=counts.thinned(_KEPT_PLACES, kept))
    if refusal:
        return found
    error, chance, chance_low = _decisions(old, new, cut, counts.cuts[place], wanted.random_state)
    return replace(
        found,
        new_threshold=new.sign * float(counts.cuts[place]),
        new=counts.rates(place, wanted.n_new),
        factor=hits_factor(counts.passed[:, place], at_old.passed[:, 0], wanted.n_new),
        error=error,
        chance=chance,
        chance_low=chance_low,
    )


def _check(old: Similarities, relevant: csr_array | None, wanted: Wanted) -> None:
    need_one_of("keep", wanted.keep, KEEP)
    n_queries = old.shape[0]
    if n_queries < 2 * FEWEST_QUERIES:
        raise SpaceError(
            f"threshold: expected {2 * FEWEST_QUERIES} queries or more, got {n_queries}; add pairs or queries"
        )
    if relevant is None and wanted.keep != "hits":
        raise SpaceError(
            f"keep: expected judgements, to keep {wanted.keep}, got none; pass judgements, or keep hits"
        )
    for value in (wanted.threshold, wanted.new_threshold):
        if value is not None:
            old.check(value)


def _old_cut(old: Similarities, bins: ScoreBins, wanted: Wanted) -> float:
    if wanted.threshold is None:
        return bins.cut_passed_by(_PER_QUERY * old.shape[0])
    return old.sign * wanted.threshold


def _need_passing(at_old: PassCounts, threshold: float) -> None:
    passing = int(np.count_nonzero(at_old.passed))
    if passing < FEWEST_QUERIES:
        raise SpaceError(
            f"threshold: expected one that rows of {FEWEST_QUERIES} queries or more pass, got {threshold:g},"
            f" which rows of {counted(passing, 'query', 'queries')} pass; was it chosen on other rows or for"
            " another kind of score? Pass judgements, or another threshold"
        )


def _place(counts: PassCounts, old: dict[str, Interval], sign: int, wanted: Wanted) -> tuple[int, str]:
    """The index of the new cut-off, and why there is none, or ""."""
    if wanted.new_threshold is not None:
        return counts.nearest(sign * wanted.new_threshold), ""
    try:
        return counts.place_that_keeps(wanted.keep, old[wanted.keep].value), ""
    except SpaceError as error:
        return 0, str(error)


def hits_factor(new: np.ndarray, old: np.ndarray, n_new: int) -> Interval:
    """How many times as many rows pass as before, for other queries. The interval of the ratio of sums is
    taken on a logarithmic scale, because a ratio of counts is skewed."""
    ratio = ratio_interval(new, old, n_new)
    if not ratio.value > 0:
        return ratio
    width = float(np.exp((ratio.high - ratio.value) / ratio.value))
    return Interval(ratio.value, ratio.value / width, ratio.value * width)


def _decisions(
    old: Similarities, new: Similarities, cut: float, new_cut: float, random_state: int
) -> tuple[float, float, float]:
    """The share of decisions that differ: 1 − the Jaccard index of the pairs that pass before and after; and
    the mean and the 2.5 % quantile of this share if each query gets the decisions of another query."""
    n_queries = old.shape[0]
    shared = np.zeros((n_queries, n_queries), np.float32)
    n_old = np.zeros(n_queries)
    n_newly = np.zeros(n_queries)
    for (_, before), (_, after) in zip(old.blocks(), new.blocks(), strict=True):
        passed_before = (before >= cut).astype(np.float32)
        passed_after = (after >= new_cut).astype(np.float32)
        shared += passed_before @ passed_after.T
        n_old += passed_before.sum(axis=1)
        n_newly += passed_after.sum(axis=1)
    rng = np.random.default_rng(random_state)
    either = n_old.sum() + n_newly.sum()

    def error(order: np.ndarray) -> float:
        both = float(shared[np.arange(n_queries), order].sum())
        return 1 - both / max(either - both, 1)

    permuted = [error(derangement(n_queries, rng)) for _ in range(_PERMUTATIONS)]
    own = error(np.arange(n_queries))
    return own, float(np.mean(permuted)), float(np.quantile(permuted, 0.025))


def _near_pairs(old: Similarities, new: Similarities, cut: float, relevant: csr_array | None) -> NearPairs:
    """The pairs that pass a loose cut-off of the new model, nearest first, at most 10,000."""
    queries = []
    rows = []
    for block, similarities in new.blocks():
        query, row = np.nonzero(similarities >= cut)
        queries.append(query)
        rows.append(row + block.start)
    query = np.concatenate(queries)
    row = np.concatenate(rows)
    similarity = new.of_pairs(query, row)
    order = np.argsort(-similarity, kind="stable")[:_KEPT_PAIRS]
    query = query[order]
    row = row[order]
    is_relevant = np.zeros(len(order), bool)
    if relevant is not None:
        is_relevant = np.asarray(relevant[query, row]).ravel().astype(bool)
    return NearPairs(
        query=query.astype(np.int32),
        row=row.astype(np.int32),
        old=old.sign * old.of_pairs(query, row),
        new=new.sign * similarity[order],
        relevant=is_relevant,
    )


@dataclass(frozen=True, kw_only=True)
class ThresholdChange(
    Task[MovedThreshold], kind="migration-threshold", version=3, title="Similarity threshold"
):
    """The task that finds the cut-off of the scores after the change of model in `system` ("bridge" or
    "re-embed") that keeps the precision, the recall or the hits of a threshold of the old model.

    It uses the pairs, the queries and the judgements of `migration`. `adapter` is the one that this migration
    chose. If judged queries have labels, these are their kinds.
    """

    migration: Migration
    adapter: str = setting(choices=ADAPTERS)
    threshold: float | None = setting(
        None,
        help="A cut-off of the old model's scores. Default: the score that ten rows per query reach.",
    )
    score: str = setting(
        "cosine",
        choices=SCORES,
        label="Kind of score",
        help="What the threshold is compared with. Rows pass with at least this cosine or inner product, or"
        " with at most this L2 distance.",
    )
    keep: str = setting(
        "hits",
        choices=KEEP,
        label="Keep",
        help="What the new cut-off keeps. Precision and recall need judgements or labels.",
    )
    new_threshold: float | None = setting(
        None, help="A cut-off of the new scores to measure, instead of one that is chosen."
    )
    n_new: int = setting(
        0,
        option="new-queries",
        low=0,
        help="Number of new queries that intervals are for; 0: as many as are measured.",
    )
    system: str = setting("bridge", choices=SYSTEMS)

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = len(spaces[1])
        m = self.migration.n_pairs or n
        low, high = sorted(space.dimension for space in spaces[:2])
        return 0.5 + 4e-7 * MOST_JUDGED * n + 1e-9 * min(m, 20_000) * low * high

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> MovedThreshold:
        """Raises the errors of `Migration.run` and `move_threshold`, and a SpaceError if the system is
        "re-embed" and some rows lack a new vector.
        """
        report(0, 2, "fitting the adapter")
        ground = self.migration.ground(spaces, checked=True)
        if self.system == "re-embed" and ground.trial.new_corpus is None:
            raise SpaceError(
                "re-embedding: expected a new vector for every row that is searched, got some rows without;"
                " leave the judgements out, so that the pairs are both queries and rows"
            )
        picked = np.arange(len(ground.queries))
        if len(picked) > MOST_JUDGED:
            picked = np.linspace(0, len(picked) - 1, MOST_JUDGED).round().astype(int)
        queries = np.array(ground.queries, dtype=object)[picked]
        ground = replace(ground, trial=ground.trial.take(picked), queries=tuple(queries))
        old, new = self._similarities(ground, spaces)
        relevant = None
        weight = 1.0
        if ground.trial.is_judged:
            relevant = csr_array(ground.trial.relevance > 0)
        if ground.relevance == "judgements" and len(ground.places) < ground.n_corpus:
            judged = len(np.unique(ground.trial.relevance.indices))
            weight = (ground.n_corpus - judged) / (len(ground.places) - judged)
        report(1, 2, "scoring the pairs")
        wanted = Wanted(
            self.threshold,
            self.keep,
            self.new_threshold,
            self.n_new,
            self.migration.random_state,
            weight,
        )
        found = moved(old, new, relevant, wanted, _kinds(ground, spaces))
        named = replace(found.pairs, row=ground.places[found.pairs.row].astype(np.int32))
        return replace(found, queries=ground.queries, pairs=named, relevance=ground.relevance)

    def _similarities(
        self, ground: MigrationData, spaces: Sequence[LatentSpace]
    ) -> tuple[Similarities, Similarities]:
        """The similarities by the old model, and those after the change."""
        trial = ground.trial
        ids = spaces[0].ids[ground.places]
        old_rows = self._of_length(trial.old_corpus, spaces[0], ids)
        asked = _query_spaces(ground, spaces)
        old_queries = self._of_length(trial.old_queries, asked[0], ground.queries)
        old = Similarities(old_queries, old_rows, self.score, trial.own)
        if self.system == "re-embed" and trial.new_corpus is not None:
            new_queries = self._of_length(trial.new_queries, asked[1], ground.queries)
            new_rows = self._of_length(trial.new_corpus, spaces[1], ids)
            return old, Similarities(new_queries, new_rows, self.score, trial.own)
        adapter = ground.pairs.fit(self.adapter)
        if adapter.rewrites_corpus:
            old_rows = unit_rows(adapter.corpus(trial.old_corpus))
        bridged = unit_rows(adapter.transform(trial.new_queries))
        return old, Similarities(bridged, old_rows, self.score, trial.own)

    def _of_length(self, rows: np.ndarray, space: LatentSpace, ids: Sequence[str]) -> np.ndarray:
        """The rows of length 1 with the lengths that they have in the space; as they are for cosines."""
        if self.score == "cosine":
            return rows
        vectors = space.vectors[space.index.get_indexer(ids)]
        return rows * np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)


def _query_spaces(ground: MigrationData, spaces: Sequence[LatentSpace]) -> Sequence[LatentSpace]:
    """The spaces of the queries by both models; those of the rows if held-out pairs are the queries."""
    if ground.relevance == "judgements":
        return spaces[2:]
    return spaces[:2]


def _kinds(ground: MigrationData, spaces: Sequence[LatentSpace]) -> np.ndarray | None:
    """The kind of each query: its label. Where rows of its label are relevant, nobody knows the label of a
    new query, so there are no kinds."""
    if ground.relevance == "labels":
        return None
    for space in _query_spaces(ground, spaces):
        if space.labels is not None:
            return np.asarray(space.labels, dtype=object)[space.index.get_indexer(ground.queries)]
    return None
