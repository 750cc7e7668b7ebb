"""compare by shard: every score of a pair of sharded spaces, from passes over the shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from relcore.base import records
from relcore.base.errors import SpaceError, need_one_of
from relcore.represent.similarity import row_blocks
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import LIVE_QUERIES, REPRESENTATIONS, ProjectionSpec, scores_of
from relcore.scores.device import NumpyDevice
from relcore.scores.metric import LabelledNeighbours
from relcore.scores.neighbours import CONVENTIONS, need_k
from relcore.scores.plan import (
    NO_ROWS,
    ColumnSums,
    Plan,
    Question,
    RowRoles,
    needed_rows,
    places_beside,
    rows_beside,
)
from relcore.scores.score import Score
from relcore.scores.scoring import PassedPair, Passes, groups_of
from relcore.scores.sums import Sums
from relcore.sharded.passes import Arrays, PassResult, Runner, Shards, ShardWork, made_once
from relcore.sharded.project import alone
from relcore.sharded.shard import aligned
from relcore.sharded.space import (
    ShardedPair,
    ShardedSpace,
    chosen_anchors,
    global_rows,
    lengths_above_zero,
    put_rows,
    wanted_ids,
)
from relcore.sharded.survey import Survey, column_sums, need_distinct_ids

# The pass of a comparison: the same `Sums` over blocks of rows as in memory, shard by shard.

_ROWS = 8192  # that are summed up at once: relative rows are wider than the rows that they come from
_plans: dict[str, Plans] = {}


@dataclass(frozen=True, eq=False)
class Plans:
    """What a pass sums up.

    Attributes
    ----------
    each : plans
        Whose rows are counted without those `dropped` (m,), ascending.
    labels_of : int
        The space whose labels say which rows have a class, 0 or 1; −1 where no classes are wanted.
    """

    each: tuple[Plan, ...]
    dropped: np.ndarray
    labels_of: int = -1

    @classmethod
    def stored(cls, store: Store, key: str) -> Plans:
        """Made once for the shards that a process works on one after the other."""

        def unpacked(entry: Entry) -> Plans:
            return records.unpack(cls, entry.arrays, entry.metadata)

        return made_once(_plans, store, key, unpacked, "the plan of the comparison")

    def sums(self, arrays: Arrays) -> list[Sums]:
        """Back from what `BlockWork` keeps."""
        own: list[Arrays] = [{} for _ in self.each]
        for name, array in arrays.items():
            number, _, rest = name.partition("/")
            own[int(number)][rest] = array
        return [Sums.from_arrays(plan, one) for plan, one in zip(self.each, own, strict=True)]


@dataclass(frozen=True)
class BlockWork(ShardWork):
    """The `Sums` of a shard by the `Plans` under a key, as arrays."""

    kind: ClassVar[str] = "compare"
    version: ClassVar[int] = 2

    plans: str

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        plans, labelled = Plans.stored(store, self.plans), None
        device = NumpyDevice()
        several = [Sums(plan, device) for plan in plans.each]
        for blocks in aligned(shards, labels=plans.labels_of >= 0):
            for part in row_blocks(len(blocks[0].vectors), _ROWS):
                vectors = tuple(block.vectors[part] for block in blocks)
                alive = np.flatnonzero(lengths_above_zero(vectors))
                if len(alive) < len(vectors[0]):
                    vectors = tuple(one[alive] for one in vectors)
                if plans.labels_of >= 0:
                    labels = blocks[plans.labels_of].labels[part]
                    labelled = np.array([labels[row] != "" for row in alive], dtype=bool)
                rows = places_beside(global_rows(shards[0], blocks[0], part.start + alive), plans.dropped)
                for sums in several:
                    sums.add(*vectors, rows, labelled)
                report(blocks[0].first + part.stop, shards[0].n, shards[0].name)
        return _arrays(several), {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        plans = Plans.stored(store, self.plans)
        several = plans.sums(first.arrays)
        for sums, more in zip(several, plans.sums(second.arrays), strict=True):
            sums.merge(more)
        return _arrays(several), {}


def _arrays(several: Sequence[Sums]) -> Arrays:
    return {
        f"{number}/{name}": array
        for number, sums in enumerate(several)
        for name, array in sums.to_arrays().items()
    }


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
    """The scores of `score_forms` for all representations; anchors are ids, or a number of random rows, or 0.

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
    pair = ShardedPair(source, target)
    n_anchors = anchors if isinstance(anchors, int) else len(anchors)
    # The classes are those of `comparison.class_labels`: the source's labels, or the target's.
    labelled = (side for side in (0, 1) if all(shard.labels for shard in (source, target)[side].shards))
    survey = runner.run(
        Survey(
            n_queries + n_anchors,
            wanted=wanted_ids(source, anchors),
            classes_of=next(labelled, -1),
        ),
        pair.parts,
        "survey",
    )
    need_distinct_ids(source, survey.arrays["keys"], survey.arrays["rows"])
    chosen = NO_ROWS if anchors == 0 else chosen_anchors(source, survey, anchors, random_state)
    passes = ShardedPasses(pair, survey, runner)
    parts = []
    for group in groups_of(REPRESENTATIONS if len(chosen) else ("absolute",)):
        rows = NO_ROWS if group[0] == "absolute" else places_beside(chosen, passes.dropped)
        queries = passes.queries(n_queries, rows)
        roles = RowRoles(passes.n, rows, queries, np.sort(rows), passes.labelled)
        n = len(roles)
        need_k(k, n, n - (convention == "mutual"), f" of {source.name!r} and {target.name!r}")
        parts.append((Question(group, spec or ProjectionSpec(), k, convention), roles))
    pairs = [PairByShard(seen, form, passes) for seen in passes.seen(parts) for form in seen.plan.forms]
    passes.gather_listed(pairs)
    scores = {pair.form: scores_of(pair) for pair in pairs}
    return ShardedScores(scores, passes.n, len(passes.dropped), chosen)


