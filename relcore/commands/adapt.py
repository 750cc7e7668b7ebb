"""adapt: rows through an adapter, from one store of vectors to another; without a source, the adapter's
card.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from relcore.base.names import INDEXES

if TYPE_CHECKING:
    from relcore.files.places import Place
    from relcore.migrate.adapter_file import Card, LoadedAdapter

COPY = "none"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import add_shards

    places = "; ".join(one.help for one in INDEXES.values())
    parser.description += (
        " Rows are streamed, so that millions take little memory; progress is saved, so that a stopped run"
        " resumes. Ids stay, and where both sides keep one, the payload. Nothing is ever deleted or"
        " overwritten."
    )
    parser.add_argument(
        "adapter", metavar="ADAPTER", help=f"an adapter's folder or file; {COPY!r} copies rows as they are"
    )
    parser.add_argument(
        "source", metavar="SOURCE", nargs="?", help=f"where the rows are: {places}; without it, show the card"
    )
    parser.add_argument(
        "target", metavar="TARGET", nargs="?", help="where they go, written the same way; it must be new"
    )
    parser.add_argument(
        "--corpus",
        action="store_true",
        help=(
            "the rows are vectors of the old model, for adapters that project them; else queries of the"
            " new one"
        ),
    )
    parser.add_argument(
        "--add", action="store_true", help="add the rows to a collection or table that exists already"
    )
    add_shards(parser)
    parser.epilog = (
        "example:\n"
        "  relscope adapt bridge\n"
        "  relscope adapt bridge new-queries.npy mapped.npy\n"
        "  relscope adapt bridge old.parquet qdrant:store#projected --corpus\n"
        "A server's key comes from QDRANT_API_KEY."
    )


def run(options: argparse.Namespace) -> None:
    from pathlib import Path

    from relcore.base.errors import SpaceError
    from relcore.commands.naming import by_shard
    from relcore.commands.running import bar
    from relcore.migrate.adapter_file import load
    from relcore.migrate.streaming import adapt

    adapter = None if options.adapter == COPY else load(Path(options.adapter))
    if options.source is None and adapter is not None:
        for line in described(adapter.card):
            print(line)
        return
    if options.target is None:
        raise SpaceError(
            "expected a source and a target, got one of them; name both, or an adapter alone to see its card"
        )
    if by_shard(options, options.source):
        _by_shard(options, adapter)
        return
    source, goal = (place_named(text) for text in (options.source, options.target))
    side = "corpus" if options.corpus else "queries"
    with bar(options) as line:
        target = adapt(adapter, source, goal, side=side, add=options.add, report=line.show)
    print(f"{goal.text}: {target.n:,} rows × {target.width:,}, {told(adapter, side)}")


def _by_shard(options: argparse.Namespace, adapter: LoadedAdapter | None) -> None:
    from relcore.base.errors import SpaceError
    from relcore.commands import naming as by_shard
    from relcore.sharded.project import adapt_shards

    if adapter is None or options.add:
        raise SpaceError(
            "expected an adapter, and a new folder, for a folder of shards; copy the folder itself to copy"
            " its rows"
        )
    source, side = by_shard.opened(options.source), "corpus" if options.corpus else "queries"
    with by_shard.runner(options, len(source.shards)) as run:
        found = adapt_shards(adapter, source, options.target, run, side=side)
    print(
        f"{found.goal}: {found.n:,} rows × {found.width:,} in {len(source.shards):,} shards,"
        f" {told(adapter, side)}"
    )
    print("\n".join(by_shard.told(run)))


def place_named(text: str) -> Place:
    """The store of vectors of this name.

    Raises
    ------
    SpaceError
        Another kind of file.
    """
    from relcore.base.errors import SpaceError, quote
    from relcore.files.places import parse_place

    place = parse_place(text)
    if place is None:
        expected = quote(one.help for one in INDEXES.values())
        raise SpaceError(f"{text!r:.200}: expected one of {expected}; save the vectors as .npy or .parquet")
    return place


def told(adapter: LoadedAdapter | None, side: str) -> str:
    """What happened to the rows."""
    if adapter is None:
        return "copied"
    return f"{'queries' if side == 'queries' else 'corpus'} mapped by {adapter.card.adapter}"


def described(card: Card) -> list[str]:
    """The card in lines."""
    from relcore.base.numbers import short

    settings = ", ".join(f"{name} {value}" for name, value in card.settings.items())
    lines = [
        (
            f"{card.adapter}{f' ({settings})' * bool(settings)}: {card.new_model or 'new model'},"
            f" {card.new_width:,} numbers per row → {card.old_model or 'old model'}, {card.old_width:,};"
            f" searched at width {card.width:,}"
        ),
        f"learned from {card.n_pairs:,} pairs (new {card.new_digest[:8]}, old {card.old_digest[:8]})",
    ]
    for one in card.scores:
        interval = "" if one.low is None or one.high is None else f" ({short(one.low)} to {short(one.high)})"
        lines.append(f"{one.name}: {short(one.value)}{interval}{'' if one.n is None else f', n = {one.n:,}'}")
    made = [one for one in (card.date, f"Relscope {card.version}" * bool(card.version), card.commit) if one]
    return [*lines, f"made {', '.join(made)}"] if made else lines
