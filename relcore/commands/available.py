"""available: two lists of spaces, without and with the network; or the content of one file or folder."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from relcore.base.access import regular_file
from relcore.base.errors import SpaceError
from relcore.base.report import Report, Table
from relcore.base.settings import setting
from relcore.catalog.catalog import available, ignored_columns
from relcore.catalog.naming import space_specs
from relcore.commands.running import CommandOptions, Printed
from relcore.files.columns import Choices, overview, size_in_words
from relcore.files.reading import column_roles, parts_of, shape_of
from relcore.files.tables import TABLES

_WHERE = {"here": "On this machine", "needs the network": "Needs the network"}


@dataclass
class AvailableOptions:
    file: str = setting(
        metavar="FILE",
        nargs="?",
        help="a vector file or a folder of them: show rows and dimensions; of a table, what each of its"
        " columns is read as",
    )
    data: Path = setting(
        None,
        metavar="FOLDER",
        help="Also list the vector files in this folder (default: $RELSCOPE_DATA).",
    )


OPTIONS = CommandOptions(
    (AvailableOptions, Printed),
    "Nothing is downloaded. With a table: what each of its columns is read as. Columns are chosen after"
    " the table's name, here and wherever a space is named: FILE#OPTION=VALUE#OPTION=VALUE, where the"
    " options are id_column, label_column, count_column, ignore with names separated by commas, and"
    " matrix for a file with several.",
    ("--data ~/vectors", "words.csv", "words.csv#id_column=word#ignore=year,note"),
)


def run(options: argparse.Namespace) -> Report:
    if options.data and not options.data.is_dir():
        raise SpaceError(f"--data: expected a folder, got {str(options.data)!r}")
    if options.file is not None:
        return file_report(options)
    entries = available(options.data)
    tables = []
    for where, title in _WHERE.items():
        rows = [("space", "rows", "dimensions", "MB", "")]
        for entry in entries:
            if entry.where == where:
                sizes = ("" if size is None else f"{size:,}" for size in (entry.n, entry.dimension))
                rows.append((entry.name, *sizes, f"{entry.size_bytes / 1e6:,.1f}", entry.description))
        tables += [Table(shown=rows, title=title)] if len(rows) > 1 else []
    table = {
        name: [getattr(entry, name) for entry in entries]
        for name in ("name", "n", "dimension", "size_bytes", "where", "description")
    }
    return Report("", [Table("spaces", pd.DataFrame(table, dtype=object)), *tables])


def file_report(options: argparse.Namespace) -> Report:
    """A report on the content of a file or a folder."""
    text = options.file
    specs = space_specs(text)
    if any(spec.source != "file" for spec in specs):
        raise SpaceError(
            f"{text!r:.80}: expected a vector file or a folder of them, got another space; name a file"
        )
    path = Path(specs[0].name)
    table = parts_of(path)[0] if path.is_dir() else path
    if len(specs) == 1 and table.suffix.lower() in TABLES:
        chosen = {name: value for name, value in specs[0].options if name.endswith("_column")}
        roles = column_roles(regular_file(table), Choices(**chosen, ignore=ignored_columns(specs[0])))
        rows = list(overview(roles))
        columns = pd.DataFrame(rows, columns=["column", "read_as", "why"])
        shown = Table("columns", columns, [("column", "read as", "why"), *rows])
        try:
            roles.check(table.name)
        except SpaceError:  # the table shows which column is unclear
            if options.format == "table":
                print(shown.text())
            raise
        facts = {"n": roles.n, "dimension": roles.dimension}
        return Report(size_in_words(roles.n, roles.dimension), [shown], facts)
    shapes = [(spec.name, *(shape_of(Path(spec.name)) or (None, None))) for spec in specs]
    rows = [("space", "rows", "dimensions")]
    for name, *shape in shapes:
        rows.append((name, *("unknown" if size is None else f"{size:,}" for size in shape)))
    columns = pd.DataFrame(shapes, columns=["name", "n", "dimension"], dtype=object)
    return Report("", [Table("spaces", columns, rows)])
