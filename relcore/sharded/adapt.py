"""adapt by shard: the rows of a sharded space through an adapter, written shard by shard."""

from __future__ import annotations

import numpy as np

from relcore.migration.adapter_file import LoadedAdapter
from relcore.migration.streaming import SIDES, need_width
from relcore.sharded.project import Written, write_mapped
from relcore.sharded.row_maps import put_adapter
from relcore.sharded.runner import Runner
from relcore.sharded.space import ShardedSpace
from relcore.spaces import need_one_of


def adapt_shards(
    adapter: LoadedAdapter, source: ShardedSpace, goal: str, runner: Runner, *, side: str = "queries", form: str = ""
) -> Written:
    """Write all rows through an adapter; `side` says of which model they are: "queries" of the new one, "corpus" of the old.

    Raises
    ------
    SpaceError
        Rows of another width than the adapter's, NaN, a folder that holds something else.
    """
    need_one_of("side", side, SIDES)
    need_width(adapter, side, source.width, source.name)
    key = put_adapter(runner.store, adapter, side)
    return Written(goal, *write_mapped(source, key, goal, form, runner, "adapt"), np.empty(0, dtype=np.int64))
