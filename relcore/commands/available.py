"""available: two lists of spaces, one line each, without and with the network; or what one file or folder
holds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from relcore.base.access import regular_file
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, available, ignored_columns
from relcore.commands.naming import space_specs
from relcore.commands.options import option
from relcore.commands.output import aligned
from relcore.files.columns import Choices, overview, what_loads
from relcore.files.reading import column_roles, shape_of
from relcore.files.series import parts_of
from relcore.files.tables import TABLES

_WHERE = {"here": "On this machine", "needs the network": "Needs the network"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help=(
            "a vector file or a folder of them: show rows and dimensions; of a table, what each of its"
            " columns is read as"
        ),
    )
    option(
        parser,
        "data",
        Path,
        metavar="FOLDER",
        help="Also list the vector files in this folder (default: $RELSCOPE_DATA).",
    )
    parser.description += (
        " Nothing is downloaded. With a table: what each of its columns is read as. Columns are chosen after"
        " the table's name, here and wherever a space is named: FILE#OPTION=VALUE#OPTION=VALUE, where the"
        " options are id_column, label_column, count_column, ignore with names separated by commas, and"
        " matrix for a file with several."
    )
    parser.epilog = (
        "example:\n"
        "  relscope available --data ~/vectors\n"
        "  relscope available words.csv\n"
        "  relscope compare words.csv#id_column=word#ignore=year,note second.npz"
    )


def run(options: argparse.Namespace) -> None:
    if options.data and not options.data.is_dir():
        raise SpaceError(f"--data: expected a folder, got {str(options.data)!r}")
    if options.file is not None:
        show_file(options.file)
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


def show_file(text: str) -> None:
    """What a file or folder holds: of a table its columns, else rows and dimensions of each space, as
    headers tell them.
    """
    specs = space_specs(text)
    if any(spec.source != "file" for spec in specs):
        raise SpaceError(
            f"{text!r:.80}: expected a vector file or a folder of them, got another space; name a file"
        )
    path = Path(specs[0].name)
    table = parts_of(path)[0] if path.is_dir() else path
    if len(specs) == 1 and table.suffix.lower() in TABLES:
        show_columns(table, specs[0])
        return
    rows = [("space", "rows", "dimensions")]
    for spec in specs:
        shape = shape_of(Path(spec.name)) or (None, None)
        rows.append((spec.name, *("unknown" if size is None else f"{size:,}" for size in shape)))
    print(aligned(rows))


def show_columns(path: Path, spec: SpaceSpec) -> None:
    """What each column of a table is read as, and why; then the error, if one is unclear."""
    chosen = {option: value for option, value in spec.options if option.endswith("_column")}
    roles = column_roles(regular_file(path), Choices(**chosen, ignore=ignored_columns(spec)))
    print(aligned([("column", "read as", "why"), *overview(roles)]))
    roles.check(path.name)
    print(what_loads(roles.n, roles.dimension))
