"""Folders of shards on the command line: which places are such folders, and the passes over them with a bar."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relcore.sharded.runner import Runner
    from relcore.sharded.space import ShardedSpace
    from relcore.sources.catalog import SpaceSpec
    from relcore.spaces import LatentSpace

SAMPLE = 20_000
HELP = (
    "Folders of shards: a folder, or an address such as s3://…, with two or more .npy, .parquet, .arrow or .feather files of "
    "one width is one space of any size. It is read shard by shard on the workers of the cluster, and a stopped command "
    "resumes by shard."
)


def add_shards(parser: argparse.ArgumentParser) -> None:
    """--shards and --scheduler."""
    from relcore.commands.running import add_scheduler

    parser.description += f" {HELP}"
    parser.add_argument(
        "--shards",
        action="store_true",
        help="read folders shard by shard also where they fit into memory, such as those of datasets.save_to_disk",
    )
    add_scheduler(parser)


def by_shard(options: argparse.Namespace, *places: str) -> bool:
    """Whether these places are to be read shard by shard.

    A folder that can be loaded as one space without this, such as a saved dataset or the shards of one table, is read by shard
    only with --shards.
    """
    from os.path import isdir  # False where a name is too long; Path.is_dir raises an error
    from pathlib import Path

    from relcore.sharded.files import is_address
    from relcore.sharded.space import is_sharded
    from relcore.sources.index_place import parse_place
    from relcore.sources.series import is_one_space

    if options.shards:
        return True
    if any((found := parse_place(place)) is not None and found.where != place for place in places):
        return False
    whole = [not is_address(place) and isdir(place) and is_one_space(Path(place)) for place in places]
    return not any(whole) and all(map(is_sharded, places))


def opened(place: str) -> ShardedSpace:
    """The sharded space at a place; errors as `ShardedSpace.open`."""
    from relcore.sharded.space import ShardedSpace

    return ShardedSpace.open(place)


@contextmanager
def runner(options: argparse.Namespace, n_shards: int) -> Iterator[Runner]:
    """Passes run on the cluster of --scheduler, else in processes of this machine, and a bar shows the shards."""
    from relcore.commands.running import bar, engine
    from relcore.sharded.runner import Runner

    with engine(options, n_jobs=n_shards) as made, bar(options) as line:
        yield Runner(made.store, made, line.show)


def told(run: Runner) -> list[str]:
    """What the passes took, for the end of a command's output."""
    return ["", *run.told()]


def add_sample(
    parser: argparse.ArgumentParser,
    default: int | None = SAMPLE,
    text: str = "this needs all its rows at once, so it takes N of each space, drawn by a hash of their ids",
) -> None:
    """--shards, and --sample for work that needs its rows at once."""
    from relcore.commands.numbers import from_one

    add_shards(parser)
    parser.add_argument("--sample", type=from_one, default=default, metavar="N", help=f"folders of shards: {text}")


def samples(
    options: argparse.Namespace, places: Sequence[str], also: Sequence[Sequence[str]] = ((), ())
) -> tuple[list[SpaceSpec], list[LatentSpace], list[str]]:
    """Spaces in memory at these places, samples of folders of shards; and sentences about the samples.

    Raises
    ------
    SpaceError
        Folders of shards beside other spaces: a sample of one would hardly have rows of the other.
    """
    from relcore.commands.naming import space_spec
    from relcore.recipe import load_again
    from relcore.sharded.sample import sample_shards
    from relcore.sources.catalog import SpaceSpec
    from relcore.spaces import SpaceError

    sharded = [by_shard(options, place) for place in places]
    if not any(sharded):
        specs = [space_spec(place) for place in places]
        return specs, [load_again(spec) for spec in specs], []
    if not all(sharded):
        raise SpaceError("expected folders of shards only, or none, got both; write all spaces in shards, or none")
    spaces = [opened(place) for place in places]
    with runner(options, max(len(space.shards) for space in spaces)) as run:
        n_rows = SAMPLE if options.sample is None else options.sample
        found = [sample_shards(space, n_rows, run, ids) for space, ids in zip(spaces, also, strict=False)]
    rows = ", ".join(f"{len(one):,} of {space.n:,} rows of {space.name}" for one, space in zip(found, spaces, strict=True))
    return [SpaceSpec("file", place) for place in places], found, [f"On a sample: {rows}.", *told(run)]


def need_loadable(options: argparse.Namespace, sampled: Sequence[str]) -> None:
    """Raise a SpaceError where a recipe is to name what was sampled: a figure could not load it."""
    from relcore.spaces import SpaceError

    if options.recipe and sampled:
        raise SpaceError("--recipe: expected spaces that a figure can load, got folders of shards; leave --recipe out")
