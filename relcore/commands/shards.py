"""Folders of shards on the command line: which places are such folders, passes over them with a bar, and
samples of their rows for what needs all rows at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import zip_longest
from os.path import isdir, isfile  # False where a name is too long; those of a Path raise an error
from pathlib import Path
from typing import TYPE_CHECKING

from relcore.base.errors import SpaceError
from relcore.base.text import visible
from relcore.commands.naming import number_or_ids, space_spec
from relcore.commands.options import option
from relcore.commands.output import Bar, add_scheduler
from relcore.commands.running import engine
from relcore.tasks.recipe import load_again

if TYPE_CHECKING:
    from relcore.catalog.catalog import SpaceSpec
    from relcore.sharded.passes import Runner
    from relcore.spaces.space import LatentSpace

SAMPLE = 20_000
HELP = (
    "Folders of shards: a folder, or an address such as s3://…, with two or more .npy, .parquet, .arrow or"
    " .feather files of one width is one space of any size. It is read shard by shard on the workers of the"
    " cluster, and a stopped command resumes by shard."
)


def add_shards(parser: argparse.ArgumentParser) -> None:
    """--shards and --scheduler."""
    parser.description += f" {HELP}"
    option(
        parser,
        "shards",
        bool,
        False,
        help="Read folders by shard also where they fit into memory, such as those of datasets.save_to_disk.",
    )
    add_scheduler(parser)


def add_sample(parser: argparse.ArgumentParser) -> None:
    """--shards, and --sample for work that needs its rows at once."""
    add_shards(parser)
    option(
        parser,
        "sample",
        int,
        SAMPLE,
        low=1,
        help="Rows of a folder of shards, drawn by a hash of their ids: this needs all its rows at once.",
    )


def by_shard(options: argparse.Namespace, *places: str) -> bool:
    """Whether these places are to be read shard by shard.

    A folder that can be loaded as one space without this, such as a saved dataset or the shards of one table,
    is read by shard only with --shards.
    """
    if options.shards:
        return True
    if any(map(isfile, places)):
        return False
    from relcore.catalog.catalog import is_address
    from relcore.files.places import parse_place
    from relcore.files.series import is_one_space
    from relcore.sharded.space import is_sharded

    if any((index := parse_place(place)) is not None and index.where != place for place in places):
        return False
    whole = [not is_address(place) and isdir(place) and is_one_space(Path(place)) for place in places]
    return not any(whole) and all(map(is_sharded, places))


@contextmanager
def runner(options: argparse.Namespace, n_shards: int) -> Iterator[Runner]:
    """Passes run on the cluster of --scheduler, else in processes of this machine, and a bar shows the
    shards.
    """
    from relcore.sharded.passes import Runner

    with engine(options, n_jobs=n_shards) as cluster, Bar(options) as bar:
        yield Runner(cluster.store, cluster, bar.show)


def anchors_by_shard(options: argparse.Namespace, n: int) -> int | tuple[str, ...]:
    """The anchors of --anchors for a space of n rows that is read shard by shard: a number to draw, or ids.

    Raises
    ------
    SpaceError
        Another strategy than "random", which needs all rows at once.
    """
    if options.strategy != "random":
        raise SpaceError(
            f"--strategy: expected 'random', which shards are read for, got {options.strategy!r}; choose"
            " anchors in a sample of the rows, and name their ids with --anchors"
        )
    return number_or_ids(options.anchors, min(300, n // 2))


def samples(
    options: argparse.Namespace, places: Sequence[str], also: Sequence[Sequence[str]] = ()
) -> tuple[list[SpaceSpec], list[LatentSpace], list[str]]:
    """Spaces in memory at these places, samples of folders of shards; and sentences about the samples.

    Raises
    ------
    SpaceError
        Folders of shards beside other spaces: a sample of one would hardly have rows of the other.
    """
    sharded = [by_shard(options, place) for place in places]
    if not any(sharded):
        specs = [space_spec(place) for place in places]
        return specs, [load_again(spec) for spec in specs], []
    if not all(sharded):
        raise SpaceError(
            "expected folders of shards only, or none, got both; write all spaces in shards, or none"
        )
    from relcore.catalog.catalog import SpaceSpec
    from relcore.sharded.sample import sample_shards
    from relcore.sharded.space import ShardedSpace

    need_loadable(options)
    spaces = [ShardedSpace.open(place) for place in places]
    with runner(options, max(len(space.shards) for space in spaces)) as run:
        drawn = [
            sample_shards(space, options.sample, run, ids)
            for space, ids in zip_longest(spaces, also, fillvalue=())
        ]
    sizes = ", ".join(
        f"{len(sample):,} of {space.n:,} rows of {space.name}"
        for sample, space in zip(drawn, spaces, strict=True)
    )
    return [SpaceSpec("file", place) for place in places], drawn, [f"On a sample: {sizes}.", "", *run.told()]


def need_loadable(options: argparse.Namespace) -> None:
    """Raise a SpaceError where a recipe is to name shards: a figure could not load them."""
    if options.recipe:
        raise SpaceError(
            "--recipe: expected spaces that a figure can load, got folders of shards; leave --recipe out"
        )


def sampled_in_app(options: argparse.Namespace, name: str) -> list[SpaceSpec]:
    """The sample of the folder of shards of this name, drawn with a bar where the store has none; [] for
    another space.

    Raises
    ------
    SpaceError
        A shard that cannot be read; a sample of a folder whose shards change meanwhile.
    """
    from relcore.base.access import expanded
    from relcore.catalog.catalog import is_address
    from relcore.files.places import parse_place
    from relcore.runs.progress import Context
    from relcore.runs.store import Store
    from relcore.sharded.sample import sample_job, sample_spec, too_large
    from relcore.sharded.space import ShardedSpace

    index, asked = parse_place(name), options.shards or is_address(name)
    if (index is not None and index.where != name) or not (is_address(name) or isdir(expanded(name))):
        return []
    if not asked and find_spec("fsspec") is None:  # a folder of checkpoints needs none
        return []
    space = ShardedSpace.open(name) if asked else too_large(name)
    if space is None:
        return []
    spec, store = sample_spec(space, options.sample), Store()
    if not store.has(key := spec.option("key")):
        with Bar(options) as bar, Context(key, store, bar.event).sending() as context:
            sample_job(context, place=space.place, n_rows=options.sample)
    rows = f"{int(spec.option('rows')):,} of {space.n:,} rows"
    print(
        f"{visible(name)}: {len(space.shards):,} shards; the app shows {rows}, drawn by a hash of their ids",
        file=sys.stderr,
    )
    return [spec]
