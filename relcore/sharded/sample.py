"""A sample of a folder of shards as a space in memory: for work that needs its rows at once, and for the
app, which keeps it in the store by the folder's stamp.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, folder_stamp, is_address, put_encoding
from relcore.runs.digest import digest_of
from relcore.runs.progress import Context
from relcore.sharded.passes import Runner, Survey, chosen_anchors, gather, wanted_ids
from relcore.sharded.space import ShardedSpace, is_sharded
from relcore.spaces.space import LatentSpace

MOST_ROWS = 1_000_000  # that four panes draw
SAMPLE = 200_000
_SERIES = re.compile(r"step|epoch|iter|checkpoint|ckpt|layer", re.IGNORECASE)


def sample_spec(space: ShardedSpace, n_rows: int) -> SpaceSpec:
    """The spec of the sample, which says how many rows of how many it has; `sample_job` draws it. Its key is
    another one when a shard is written again.
    """
    rows = min(n_rows, space.n)
    key = digest_of("sample of shards", 1, space.place, space.digest, rows)
    return SpaceSpec("sample", space.place, options=(("key", key), ("rows", f"{rows}"), ("of", f"{space.n}")))


def sample_job(context: Context, *, place: str, n_rows: int) -> None:
    """Draw the sample, and keep it under the context's key, as a job of the engine."""
    stamp, space = folder_stamp(place), ShardedSpace.open(place)
    drawn = sample_shards(space, n_rows, Runner(context.store, report=context.report))
    put_encoding(context.store, context.key, drawn, {"sample of": space.place, "stamp": stamp})


def too_large(place: str) -> ShardedSpace | None:
    """The space of a folder that the app opens as a sample: more rows than the panes draw, or at an address;
    else None.

    A folder whose files are spaces of their own, such as checkpoints, is not one space: their names say so,
    or their ids are the same.

    Raises
    ------
    SpaceError
        An address that cannot be opened.
    """
    if not is_sharded(place):
        return None
    space = ShardedSpace.open(place)
    if is_address(place):
        return space
    if space.n <= MOST_ROWS or any(_SERIES.search(shard.name) for shard in space.shards):
        return None
    first, second = (next(shard.blocks(1)).ids for shard in space.shards[:2])
    return None if first is not None and first == second else space


def sample_shards(
    space: ShardedSpace, n_rows: int, runner: Runner, also: Sequence[str] = (), random_state: int = 0
) -> LatentSpace:
    """`n_rows` rows that have a direction, with their ids and labels in the order of the shards; all, where
    there are fewer.

    Rows are drawn by a hash of their ids: of two spaces with the same ids the same rows, also where the
    shards are cut in another way. Rows with the ids `also`, such as seed pairs, are taken in any case.

    Raises
    ------
    SpaceError
        `n_rows` below 1, NaN, ids that the space lacks.
    """
    if n_rows < 1:
        raise SpaceError(f"n_rows: expected 1 row or more, got {n_rows}")
    work = Survey(min(n_rows, space.n), "sample", random_state, wanted_ids(space, also))
    survey = runner.run(work, space.alone, "survey")
    rows = survey.arrays["rows"]
    if also:
        rows = np.union1d(rows, chosen_anchors(space, survey, also))
    drawn = gather(runner, space.alone, rows, texts=True)
    vectors, texts = drawn.arrays["vectors_0"], drawn.facts
    return LatentSpace(vectors, texts["ids"], name=space.name, labels=texts["labels"])
