"""compare by shard: every score of a pair of sharded spaces, from passes over the shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import SimpleNamespace

import numpy as np

from relcore.block_scores.block_sums import BlockSums
from relcore.block_scores.first_pass import ColumnSums
from relcore.block_scores.plan import BlockPlan, needed_rows
from relcore.block_scores.question import Question, RowNumbers, ScoredRows
from relcore.block_scores.scoring import Passes
from relcore.comparison import LIVE_QUERIES, REPRESENTATIONS, ProjectionSpec, metrics_of_a_pair
from relcore.metrics.calibration import Score
from relcore.metrics.neighbours import CONVENTIONS, need_k
from relcore.names import METRICS
from relcore.sharded.anchor_rows import drawn_anchors, named_anchors, places_beside, rows_beside, wanted_ids
from relcore.sharded.block_work import BlockWork, put_plan, stored_plan
from relcore.sharded.classes import Classes, PairByShard, labelled_side
from relcore.sharded.gather import put_rows
from relcore.sharded.pair import ShardedPair
from relcore.sharded.runner import Runner
from relcore.sharded.shard_pass import PassResult
from relcore.sharded.space import ShardedSpace
from relcore.sharded.survey import Survey, column_sums, need_distinct_ids
from relcore.spaces import SpaceError, need_one_of

MOST_QUERIES = 2048  # their similarities with a block of rows are 32 MB for each of two searches
_MOST_MUTUAL = 20_000_000  # rows; the chance level of "mutual" permutes all row numbers


@dataclass(frozen=True)
class ShardedScores:
    """Scores by representation and metric, and the rows that they are of.

    Attributes
    ----------
    scores : {representation: {metric: Score}}
    n : int
        Rows that have a direction in both spaces.
    n_zero : int
        Rows that are left out, as they are zero in one of them.
    anchors : array (k,)
        Row numbers in the whole spaces.
    """

    scores: dict[str, dict[str, Score]]
    n: int
    n_zero: int
    anchors: np.ndarray


def compare_shards(
    source: ShardedSpace,
    target: ShardedSpace,
    anchors: int | Sequence[str],
    runner: Runner,
    spec: ProjectionSpec | None = None,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int = LIVE_QUERIES,
    random_state: int = 0,
) -> ShardedScores:
    """The scores of `comparison.score_pair` for all representations; anchors are ids, or a number of random rows, or 0.

    The numbers are those of both spaces in memory, but for rounding. Class agreement is left out where there are more than
    100,000 classes.

    Raises
    ------
    SpaceError
        Shards that do not pair, NaN, an id of several rows (as `need_distinct_ids` finds it), anchors that a space lacks, too
        many queries.
    """
    need_one_of("convention", convention, CONVENTIONS)
    if not 1 <= n_queries <= MOST_QUERIES:
        raise SpaceError(f"n_queries: expected 1 … {MOST_QUERIES:,} queries by shard, got {n_queries:,}; take a sample")
    if convention == "mutual" and source.n > _MOST_MUTUAL:
        raise SpaceError(f"convention: expected 'paper' above {_MOST_MUTUAL:,} rows, got 'mutual'; choose 'paper'")
    pair, named = ShardedPair(source, target), not isinstance(anchors, int)
    n_anchors = len(anchors) if named else anchors
    wanted = wanted_ids(source, anchors) if named else ()
    side = labelled_side(pair)
    survey = runner.run(Survey(n_queries + n_anchors, wanted=wanted, classes_of=side), pair.parts, "survey")
    need_distinct_ids(source, survey.arrays["keys"], survey.arrays["rows"])
    chosen = np.empty(0, dtype=np.int64)
    if n_anchors or named:
        chosen = named_anchors(source, survey, anchors) if named else drawn_anchors(survey, source.n, n_anchors, random_state)
    forms = REPRESENTATIONS if len(chosen) else ("absolute",)
    passes = ShardedPasses(pair, survey, runner)
    question = Question(forms, spec or ProjectionSpec(), k, convention)
    queries = {kind: passes.queries(n_queries, chosen if kind == "held out" else ()) for kind in question.kinds}
    classes = Classes.of(passes, side)
    rows = RowNumbers(passes.n, places_beside(chosen, passes.dropped), queries, classes and classes.labelled)
    for kind in question.kinds:
        need_k(k, n := rows.n_scored(kind), n - (convention == "mutual"), f" of {source.name!r} and {target.name!r}")
    seen = passes.seen(question, rows)
    passes.gather_last_neighbours(seen)
    if classes is not None:
        classes.gather(seen)
    return ShardedScores({form: passes.scores(seen, form, classes) for form in forms}, passes.n, len(passes.dropped), chosen)


class ShardedPasses(Passes):
    """`Passes` over a pair by shard. Rows are counted without those that are zero in a space, as in a `Match`."""

    def __init__(self, pair: ShardedPair, survey: PassResult, runner: Runner) -> None:
        self.pair, self.survey, self.runner = pair, survey, runner
        self.n, self.dropped = survey.facts["n"], survey.arrays["dropped"]
        self._rows, self._vectors = np.empty(0, dtype=np.int64), [np.empty((0, one.width), np.float32) for one in self._spaces]

    @property
    def _spaces(self) -> tuple[ShardedSpace, ShardedSpace]:
        return self.pair.source, self.pair.target

    @cached_property
    def sums(self) -> tuple[ColumnSums, ColumnSums]:
        return tuple(column_sums(self.survey.arrays, self.n, side) for side in (0, 1))

    def queries(self, n_queries: int, anchors: np.ndarray) -> np.ndarray:
        """The queries that `Split.queries` draws among the rows beside the anchors, ascending."""
        rows = self.survey.arrays["rows"]
        return np.sort(places_beside(rows[~np.isin(rows, anchors)][:n_queries], self.dropped))

    def take(self, side: int, rows: np.ndarray) -> np.ndarray:
        self.gather(rows)
        return self._vectors[side][np.searchsorted(self._rows, rows)]

    def gather(self, rows: np.ndarray) -> None:
        """Read those of the rows that are not in memory yet, of both spaces, in one pass."""
        missing = np.setdiff1d(rows, self._rows)
        if not len(missing):
            return
        work = put_rows(self.runner.store, rows_beside(missing, self.dropped))
        found = self.runner.run(work, self.pair.parts, "gather rows").arrays
        order = np.argsort(together := np.concatenate([self._rows, missing]))
        self._rows = together[order]
        for side in (0, 1):
            self._vectors[side] = np.concatenate([self._vectors[side], found[f"vectors_{side}"]])[order]

    def gather_last_neighbours(self, seen: BlockSums) -> None:
        """Those that the notes of the scores look at, at once."""
        lists = [top.rows[:, -2:].ravel() for name, top in seen.tops.items() if not name.endswith("longest")]
        self.gather(np.unique(np.concatenate([*lists, self._rows[:0]])))

    def one_pass(self, plan: BlockPlan) -> BlockSums:
        key = put_plan(self.runner.store, plan, self.dropped)
        found = self.runner.run(BlockWork(key), self.pair.parts, "compare")
        return BlockSums.from_arrays(stored_plan(self.runner.store, key)[0], found.arrays)

    def plan(self, question: Question, rows: RowNumbers) -> BlockPlan:
        self.gather(np.unique(np.concatenate(list(needed_rows(question, rows).values()))))
        return super().plan(question, rows)

    def scores(self, seen: BlockSums, form: str, classes: Classes | None = None) -> dict[str, Score]:
        """By metric."""
        scored = seen.plan.rows.scored(seen.plan.question.kind(form))
        split = SimpleNamespace(ids=_Ids(self, scored), test=scored)
        found = PairByShard(seen, form, split, self.take, partial(_no_rows, form), self.form_sums(seen, form), classes)
        each = {name: METRICS[name].load()().score(found) for name in metrics_of_a_pair()}
        return {name: score for name, score in each.items() if score is not None}


class _Ids:
    """The ids of the rows that are scored, read where a note names some of them."""

    def __init__(self, passes: ShardedPasses, scored: ScoredRows) -> None:
        self._passes, self._scored = passes, scored

    def __getitem__(self, places: np.ndarray | ScoredRows) -> np.ndarray | _Ids:
        if isinstance(places, ScoredRows):
            return self
        rows = rows_beside(self._scored.at(places), self._passes.dropped)
        return np.array(self._passes.pair.source.ids_of(rows), dtype=object)


def _no_rows(form: str) -> tuple[np.ndarray, np.ndarray]:
    raise SpaceError(
        f"{form}: expected a metric that reads sums and neighbours, got one that reads all rows; leave it out by shard"
    )
