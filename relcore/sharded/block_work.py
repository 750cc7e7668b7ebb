"""The pass of a comparison: what `block_scores` sums up over blocks of rows, shard by shard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from relcore.block_scores.block_sums import BlockSums
from relcore.block_scores.first_pass import ColumnSums
from relcore.block_scores.plan import BlockPlan, Gathered
from relcore.block_scores.question import Question, RowNumbers
from relcore.comparison import ProjectionSpec
from relcore.progress import Report, silent
from relcore.sharded.anchor_rows import places_beside
from relcore.sharded.block_labels import BlockLabels
from relcore.sharded.made_once import made_once
from relcore.sharded.pair import global_rows, lengths_above_zero
from relcore.sharded.shard import aligned
from relcore.sharded.shard_pass import Arrays, Shards, ShardWork
from relcore.similarity import row_blocks
from relcore.store import Entry, Store, digest_of

_ROWS = 8192  # that are summed up at once: relative rows are wider than the rows that they come from
_FRAME = ("centre", "mean", "turn", "stretch", "basis")
_plans: dict[str, tuple[BlockPlan, np.ndarray]] = {}


@dataclass(frozen=True)
class BlockWork(ShardWork):
    """The `BlockSums` of a shard, as arrays; `plan` is the key under which `put_plan` put their plan."""

    kind: ClassVar[str] = "compare"

    plan: str

    def of_shard(self, shards: Shards, store: Store, report: Report = silent) -> tuple[Arrays, dict[str, Any]]:
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
                        labelled.take_block(rows, [label for label, kept in zip(labels, alive, strict=True) if kept])
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
    arrays |= {f"gathered/{name}/{side}": one for name, both in plan.gathered.items() for side, one in enumerate(both)}
    for side in (0, 1):
        arrays |= {f"sums/{side}/{name}": one for name, one in plan.sums[side].to_arrays().items()}
        # Also what a decomposition gave: another processor might turn its signs, and sums in two such bases cannot be merged.
        for name, frame in plan.frames[side].items():
            given = {one: getattr(frame, one) for one in _FRAME}
            arrays |= {f"frames/{side}/{name}/{one}": array for one, array in given.items() if array is not None}
    asked = {one.name: getattr(question, one.name) for one in fields(question) if one.name != "projection"}
    settings = {"question": asked | {"forms": list(question.forms)}, "projection": vars(question.projection), "n": rows.n}
    settings["labelled"] = None if rows.labelled is None else [rows.labelled.side, rows.labelled.whole]
    key = digest_of("block plan", arrays, settings)
    if not store.has(key):
        store.put(key, arrays, settings)
    return key


def stored_plan(store: Store, key: str) -> tuple[BlockPlan, np.ndarray]:
    """The plan, and the dropped rows; made once for the shards that a process works on one after the other."""
    return made_once(_plans, store, key, lambda entry: (_plan(entry), entry.arrays["dropped"]), "the plan of the comparison")


def _plan(entry: Entry) -> BlockPlan:
    arrays, told = entry.arrays, dict(entry.metadata["question"])
    told |= {"forms": tuple(told["forms"]), "projection": ProjectionSpec(**entry.metadata["projection"])}
    parts = _nested(arrays)
    labelled = entry.metadata["labelled"] and BlockLabels(*entry.metadata["labelled"])
    rows = RowNumbers(entry.metadata["n"], arrays["anchors"], parts["queries"], labelled, arrays["left out"])
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
