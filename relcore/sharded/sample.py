"""A sample of a folder of shards as a space in memory: for work that needs its rows at once, and for the
app, which keeps it in the store by the folder's stamp.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, folder_stamp, put_encoding
from relcore.runs.digest import digest_of
from relcore.runs.progress import Context
from relcore.sharded.passes import Runner
from relcore.sharded.project import alone
from relcore.sharded.shard import Shard, is_address
from relcore.sharded.space import (
    ShardedSpace,
    is_sharded,
    named_anchors,
    put_rows,
    wanted_ids,
)
from relcore.sharded.survey import Survey
from relcore.spaces.space import LatentSpace

MOST_ROWS = 1_000_000  # that four panes draw
SAMPLE = 200_000
_SERIES = re.compile(r"step|epoch|iter|checkpoint|ckpt|layer", re.IGNORECASE)


def sample_key(space: ShardedSpace, n_rows: int) -> str:
    """The store's key of the sample: another one when a shard is written again."""
    return digest_of("sample of shards", 1, space.place, space.digest, min(n_rows, space.n))


def sample_spec(space: ShardedSpace, n_rows: int) -> SpaceSpec:
    """The spec of the sample, which says how many rows of how many it has; `sample_job` draws it."""
    options = {"key": sample_key(space, n_rows), "rows": str(min(n_rows, space.n)), "of": str(space.n)}
    return SpaceSpec("sample", space.place, options=tuple(options.items()))


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
    return space if space.n > MOST_ROWS and not _is_series(space.shards) else None


def _is_series(shards: Sequence[Shard]) -> bool:
    if any(_SERIES.search(shard.name) for shard in shards):
        return True
    first, second = (next(shard.blocks(1)) for shard in shards[:2])
    return first.ids is not None and first.ids == second.ids


# A sample of a sharded space as a space in memory: for work that needs all its rows at once.


def sample_shards(
    space: ShardedSpace, n_rows: int, runner: Runner, also: Sequence[str] = (), random_state: int = 0
) -> LatentSpace:
    """`n_rows` rows that have a direction, with their ids and labels in the order of the shards; all, where
    there are fewer.

    Rows are drawn by a hash of their ids: of two spaces with the same ids the same rows, also where the
    shards are cut in another way.

    Parameters
    ----------
    also : ids
        Rows that are taken in any case, such as seed pairs.

    Raises
    ------
    SpaceError
        `n_rows` below 1, NaN, ids that the space lacks.
    """
    if n_rows < 1:
        raise SpaceError(f"n_rows: expected 1 row or more, got {n_rows}")
    work = Survey(
        min(n_rows, space.n), stream="sample", random_state=random_state, wanted=wanted_ids(space, also)
    )
    survey = runner.run(work, alone(space), "survey")
    rows = survey.arrays["rows"]
    if also:
        rows = np.union1d(rows, named_anchors(space, survey, also))
    found = runner.run(put_rows(runner.store, rows, texts=True), alone(space), "gather rows")
    return LatentSpace(
        found.arrays["vectors_0"], found.facts["ids"], name=space.name, labels=found.facts["labels"]
    )
