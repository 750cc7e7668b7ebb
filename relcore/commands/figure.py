"""figure: read a recipe, compute, write one file, and say which."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relcore.base.portable import Find

from relcore.commands.naming import finite, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.output import add_full_paths

    parser.description = (
        "Draw a figure again from its recipe: load the spaces, compute everything, write one file. The"
        " numbers are those of the app. If a space has changed since, the command stops with an error."
    )
    parser.add_argument(
        "recipe",
        type=Path,
        help=(
            "a recipe (.json), or any pdf, png, svg or html file that Relscope exported, since these"
            " contain it"
        ),
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=(
            "the file to write; its suffix selects the format: .pdf, .svg, .png (for print), .html"
            " (interactive), .csv (the plotted numbers), .tex (a small table), .json (the recipe with all"
            " settings). Default: a PDF in this folder"
        ),
    )
    parser.add_argument(
        "--width",
        type=finite,
        default=6.75,
        metavar="INCHES",
        help="3.25 for a column, 6.75 for a page; 2 to 12",
    )
    parser.add_argument(
        "--dpi",
        type=whole,
        default=300,
        help="resolution of png, and of points that pdf and svg hold as pixels; 72 to 1200",
    )
    parser.add_argument("--font-size", type=finite, default=8, metavar="POINTS", help="4 to 24")
    parser.add_argument("--dark", action="store_true", help="use the dark theme")
    parser.add_argument(
        "--no-panel-letters",
        dest="panel_letters",
        action="store_false",
        help="omit the letters a, b, c, d before the titles",
    )
    parser.add_argument(
        "--data",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help=(
            "where the recipe's files are, up to two folders below; can be given several times. They are also"
            " looked for beside the recipe, in this folder, and under RELSCOPE_DATA"
        ),
    )
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="the file to take for one that the recipe names; can be given several times",
    )
    add_full_paths(parser)
    parser.epilog = "example:\n  relscope figure relscope-panes.pdf -o again.svg --width 3.25"


def run(options: argparse.Namespace) -> None:
    from relcore.base.errors import SpaceError
    from relcore.base.portable import with_paths
    from relcore.commands.output import need_suffix
    from relcore.compare.figures import exportable
    from relcore.figures.export import KINDS, read_recipe
    from relcore.figures.style import DARK, LIGHT, Style

    need_suffix(options.output, [f".{kind}" for kind in KINDS])
    style = Style(
        options.width,
        options.dpi,
        options.panel_letters,
        options.font_size,
        theme=DARK if options.dark else LIGHT,
    )
    figure = exportable(with_paths(read_recipe(options.recipe), _finder(options)))
    output = options.output or Path(figure.filename("pdf"))
    if output.resolve() == options.recipe.resolve():
        raise SpaceError(f"{output}: expected another file than the recipe, got the same; choose one with -o")
    figure.save(output, style, full_paths=options.full_paths)
    print(output)


def _finder(options: argparse.Namespace) -> Find:
    """Where the files of the recipe are looked for."""
    from relcore.base.access import expanded
    from relcore.base.errors import SpaceError
    from relcore.base.portable import finder
    from relcore.commands.naming import data_folders

    given = {}
    for one in options.file:
        name, sign, path = one.rpartition("=")
        if not sign or not expanded(path).is_file():
            raise SpaceError(f"--file: expected NAME=PATH with the path of a file, got {one!r}")
        given[name] = expanded(path)
    remedy = "name its folder with --data FOLDER, or the file with --file NAME=PATH"
    return finder([options.recipe.parent, Path()], [*options.data, *data_folders()], given, remedy)
