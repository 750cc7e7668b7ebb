"""project: a space relative to anchors, as a file of vectors that is a space again."""

from __future__ import annotations

import argparse
from pathlib import Path

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.commands import options as generated
from relcore.commands.naming import SPACE_HELP, add_anchors, add_random_state, anchors_of, space_spec
from relcore.commands.options import option, values_of
from relcore.commands.output import need_suffix, write_space
from relcore.commands.shards import add_shards, anchors_by_shard, by_shard, runner
from relcore.represent.anchors import shared_anchors
from relcore.scores.comparison import ProjectionSpec
from relcore.spaces.space import LatentSpace
from relcore.tasks.recipe import load_again


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description += (
        " The result is again a space, with one column per anchor; it keeps ids and labels. To compare two"
        " spaces, use the same anchors for both: --save-anchors with the first, --anchors FILE with the"
        " second."
    )
    parser.add_argument("space", metavar="SPACE", help=SPACE_HELP)
    add_anchors(parser, "this space")
    generated.add(parser, ProjectionSpec)
    option(
        parser, "whiten", bool, False, help="Decorrelate the similarities by (K + λI)^(-1/2); cosine only."
    )
    add_random_state(parser)
    option(
        parser, "save_anchors", Path, metavar="FILE", help="Also write the ids of the anchors, one per line."
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="the file to write: .npz, .safetensors or .parquet; of shards the new folder, or its address",
    )
    add_shards(parser)
    parser.epilog = (
        "example:\n"
        "  relscope project word2vec-novels --anchors 300 --save-anchors anchors.txt -o first.npz\n"
        "  relscope project fasttext-novels --anchors anchors.txt -o second.npz"
    )


def run(options: argparse.Namespace) -> None:
    spec, sharded = ProjectionSpec(**values_of(options, ProjectionSpec)), by_shard(options, options.space)
    if options.whiten and options.similarity != "cosine":
        raise SpaceError(
            f"--whiten: expected the similarity 'cosine', got {options.similarity!r}; remove one of the two"
            " options"
        )
    shape, anchors, passes = (_by_shard if sharded else _whole)(options, spec)
    if options.save_anchors:
        options.save_anchors.write_text("\n".join(anchors) + "\n", encoding="utf-8")
    how = "whitened cosine" if options.whiten else options.similarity
    print(f"{shape}, {how}{', centred' if options.center else ''}", *passes, sep="\n")


def _whole(options: argparse.Namespace, spec: ProjectionSpec) -> tuple[str, tuple[str, ...], list[str]]:
    """What was written where, the anchors, and what the passes took; a space that fits into memory."""
    goal = Path(options.output)
    need_suffix(goal)
    space = load_again(space_spec(options.space))
    anchors = shared_anchors(anchors_of(options, space), space)
    projection = spec.projection(options.whiten).fit(space.vectors, anchors=space.rows(anchors))
    relative, name = projection.transform(space.vectors), f"{space.name}, relative"
    write_space(LatentSpace(relative, space.ids, name=name, labels=space.labels, counts=space.counts), goal)
    return f"{goal}: {counted(len(relative), 'row')} × {counted(len(anchors), 'anchor')}", anchors, []


def _by_shard(options: argparse.Namespace, spec: ProjectionSpec) -> tuple[str, tuple[str, ...], list[str]]:
    from relcore.sharded.project import project_shards
    from relcore.sharded.space import ShardedSpace

    source = ShardedSpace.open(options.space)
    settings = {"whiten": options.whiten, "random_state": options.random_state}
    with runner(options, len(source.shards)) as run:
        result = project_shards(
            source, anchors_by_shard(options, source.n), options.output, run, spec, **settings
        )
    shape = f"{counted(result.n, 'row')} × {counted(result.width, 'anchor')}"
    where = f"{result.goal}: {shape} in {counted(len(source.shards), 'shard')}"
    return where, source.ids_of(result.anchors) if options.save_anchors else (), ["", *run.told()]
