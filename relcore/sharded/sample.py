"""A sample of a sharded space as a space in memory: for work that needs all its rows at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.sharded.anchor_rows import named_anchors, wanted_ids
from relcore.sharded.gather import put_rows
from relcore.sharded.project import alone
from relcore.sharded.runner import Runner
from relcore.sharded.space import ShardedSpace
from relcore.sharded.survey import Survey
from relcore.spaces import LatentSpace, SpaceError


def sample_shards(
    space: ShardedSpace, n_rows: int, runner: Runner, also: Sequence[str] = (), random_state: int = 0
) -> LatentSpace:
    """`n_rows` rows that have a direction, with their ids and labels in the order of the shards; all, where there are fewer.

    Rows are drawn by a hash of their ids: of two spaces with the same ids the same rows, also where the shards are cut in
    another way.

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
    work = Survey(min(n_rows, space.n), stream="sample", random_state=random_state, wanted=wanted_ids(space, also))
    survey = runner.run(work, alone(space), "survey")
    rows = survey.arrays["rows"]
    if also:
        rows = np.union1d(rows, named_anchors(space, survey, also))
    found = runner.run(put_rows(runner.store, rows, texts=True), alone(space), "gather rows")
    return LatentSpace(found.arrays["vectors_0"], found.facts["ids"], name=space.name, labels=found.facts["labels"])
