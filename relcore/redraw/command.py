"""The command `figure`, which draws a figure again from its recipe."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError
from relcore.base.records import paths_of
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.commands.command import command, values_of
from relcore.commands.options import FullPaths, Printed
from relcore.commands.outputs import goals_of, need_other_files, sources_of
from relcore.commands.printing import written
from relcore.compare.pictures import exportable, recipe_with_paths
from relcore.figures.style import DARK, LIGHT, Style
from relcore.files.saving import need_suffix

# The command figure draws a figure again from its recipe. The command export writes a map as a table for
# Embedding Atlas.


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
        searched=True,
    )
    file: str = setting(
        (),
        metavar="NAME=PATH",
        nargs="append",
        help="read PATH in place of the recipe's file NAME; can be given several times",
    )
    dark: bool = setting(False, help="Use the dark theme.")


@command(
    (FigureOptions, Style, Printed, FullPaths),
    "Loads the spaces, computes everything and writes one file. The numbers are those of the app. If a"
    " space has changed since the export, the command stops with an error.",
    ("relscope-panes-a-b.pdf -o again.svg --width 3.25",),
    output="The file to write; its suffix selects the format: .pdf, .svg, .png (for print), .html"
    " (interactive), .csv (the plotted numbers), .tex (a small table), .json (the recipe with all settings)."
    " Default: a PDF in this folder.",
)
def run_figure(options: argparse.Namespace) -> Report:
    from relcore.figures.export import KINDS

    need_suffix(options.output, [f".{kind}" for kind in KINDS])
    style = Style(**values_of(options, Style), theme=DARK if options.dark else LIGHT)
    files = {}
    for text in options.file:
        name, sign, path = text.rpartition("=")
        if not sign or not expand_home(path).is_file():
            raise SpaceError(f"--file: expected NAME=PATH with the path of a file, got {text!r}")
        files[name] = expand_home(path)
    recipe = recipe_with_paths(options.recipe, options.data, files)
    names = [str(options.recipe), *paths_of(recipe)]
    data = [one for name in names for one in sources_of("the recipe", name)]
    if options.output:
        need_other_files(goals_of("-o", str(options.output)), data)
    figure = exportable(recipe)
    output = options.output or Path(figure.filename("pdf"))
    options.output = output
    need_other_files(goals_of("-o", str(output)), data)
    figure.save(output, style, full_paths=options.full_paths)
    return written(file=str(output), figure=type(figure).__name__)
