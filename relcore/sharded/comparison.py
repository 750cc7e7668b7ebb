"""Scores of two spaces in shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import METRICS
from relcore.base.numbers import counted
from relcore.base.report import Report
from relcore.engine.device import Device, on_device
from relcore.engine.nearest import largest_k, need_k
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.comparison import groups_of, metrics_of_a_pair, scores_of
from relcore.scores.neighbours import CONVENTIONS
from relcore.scores.passes import AlignedPair, RowPair
from relcore.scores.plan import Plan, needed_rows
from relcore.scores.roles import NO_ROWS, RowRoles, ScoreRequest, to_full_index, to_kept_index
from relcore.scores.score import Score
from relcore.scores.score_report import LIVE_QUERIES, scores_report
from relcore.scores.sums import PairBlock, SeveralSums, Sums
from relcore.sharded.runner import (
    Partial,
    PassResult,
    Runner,
    Shards,
    ShardTotal,
    ShardWork,
    keep,
    live_rows,
    read,
)
from relcore.sharded.space import ShardedSpace, shard_pairs
from relcore.sharded.survey import Survey, chosen_anchors, gather, need_distinct_ids, wanted_ids
from relcore.spaces.matching import distinct_names

_ROWS = 8192  # rows per block, which are wider as relative rows than in their space
MOST_QUERIES = 2048  # the similarities of these queries and a block take 32 MB in each of two searches
_MOST_MUTUAL = 20_000_000  # number of rows, because the chance level of "mutual" permutes all row numbers


@dataclass(frozen=True, eq=False)
class Plans:
    """The searches to run in one pass. Their row numbers do not count the `dropped` rows (m,), which are zero
    in some space. `labels_of` is the index of the space whose labels are the classes; −1 for none.
    """

    each: tuple[Plan, ...]
    dropped: np.ndarray
    labels_of: int = -1


@dataclass(frozen=True)
class BlockWork(ShardWork):
    kind: ClassVar[str] = "compare"
    version: ClassVar[int] = 4
    on_device: ClassVar[bool] = True

    plans: str

    def start(self, store: Store, report: Progress = silent) -> BlockTotal:
        return BlockTotal(read(store, self.plans, Plans), report)


class BlockTotal(ShardTotal):
    """The sums of all plans over the shards that were added."""

    def __init__(self, plans: Plans, report: Progress) -> None:
        self.plans = plans
        self.report = report
        self.sums: SeveralSums | None = None

    def add(self, shards: Shards) -> None:
        self._merge_sums(on_device(lambda where: self._sums_of(shards, where)))

    def _sums_of(self, shards: Shards, where: Device) -> SeveralSums:
        sums = SeveralSums(self.plans.each, where)
        side = self.plans.labels_of
        for blocks, alive, rows, (source, target) in live_rows(shards, self.report, _ROWS, labels=side >= 0):
            labelled = None
            if side >= 0:
                labels = blocks[side].labels
                assert labels is not None, "all shards of this space have labels"
                labelled = np.array([labels[row] != "" for row in alive], dtype=np.bool_)
            numbers = to_kept_index(rows, self.plans.dropped)
            sums.add(PairBlock((source, target), numbers=numbers, labelled=labelled))
        sums.result()
        return sums

    def merge(self, other: BlockTotal) -> None:
        assert other.sums is not None, "only totals of some shards are merged"
        self._merge_sums(other.sums)

    def _merge_sums(self, more: SeveralSums) -> None:
        if self.sums is None:
            self.sums = more
        else:
            self.sums.merge(more)

    def result(self) -> Partial:
        assert self.sums is not None, "a pass has at least one shard"
        return self.sums.to_arrays(), {}

    def restore(self, arrays: Mapping[str, np.ndarray], facts: dict[str, Any]) -> None:
        self.sums = SeveralSums.from_arrays(self.plans.each, arrays)


@dataclass(frozen=True)
class ShardedScores:
    """The scores of two spaces by each representation and metric. `n` is the number of rows that are scored,
    and `n_zero` the number of rows that are left out because they are zero in a space. `anchors` (k,) are row
    numbers.
    """

    scores: dict[str, dict[str, Score]]
    n: int
    n_zero: int
    anchors: np.ndarray

    def report(self, passes: dict[str, Any], source: ShardedSpace, target: ShardedSpace) -> Report:
        """The report of every score with its chance level. `passes` are facts on the time and memory that the
        passes over the rows used."""
        names = distinct_names((source, target))
        sentence = f"{names[0]} and {names[1]}, {counted(len(self.anchors), 'anchor')}"
        sentence += f", {counted(len(source.shards), 'shard')} each."
        facts = {"source": names[0], "target": names[1], "n": self.n}
        facts |= {"anchors": source.ids_of(self.anchors), **passes}
        return scores_report(self.scores, sentence, facts, also=passes["passes"])


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
    """Score how similar two spaces are, by all representations that `compare` scores, without loading a space
    into memory. `anchors` are ids, or a number of random rows; 0 means no anchors.

    Up to rounding, the numbers equal those for spaces in memory. Class agreement needs at most 100,000
    classes. Metrics that need all vectors at once are left out.
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
    spaces = (source, target)
    parts = shard_pairs(source, target)
    # As in `comparison.class_labels`, the classes are the labels of the source, or of the target if the
    # source has none.
    classes_of = next((side for side in (0, 1) if all(shard.labels for shard in spaces[side].shards)), -1)
    n_anchors = anchors if isinstance(anchors, int) else len(anchors)
    work = Survey(n_queries + n_anchors, wanted=wanted_ids(source, anchors), classes_of=classes_of)
    survey = runner.run(work, parts, "survey")
    need_distinct_ids(source, survey)
    if anchors == 0:
        chosen = NO_ROWS
    else:
        chosen = chosen_anchors(source, survey, anchors, random_state)
    rows = ShardedPair(spaces, parts, survey, classes_of, runner)
    requests = []
    for group in groups_of(REPRESENTATIONS if len(chosen) else ("absolute",)):
        if group[0] == "absolute":
            fitted = NO_ROWS
        else:
            fitted = to_kept_index(chosen, rows.dropped)
        roles = RowRoles(rows.n, fitted, rows.queries(n_queries, fitted), np.sort(fitted), rows.labelled)
        of = f" of {source.name!r} and {target.name!r}"
        need_k(k, len(roles), largest_k(len(roles), convention), of)
        requests.append((ScoreRequest(group, spec or ProjectionSpec(), k, convention), roles))
    pairs = [
        AlignedPair.passed(rows, representation, seen)
        for seen in rows.sums_of(requests)
        for representation in seen.plan.representations
    ]
    rows.gather_listed(pairs)
    metrics = [name for name in metrics_of_a_pair() if METRICS[name].load().reads != "rows"]
    scores = {pair.representation: scores_of(pair, metrics) for pair in pairs}
    return ShardedScores(scores, rows.n, len(rows.dropped), chosen)