class ShardedPasses(Passes):
    """`Passes` over a pair by shard. Rows are counted without those that are zero in a space, as in a
    `Match`.

    Attributes
    ----------
    classes : label → rows, or None
        None where most rows have no label, as for `comparison.class_labels`, or where there are too many.
    """

    def __init__(self, pair: ShardedPair, survey: PassResult, runner: Runner) -> None:
        self.pair, self.survey, self.runner = pair, survey, runner
        self.n, self.dropped = survey.facts["n"], survey.arrays["dropped"]
        self._spaces = pair.source, pair.target
        self._rows = NO_ROWS
        self._vectors = [np.empty((0, one.width), np.float32) for one in self._spaces]
        labelled = sum((survey.facts["classes"] or {}).values())
        self.classes = Counter(survey.facts["classes"]) if 2 * labelled > self.n else None
        self.labelled = "" if self.classes is None else "all" if labelled == self.n else "some"
        self._side = -1
        if self.classes is not None:
            self._side = 0 if all(shard.labels for shard in pair.source.shards) else 1

    @cached_property
    def sums(self) -> tuple[ColumnSums, ColumnSums]:
        return tuple(column_sums(self.survey.arrays, self.n, side) for side in (0, 1))

    def queries(self, n_queries: int, anchors: np.ndarray) -> np.ndarray:
        """The queries that `Split.queries` draws among the rows beside the anchors, ascending."""
        rows = places_beside(self.survey.arrays["rows"], self.dropped)
        return np.sort(rows[~np.isin(rows, anchors)][:n_queries])

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

    def gather_listed(self, pairs: Sequence[PairByShard]) -> None:
        """Of the rows that were listed the last neighbours, for notes, and the labels."""
        tops = [top.rows for pair in pairs for name, top in pair.seen.tops.items() if "/longest/" not in name]
        self.gather(np.unique(np.concatenate([NO_ROWS, *(rows[:, -2:].ravel() for rows in tops)])))
        if self.classes is None:
            return
        roles = [pair.seen.plan.roles for pair in pairs]
        more = [one for role in roles for one in (role.queries, role.anchors)]
        rows = np.unique(np.concatenate([*more, *(rows.ravel() for rows in tops)]))
        self._labelled_rows = rows[rows >= 0]
        work = put_rows(
            self.runner.store, rows_beside(self._labelled_rows, self.dropped), texts=True, vectors=False
        )
        found = self.runner.run(work, alone(self._spaces[self._side]), "gather labels").facts
        self._labels = np.array(found["labels"], dtype=object)

    def labels_of(self, rows: np.ndarray) -> np.ndarray:
        """The labels of rows that were listed, in their shape."""
        return self._labels[np.searchsorted(self._labelled_rows, rows)]

    def plan(self, question: Question, roles: RowRoles) -> Plan:
        self.gather(np.unique(np.concatenate(list(needed_rows(question, roles).values()))))
        return super().plan(question, roles)

    def one_pass(self, plans: Sequence[Plan]) -> list[Sums]:
        together = Plans(tuple(plans), self.dropped, self._side if self.labelled == "some" else -1)
        arrays, record = records.pack(together)
        key = digest_of("plans", arrays, record)
        if not self.runner.store.has(key):
            self.runner.store.put(key, arrays, record)
        return together.sums(self.runner.run(BlockWork(key), self.pair.parts, "compare").arrays)


class PairByShard(PassedPair):
    """A `PassedPair` whose ids and labels are read where a score needs some of them."""

    def __init__(self, seen: Sums, form: str, passes: ShardedPasses) -> None:
        roles = seen.plan.roles
        super().__init__(seen, form, SimpleNamespace(ids=_Ids(passes, roles), test=roles), passes)

    @property
    def source(self) -> np.ndarray:
        raise SpaceError(
            f"{self.form}: expected a metric that reads sums and neighbours, got one that reads all rows;"
            " leave it out by shard"
        )

    target = source

    def labelled_neighbours(self) -> LabelledNeighbours | None:
        passes, roles = self.passes, self.seen.plan.roles
        if passes.classes is None or not self.same_width:
            return None
        counts = passes.classes - Counter(passes.labels_of(roles.anchors))
        asked, n = passes.labels_of(roles.queries) != "", sum(counts.values())
        if not 1 < len(counts) < n or not asked.any():
            return None
        lists = tuple(self.voters(asked, min(self.k, n - 1) + 1))
        numbers = {label: number for number, label in enumerate(counts)}
        queries = roles.queries[asked]
        own, *classes = (
            np.array([numbers[label] for label in passes.labels_of(rows).ravel()]).reshape(rows.shape)
            for rows in (queries, *lists)
        )
        return LabelledNeighbours(n, queries, own, lists, tuple(classes))


class _Ids:
    """The ids of the rows that are scored, read where a note names some of them."""

    def __init__(self, passes: ShardedPasses, roles: RowRoles) -> None:
        self._passes, self._roles = passes, roles

    def __getitem__(self, places: np.ndarray | RowRoles) -> np.ndarray | _Ids:
        if isinstance(places, RowRoles):
            return self
        rows = rows_beside(self._roles.at(places), self._passes.dropped)
        return np.array(self._passes.pair.source.ids_of(rows), dtype=object)
