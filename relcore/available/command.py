"""The command `available`, which lists spaces and tells what a file holds."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from relcore.base.access import regular_file
from relcore.base.errors import SpaceError, quote
from relcore.base.report import Report, Table
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, available, listed, load, place_of
from relcore.catalog.naming import space_specs
from relcore.commands.command import command
from relcore.commands.options import Printed
from relcore.encoders.words import BUNDLED
from relcore.files.columns import Choices, overview, size_in_words
from relcore.files.parts import parts_of
from relcore.files.reading import column_roles, description_of, shape_of
from relcore.files.table_formats import TABLES
from relcore.stores.index import open_index

# The command available lists spaces and tells what a file holds. The command encode encodes a dataset.

_WHERE = {"here": "On this machine", "needs the network": "Needs the network"}


@dataclass
class AvailableOptions:
    file: str = setting(
        metavar="FILE",
        nargs="?",
        help="a vector file, a folder of them, or another space such as lancedb:FOLDER#TABLE: show its rows"
        " and dimensions, its matrices if it has several, and the role of each column of a table",
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
    """A report on what a file, a folder, a store or another space that the user names contains."""
    specs = space_specs(options.file)
    if len(specs) == 1 and specs[0].source == "file":
        return _of_one_file(specs[0])
    if len(specs) == 1:
        return _of_shapes([(options.file, *_shape(specs[0]))])
    return _of_shapes([(spec.name, *_shape(spec)) for spec in specs])


def _of_one_file(spec: SpaceSpec) -> Report:
    path = Path(spec.name)
    table = path
    if path.is_dir():
        table = parts_of(path)[0]
    if table.suffix.lower() in TABLES:
        return _of_table(spec, table)
    if path.is_dir():
        return _of_shapes([(spec.name, *_shape(spec))])
    description = description_of(path)
    chosen = spec.option("matrix") or description.usual
    if chosen is None and len(description.matrices) > 1:
        matrices = [(f"{spec.name}#matrix={name}", *shape) for name, shape in description.choosable.items()]
        note = "A space is one of these matrices: name it as in the first column."
        return replace(_of_shapes(matrices), notes=[note])
    if chosen is not None and chosen not in description.matrices:
        raise SpaceError(
            f"{path.name}: matrix: expected one of {quote(description.matrices)}, got {chosen!r:.80}"
        )
    return _of_shapes([(spec.name, *(description.matrices.get(chosen, (None, None))))])


def _of_table(spec: SpaceSpec, table: Path) -> Report:
    """The role of each column. If the table is no space as it is, a note says why and what to do."""
    chosen = {name: value for name, value in spec.options if name.endswith("_column")}
    roles = column_roles(regular_file(table), Choices(**chosen, ignore=listed(spec, "ignore")))
    rows = list(overview(roles))
    columns = pd.DataFrame(rows, columns=["column", "read_as", "why"])
    roles_table = Table("columns", columns, [("column", "read as", "why"), *rows])
    notes = []
    try:
        roles.check(table.name)
    except SpaceError as error:
        notes = [
            f"Not a space as it is. {error}",
            "Texts and pictures become vectors by an encoder: relscope encode --help.",
        ]
    facts = {"n": roles.n, "dimension": roles.dimension, "is_space": not notes}
    return Report(size_in_words(roles.n, roles.dimension), [roles_table], facts, notes)


def _shape(spec: SpaceSpec) -> tuple[int | None, int | None]:
    """The rows and dimensions of a space, read without its vectors where that is possible."""
    if spec.source == "file":
        return shape_of(Path(spec.name)) or (None, None)
    if spec.source == "index":
        with open_index(place_of(spec)) as index:
            return index.n, index.width
    if spec.source == "bundled":
        return shape_of(BUNDLED[spec.name]) or (None, None)
    if spec.source == "gensim-data":
        return next((entry.n, entry.dimension) for entry in available() if entry.spec == spec)
    space = load(spec)
    return len(space), space.dimension


def _of_shapes(shapes: Sequence[tuple[str, int | None, int | None]]) -> Report:
    columns = pd.DataFrame(shapes, columns=["name", "n", "dimension"], dtype=object)
    cells = [[name, *("unknown" if n is None else f"{n:,}" for n in shape)] for name, *shape in shapes]
    return Report("", [Table("spaces", columns, [("space", "rows", "dimensions"), *cells])])
