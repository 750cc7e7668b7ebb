"""available: two lists of spaces, one line each: those that load without the network, and those to download first."""

from __future__ import annotations

import argparse
from pathlib import Path

_WHERE = {"here": "On this machine", "needs the network": "Needs the network"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="also list the vector files in this folder (default: $RELSCOPE_DATA)"
    )
    parser.description += " Nothing is downloaded."
    parser.epilog = "example:\n  relscope available --data ~/vectors"


def run(options: argparse.Namespace) -> None:
    from relcore.sources.catalog import available
    from relcore.spaces import SpaceError

    if options.data and not options.data.is_dir():
        raise SpaceError(f"--data: expected a folder, got {str(options.data)!r}")
    entries = available(options.data)
    for where, title in _WHERE.items():
        rows = [
            (
                entry.name,
                "" if entry.n is None else f"{entry.n:,}",
                "" if entry.dimension is None else f"{entry.dimension} d",
                f"{entry.size_bytes / 1e6:,.1f} MB",
                entry.description,
            )
            for entry in entries
            if entry.where == where
        ]
        if rows:
            print(f"{title}:")
            name, n, dimension, size, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
            for row in rows:
                print(f"  {row[0]:<{name}}  {row[1]:>{n}}  {row[2]:>{dimension}}  {row[3]:>{size}}  {row[4]}")
