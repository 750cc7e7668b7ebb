"""migrate by shard: adapters fitted on the pairs that one machine would fit, and every option searched among
all held-out rows.

Fits, their cross-validation and the curve take bounded numbers of rows on one machine already. These rows are
drawn by the same keys here, and gathered. What reads all rows, the searches and the moments for adding two of
them, are passes over the shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from relcore.base.errors import SpaceError
from relcore.migrate import evaluate
from relcore.migrate.adapters import Adapter
from relcore.migrate.evaluate import (
    DEPTH,
    MOST_QUERIES,
    OPTIONS,
    ScoreMoments,
    Trial,
    added_queries,
    among,
    fewer_rows,
    need_held_out,
    reciprocal_ranks,
)
from relcore.migrate.migration import UNJUDGED, Ground, Migration, MigrationResult, left_out_cautions
from relcore.migrate.pairs import (
    MOST_FITTED,
    check_pairs,
    n_random,
    need_pairs,
    repeated_cautions,
    tried_rows,
)
from relcore.migrate.retrieval import K, Relevance, neighbours_as_truth, padded, without
from relcore.represent.similarity import row_blocks, rows_among, unit_rows
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.device import NumpyDevice
from relcore.scores.plan import ScoredRows
from relcore.scores.sums import TopRows
from relcore.sharded.passes import Arrays, Runner, Shards, ShardWork
from relcore.sharded.project import gathered, put_adapter, row_map
from relcore.sharded.shard import aligned
from relcore.sharded.space import ShardedPair, global_rows, lengths_above_zero, put_rows, rows_beside
from relcore.sharded.survey import DistinctRows, Smallest, Survey, need_distinct_ids
from relcore.spaces.split import drawn_rows, row_keys

# DeepRows: long lists of the rows nearest to some queries, kept up to date from block to block.

_QUERIES = 256  # at once: a block of their scores and the lists stay in cache


class DeepRows(TopRows):
    """As `TopRows`, for lists as long as a good part of a block: it selects from each block, and sorts once
    at the end.

    `TopRows` sorts the lists of all queries whenever a block changes them. That is little for 10 rows of
    each; for 1,001 rows of 2,000 queries a pass took 5.7 times as long with it (50,000 × 64, processor
    seconds).
    """

    def add(self, device: NumpyDevice, scores: np.ndarray, rows: np.ndarray) -> None:
        k = self.values.shape[1]
        for start in range(0, len(scores), _QUERIES):
            part = slice(start, start + _QUERIES)
            values = np.concatenate([self.values[part], scores[part]], axis=1)
            best = np.argpartition(values, -k, axis=1)[:, -k:]
            self.values[part] = np.take_along_axis(values, best, axis=1)
            known = np.take_along_axis(self.rows[part], np.minimum(best, k - 1), axis=1)
            self.rows[part] = np.where(best < k, known, rows[np.maximum(best - k, 0)])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Nearest first; equal scores by row number."""
        for start in range(0, len(self.values), _QUERIES):
            part = slice(start, start + _QUERIES)
            order = np.lexsort((self.rows[part], -self.values[part]), axis=1)
            for array in (self.values, self.rows):
                array[part] = np.take_along_axis(array[part], order, axis=1)
        return super().to_arrays()


# Searches of migrate by shard: the rows of the shards that are nearest to some queries, in several spaces in
# one pass.

_ROWS = 4096  # their products with 2,000 queries are 33 MB
_DEEP = 100


class CorpusQueries(NamedTuple):
    """One search: queries (q, d), how many rows, and in which `CORPORA`; rows of several are put side by
    side.
    """

    queries: np.ndarray
    k: int
    corpora: tuple[str, ...]


CORPORA = (
    "old",
    "new",
    "bridged",
)  # unit rows by the old model, by the new one, and old rows after an adapter's steps


