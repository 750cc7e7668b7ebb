"""The commands that write vectors: relative to anchors, or mapped by an adapter."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relcore.base.errors import SpaceError, quote
from relcore.base.names import INDEXES
from relcore.base.numbers import counted
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.base.text import as_lines
from relcore.base.writing import write
from relcore.catalog.catalog import load
from relcore.catalog.naming import SPACE_HELP, space_spec
from relcore.commands.running import (
    SHARDS_HELP,
    Bar,
    DrawnAnchors,
    Printed,
    Shards,
    anchors_of,
    command,
    is_by_shard,
    report_over_shards,
    values_of,
    written,
)
from relcore.files.saving import need_suffix, write_space
from relcore.represent.similarity import shared_anchors
from relcore.represent.translation import ProjectionSpec
from relcore.runs.store import Store
from relcore.sharded.operations import Written, adapt_shards, project_shards
from relcore.sharded.space import ShardedSpace
from relcore.spaces.space import LatentSpace
from relcore.stores.index import StorePlace, parse_place


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
    spec, sharded = ProjectionSpec(**values_of(options, ProjectionSpec)), is_by_shard(options, options.space)
    if options.whiten and options.similarity != "cosine":
        raise SpaceError(
            f"--whiten: expected the similarity 'cosine', got {options.similarity!r}; remove one of the two"
            " options"
        )
    if options.output is None:
        raise SpaceError("project: expected a file for the relative rows, got none; name it with -o")

    def report(
        n: int, width: int, anchors: Sequence[str], where: str = "", notes: Sequence[str] = ()
    ) -> Report:
        if options.save_anchors:
            write(options.save_anchors, as_lines(anchors, str(options.save_anchors), "ids", bare=True))
        how = "whitened cosine" if options.whiten else options.similarity
        line = f"{counted(n, 'row')} × {counted(width, 'anchor')}{where}, {how}"
        line += ", centred" if options.center else ""
        return written(f"{line}.", notes, n=n, anchors=width, similarity=how, center=options.center)

    def of_shards(result: Written, passes: Mapping[str, Any], source: ShardedSpace) -> Report:
        anchors = source.ids_of(result.anchors) if options.save_anchors else ()
        where = f" in {counted(len(source.shards), 'shard')}"
        return report(result.n, result.width, anchors, where, passes["passes"])

    if sharded:
        settings = {"whiten": options.whiten, "random_state": options.random_state}
        return report_over_shards(
            options,
            [options.space],
            lambda run, anchors, source: project_shards(
                source, anchors, str(options.output), run, spec, **settings
            ),
            of_shards,
        )
    need_suffix(options.output)
    space = load(space_spec(options.space), again=True)
    anchors = shared_anchors(anchors_of(options, space), space)
    projection = spec.projection(options.whiten).fit(space.vectors, anchors=space.rows(anchors))
    relative, name = projection.transform(space.vectors), f"{space.name}, relative"
    of_space = {"name": name, "labels": space.labels, "counts": space.counts}
    write_space(LatentSpace(relative, space.ids, **of_space), options.output)
    return report(*relative.shape, anchors)


COPY = "none"


@dataclass
class AdaptOptions:
    adapter: str = setting(
        metavar="ADAPTER", help=f"an adapter's folder or file; {COPY!r} copies rows as they are"
    )
    source: str = setting(
        metavar="SOURCE",
        nargs="?",
        help=f"where the rows are: {'; '.join(index.help for index in INDEXES.values())}, or any space;"
        " without it, show the card",
    )
    target: str = setting(
        metavar="TARGET", nargs="?", help="where they go, written the same way; it must be new"
    )
    corpus: bool = setting(
        False,
        help="The rows are vectors of the old model, for adapters that project them; else new queries.",
    )
    add: bool = setting(False, help="Add the rows to a collection or table that exists already.")


@command(
    (AdaptOptions, Printed, Shards),
    "Rows are streamed, so that millions take little memory. Ids are kept, and so is the payload where both"
    f" sides have one. Nothing is ever deleted or overwritten.{SHARDS_HELP}",
    ("bridge", "bridge new-queries.npy mapped.npy", "bridge old.parquet lancedb:store#projected --corpus"),
)
def run_adapt(options: argparse.Namespace) -> Report:
    from relcore.migrate.adapters import adapt, load

    adapter = None if options.adapter == COPY else load(Path(options.adapter))
    if options.source is None and adapter is not None:
        return adapter.card.report()
    if options.target is None:
        raise SpaceError(
            "expected a source and a target, got one of them; name both, or an adapter alone to see its card"
        )
    side = "corpus" if options.corpus else "queries"

    def report(result: Any, passes: Mapping[str, Any], *sources: ShardedSpace) -> Report:
        mapped = f"{side} mapped by {adapter.card.adapter}" if adapter else "copied"
        shards = "".join(f" in {len(source.shards):,} shards" for source in sources)
        line = f"{where}: {result.n:,} rows × {result.width:,}{shards}, {mapped}."
        row = {"written": where, "n": result.n, "dimension": result.width, "side": side}
        return written(line, passes.get("passes", ()), **row)

    if is_by_shard(options, options.source):
        if adapter is None or options.add:
            raise SpaceError(
                "expected an adapter, and a new folder, for a folder of shards; copy the folder itself to"
                " copy its rows"
            )
        where = options.target
        return report_over_shards(
            options,
            [options.source],
            lambda run, _, source: adapt_shards(adapter, source, where, run, side=side),
            report,
            anchored=False,
        )
    goal = _place(options.target)
    where = goal.text
    with Bar(options) as bar, _readable(options.source) as place:
        return report(adapt(adapter, place, goal, side=side, add=options.add, report=bar.show), {})


@contextmanager
def _readable(text: str) -> Iterator[StorePlace]:
    """The place of the rows; a space without a store is first written as a table, which is read in blocks."""
    if place := parse_place(text):
        yield place
        return
    space = load(space_spec(text))
    with Store().scratch() as folder:
        write_space(space, path := folder / f"{space.digest}.parquet")
        yield StorePlace("parquet", str(path))


def _place(text: str) -> StorePlace:
    place = parse_place(text)
    if place is None:
        expected = quote(index.help for index in INDEXES.values())
        raise SpaceError(f"{text!r:.200}: expected one of {expected}; save the vectors as .npy or .parquet")
    return place
