"""The command `adapt`, which maps rows with an adapter from one store of vectors to another."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relcore.base.errors import SpaceError, quote
from relcore.base.names import INDEXES
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.catalog import load
from relcore.catalog.naming import space_spec
from relcore.commands.by_shard import is_by_shard, report_over_shards
from relcore.commands.command import command
from relcore.commands.options import SHARDS_HELP, Printed, Shards
from relcore.commands.printing import written
from relcore.commands.progress import Bar
from relcore.files.saving import save_space
from relcore.migrate.by_shard import adapt_shards
from relcore.runs.store import Store
from relcore.sharded.space import ShardedSpace
from relcore.stores.index import StorePlace, parse_place

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
        " without SOURCE, the adapter's card is shown",
    )
    target: str = setting(
        metavar="TARGET",
        nargs="?",
        written=True,
        help="where the mapped rows go, named likewise; it must be new",
    )
    corpus: bool = setting(
        False,
        help="The rows are old vectors, for adapters that project them. Default: they are new queries.",
    )
    add: bool = setting(
        False,
        help="Add the rows to a collection or table that exists already. A row with an id that is there"
        " replaces it, so a killed job can be run again. Rows of another adapter are refused.",
    )


@command(
    (AdaptOptions, Printed, Shards),
    "Rows are streamed, so that millions take little memory. Ids are kept, and so is the payload if both"
    " places can hold one. Nothing is deleted, and only --add replaces rows. The target records the digest"
    f" of the adapter.{SHARDS_HELP}",
    ("bridge", "bridge new-queries.npy mapped.npy", "bridge old.parquet lancedb:store#projected --corpus"),
)
def run_adapt(options: argparse.Namespace) -> Report:
    from relcore.migrate.adapt import adapt, adapter_digest
    from relcore.migrate.adapter_files import load

    if options.adapter == COPY:
        adapter = None
    else:
        adapter = load(Path(options.adapter))
    if options.source is None and adapter is not None:
        report = adapter.card.report()
        digest = adapter_digest(adapter)
        facts = {**report.facts, "digest": digest}
        return replace(report, sentence=f"The adapter {digest[:8]}, {report.sentence}", facts=facts)
    if options.target is None:
        raise SpaceError(
            "expected a source and a target, got one of them; name both, or an adapter alone to see its card"
        )
    side = "queries"
    if options.corpus:
        side = "corpus"

    def report(result: Any, passes: Mapping[str, Any], *sources: ShardedSpace) -> Report:
        mapped = "copied"
        if adapter:
            mapped = f"{side} mapped by {adapter.card.adapter}"
        if options.add:
            mapped += ", added or put in the place of rows with the same ids"
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
    """A context that yields a place from which the rows of this space can be read in blocks. If the space has
    no such place, it is first written as a temporary table."""
    if place := parse_place(text):
        yield place
        return
    space = load(space_spec(text))
    with Store().scratch() as folder:
        path = folder / f"{space.digest}.parquet"
        save_space(space, path)
        yield StorePlace("parquet", str(path))


def _place(text: str) -> StorePlace:
    place = parse_place(text)
    if place is None:
        expected = quote(index.help for index in INDEXES.values())
        raise SpaceError(f"{text!r:.200}: expected one of {expected}; save the vectors as .npy or .parquet")
    return place