@dataclass(frozen=True)
class SearchCorpus(ShardWork):
    """The rows nearest to queries, over all rows but some; `asked` is the key under which `searched` put
    them.
    """

    kind: ClassVar[str] = "search"

    asked: str

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        entry, device = store.get(self.asked), NumpyDevice()
        found = self._empty(entry)
        searches = [
            (top, entry.arrays[f"queries/{name}"], entry.metadata["searches"][name]["corpora"])
            for name, top in found
        ]
        needed = {one for _, _, corpora in searches for one in corpora}
        for rows, sides in _corpus_blocks(shards, store, entry, needed, report):
            for top, queries, corpora in searches:
                corpus = (
                    sides[corpora[0]]
                    if len(corpora) == 1
                    else np.column_stack([sides[one] for one in corpora])
                )
                top.add(device, device.product(queries, corpus.T, "scores"), rows)
        return _arrays(found), {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        found = self._empty(store.get(self.asked))
        for entry in (first, second):
            for name, top in found:
                other = TopRows(*top.values.shape)
                other.take({one: entry.arrays[f"{name}/{one}"] for one in ("values", "rows")})
                top.merge(other)
        return _arrays(found), {}

    @staticmethod
    def _empty(entry: Entry) -> list[tuple[str, TopRows]]:
        told = entry.metadata["searches"].items()
        return [(name, _lists(len(entry.arrays[f"queries/{name}"]), one["k"])) for name, one in told]


@dataclass(frozen=True)
class CorpusMoments(ShardWork):
    """Sums of the rows and of their products, float64, of the corpora that `asked` names under the key of
    `moments_of`.
    """

    kind: ClassVar[str] = "corpus moments"

    asked: str

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        entry, sums = store.get(self.asked), {}
        for _, sides in _corpus_blocks(shards, store, entry, entry.metadata["corpora"], report):
            for name in entry.metadata["corpora"]:
                rows = sides[name].astype(np.float64)
                for what, one in (("sum", rows.sum(axis=0)), ("products", rows.T @ rows)):
                    sums[f"{name}/{what}"] = sums.get(f"{name}/{what}", 0) + one
        return sums, {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        every = [
            *first.arrays,
            *(name for name in second.arrays if name not in first.arrays),
        ]  # a shard may have no such row
        return {name: first.arrays.get(name, 0) + second.arrays.get(name, 0) for name in every}, {}


@dataclass(frozen=True)
class Corpus:
    """The rows of a pair of sharded spaces, the old and the new one, that are searched: all but `taken`
    (ascending).

    `adapter` is the key of an adapter's steps for old rows, see `row_maps.put_adapter`; "" where "bridged" is
    not searched.
    """

    runner: Runner
    parts: Sequence[Shards]
    n: int
    taken: np.ndarray
    adapter: str = ""

    def searched(self, searches: Mapping[str, CorpusQueries], title: str) -> dict[str, np.ndarray]:
        """Row numbers (q, k) of the whole spaces by search, the nearest first."""
        arrays = {
            f"queries/{name}": np.ascontiguousarray(one.queries, dtype=np.float32)
            for name, one in searches.items()
        }
        told = {name: {"k": one.k, "corpora": list(one.corpora)} for name, one in searches.items()}
        key = self._put(arrays, {"searches": told})
        found = self.runner.run(SearchCorpus(key), self.parts, title).arrays
        return {name: found[f"{name}/rows"] for name in searches}

    def moments(self, corpora: Sequence[str]) -> list[ScoreMoments]:
        """Mean and covariance of the rows in each of these."""
        found = self.runner.run(
            CorpusMoments(self._put({}, {"corpora": list(corpora)})), self.parts, "corpus moments"
        ).arrays
        means = {name: found[f"{name}/sum"] / self.n for name in corpora}
        return [
            ScoreMoments(mean, found[f"{name}/products"] / self.n - np.outer(mean, mean))
            for name, mean in means.items()
        ]

    def _put(self, arrays: Arrays, told: dict[str, Any]) -> str:
        arrays, told = {**arrays, "taken": self.taken}, {**told, "adapter": self.adapter}
        key = digest_of("corpus search", arrays, told)
        if not self.runner.store.has(key):
            self.runner.store.put(key, arrays, told)
        return key


def _corpus_blocks(shards: Shards, store: Store, entry: Entry, needed, report: Report):
    """Row numbers of the whole spaces, and the rows in the corpora that are needed."""
    taken = entry.arrays["taken"]
    bridge = row_map(store, entry.metadata["adapter"]) if "bridged" in needed else None
    for blocks in aligned(shards):
        for part in row_blocks(len(blocks[0].vectors), _ROWS):
            rows = global_rows(shards[0], blocks[0], np.arange(part.start, part.stop))
            some = taken[np.searchsorted(taken, rows[0]) : np.searchsorted(taken, rows[-1], side="right")]
            rows = np.delete(rows, some - rows[0])
            if len(rows):
                old, new = (block.vectors[rows - shards[0].start - blocks[0].first] for block in blocks)
                sides = {"old": unit_rows(old)} if "old" in needed else {}
                sides |= {"new": unit_rows(new)} if "new" in needed else {}
                yield rows, sides | ({"bridged": bridge(old)} if bridge else {})
            report(blocks[0].first + part.stop, shards[0].n, shards[0].name)


def _lists(n_queries: int, k: int) -> TopRows:
    return (DeepRows if k > _DEEP else TopRows)(n_queries, k)


def _arrays(found: list[tuple[str, TopRows]]) -> Arrays:
    return {f"{name}/{one}": array for name, top in found for one, array in top.to_arrays().items()}


# HeldOutPairs: which pairs of a migration are held out, and which of them are queries.

_MOST_REPEATED = 1_000_000  # their numbers are kept: 8 MB


@dataclass(frozen=True)
class HeldOutPairs(ShardWork):
    """Rows beside the fitted ones, as `split.parts_of` and `trial.held_out_trial` hold them out of spaces in
    memory.

    Arrays: keys and rows, those of the queries, at most 2,000, ascending by key; repeated (m,), rows that
    equal a fitted row of their space to the last bit; hashes_0, counts_0, hashes_1, counts_1 of
    `DistinctRows` of all pairs.

    Attributes
    ----------
    fitted : str
        The store's key of rows (m,), ascending, and of their vectors_0 and vectors_1.
    """

    kind: ClassVar[str] = "held out pairs"

    fitted: str
    random_state: int = 0

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        fitted = store.get(self.fitted).arrays
        queries, distinct, repeated = (
            Smallest(MOST_QUERIES),
            (DistinctRows(), DistinctRows()),
            [np.empty(0, np.int64)],
        )
        for blocks in aligned(shards):
            alive = np.flatnonzero(lengths_above_zero(tuple(block.vectors for block in blocks)))
            rows = global_rows(shards[0], blocks[0], alive)
            for block, one in zip(blocks, distinct, strict=True):
                one.add(block.vectors[alive])
            held = ~np.isin(rows, fitted["rows"])
            rows, alive = rows[held], alive[held]
            copies = np.zeros(len(rows), dtype=bool)
            for side, block in enumerate(blocks):
                copies |= rows_among(block.vectors[alive], fitted[f"vectors_{side}"])
            repeated.append(rows[copies])
            ids = shards[0].ids_of(blocks[0])[alive[~copies]]
            queries.add(row_keys(ids, "queries", self.random_state), rows[~copies])
            report(blocks[0].first + len(blocks[0].vectors), shards[0].n, shards[0].name)
        return _arrays_of_held_out_pairs(queries, np.concatenate(repeated), distinct), {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        queries, distinct = Smallest(MOST_QUERIES), (DistinctRows(), DistinctRows())
        for entry in (first, second):
            queries.add(entry.arrays["keys"], entry.arrays["rows"])
            for side, one in enumerate(distinct):
                one.merge(entry.arrays[f"hashes_{side}"], entry.arrays[f"counts_{side}"])
        repeated = np.concatenate([entry.arrays["repeated"] for entry in (first, second)])
        return _arrays_of_held_out_pairs(queries, repeated, distinct), {}


def _arrays_of_held_out_pairs(
    queries: Smallest, repeated: np.ndarray, distinct: tuple[DistinctRows, ...]
) -> Arrays:
    if len(repeated) > _MOST_REPEATED:
        raise SpaceError(
            f"expected at most {_MOST_REPEATED:,} rows that repeat a fitted one, got {len(repeated):,} in"
            " these shards and more to come; leave repeated rows out when the shards are written, or use"
            " --sample"
        )
    found = {"keys": queries.keys, "rows": queries.rows, "repeated": repeated}
    for side, one in enumerate(distinct):
        found |= {f"hashes_{side}": one.hashes, f"counts_{side}": one.counts}
    return found


def needs_a_sample(task: Migration) -> str:
    """What of a migration cannot be done by shard; "" where all of it can."""
    if task.judgements:
        return "judged queries"
    if task.relevance != "neighbours":
        return "labels as relevance"
    return f"choosing pairs by {task.strategy!r}" if task.n_pairs and task.strategy != "random" else ""


def migrate_shards(
    task: Migration, pair: ShardedPair, runner: Runner, report: Report = silent
) -> MigrationResult:
    """`Migration.run` of a pair of sharded spaces, the old and the new one, all of whose held-out rows are
    searched.

    The numbers are those of both spaces in memory, but for rounding; above 100,000 held-out rows one machine
    searches a sample of these. Row numbers in the result are those of the whole spaces.

    Raises
    ------
    SpaceError
        What `needs_a_sample` names, NaN, ids in another order, an id of several rows, pairs that do not pair,
        fewer than 50.
    """
    if what := needs_a_sample(task):
        raise SpaceError(f"migrate: expected work that can be done by shard, got {what}; take a sample")
    state = task.random_state
    survey = runner.run(Survey(MOST_FITTED, stream="pairs", random_state=state), pair.parts, "survey")
    need_distinct_ids(pair.source, survey.arrays["keys"], survey.arrays["rows"])
    n, dropped = survey.facts["n"], survey.arrays["dropped"]
    need_pairs(n, (pair.source.name, pair.target.name))
    fitted = survey.arrays["rows"][: n_random(n, task.n_pairs)]
    crowd = drawn_rows(pair.n, evaluate.MOST_CHOICE_ROWS, state)
    known = _known_rows(pair, runner, n, dropped, (fitted, crowd), state)
    check_pairs(known.of(1), known.of(0), state).need()
    which, _ = evaluate.richer(known.of(0, unit=True), known.of(1, unit=True), state)
    key = _put_fitted(runner, np.sort(fitted), known)
    held = runner.run(HeldOutPairs(key, state), pair.parts, "held-out rows").arrays
    taken = np.unique(np.concatenate([dropped, fitted, held["repeated"]]))
    trial, queries = _trial(pair, runner, taken, np.sort(held["rows"]), which, task.k)
    shares = [DistinctRows(held[f"hashes_{side}"], held[f"counts_{side}"]).repeated for side in (1, 0)]
    cautions = [
        *repeated_cautions(*shares),
        *left_out_cautions(len(held["repeated"]), len(dropped)),
        UNJUDGED,
    ]
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
    of_pairs = [*(tried + shift for shift in shifts), drawn_rows(n, evaluate.MOST_ROWS, state)]
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
    """What `Trial` is, over the rows of shards; rows of the corpus are counted without those that are not
    searched.
    """

    corpus: Corpus
    old_queries: np.ndarray
    new_queries: np.ndarray
    rows: ScoredRows
    own: np.ndarray
    relevance: Relevance | None = None

    def found(
        self,
        adapter: Adapter,
        weight: float = 1.0,
        fusion: str = "z",
        k: int = K,
        options: tuple[str, ...] = OPTIONS,
    ) -> dict[str, np.ndarray]:
        """As `Trial.found`: all searches in one pass, after one for the moments of the corpora where
        z-scores are added.
        """
        depth, shared = min(k + 1, len(self.rows)), len(adapter.corpus_steps_) == 1
        bridged, corpus = adapter.transform(self.new_queries), self.corpus
        where = ("old",) if shared else ("bridged",)
        if not shared:
            corpus = replace(corpus, adapter=put_adapter(corpus.runner.store, adapter, "corpus"))
        asked = {
            "keep": CorpusQueries(self.old_queries, depth, ("old",)),
            "bridge": CorpusQueries(bridged, depth, where),
            "re-embed": CorpusQueries(self.new_queries, depth, ("new",)),
        }
        if fusion == "z":
            moments = (*corpus.moments(list(dict.fromkeys(("old", *where)))), None)[:2]
            queries = added_queries(self.old_queries, bridged, moments, weight)
            asked["twice"] = CorpusQueries(queries, depth, ("old",) if shared else ("old", "bridged"))
            found = self._lists(corpus, {name: asked[name] for name in options}, "search")
            return {name: padded(one, k) for name, one in found.items()}
        deep = min(DEPTH + 1, len(self.rows))
        lists = {name: asked[name] for name in options if name != "twice"}
        lists |= {
            "twice, old": CorpusQueries(self.old_queries, deep, ("old",)),
            "twice, bridged": CorpusQueries(bridged, deep, where),
        }
        found = self._lists(corpus, lists, "search")
        both = found.pop("twice, old"), found.pop("twice, bridged")
        found = {name: padded(one, k) for name, one in found.items()} | {
            "twice": reciprocal_ranks(both, k, weight)
        }
        return {name: found[name] for name in options}

    def truth(self, which: str, k: int) -> Relevance:
        """As `truth.neighbours_of`."""
        if which == "both":
            deep = min(DEPTH + 1, len(self.rows))
            asked = {
                "old": CorpusQueries(self.old_queries, deep, ("old",)),
                "new": CorpusQueries(self.new_queries, deep, ("new",)),
            }
            lists = self._lists(self.corpus, asked, "relevant rows")
            return neighbours_as_truth(reciprocal_ranks((lists["old"], lists["new"]), k), len(self.rows))
        queries = self.new_queries if which == "new" else self.old_queries
        asked = {which: CorpusQueries(queries, min(k + 1, len(self.rows)), (which,))}
        return neighbours_as_truth(
            padded(self._lists(self.corpus, asked, "relevant rows")[which], k), len(self.rows)
        )

    def with_fewer_rows(self, most: int, random_state: int = 0) -> Trial:
        """As `Trial.with_fewer_rows`, in memory."""
        needed = np.unique(np.concatenate([self.relevance.row, self.own]))
        n = len(self.rows)
        kept = fewer_rows(n, needed, most, random_state) if n > most else np.arange(n)
        old, new = (
            unit_rows(one) for one in gathered(self.corpus.runner, self.corpus.parts, self.rows[kept])
        )
        own = np.searchsorted(kept, self.own)
        return Trial(
            self.old_queries, self.new_queries, old, new, among(self.relevance, kept), own, self.rows[kept]
        )

    def _lists(self, corpus: Corpus, asked: dict[str, CorpusQueries], title: str) -> dict[str, np.ndarray]:
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
