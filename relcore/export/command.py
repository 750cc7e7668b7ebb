"""The command `export`, which writes a map as a table for Embedding Atlas."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.names import REDUCTIONS
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.base.writing import replacing
from relcore.catalog.catalog import load
from relcore.catalog.naming import SPACE_HELP
from relcore.catalog.row_tables import TableColumns, row_texts
from relcore.commands.command import command
from relcore.commands.inputs import spaces_of
from relcore.commands.options import ByRow, Printed
from relcore.commands.printing import written
from relcore.compare.columns import cells_of, rows_table
from relcore.compare.notebook import how_to_open
from relcore.export.atlas import NEIGHBOURS, atlas_table
from relcore.files.saving import write_parquet
from relcore.maps.pane_maps import pane_matrices, reduce_pair
from relcore.maps.principal_axes import ReductionSpec
from relcore.represent.representations import ProjectionSpec
from relcore.spaces.matching import match


@dataclass
class ExportOptions:
    spaces: tuple[str, ...] = setting(
        metavar="SPACE",
        nargs="+",
        help=f"one or two; each is {SPACE_HELP}. The rows of two are paired by id",
    )
    atlas: Path = setting(
        Path("atlas.parquet"), metavar="FILE", written=True, help="The file to write for Embedding Atlas."
    )
    method: str = setting("pca", choices=REDUCTIONS, help="How the map is made.")
    k: int = setting(NEIGHBOURS, low=1, high=100, help="Number of nearest rows to write for each row.")


@command(
    (ExportOptions, ByRow, Printed),
    "The table has x, y, the nearest rows and all columns; for two spaces, x, y and nearest rows of both.",
    ("word2vec-novels fasttext-novels --atlas words.parquet",),
    suffixes={"atlas": [".parquet"]},
)
def run_export(options: argparse.Namespace) -> Report:
    if len(options.spaces) > 2:
        raise SpaceError(f"export: expected one or two spaces, got {quote(options.spaces)}")
    inputs = spaces_of(options, options.spaces)
    specs = inputs.specs
    spaces = inputs.spaces
    n_spaces = len(spaces)
    pair = match(spaces[0], spaces[-1])  # a single space is paired with itself, and only one map is kept
    loaded = cache(partial(load, again=True))
    rows = np.arange(len(pair))
    spec = ReductionSpec(method=options.method, max_points=max(3, len(pair)))
    maps, note = reduce_pair(pane_matrices(pair, rows, (), ProjectionSpec(), "absolute")[:n_spaces], spec)
    # The columns of the tables of all spaces, in order; a column that two tables have is written once.
    names = list(dict.fromkeys(name for spec in specs for name in TableColumns(spec).names))
    cells = cells_of(specs[0], specs[-1], loaded)
    columns = rows_table(pair, rows, names, cells, row_texts(specs, loaded))
    table = atlas_table((pair.source, pair.target)[:n_spaces], rows, maps, columns, options.k)
    with replacing(options.atlas) as stream:
        write_parquet(stream, table.schema, [table])
    name = str(options.atlas)
    notes = (f"{note}.", f"Open it: {how_to_open(name)}")
    return written("", notes, file=name, rows=table.num_rows, columns=table.num_columns)
