"""project by shard: a sharded space relative to anchors, written shard by shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.comparison import ProjectionSpec
from relcore.sharded.anchor_rows import drawn_anchors, named_anchors, wanted_ids
from relcore.sharded.gather import put_rows
from relcore.sharded.row_maps import put_projection
from relcore.sharded.runner import Runner
from relcore.sharded.shard_pass import Shards
from relcore.sharded.space import ShardedSpace
from relcore.sharded.space_mean import mean_from_sums
from relcore.sharded.survey import Survey
from relcore.sharded.target import default_format, need_folder
from relcore.sharded.write_rows import WriteRows


@dataclass(frozen=True)
class Written:
    """A folder that was written.

    Attributes
    ----------
    goal : str
    n, width : int
        Its rows, and numbers per row.
    anchors : array (k,)
        Row numbers of the anchors in the source; empty where there are none.
    """

    goal: str
    n: int
    width: int
    anchors: np.ndarray


def write_mapped(source: ShardedSpace, map_key: str, goal: str, form: str, runner: Runner, title: str) -> tuple[int, int]:
    """Write all rows through a map into a folder; returns rows and width. A stopped run resumes by shard.

    Raises
    ------
    SpaceError
        A folder that holds something else, rows with NaN.
    """
    work = WriteRows(map_key, goal, form or default_format(source.shards[0]))
    parts = alone(source)
    need_folder(goal, work.key(parts))
    facts = runner.run(work, parts, title).facts
    return facts["rows"], facts["width"]


def alone(space: ShardedSpace) -> list[Shards]:
    """The parts of a pass over one space."""
    return [(shard,) for shard in space.shards]


def gathered(runner: Runner, parts: Sequence[Shards], rows: np.ndarray) -> list[np.ndarray]:
    """The vectors of these rows, in their order, of each space of the parts: (m, d) each."""
    found = runner.run(put_rows(runner.store, rows), parts, "gather rows").arrays
    places = np.searchsorted(found["rows"], rows)
    return [found[f"vectors_{side}"][places] for side in range(len(parts[0]))]


def project_shards(
    source: ShardedSpace,
    anchors: int | Sequence[str],
    goal: str,
    runner: Runner,
    spec: ProjectionSpec | None = None,
    *,
    whiten: bool = False,
    form: str = "",
    random_state: int = 0,
) -> Written:
    """Write the space relative to anchors, to ids or to as many random rows: (n, k), with ids and labels.

    The coordinates are those of `RelativeProjection` fitted on all rows.

    Raises
    ------
    SpaceError
        Anchors that the space lacks, NaN, a folder that holds something else.
    """
    spec, parts = spec or ProjectionSpec(), alone(source)
    named = not isinstance(anchors, int)
    survey = runner.run(Survey(wanted=wanted_ids(source, anchors) if named else ()), parts, "survey")
    chosen = named_anchors(source, survey, anchors) if named else drawn_anchors(survey, source.n, anchors, random_state)
    (vectors,) = gathered(runner, parts, chosen)
    mean = mean_from_sums(survey.arrays["sum_0"], float(survey.arrays["squares"][0]), source.n)
    key = put_projection(runner.store, vectors, mean, spec, whiten)
    return Written(goal, *write_mapped(source, key, goal, form, runner, "project"), chosen)
