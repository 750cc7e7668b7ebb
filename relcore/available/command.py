"""The command `available`, which lists spaces and tells what a file holds."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from relcore.base.access import regular_file
from relcore.base.errors import SpaceError
from relcore.base.report import Report, Table
from relcore.base.settings import setting
from relcore.catalog.catalog import available, listed
from relcore.catalog.naming import space_specs
from relcore.commands.command import command
from relcore.commands.options import Printed
from relcore.files.columns import Choices, overview, size_in_words
from relcore.files.parts import parts_of
from relcore.files.reading import column_roles, shape_of
from relcore.files.table_formats import TABLES

# The command available lists spaces and tells what a file holds. The command encode encodes a dataset.

_WHERE = {"here": "On this machine", "needs the network": "Needs the network"}


@dataclass
class AvailableOptions:
    file: str = setting(
        metavar="FILE",
        nargs="?",
        help="a vector file or a folder of them: show its rows and dimensions, and the role of each column"
        " of a table",
    )
    data: Path = setting(
        None,
        metavar="FOLDER",
        help="Also list the vector files in this folder (default: $RELSCOPE_DATA).",
    )


@command(
    (AvailableOptions, Printed),
    "Nothing is downloaded. For a table, the role of each column is shown. To choose roles, add options to"
    " the table's name, here and wherever a space is named: FILE#OPTION=VALUE#OPTION=VALUE. The options"
    " are id_column, label_column, count_column, and ignore (names, separated by commas). If a file has"
    " several matrices, the option matrix chooses one.",
    ("--data ~/vectors", "words.csv", "words.csv#id_column=word#ignore=year,note"),
)
def run_available(options: argparse.Namespace) -> Report:
    if options.data and not options.data.is_dir():
        raise SpaceError(f"--data: expected a folder, got {str(options.data)!r}")
    if options.file is not None:
        return file_report(options)
    entries = available(options.data)
    tables = []
    for where, title in _WHERE.items():
        rows = [
            (
                entry.name,
                *("" if size is None else f"{size:,}" for size in (entry.n, entry.dimension)),
                f"{entry.size_bytes / 1e6:,.1f}",
                entry.description,
            )
            for entry in entries
            if entry.where == where
        ]
        head = ("space", "rows", "dimensions", "MB", "")
        if rows:
            tables += [Table(shown=[head, *rows], title=title)]
    table = {
        name: [getattr(entry, name) for entry in entries]
        for name in ("name", "n", "dimension", "size_bytes", "where", "description")
    }
    return Report("", [Table("spaces", pd.DataFrame(table, dtype=object)), *tables])


def file_report(options: argparse.Namespace) -> Report:
    """A report on what a file or a folder contains."""
    text = options.file
    specs = space_specs(text)
    if any(spec.source != "file" for spec in specs):
        raise SpaceError(
            f"{text!r:.80}: expected a vector file or a folder of them, got another space; name a file"
        )
    path = Path(specs[0].name)
    table = path
    if path.is_dir():
        table = parts_of(path)[0]
    if len(specs) == 1 and table.suffix.lower() in TABLES:
        chosen = {name: value for name, value in specs[0].options if name.endswith("_column")}
        roles = column_roles(regular_file(table), Choices(**chosen, ignore=listed(specs[0], "ignore")))
        rows = list(overview(roles))
        columns = pd.DataFrame(rows, columns=["column", "read_as", "why"])
        shown = Table("columns", columns, [("column", "read as", "why"), *rows])
        try:
            roles.check(table.name)
        except SpaceError:  # the table of columns shows which column is unclear
            if options.format == "table":
                print(shown.text())
            raise
        facts = {"n": roles.n, "dimension": roles.dimension}
        return Report(size_in_words(roles.n, roles.dimension), [shown], facts)
    shapes = [(spec.name, *(shape_of(Path(spec.name)) or (None, None))) for spec in specs]
    columns = pd.DataFrame(shapes, columns=["name", "n", "dimension"], dtype=object)
    cells = [[name, *("unknown" if n is None else f"{n:,}" for n in shape)] for name, *shape in shapes]
    return Report("", [Table("spaces", columns, [("space", "rows", "dimensions"), *cells])])
