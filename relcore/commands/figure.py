"""The commands that draw a figure again from its recipe, or write a map as a table for Embedding Atlas."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, quote
from relcore.base.names import REDUCTIONS
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.base.writing import replacing
from relcore.catalog.catalog import load
from relcore.catalog.naming import SPACE_HELP
from relcore.catalog.row_tables import TableColumns, row_texts
from relcore.commands.running import (
    ByRow,
    FullPaths,
    Printed,
    command,
    spaces_of,
    values_of,
    written,
)
from relcore.compare.columns import cells_of, rows_table
from relcore.compare.scene import NEIGHBOURS, atlas_table, figure_of, how_to_open
from relcore.figures.style import DARK, LIGHT, Style
from relcore.files.saving import need_suffix, write_parquet
from relcore.maps.pane_maps import pane_matrices, reduce_pair
from relcore.maps.reduction import ReductionSpec
from relcore.represent.translation import ProjectionSpec
from relcore.spaces.matching import match


@dataclass
class FigureOptions:
    recipe: Path = setting(
        help="a recipe (.json), or any pdf, png, svg or html file that Relscope exported: these contain it"
    )
    data: Path = setting(
        (),
        metavar="FOLDER",
        nargs="append",
        help="where the recipe's files are, up to two folders below; can be given several times. They are"
        " also looked for beside the recipe, in this folder, and under RELSCOPE_DATA",
    )
    file: str = setting(
        (),
        metavar="NAME=PATH",
        nargs="append",
        help="the file to take for one that the recipe names; can be given several times",
    )
    dark: bool = setting(False, help="Use the dark theme.")


@command(
    (FigureOptions, Style, Printed, FullPaths),
    "It loads the spaces, computes everything and writes one file. The numbers are those of the app. If a"
    " space has changed since, the command stops with an error.",
    ("relscope-panes-a-b.pdf -o again.svg --width 3.25",),
    output="The file to write; its suffix selects the format: .pdf, .svg, .png (for print), .html"
    " (interactive), .csv (the plotted numbers), .tex (a small table), .json (the recipe with all settings)."
    " Default: a PDF in this folder.",
)
def run_figure(options: argparse.Namespace) -> Report:
    from relcore.figures.export import KINDS

    need_suffix(options.output, [f".{kind}" for kind in KINDS])
    look, given = Style(**values_of(options, Style), theme=DARK if options.dark else LIGHT), {}
    for text in options.file:
        name, sign, path = text.rpartition("=")
        if not sign or not expand_home(path).is_file():
            raise SpaceError(f"--file: expected NAME=PATH with the path of a file, got {text!r}")
        given[name] = expand_home(path)
    figure = figure_of(options.recipe, options.data, given)
    output = options.output = options.output or Path(figure.filename("pdf"))
    if output.resolve() == options.recipe.resolve():
        raise SpaceError(f"{output}: expected another file than the recipe, got the same; choose one with -o")
    figure.save(output, look, full_paths=options.full_paths)
    return written(file=str(output), figure=type(figure).__name__)


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
    "The table has x, y, the nearest rows and all columns; of a second space also its x, y and nearest rows.",
    ("word2vec-novels fasttext-novels --atlas words.parquet",),
    suffixes={"atlas": [".parquet"]},
)
def run_export(options: argparse.Namespace) -> Report:
    if len(options.spaces) > 2:
        raise SpaceError(f"export: expected one or two spaces, got {quote(options.spaces)}")
    specs, spaces = spaces_of(options, options.spaces)
    pair, loaded = match(spaces[0], spaces[-1]), cache(partial(load, again=True))
    rows, n_spaces = np.arange(len(pair)), len(spaces)
    spec = ReductionSpec(method=options.method, max_points=max(3, len(pair)))
    maps, note = reduce_pair(pane_matrices(pair, rows, (), ProjectionSpec(), "absolute")[:n_spaces], spec)
    tables = dict.fromkeys(name for spec in specs for name in TableColumns(spec).names)
    columns = rows_table(
        pair, rows, list(tables), cells_of(specs[0], specs[-1], loaded), row_texts(specs, loaded)
    )
    table = atlas_table((pair.source, pair.target)[:n_spaces], rows, maps, columns, options.k)
    with replacing(options.atlas) as stream:
        write_parquet(stream, table.schema, [table])
    name, notes = str(options.atlas), (f"{note}.", f"Open it: {how_to_open(str(options.atlas))}")
    return written("", notes, file=name, rows=table.num_rows, columns=table.num_columns)
