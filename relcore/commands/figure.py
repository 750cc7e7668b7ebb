"""figure: read a recipe, compute, write one file, and say which."""

from __future__ import annotations

import argparse
from pathlib import Path

from relcore.base.access import expanded
from relcore.base.errors import SpaceError
from relcore.base.portable import Find, finder, with_paths
from relcore.commands.naming import data_folders
from relcore.commands.options import option
from relcore.commands.output import add_full_paths, need_suffix


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Draw a figure again from its recipe: load the spaces, compute everything, write one file. The"
        " numbers are those of the app. If a space has changed since, the command stops with an error."
    )
    parser.add_argument(
        "recipe",
        type=Path,
        help=("a recipe (.json), or any pdf, png, svg or html file that Relscope exported: these contain it"),
    )
    option(
        parser,
        "output",
        Path,
        short="o",
        metavar="FILE",
        help=(
            "The file to write; its suffix selects the format: .pdf, .svg, .png (for print), .html"
            " (interactive), .csv (the plotted numbers), .tex (a small table), .json (the recipe with all"
            " settings). Default: a PDF in this folder."
        ),
    )
    option(
        parser,
        "width",
        float,
        6.75,
        low=2,
        high=12,
        metavar="INCHES",
        help="3.25 for a column, 6.75 for a page.",
    )
    option(
        parser,
        "dpi",
        int,
        300,
        low=72,
        high=1200,
        help="Resolution of png, and of points that pdf and svg hold as pixels.",
    )
    option(parser, "font_size", float, 8.0, low=4, high=24, metavar="POINTS", help="Size of the letters.")
    option(parser, "dark", bool, False, help="Use the dark theme.")
    option(parser, "panel_letters", bool, True, help="Write the letters a, b, c, d before the titles.")
    text = (
        "where the recipe's files are, up to two folders below; can be given several times. They are also"
        " looked for beside the recipe, in this folder, and under RELSCOPE_DATA"
    )
    several = {"action": "append", "default": []}
    parser.add_argument("--data", type=Path, metavar="FOLDER", help=text, **several)
    parser.add_argument(
        "--file",
        metavar="NAME=PATH",
        help="the file to take for one that the recipe names; can be given several times",
        **several,
    )
    add_full_paths(parser)
    parser.epilog = "example:\n  relscope figure relscope-panes.pdf -o again.svg --width 3.25"


def run(options: argparse.Namespace) -> None:
    from relcore.compare.figures import exportable
    from relcore.figures.export import KINDS, read_recipe
    from relcore.figures.style import DARK, LIGHT, Style

    need_suffix(options.output, [f".{kind}" for kind in KINDS])
    theme = DARK if options.dark else LIGHT
    style = Style(options.width, options.dpi, options.panel_letters, options.font_size, theme=theme)
    figure = exportable(with_paths(read_recipe(options.recipe), _finder(options)))
    output = options.output or Path(figure.filename("pdf"))
    if output.resolve() == options.recipe.resolve():
        raise SpaceError(f"{output}: expected another file than the recipe, got the same; choose one with -o")
    figure.save(output, style, full_paths=options.full_paths)
    print(output)


def _finder(options: argparse.Namespace) -> Find:
    """Where the files of the recipe are looked for."""
    given = {}
    for text in options.file:
        name, sign, path = text.rpartition("=")
        if not sign or not expanded(path).is_file():
            raise SpaceError(f"--file: expected NAME=PATH with the path of a file, got {text!r}")
        given[name] = expanded(path)
    remedy = "name its folder with --data FOLDER, or the file with --file NAME=PATH"
    return finder([options.recipe.parent, Path()], [*options.data, *data_folders()], given, remedy)
