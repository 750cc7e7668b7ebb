"""Apply an adapter to folders of shards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from relcore.base.errors import need_one_of
from relcore.migrate.adapt import SIDES, need_width
from relcore.migrate.adapter_files import LoadedAdapter
from relcore.migrate.adapters import apply_steps
from relcore.sharded.runner import Runner
from relcore.sharded.space import ShardedSpace
from relcore.sharded.writing import RowMap, Written, write_mapped


@dataclass(frozen=True, eq=False)
class AdapterMap:
    """The steps that an adapter applies to rows of one model, as class names and arrays, so that they can be
    stored for workers."""

    steps: tuple[tuple[str, dict[str, np.ndarray]], ...]

    @cached_property
    def function(self) -> RowMap:
        from relcore.migrate import adapters

        steps = tuple(getattr(adapters, name)(**arrays) for name, arrays in self.steps)
        return lambda X: apply_steps(steps, X)


def adapt_shards(
    adapter: LoadedAdapter,
    source: ShardedSpace,
    goal: str,
    runner: Runner,
    *,
    side: str = "queries",
) -> Written:
    """Apply an adapter to all rows and write the result. `side` tells the model of the rows: "queries" for
    the new model, "corpus" for the old one.
    """
    need_one_of("side", side, SIDES)
    need_width(adapter, side, source.width, source.name)
    if side == "queries":
        steps = adapter.query_steps_
    else:
        steps = adapter.corpus_steps_
    rows = AdapterMap(tuple((type(step).__name__, vars(step)) for step in steps))
    return write_mapped(source, rows, goal, runner, "adapt")
