"""figure: read a recipe, compute, write one file, and say which."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Draw a figure again from its recipe: load the spaces, compute everything, write one file. The numbers are those of "
        "the app; spaces that have changed since are refused."
    )
    parser.add_argument(
        "recipe", type=Path, help="a .json recipe, or any pdf, png, svg or html that Relscope exported: they carry their recipe"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="what to write; its suffix says what: .pdf, .svg, .png (for print), .html (interactive), .csv (the plotted "
        "numbers), .tex (the table, where it is small), .json (the recipe, all settings filled in). Without it, a PDF with "
        "the figure's name, here",
    )
    parser.add_argument(
        "--width",
        type=float,
        default=6.75,
        metavar="INCHES",
        help="3.25 for one column, 6.75 for the page; 2 to 12; default %(default)s",
    )
    parser.add_argument(
        "--dpi", type=int, default=300, help="of png, and of rastered points in pdf and svg; 72 to 1200; default %(default)s"
    )
    parser.add_argument("--font-size", type=float, default=8, metavar="POINTS", help="4 to 24; default %(default)s")
    parser.add_argument("--dark", action="store_true", help="on a dark page")
    parser.add_argument(
        "--no-panel-letters", dest="panel_letters", action="store_false", help="leave out the a, b, c, d before the titles"
    )
    parser.epilog = "example:\n  relscope figure relscope-panes.pdf -o again.svg --width 3.25"


def run(options: argparse.Namespace) -> None:
    from relcore.comparing.figures import exportable
    from relcore.figures.export import KINDS, read_recipe
    from relcore.figures.palette import DARK, LIGHT
    from relcore.figures.style import Style
    from relcore.spaces import SpaceError, quote

    kind = options.output.suffix.lstrip(".").lower() if options.output else "pdf"
    if kind not in KINDS:
        raise SpaceError(f"{options.output}: expected a name that ends in one of {quote(KINDS)}, got {kind or 'no suffix'!r}")
    style = Style(options.width, options.dpi, options.panel_letters, options.font_size, theme=DARK if options.dark else LIGHT)
    figure = exportable(read_recipe(options.recipe))
    output = options.output or Path(figure.filename(kind))
    if output.resolve() == options.recipe.resolve():
        raise SpaceError(f"{output}: expected a file other than the recipe's own, got the same; name another with -o")
    figure.save(output, style)
    print(output)
