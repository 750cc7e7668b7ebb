"""available: two lists of spaces, one line each, without and with the network; or the columns of one table."""

from __future__ import annotations

import argparse
from pathlib import Path

_WHERE = {"here": "On this machine", "needs the network": "Needs the network"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table", nargs="?", metavar="TABLE", help="a .csv, .tsv or .parquet file: show what each of its columns is read as"
    )
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="also list the vector files in this folder (default: $RELSCOPE_DATA)"
    )
    parser.description += (
        " Nothing is downloaded. With a table: what each of its columns is read as. Columns are chosen after the table's name, "
        "here and wherever a space is named: FILE#OPTION=VALUE#OPTION=VALUE, where the options are id_column, label_column, "
        "count_column, ignore with names separated by commas, and matrix for a file with several."
    )
    parser.epilog = (
        "example:\n"
        "  relscope available --data ~/vectors\n"
        "  relscope available words.csv\n"
        "  relscope compare words.csv#id_column=word#ignore=year,note second.npz"
    )


def run(options: argparse.Namespace) -> None:
    from relcore.sources.catalog import available
    from relcore.spaces import SpaceError

    if options.data and not options.data.is_dir():
        raise SpaceError(f"--data: expected a folder, got {str(options.data)!r}")
    if options.table is not None:
        show_columns(options.table)
        return
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


def show_columns(text: str) -> None:
    """What each column of a table is read as, and why; then the error, if one is unclear."""
    from relcore.access import regular_file
    from relcore.commands.naming import space_spec
    from relcore.commands.output import aligned
    from relcore.sources.catalog import ignored_columns
    from relcore.sources.column_overview import overview, what_loads
    from relcore.sources.columns import Choices
    from relcore.sources.tables import TABLES, column_roles
    from relcore.spaces import SpaceError

    spec = space_spec(text)
    path = Path(spec.name)
    if spec.source != "file" or path.suffix.lower() not in TABLES:
        raise SpaceError(f"{text!r:.80}: expected a table that ends in {', '.join(TABLES)}, got another space")
    chosen = {option: value for option, value in spec.options if option.endswith("_column")}
    found = column_roles(regular_file(path), Choices(**chosen, ignore=ignored_columns(spec)))
    print(aligned([("column", "read as", "why"), *overview(found)]))
    found.check(path.name)
    print(what_loads(found.n, found.dimension))
