"""compare by shard: every score of a pair of sharded spaces, from passes over the shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import METRICS
from relcore.represent.similarity import row_blocks
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import LIVE_QUERIES, REPRESENTATIONS, ProjectionSpec, metrics_of_a_pair
from relcore.scores.metric import LabelledNeighbours
from relcore.scores.neighbours import CONVENTIONS, need_k
from relcore.scores.plan import BlockPlan, ColumnSums, Gathered, Question, RowRoles, ScoredRows, needed_rows
from relcore.scores.score import Score
from relcore.scores.scoring import PassedPair, Passes
from relcore.scores.sums import BlockSums
from relcore.sharded.passes import Arrays, PassResult, Runner, Shards, ShardWork, made_once
from relcore.sharded.project import alone
from relcore.sharded.shard import aligned
from relcore.sharded.space import (
    ShardedPair,
    ShardedSpace,
    drawn_anchors,
    global_rows,
    lengths_above_zero,
    named_anchors,
    places_beside,
    put_rows,
    rows_beside,
    wanted_ids,
)
from relcore.sharded.survey import Survey, column_sums, need_distinct_ids

# BlockLabels: which rows have a class, known for the rows of the block that is being read.


class BlockLabels:
    """In place of `RowNumbers.labelled`, whose n bits no worker needs.

    Parameters
    ----------
    side : int
        The space that has the labels, 0 or 1.
    whole : bool
        Whether every row has one.
    """

    def __init__(self, side: int, whole: bool) -> None:
        self.side, self.whole = side, whole
        self._rows, self._labelled = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)

    def all(self) -> bool:
        return self.whole

    def take_block(self, rows: np.ndarray, labels: list[str]) -> None:
        """The numbers (m,), ascending, and the labels of the rows that are added next."""
        self._rows, self._labelled = rows, np.array([label != "" for label in labels], dtype=bool)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self._labelled[np.searchsorted(self._rows, rows)]


# The pass of a comparison: what `block_scores` sums up over blocks of rows, shard by shard.

_ROWS = 8192  # that are summed up at once: relative rows are wider than the rows that they come from
_FRAME = ("centre", "mean", "turn", "stretch", "basis")
_plans: dict[str, tuple[BlockPlan, np.ndarray]] = {}


@dataclass(frozen=True)
class BlockWork(ShardWork):
    """The `BlockSums` of a shard, as arrays; `plan` is the key under which `put_plan` put their plan."""

    kind: ClassVar[str] = "compare"

    plan: str

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        plan, dropped = stored_plan(store, self.plan)
        sums, labelled = BlockSums(plan), plan.rows.labelled
        for blocks in aligned(shards, labels=labelled is not None):
            for part in row_blocks(len(blocks[0].vectors), _ROWS):
                vectors = tuple(block.vectors[part] for block in blocks)
                rows = global_rows(shards[0], blocks[0], np.arange(part.start, part.stop))
                alive = lengths_above_zero(vectors)
                if not alive.all():
                    vectors, rows = tuple(one[alive] for one in vectors), rows[alive]
                if len(rows):
                    rows = places_beside(rows, dropped)
                    if labelled is not None:
                        labels = blocks[labelled.side].labels[part]
                        labelled.take_block(
                            rows, [label for label, kept in zip(labels, alive, strict=True) if kept]
                        )
                    sums.add(*vectors, rows)
                report(blocks[0].first + part.stop, shards[0].n, shards[0].name)
        return sums.to_arrays(), {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        plan, _ = stored_plan(store, self.plan)
        sums = BlockSums.from_arrays(plan, first.arrays)
        sums.merge(BlockSums.from_arrays(plan, second.arrays))
        return sums.to_arrays(), {}


def put_plan(store: Store, plan: BlockPlan, dropped: np.ndarray) -> str:
    """The key of a plan, whose rows are counted without those `dropped` (m,), ascending."""
    rows, question = plan.rows, plan.question
    arrays = {"anchors": rows.anchors, "left out": rows.left_out, "dropped": dropped}
    arrays |= {f"queries/{kind}": one for kind, one in rows.queries.items()}
    arrays |= {
        f"gathered/{name}/{side}": one
        for name, both in plan.gathered.items()
        for side, one in enumerate(both)
    }
    for side in (0, 1):
        arrays |= {f"sums/{side}/{name}": one for name, one in plan.sums[side].to_arrays().items()}
        # Also what a decomposition gave: another processor might turn its signs, and sums in two such bases
        # cannot be merged.
        for name, frame in plan.frames[side].items():
            given = {one: getattr(frame, one) for one in _FRAME}
            arrays |= {
                f"frames/{side}/{name}/{one}": array for one, array in given.items() if array is not None
            }
    asked = {one.name: getattr(question, one.name) for one in fields(question) if one.name != "projection"}
    settings = {
        "question": asked | {"forms": list(question.forms)},
        "projection": vars(question.projection),
        "n": rows.n,
    }
    settings["labelled"] = None if rows.labelled is None else [rows.labelled.side, rows.labelled.whole]
    key = digest_of("block plan", arrays, settings)
    if not store.has(key):
        store.put(key, arrays, settings)
    return key


def stored_plan(store: Store, key: str) -> tuple[BlockPlan, np.ndarray]:
    """The plan, and the dropped rows; made once for the shards that a process works on one after the
    other.
    """
    return made_once(
        _plans,
        store,
        key,
        lambda entry: (_plan(entry), entry.arrays["dropped"]),
        "the plan of the comparison",
    )


def _plan(entry: Entry) -> BlockPlan:
    arrays, told = entry.arrays, dict(entry.metadata["question"])
    told |= {"forms": tuple(told["forms"]), "projection": ProjectionSpec(**entry.metadata["projection"])}
    parts = _nested(arrays)
    labelled = entry.metadata["labelled"] and BlockLabels(*entry.metadata["labelled"])
    rows = RowRoles(entry.metadata["n"], arrays["anchors"], parts["queries"], labelled, arrays["left out"])
    gathered: Gathered = {name: (both["0"], both["1"]) for name, both in parts["gathered"].items()}
    sums = tuple(ColumnSums.from_arrays(parts["sums"][side]) for side in "01")
    question = Question(**told)
    return BlockPlan(question, rows, sums, gathered, given=tuple(parts["frames"][side] for side in "01"))


def _nested(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """``{"a/b/c": array}`` as ``{"a": {"b": {"c": array}}}``."""
    found: dict[str, Any] = {}
    for name, array in arrays.items():
        *path, last = name.split("/")
        place = found
        for part in path:
            place = place.setdefault(part, {})
        place[last] = array
    return found


# Class agreement by shard: the classes of the queries and of the rows that were found, read once these are
# known.

_TITLES = ((1, "forward"), (0, "backward"))


def labelled_side(pair: ShardedPair) -> int:
    """The space whose labels are the classes, as `comparison.class_labels` takes them: 0, 1, or −1 where
    neither has any.
    """
    spaces = enumerate((pair.source, pair.target))
    return next((side for side, space in spaces if all(shard.labels for shard in space.shards)), -1)


@dataclass(eq=False)
class Classes:
    """The classes of a pair's rows: how many rows each has, and the labels of the rows that `gather` was
    asked for.

    Attributes
    ----------
    counts : label → rows
    labelled : BlockLabels
        For the pass over the rows.
    """

    passes: ShardedPasses
    counts: Counter[str]
    labelled: BlockLabels
    _rows: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    _labels: np.ndarray = field(default_factory=lambda: np.empty(0, object))

    @classmethod
    def of(cls, passes: ShardedPasses, side: int) -> Classes | None:
        """None where most rows have no label, as for `comparison.class_labels`, or where there are too
        many classes.
        """
        counts = passes.survey.facts["classes"]
        n = sum(counts.values()) if counts else 0
        return cls(passes, Counter(counts), BlockLabels(side, n == passes.n)) if 2 * n > passes.n else None

    def gather(self, seen: BlockSums) -> None:
        """Read the labels of the anchors, the queries and their neighbours, of all representations in one
        pass.
        """
        lists = [
            top.rows.ravel()
            for name, top in seen.tops.items()
            if name.split("/")[2].startswith(("forward", "backward"))
        ]
        found = np.unique(np.concatenate([*lists, *seen.plan.rows.queries.values(), seen.plan.rows.anchors]))
        self._rows = found[found >= 0]
        space = (self.passes.pair.source, self.passes.pair.target)[self.labelled.side]
        work = put_rows(
            self.passes.runner.store, rows_beside(self._rows, self.passes.dropped), texts=True, vectors=False
        )
        told = self.passes.runner.run(work, alone(space), "gather labels").facts
        self._labels = np.array(told["labels"], dtype=object)

    def labels(self, rows: np.ndarray) -> np.ndarray:
        """Of rows that were gathered, in their shape."""
        return self._labels[np.searchsorted(self._rows, rows)]

    def held_out(self, anchors: np.ndarray) -> Counter[str]:
        """Rows of each class beside the anchors."""
        return self.counts - Counter(label for label in self.labels(anchors) if label)


class PairByShard(PassedPair):
    """A `PassedPair` whose labels are `Classes`."""

    def labelled_neighbours(self) -> LabelledNeighbours | None:
        classes, seen, form = self.labels, self._seen, self._form
        if classes is None or not self.same_width:
            return None
        plan = seen.plan
        kind = plan.question.kind(form)
        counts = classes.held_out(plan.rows.anchors if kind == "held out" else plan.rows.anchors[:0])
        asked = plan.rows.queries[kind]
        which = np.flatnonzero(classes.labels(asked) != "")
        n = sum(counts.values())
        if not 1 < len(counts) < n or not len(which):
            return None
        k = min(plan.question.k, n - 1) + 1
        tops = [
            seen.tops.get(f"{form}/{side}/{title} labelled") or seen.tops[f"{form}/{side}/{title}"]
            for side, title in _TITLES[: 1 + (plan.question.convention == "mutual")]
        ]
        lists = tuple(top.rows[which, :k] for top in tops)
        numbers = {label: number for number, label in enumerate(counts)}
        own, *found = (_numbered(classes.labels(rows), numbers) for rows in (asked[which], *lists))
        return LabelledNeighbours(n, asked[which], own, lists, tuple(found))


def _numbered(labels: np.ndarray, numbers: dict[str, int]) -> np.ndarray:
    return np.array([numbers[label] for label in labels.ravel()], dtype=np.int64).reshape(labels.shape)


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
    """The scores of `comparison.score_pair` for all representations; anchors are ids, or a number of random
    rows, or 0.

    The numbers are those of both spaces in memory, but for rounding. Class agreement is left out where there
    are more than 100,000 classes.

    Raises
    ------
    SpaceError
        Shards that do not pair, NaN, an id of several rows (as `need_distinct_ids` finds it), anchors that a
        space lacks, too many queries.
    """
    need_one_of("convention", convention, CONVENTIONS)
    if not 1 <= n_queries <= MOST_QUERIES:
        raise SpaceError(
            f"n_queries: expected 1 … {MOST_QUERIES:,} queries by shard, got {n_queries:,}; take a sample"
        )
    if convention == "mutual" and source.n > _MOST_MUTUAL:
        raise SpaceError(
            f"convention: expected 'paper' above {_MOST_MUTUAL:,} rows, got 'mutual'; choose 'paper'"
        )
    pair, named = ShardedPair(source, target), not isinstance(anchors, int)
    n_anchors = len(anchors) if named else anchors
    wanted = wanted_ids(source, anchors) if named else ()
    side = labelled_side(pair)
    survey = runner.run(Survey(n_queries + n_anchors, wanted=wanted, classes_of=side), pair.parts, "survey")
    need_distinct_ids(source, survey.arrays["keys"], survey.arrays["rows"])
    chosen = np.empty(0, dtype=np.int64)
    if n_anchors or named:
        chosen = (
            named_anchors(source, survey, anchors)
            if named
            else drawn_anchors(survey, source.n, n_anchors, random_state)
        )
    forms = REPRESENTATIONS if len(chosen) else ("absolute",)
    passes = ShardedPasses(pair, survey, runner)
    question = Question(forms, spec or ProjectionSpec(), k, convention)
    queries = {
        kind: passes.queries(n_queries, chosen if kind == "held out" else ()) for kind in question.kinds
    }
    classes = Classes.of(passes, side)
    rows = RowRoles(passes.n, places_beside(chosen, passes.dropped), queries, classes and classes.labelled)
    for kind in question.kinds:
        need_k(
            k,
            n := rows.n_scored(kind),
            n - (convention == "mutual"),
            f" of {source.name!r} and {target.name!r}",
        )
    seen = passes.seen(question, rows)
    passes.gather_last_neighbours(seen)
    if classes is not None:
        classes.gather(seen)
    return ShardedScores(
        {form: passes.scores(seen, form, classes) for form in forms}, passes.n, len(passes.dropped), chosen
    )


class ShardedPasses(Passes):
    """`Passes` over a pair by shard. Rows are counted without those that are zero in a space, as in a
    `Match`.
    """

    def __init__(self, pair: ShardedPair, survey: PassResult, runner: Runner) -> None:
        self.pair, self.survey, self.runner = pair, survey, runner
        self.n, self.dropped = survey.facts["n"], survey.arrays["dropped"]
        self._rows, self._vectors = (
            np.empty(0, dtype=np.int64),
            [np.empty((0, one.width), np.float32) for one in self._spaces],
        )

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

    def plan(self, question: Question, rows: RowRoles) -> BlockPlan:
        self.gather(np.unique(np.concatenate(list(needed_rows(question, rows).values()))))
        return super().plan(question, rows)

    def scores(self, seen: BlockSums, form: str, classes: Classes | None = None) -> dict[str, Score]:
        """By metric."""
        scored = seen.plan.rows.scored(seen.plan.question.kind(form))
        split = SimpleNamespace(ids=_Ids(self, scored), test=scored)
        found = PairByShard(
            seen, form, split, self.take, partial(_no_rows, form), self.form_sums(seen, form), classes
        )
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
        f"{form}: expected a metric that reads sums and neighbours, got one that reads all rows; leave it out"
        " by shard"
    )
