"""Read folders of shards, or samples of their rows, for the commands that can."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relcore.base.errors import SpaceError
from relcore.base.report import Report
from relcore.catalog.catalog import SpaceSpec, is_address
from relcore.commands.anchors import number_or_ids, suspects_of
from relcore.commands.inputs import Inputs, spaces_of
from relcore.commands.progress import Bar, queue
from relcore.encoders.dataset import DatasetOptions
from relcore.files.parts import is_one_space
from relcore.represent.strategies import usual_anchors
from relcore.stores.index import parse_place

if TYPE_CHECKING:
    from relcore.sharded.runner import Runner
    from relcore.sharded.space import ShardedSpace


def is_by_shard(options: argparse.Namespace, *places: str) -> bool:
    """Whether the folders at these paths or addresses are read shard by shard, without loading a whole space
    into memory.

    A saved dataset, or the shards of one table, can be loaded into memory as one space. Such a folder is read
    by shard only with --shards.
    """
    if options.shards or any(map(os.path.isfile, places)):  # `Path.is_file` raises an error for a long name
        return options.shards
    from relcore.sharded.space import is_sharded

    for place in places:
        index = parse_place(place)
        if index is not None and index.where != place:
            return False
        if not is_address(place) and os.path.isdir(place) and is_one_space(Path(place)):
            return False
    return all(map(is_sharded, places))


def folders_as_spaces(options: argparse.Namespace, *places: str) -> list[SpaceSpec]:
    """The specs of these folders of shards as ordinary spaces, whose files stay on disk. [] if the folders
    are to be read by shard: because of an address, --shards or --scheduler, or because no option needs an
    ordinary space."""
    if options.shards or options.scheduler or any(map(is_address, places)):
        return []
    needs = ("recipe", "metrics", "links", "pair_by_row")
    needed = any(getattr(options, name, None) for name in needs)
    needed = needed or getattr(options, "queries", "") == "all"
    if needed or options.strategy != "random" or suspects_of(options):
        parts = DatasetOptions([("parts", "all")])
        return [SpaceSpec("file", place, options=parts) for place in places]
    return []


@contextmanager
def shards(options: argparse.Namespace, *places: str) -> Iterator[tuple[Runner, *tuple[ShardedSpace, ...]]]:
    """A context with a progress bar. It yields an object that runs computations over all shards, then the
    spaces in these folders.

    Raises
    ------
    SpaceError
        An option that is not supported for shards is given: pairing by row order, or writing a recipe,
        because figures cannot load shards.
    """
    if getattr(options, "recipe", None):
        raise SpaceError(
            "--recipe: expected spaces that a figure can load, got folders that are read by shard; leave"
            " --recipe out, or name folders of this machine without --shards and --scheduler"
        )
    if getattr(options, "pair_by_row", False) or getattr(options, "links", None):
        option = "--links"
        if options.pair_by_row:
            option = "--pair-by-row"
        raise SpaceError(
            f"{option}: expected spaces in single files, got folders of shards, which are paired by id; write"
            " the same ids into both folders, or none: then row numbers are the ids"
        )
    from relcore.sharded.runner import Runner
    from relcore.sharded.space import ShardedSpace

    spaces = [ShardedSpace.open(place) for place in places]
    most = max(len(space.shards) for space in spaces)
    with queue(options, n_jobs=most) as cluster, Bar(options) as bar:
        yield Runner(cluster.store, cluster, bar.show), *spaces


def report_over_shards(
    options: argparse.Namespace,
    places: Sequence[str],
    job: Callable[..., Any],
    report: Callable[..., Report],
    anchored: bool = True,
) -> Report:
    """Run a computation on folders of shards, and return its report. ``job(runner, anchors, *spaces)``
    computes the result. ``report(result, facts, *spaces)`` writes the report; the facts tell the time and
    memory that were used.
    """
    with shards(options, *places) as (run, *spaces):
        anchors: int | tuple[str, ...] = 0
        if anchored:
            anchors = anchors_by_shard(options, spaces[0])
        result = job(run, anchors, *spaces)
    return report(result, {"passes": run.describe(), "worker_mb": run.peaks}, *spaces)


def anchors_by_shard(options: argparse.Namespace, space: ShardedSpace) -> int | tuple[str, ...]:
    """The anchors for a space that is read shard by shard: either the number of anchors to draw, or their
    ids.

    Raises
    ------
    SpaceError
        The strategy is not "random". Other strategies need all rows at once.
    """
    if options.strategy != "random":
        raise SpaceError(
            f"--strategy: expected 'random' for folders that are read by shard, got {options.strategy!r};"
            " choose anchors in a sample of the rows, and name their ids with --anchors"
        )
    if suspects_of(options):
        raise SpaceError(
            "--anchors: expected no suspects of an audit, because all rows of folders of shards are scored;"
            " remove the suspects' rows from both folders"
        )
    return number_or_ids(options.anchors, usual_anchors(space.n))


def samples(options: argparse.Namespace, places: Sequence[str], also: Sequence[Sequence[str]] = ()) -> Inputs:
    """Load the spaces at these paths or addresses. If they are folders of shards, samples of their rows are
    drawn, to which the rows with the ids in `also` are added (one list per space).

    Raises
    ------
    SpaceError
        Only some of the places are folders of shards. A sample would share hardly any rows with the other
        spaces.
    """
    sharded = [is_by_shard(options, place) for place in places]
    if not any(sharded):
        return spaces_of(options, places)
    if not all(sharded):
        raise SpaceError(
            "expected folders of shards only, or none, got both; write all spaces in shards, or none"
        )
    from relcore.sharded.survey import sample_shards

    with shards(options, *places) as (run, *spaces):
        ids_of_each = also or [()] * len(spaces)
        drawn = [
            sample_shards(space, options.sample, run, ids)
            for space, ids in zip(spaces, ids_of_each, strict=True)
        ]
    pairs = zip(drawn, spaces, strict=True)
    sizes = ", ".join(f"{len(sample):,} of {space.n:,} rows of {space.name}" for sample, space in pairs)
    specs = [SpaceSpec("file", place) for place in places]
    return Inputs(options, specs, drawn, [f"On a sample: {sizes}.", "", *run.describe()])
