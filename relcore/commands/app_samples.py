"""Folders of shards that the app opens as a sample of their rows."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from relcore.commands.numbers import from_one
from relcore.plain_text import visible

if TYPE_CHECKING:
    from relcore.sources.catalog import SpaceSpec


def add_samples(parser: argparse.ArgumentParser) -> None:
    """--shards and --sample."""
    parser.add_argument(
        "--shards", action="store_true", help="open each folder as one space of shards, also where it has fewer rows"
    )
    parser.add_argument(
        "--sample",
        type=from_one,
        default=200_000,
        metavar="N",
        help="rows of a folder of shards, drawn by a hash of their ids: of two folders with the same ids the same rows "
        "(default: %(default)s)",
    )


def sampled(options: argparse.Namespace, name: str) -> list[SpaceSpec]:
    """The sample of the folder of shards of this name, drawn with a bar where the store has none; [] for another space.

    Raises
    ------
    SpaceError
        A shard that cannot be read; a sample of a folder whose shards change meanwhile.
    """
    from importlib.util import find_spec
    from os.path import isdir

    from relcore.access import expanded
    from relcore.commands.running import bar
    from relcore.progress import Context
    from relcore.sharded.files import is_address
    from relcore.sharded.kept_sample import sample_job, sample_spec, too_large
    from relcore.sharded.space import ShardedSpace
    from relcore.sources.index_place import parse_place
    from relcore.store import Store

    place = parse_place(name)
    if (place is not None and place.where != name) or not (is_address(name) or isdir(expanded(name))):
        return []
    if not (options.shards or is_address(name)) and find_spec("fsspec") is None:  # a folder of checkpoints needs none
        return []
    space = ShardedSpace.open(name) if options.shards or is_address(name) else too_large(name)
    if space is None:
        return []
    spec, store = sample_spec(space, options.sample), Store()
    key = spec.option("key")
    if not store.has(key):
        with bar(options) as line:
            show = lambda event: line.show(event["done"], event["total"], event["message"])  # noqa: E731
            with Context(key, store, show).sending() as context:
                sample_job(context, place=space.place, n_rows=options.sample)
    rows = f"{int(spec.option('rows')):,} of {space.n:,} rows"
    print(f"{visible(name)}: {len(space.shards):,} shards; the app shows {rows}, drawn by a hash of their ids", file=sys.stderr)
    return [spec]
