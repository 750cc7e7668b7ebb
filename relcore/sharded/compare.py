"""compare by shard: every score of a pair of sharded spaces, by the passes of `relcore.scores` over the
shards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.runs.entries import Entry
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import LIVE_QUERIES, REPRESENTATIONS, ProjectionSpec, scores_of
from relcore.scores.metric import LabelledNeighbours
from relcore.scores.neighbours import CONVENTIONS, need_k
from relcore.scores.passes import (
    NO_ROWS,
    ColumnSums,
    Passes,
    Plan,
    Question,
    RowRoles,
    SeveralSums,
    Sums,
    needed_rows,
    places_beside,
    rows_beside,
)
from relcore.scores.score import Score
from relcore.scores.scoring import PassedPair, groups_of
from relcore.sharded.passes import (
    Partial,
    PassResult,
    Runner,
    Shards,
    ShardWork,
    Survey,
    chosen_anchors,
    column_sums,
    gather,
    keep,
    live_rows,
    need_distinct_ids,
    read,
    wanted_ids,
)
from relcore.sharded.space import ShardedSpace, paired

_ROWS = 8192  # that are summed up at once: relative rows are wider than the rows that they come from
MOST_QUERIES = 2048  # their similarities with a block of rows are 32 MB for each of two searches
_MOST_MUTUAL = 20_000_000  # rows; the chance level of "mutual" permutes all row numbers


@dataclass(frozen=True, eq=False)
class Plans:
    """What a pass sums up: by plans, whose rows are counted without those `dropped` (m,), ascending;
    `labels_of` is the space whose labels say which rows have a class, −1 where no classes are wanted.
    """

    each: tuple[Plan, ...]
    dropped: np.ndarray
    labels_of: int = -1


@dataclass(frozen=True)
class BlockWork(ShardWork):
    """The `Sums` of a shard by the `Plans` under a key, as arrays."""

    kind: ClassVar[str] = "compare"
    version: ClassVar[int] = 3

    plans: str

    def of_shard(self, shards: Shards, store: Store, report: Report = silent) -> Partial:
        plans, labelled = read(store, self.plans, Plans), None
        sums, classes_of = SeveralSums(plans.each), plans.labels_of
        for blocks, alive, rows, vectors in live_rows(shards, report, _ROWS, labels=classes_of >= 0):
            if classes_of >= 0:
                labels = blocks[classes_of].labels
                labelled = np.array([labels[row] != "" for row in alive], dtype=bool)
            sums.add(*vectors, places_beside(rows, plans.dropped), labelled)
        return sums.to_arrays(), {}

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        plans = read(store, self.plans, Plans).each
        sums, more = (SeveralSums.from_arrays(plans, entry.arrays) for entry in (first, second))
        sums.merge(more)
        return sums.to_arrays(), {}


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
    spaces, parts = (source, target), paired(source, target)
    # The classes are those of `comparison.class_labels`: the source's labels, or the target's.
    classes_of = next((side for side in (0, 1) if all(shard.labels for shard in spaces[side].shards)), -1)
    n_candidates = n_queries + (anchors if isinstance(anchors, int) else len(anchors))
    work = Survey(n_candidates, wanted=wanted_ids(source, anchors), classes_of=classes_of)
    survey = runner.run(work, parts, "survey")
    need_distinct_ids(source, survey)
    chosen = NO_ROWS if anchors == 0 else chosen_anchors(source, survey, anchors, random_state)
    passes = ShardedPasses(spaces, parts, survey, classes_of, runner)
    asked = []
    for group in groups_of(REPRESENTATIONS if len(chosen) else ("absolute",)):
        rows = NO_ROWS if group[0] == "absolute" else places_beside(chosen, passes.dropped)
        roles = RowRoles(passes.n, rows, passes.queries(n_queries, rows), np.sort(rows), passes.labelled)
        of = f" of {source.name!r} and {target.name!r}"
        need_k(k, len(roles), len(roles) - (convention == "mutual"), of)
        asked.append((Question(group, spec or ProjectionSpec(), k, convention), roles))
    pairs = [PairByShard(seen, form, None, passes) for seen in passes.seen(asked) for form in seen.plan.forms]
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

    def __init__(
        self,
        spaces: Sequence[ShardedSpace],
        parts: Sequence[Shards],
        survey: PassResult,
        classes_of: int,
        runner: Runner,
    ) -> None:
        self.spaces, self.parts, self.survey, self.runner = spaces, parts, survey, runner
        self.n, self.dropped, self._classes_of = survey.facts["n"], survey.arrays["dropped"], classes_of
        self._rows, self._vectors = NO_ROWS, [np.empty((0, one.width), np.float32) for one in spaces]
        labelled = sum((survey.facts["classes"] or {}).values())
        self.classes = Counter(survey.facts["classes"]) if 2 * labelled > self.n else None
        self.labelled = "" if self.classes is None else "all" if labelled == self.n else "some"

    @cached_property
    def sums(self) -> tuple[ColumnSums, ColumnSums]:
        return column_sums(self.survey, 0), column_sums(self.survey, 1)

    def queries(self, n_queries: int, anchors: np.ndarray) -> np.ndarray:
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
        arrays = gather(self.runner, self.parts, rows_beside(missing, self.dropped)).arrays
        order = np.argsort(together := np.concatenate([self._rows, missing]))
        self._rows = together[order]
        for side in (0, 1):
            self._vectors[side] = np.concatenate([self._vectors[side], arrays[f"vectors_{side}"]])[order]

    def gather_listed(self, pairs: Sequence[PairByShard]) -> None:
        """Of the rows that were listed the last neighbours, for notes, and the labels."""
        tops = [top.rows for pair in pairs for name, top in pair.seen.tops.items() if "/longest/" not in name]
        self.gather(np.unique(np.concatenate([NO_ROWS, *(rows[:, -2:].ravel() for rows in tops)])))
        if self.classes is None:
            return
        roles = [pair.seen.plan.roles for pair in pairs]
        more = [rows for role in roles for rows in (role.queries, role.anchors)]
        rows = np.unique(np.concatenate([*more, *(rows.ravel() for rows in tops)]))
        self._labelled_rows, of = rows[rows >= 0], self.spaces[self._classes_of].alone
        numbers = rows_beside(self._labelled_rows, self.dropped)
        texts = gather(self.runner, of, numbers, texts=True, vectors=False).facts
        self._labels = np.array(texts["labels"], dtype=object)

    def labels_of(self, rows: np.ndarray) -> np.ndarray:
        """The labels of rows that were listed, in their shape."""
        return self._labels[np.searchsorted(self._labelled_rows, rows)]

    def plan(self, question: Question, roles: RowRoles) -> Plan:
        self.gather(np.unique(np.concatenate(list(needed_rows(question, roles).values()))))
        return super().plan(question, roles)

    def one_pass(self, plans: Sequence[Plan]) -> list[Sums]:
        together = Plans(tuple(plans), self.dropped, self._classes_of if self.labelled == "some" else -1)
        key = keep(self.runner.store, together)
        arrays = self.runner.run(BlockWork(key), self.parts, "compare").arrays
        return SeveralSums.from_arrays(plans, arrays).each


class PairByShard(PassedPair):
    """A `PassedPair` whose ids and labels are read where a score needs some of them."""

    def names(self, rows: np.ndarray) -> Sequence[str]:
        return self.passes.spaces[0].ids_of(rows_beside(rows, self.passes.dropped))

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
        own, *classes = (
            np.vectorize(numbers.__getitem__, [np.int64])(passes.labels_of(rows))
            for rows in (roles.queries[asked], *lists)
        )
        return LabelledNeighbours(n, roles.queries[asked], own, lists, tuple(classes))
