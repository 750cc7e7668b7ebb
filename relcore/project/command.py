"""The command `project`, which writes the rows of a space relative to anchors."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.base.text import as_lines
from relcore.base.writing import write
from relcore.catalog.catalog import load
from relcore.catalog.naming import SPACE_HELP, space_spec
from relcore.commands.anchors import anchors_of
from relcore.commands.by_shard import is_by_shard, report_over_shards
from relcore.commands.command import command, values_of
from relcore.commands.options import SHARDS_HELP, DrawnAnchors, Printed, Shards
from relcore.commands.printing import written
from relcore.files.saving import need_suffix, save_space
from relcore.represent.representations import ProjectionSpec
from relcore.represent.strategies import shared_anchors
from relcore.sharded.space import ShardedSpace
from relcore.sharded.writing import Written, project_shards
from relcore.spaces.space import LatentSpace

# The commands that write vectors: project writes rows relative to anchors, and adapt writes rows that an
# adapter maps.


@dataclass
class ProjectOptions:
    space: str = setting(metavar="SPACE", help=SPACE_HELP)
    whiten: bool = setting(False, help="Decorrelate the similarities by (K + λI)^(-1/2); cosine only.")
    save_anchors: Path = setting(
        None, metavar="FILE", written=True, help="Also write the ids of the anchors, one per line."
    )


@command(
    (ProjectOptions, DrawnAnchors, ProjectionSpec, Printed, Shards),
    "The result is again a space, with one column per anchor; it keeps ids and labels. To compare two"
    " spaces, use the same anchors for both: --save-anchors with the first, --anchors FILE with the"
    f" second.{SHARDS_HELP}",
    (
        "word2vec-novels --anchors 300 --save-anchors anchors.txt -o first.npz",
        "fasttext-novels --anchors anchors.txt -o second.npz",
    ),
    output="The file to write (.npz, .safetensors or .parquet; of shards a new folder, or its address).",
)
def run_project(options: argparse.Namespace) -> Report:
    spec = ProjectionSpec(**values_of(options, ProjectionSpec))
    by_shard = is_by_shard(options, options.space)
    if options.whiten and options.similarity != "cosine":
        raise SpaceError(
            f"--whiten: expected the similarity 'cosine', got {options.similarity!r}; remove one of the two"
            " options"
        )
    if options.output is None:
        raise SpaceError("project: expected a file for the relative rows, got none; name it with -o")
    if by_shard:
        return _project_by_shard(options, spec)
    need_suffix(options.output)
    space = load(space_spec(options.space), again=True)
    anchors = shared_anchors(anchors_of(options, space), space)
    projection = spec.projection(options.whiten).fit(space.vectors, anchors=space.rows(anchors))
    relative = projection.transform(space.vectors)
    name = f"{space.name}, relative"
    of_space = {"name": name, "labels": space.labels, "counts": space.counts}
    save_space(LatentSpace(relative, space.ids, **of_space), options.output)
    return _report(options, *relative.shape, anchors)


def _project_by_shard(options: argparse.Namespace, spec: ProjectionSpec) -> Report:
    settings = {"whiten": options.whiten, "random_state": options.random_state}

    def job(run: Any, anchors: Any, source: ShardedSpace) -> Written:
        return project_shards(source, anchors, str(options.output), run, spec, **settings)

    def report(result: Written, facts: Mapping[str, Any], source: ShardedSpace) -> Report:
        anchors = ()
        if options.save_anchors:
            anchors = source.ids_of(result.anchors)
        where = f" in {counted(len(source.shards), 'shard')}"
        return _report(options, result.n, result.width, anchors, where, facts["passes"])

    return report_over_shards(options, [options.space], job, report)


def _report(
    options: argparse.Namespace,
    n: int,
    width: int,
    anchors: Sequence[str],
    where: str = "",
    notes: Sequence[str] = (),
) -> Report:
    """Save the anchors if that is asked for, and report what was written."""
    if options.save_anchors:
        write(options.save_anchors, as_lines(anchors, str(options.save_anchors), "ids", bare=True))
    how = options.similarity
    if options.whiten:
        how = "whitened cosine"
    line = f"{counted(n, 'row')} × {counted(width, 'anchor')}{where}, {how}"
    if options.center:
        line += ", centred"
    return written(f"{line}.", notes, n=n, anchors=width, similarity=how, center=options.center)
