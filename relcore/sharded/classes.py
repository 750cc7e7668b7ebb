"""Class agreement by shard: the classes of the queries and of the rows that were found, read once these are known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from relcore.block_scores.block_sums import BlockSums
from relcore.block_scores.scoring import PassedPair
from relcore.metrics.metric import LabelledNeighbours
from relcore.sharded.anchor_rows import rows_beside
from relcore.sharded.block_labels import BlockLabels
from relcore.sharded.gather import put_rows
from relcore.sharded.pair import ShardedPair
from relcore.sharded.project import alone

if TYPE_CHECKING:
    from relcore.sharded.compare import ShardedPasses

_TITLES = ((1, "forward"), (0, "backward"))


def labelled_side(pair: ShardedPair) -> int:
    """The space whose labels are the classes, as `comparison.class_labels` takes them: 0, 1, or −1 where neither has any."""
    spaces = enumerate((pair.source, pair.target))
    return next((side for side, space in spaces if all(shard.labels for shard in space.shards)), -1)


@dataclass(eq=False)
class Classes:
    """The classes of a pair's rows: how many rows each has, and the labels of the rows that `gather` was asked for.

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
        """None where most rows have no label, as for `comparison.class_labels`, or where there are too many classes."""
        counts = passes.survey.facts["classes"]
        n = sum(counts.values()) if counts else 0
        return cls(passes, Counter(counts), BlockLabels(side, n == passes.n)) if 2 * n > passes.n else None

    def gather(self, seen: BlockSums) -> None:
        """Read the labels of the anchors, the queries and their neighbours, of all representations in one pass."""
        lists = [top.rows.ravel() for name, top in seen.tops.items() if name.split("/")[2].startswith(("forward", "backward"))]
        found = np.unique(np.concatenate([*lists, *seen.plan.rows.queries.values(), seen.plan.rows.anchors]))
        self._rows = found[found >= 0]
        space = (self.passes.pair.source, self.passes.pair.target)[self.labelled.side]
        work = put_rows(self.passes.runner.store, rows_beside(self._rows, self.passes.dropped), texts=True, vectors=False)
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
