"""project: a space relative to anchors, as a file of vectors that is a space again."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import SPACE_HELP, add_anchors, add_projection, add_random_state, add_shards

    parser.description += (
        " The result is again a space, with one column per anchor; it keeps ids and labels. To compare two"
        " spaces, use the same anchors for both: --save-anchors with the first, --anchors FILE with the"
        " second."
    )
    parser.add_argument("space", metavar="SPACE", help=SPACE_HELP)
    add_anchors(parser, "this space")
    add_projection(parser)
    parser.add_argument(
        "--whiten", action="store_true", help="decorrelate the similarities by (K + λI)^(-1/2); cosine only"
    )
    add_random_state(parser)
    parser.add_argument(
        "--save-anchors", type=Path, metavar="FILE", help="also write the ids of the anchors, one per line"
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
    from relcore.base.errors import SpaceError
    from relcore.base.numbers import counted
    from relcore.commands.naming import anchors_of, by_shard, projection_of, space_spec
    from relcore.commands.output import need_space_file, write_space
    from relcore.represent.anchors import shared_anchors
    from relcore.spaces.space import LatentSpace
    from relcore.tasks.recipe import load_again

    if by_shard(options, options.space):
        _by_shard(options)
        return
    goal = Path(options.output)
    need_space_file(goal)
    if options.whiten and options.similarity != "cosine":
        raise SpaceError(
            f"--whiten: expected the similarity 'cosine', got {options.similarity!r}; remove one of the two"
            " options"
        )
    spec = projection_of(options)
    space = load_again(space_spec(options.space))
    anchors = shared_anchors(anchors_of(options, space), space)
    relative = (
        spec.projection(options.whiten)
        .fit(space.vectors, anchors=space.rows(anchors))
        .transform(space.vectors)
    )
    name = f"{space.name}, relative"
    write_space(LatentSpace(relative, space.ids, name=name, labels=space.labels, counts=space.counts), goal)
    if options.save_anchors:
        options.save_anchors.write_text("\n".join(anchors) + "\n", encoding="utf-8")
    how = "whitened cosine" if options.whiten else options.similarity
    print(
        f"{goal}: {counted(len(relative), 'row')} × {counted(len(anchors), 'anchor')}, "
        f"{how}{', centred' if options.center else ''}"
    )


def _by_shard(options: argparse.Namespace) -> None:
    from relcore.base.numbers import counted
    from relcore.commands.naming import anchors_by_shard, opened, projection_of, runner, told
    from relcore.sharded.project import project_shards

    source, spec = opened(options.space), projection_of(options)
    settings = {"whiten": options.whiten, "random_state": options.random_state}
    with runner(options, len(source.shards)) as run:
        found = project_shards(
            source, anchors_by_shard(options, source.n), options.output, run, spec, **settings
        )
    if options.save_anchors:
        options.save_anchors.write_text("\n".join(source.ids_of(found.anchors)) + "\n", encoding="utf-8")
    how = "whitened cosine" if options.whiten else options.similarity
    shape = (
        f"{counted(found.n, 'row')} × {counted(found.width, 'anchor')} in"
        f" {counted(len(source.shards), 'shard')}"
    )
    print(f"{found.goal}: {shape}, {how}{', centred' if options.center else ''}")
    print("\n".join(told(run)))