class ShardedPair(RowPair):
    """Two spaces, to be scored, whose rows are read by shard. As in a `Match`, rows that are zero in one of
    the spaces are left out.

    If most rows have no label, or if there are too many classes, classes are ignored.
    """

    def __init__(
        self,
        spaces: Sequence[ShardedSpace],
        parts: Sequence[Shards],
        survey: PassResult,
        classes_of: int,
        runner: Runner,
    ) -> None:
        self.spaces = spaces
        self.parts = parts
        self.survey = survey
        self.runner = runner
        self.n = survey.facts["n"]
        self.dropped = survey.arrays["dropped"]
        self._classes_of = classes_of
        self._rows = NO_ROWS
        self._vectors = [np.empty((0, space.width), np.float32) for space in spaces]
        self._sizes = survey.facts["classes"] or {}
        labelled = sum(self._sizes.values())
        if 2 * labelled <= self.n:
            self.labelled = ""
        elif labelled == self.n:
            self.labelled = "all"
        else:
            self.labelled = "some"
        self._numbers = {"": -1} | {label: number for number, label in enumerate(self._sizes)}

    def __len__(self) -> int:
        return self.n

    @cached_property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        return tuple(self.survey.arrays[f"sums_{side}"] / self.n for side in (0, 1))

    def queries(self, n_queries: int, anchors: np.ndarray) -> np.ndarray:
        rows = to_kept_index(self.survey.arrays["rows"], self.dropped)
        return np.sort(rows[~np.isin(rows, anchors)][:n_queries])

    def take(self, side: int, rows: np.ndarray) -> np.ndarray:
        self.gather(rows)
        return self._vectors[side][np.searchsorted(self._rows, rows)]

    def gather(self, rows: np.ndarray) -> None:
        """Read the rows that are not yet in memory. One pass reads them from both spaces."""
        missing = np.setdiff1d(rows, self._rows)
        if not len(missing):
            return
        arrays = gather(self.runner, self.parts, to_full_index(missing, self.dropped)).arrays
        together = np.concatenate([self._rows, missing])
        order = np.argsort(together)
        self._rows = together[order]
        for side in (0, 1):
            self._vectors[side] = np.concatenate([self._vectors[side], arrays[f"vectors_{side}"]])[order]

    def gather_listed(self, pairs: Sequence[AlignedPair]) -> None:
        """Read in advance what notes and scores by class need: the vectors of the last two neighbours in each
        list, and the classes of all rows in the lists."""
        plans = [pair.searched.plan for pair in pairs]
        tops = [
            top.rows for pair in pairs for name, top in pair.searched.tops.items() if "/longest/" not in name
        ]
        self.gather(np.unique(np.concatenate([NO_ROWS, *(rows[:, -2:].ravel() for rows in tops)])))
        if not self.labelled:
            return
        queries = [plan.roles.queries for plan in plans]
        anchors = [plan.roles.anchors for plan in plans]
        neighbours = [rows.ravel() for rows in tops]
        rows = np.unique(np.concatenate([*queries, *anchors, *neighbours]))
        self._labelled_rows = rows[rows >= 0]
        labelled_space = self.spaces[self._classes_of].alone
        numbers = to_full_index(self._labelled_rows, self.dropped)
        labels = gather(self.runner, labelled_space, numbers, texts=True, vectors=False).facts["labels"]
        self._classes = np.array([self._numbers[label] for label in labels])

    def names(self, rows: np.ndarray) -> Sequence[str]:
        return self.spaces[0].ids_of(to_full_index(rows, self.dropped))

    def classes_of(self, rows: np.ndarray) -> np.ndarray:
        return self._classes[np.searchsorted(self._labelled_rows, rows)]

    def class_sizes(self, left_out: np.ndarray) -> np.ndarray:
        classes = self.classes_of(left_out)
        sizes = np.array(list(self._sizes.values()), np.int64)
        sizes -= np.bincount(classes[classes >= 0], minlength=len(sizes))
        return sizes[sizes > 0]

    def plan(self, question: ScoreRequest, roles: RowRoles) -> Plan:
        self.gather(np.unique(np.concatenate(list(needed_rows(question, roles).values()))))
        return super().plan(question, roles)

    def one_pass(self, plans: Sequence[Plan]) -> list[Sums]:
        classes_of = self._classes_of if self.labelled == "some" else -1
        together = Plans(tuple(plans), self.dropped, classes_of)
        work = BlockWork(keep(self.runner.store, together))
        return SeveralSums.from_arrays(plans, self.runner.run(work, self.parts, "compare").arrays).each
