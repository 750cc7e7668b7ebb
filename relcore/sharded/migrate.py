"""migrate by shard: adapters fitted on the pairs that one machine would fit, and every option searched among all held-out rows.

Fits, their cross-validation and the curve take bounded numbers of rows on one machine already. These rows are drawn by the same
keys here, and gathered. What reads all rows, the searches and the moments for adding two of them, are passes over the shards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from relcore.block_scores.question import ScoredRows
from relcore.evaluation import drawn_rows
from relcore.migration import choice, truth
from relcore.migration.adapter import Adapter
from relcore.migration.evaluate import OPTIONS, Trial, among, fewer_rows
from relcore.migration.fusion import DEPTH, added_queries, reciprocal_ranks
from relcore.migration.migrate import UNJUDGED, Ground, Migration, left_out_cautions
from relcore.migration.pairing import check_pairs, need_pairs, repeated_cautions, tried_rows
from relcore.migration.result import MigrationResult
from relcore.migration.retrieval import K, Relevance, neighbours_as_truth, padded, without
from relcore.migration.split import MOST_FITTED, n_random
from relcore.migration.trial import need_held_out
from relcore.progress import Report, silent
from relcore.sharded.anchor_rows import rows_beside
from relcore.sharded.corpus_search import Asked, Corpus
from relcore.sharded.distinct_rows import DistinctRows
from relcore.sharded.gather import put_rows
from relcore.sharded.held_out_pairs import HeldOutPairs
from relcore.sharded.pair import ShardedPair
from relcore.sharded.project import gathered
from relcore.sharded.row_maps import put_adapter
from relcore.sharded.runner import Runner
from relcore.sharded.survey import Survey, need_distinct_ids
from relcore.similarity import unit_rows
from relcore.spaces import SpaceError
from relcore.store import digest_of


def needs_a_sample(task: Migration) -> str:
    """What of a migration cannot be done by shard; "" where all of it can."""
    if task.judgements:
        return "judged queries"
    if task.relevance != "neighbours":
        return "labels as relevance"
    return f"choosing pairs by {task.strategy!r}" if task.n_pairs and task.strategy != "random" else ""


def migrate_shards(task: Migration, pair: ShardedPair, runner: Runner, report: Report = silent) -> MigrationResult:
    """`Migration.run` of a pair of sharded spaces, the old and the new one, all of whose held-out rows are searched.

    The numbers are those of both spaces in memory, but for rounding; above 100,000 held-out rows one machine searches a sample
    of these. Row numbers in the result are those of the whole spaces.

    Raises
    ------
    SpaceError
        What `needs_a_sample` names, NaN, ids in another order, an id of several rows, pairs that do not pair, fewer than 50.
    """
    if what := needs_a_sample(task):
        raise SpaceError(f"migrate: expected work that can be done by shard, got {what}; take a sample")
    state = task.random_state
    survey = runner.run(Survey(MOST_FITTED, stream="pairs", random_state=state), pair.parts, "survey")
    need_distinct_ids(pair.source, survey.arrays["keys"], survey.arrays["rows"])
    n, dropped = survey.facts["n"], survey.arrays["dropped"]
    need_pairs(n, (pair.source.name, pair.target.name))
    fitted = survey.arrays["rows"][: n_random(n, task.n_pairs)]
    crowd = drawn_rows(pair.n, choice.MOST_ROWS, state)
    known = _known_rows(pair, runner, n, dropped, (fitted, crowd), state)
    check_pairs(known.of(1), known.of(0), state).need()
    which, _ = truth.richer(known.of(0, unit=True), known.of(1, unit=True), state)
    key = _put_fitted(runner, np.sort(fitted), known)
    held = runner.run(HeldOutPairs(key, state), pair.parts, "held-out rows").arrays
    taken = np.unique(np.concatenate([dropped, fitted, held["repeated"]]))
    trial, queries = _trial(pair, runner, taken, np.sort(held["rows"]), which, task.k)
    shares = [DistinctRows(held[f"hashes_{side}"], held[f"counts_{side}"]).repeated for side in (1, 0)]
    cautions = [*repeated_cautions(*shares), *left_out_cautions(len(held["repeated"]), len(dropped)), UNJUDGED]
    new, old = (unit_rows(known.whole(side, fitted)) for side in (1, 0))
    ids = known.ids[np.searchsorted(known.rows, fitted)]
    ground = Ground(new, old, ids, which, which, trial, queries, trial.rows, fitted, tuple(cautions))
    return task.answer(ground, known.of(0, whole=True), report)


@dataclass(frozen=True, eq=False)
class _KnownRows:
    """Gathered rows of two spaces, by their numbers `rows` (m,), ascending; vectors (m, d) each, ids (m,)."""

    rows: np.ndarray
    vectors: tuple[np.ndarray, np.ndarray]
    ids: np.ndarray
    n: int
    n_whole: int
    dropped: np.ndarray

    def whole(self, side: int, rows: np.ndarray) -> np.ndarray:
        """Rows by their numbers in the whole space."""
        return self.vectors[side][np.searchsorted(self.rows, rows)]

    def of(self, side: int, unit: bool = False, whole: bool = False) -> _Rows:
        """One space as an array of which few rows are there: of its pairs, or of the whole space."""
        vectors = unit_rows(self.vectors[side]) if unit else self.vectors[side]
        dropped = self.dropped[:0] if whole else self.dropped
        return _Rows(self.n_whole if whole else self.n, vectors, self.rows, dropped)


@dataclass(frozen=True, eq=False)
class _Rows:
    n: int
    vectors: np.ndarray
    known: np.ndarray
    dropped: np.ndarray

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.vectors[np.searchsorted(self.known, rows_beside(rows, self.dropped))]


def _known_rows(
    pair: ShardedPair, runner: Runner, n: int, dropped: np.ndarray, also: tuple[np.ndarray, ...], state: int
) -> _KnownRows:
    """The rows that the checks, the choice of an adapter and its fit take, some 10⁴, in one pass."""
    tried, shifts = tried_rows(n, state)
    of_pairs = [*(tried + shift for shift in shifts), drawn_rows(n, truth.MOST_ROWS, state)]
    rows = np.concatenate([*(rows_beside(one, dropped) for one in of_pairs), *also])
    found = runner.run(put_rows(runner.store, rows, texts=True), pair.parts, "gather rows")
    vectors = tuple(found.arrays[f"vectors_{side}"] for side in (0, 1))
    ids = np.array(found.facts["ids"], dtype=object)
    return _KnownRows(found.arrays["rows"], vectors, ids, n, pair.n, dropped)


def _put_fitted(runner: Runner, rows: np.ndarray, known: _KnownRows) -> str:
    arrays = {"rows": rows} | {f"vectors_{side}": known.whole(side, rows) for side in (0, 1)}
    key = digest_of("fitted pairs", arrays)
    if not runner.store.has(key):
        runner.store.put(key, arrays)
    return key


@dataclass(frozen=True, eq=False)
class ShardedTrial:
    """What `Trial` is, over the rows of shards; rows of the corpus are counted without those that are not searched."""

    corpus: Corpus
    old_queries: np.ndarray
    new_queries: np.ndarray
    rows: ScoredRows
    own: np.ndarray
    relevance: Relevance | None = None

    def found(
        self, adapter: Adapter, weight: float = 1.0, fusion: str = "z", k: int = K, options: tuple[str, ...] = OPTIONS
    ) -> dict[str, np.ndarray]:
        """As `Trial.found`: all searches in one pass, after one for the moments of the corpora where z-scores are added."""
        depth, shared = min(k + 1, len(self.rows)), len(adapter.corpus_steps_) == 1
        bridged, corpus = adapter.transform(self.new_queries), self.corpus
        where = ("old",) if shared else ("bridged",)
        if not shared:
            corpus = replace(corpus, adapter=put_adapter(corpus.runner.store, adapter, "corpus"))
        asked = {
            "keep": Asked(self.old_queries, depth, ("old",)),
            "bridge": Asked(bridged, depth, where),
            "re-embed": Asked(self.new_queries, depth, ("new",)),
        }
        if fusion == "z":
            moments = (*corpus.moments(list(dict.fromkeys(("old", *where)))), None)[:2]
            queries = added_queries(self.old_queries, bridged, moments, weight)
            asked["twice"] = Asked(queries, depth, ("old",) if shared else ("old", "bridged"))
            found = self._lists(corpus, {name: asked[name] for name in options}, "search")
            return {name: padded(one, k) for name, one in found.items()}
        deep = min(DEPTH + 1, len(self.rows))
        lists = {name: asked[name] for name in options if name != "twice"}
        lists |= {"twice, old": Asked(self.old_queries, deep, ("old",)), "twice, bridged": Asked(bridged, deep, where)}
        found = self._lists(corpus, lists, "search")
        both = found.pop("twice, old"), found.pop("twice, bridged")
        found = {name: padded(one, k) for name, one in found.items()} | {"twice": reciprocal_ranks(both, k, weight)}
        return {name: found[name] for name in options}

    def truth(self, which: str, k: int) -> Relevance:
        """As `truth.neighbours_of`."""
        if which == "both":
            deep = min(DEPTH + 1, len(self.rows))
            asked = {"old": Asked(self.old_queries, deep, ("old",)), "new": Asked(self.new_queries, deep, ("new",))}
            lists = self._lists(self.corpus, asked, "relevant rows")
            return neighbours_as_truth(reciprocal_ranks((lists["old"], lists["new"]), k), len(self.rows))
        queries = self.new_queries if which == "new" else self.old_queries
        asked = {which: Asked(queries, min(k + 1, len(self.rows)), (which,))}
        return neighbours_as_truth(padded(self._lists(self.corpus, asked, "relevant rows")[which], k), len(self.rows))

    def with_fewer_rows(self, most: int, random_state: int = 0) -> Trial:
        """As `Trial.with_fewer_rows`, in memory."""
        needed = np.unique(np.concatenate([self.relevance.row, self.own]))
        n = len(self.rows)
        kept = fewer_rows(n, needed, most, random_state) if n > most else np.arange(n)
        old, new = (unit_rows(one) for one in gathered(self.corpus.runner, self.corpus.parts, self.rows[kept]))
        own = np.searchsorted(kept, self.own)
        return Trial(self.old_queries, self.new_queries, old, new, among(self.relevance, kept), own, self.rows[kept])

    def _lists(self, corpus: Corpus, asked: dict[str, Asked], title: str) -> dict[str, np.ndarray]:
        """What the searches find, without each query's own row."""
        found = corpus.searched(asked, title)
        return {name: without(self.rows.places(one), self.own) for name, one in found.items()}


def _trial(
    pair: ShardedPair, runner: Runner, taken: np.ndarray, queries: np.ndarray, which: str, k: int
) -> tuple[ShardedTrial, tuple[str, ...]]:
    """Held-out pairs that search the held-out rows, and the ids of the former."""
    rows = ScoredRows(pair.n, taken)
    need_held_out(len(rows))
    found = runner.run(put_rows(runner.store, queries, texts=True), pair.parts, "gather queries")
    old, new = (unit_rows(found.arrays[f"vectors_{side}"]) for side in (0, 1))
    trial = ShardedTrial(Corpus(runner, pair.parts, len(rows), taken), old, new, rows, rows.places(queries))
    return replace(trial, relevance=trial.truth(which, min(k, len(rows) - 1))), tuple(found.facts["ids"])
