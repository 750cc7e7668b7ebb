"""python -m relcore: draw a figure again from its recipe, and see what can be loaded, without a screen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from relcore import __version__
from relcore.spaces import SpaceError, quote


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if all went well, 2 with one line on stderr where the user can mend it."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except SpaceError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return 0


def _fail(message: str) -> int:
    print(f"relcore: {' '.join(message.split())}", file=sys.stderr)
    return 2


def draw_figure(options: argparse.Namespace) -> None:
    """Read the recipe, compute, write one file, and say which."""
    from relcore.figure_recipes import exportable
    from relcore.figures.export import KINDS, read_recipe
    from relcore.figures.palette import DARK, LIGHT
    from relcore.figures.style import Style

    kind = options.output.suffix.lstrip(".").lower() if options.output else "pdf"
    if kind not in KINDS:
        raise SpaceError(f"{options.output}: expected a name that ends in one of {quote(KINDS)}, got {kind or 'no suffix'!r}")
    style = Style(options.width, options.dpi, options.panel_letters, options.font_size, theme=DARK if options.dark else LIGHT)
    figure = exportable(read_recipe(options.recipe))
    output = options.output or Path(figure.filename(kind))
    if output.resolve() == options.recipe.resolve():
        raise SpaceError(f"{output}: expected a file other than the recipe's own, got the same; name another with -o")
    output.write_bytes(figure.bytes(kind, style))
    print(output)


def list_available(options: argparse.Namespace) -> None:
    """Two lists, one line a space: what loads here and now, and what has to be downloaded first."""
    from relcore.sources.catalog import available

    if options.data and not options.data.is_dir():
        raise SpaceError(f"--data: expected a folder, got {str(options.data)!r}")
    entries = available(options.data)
    for where, title in (("here", "On this machine"), ("needs the network", "Needs the network")):
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m relcore", description="Relscope without a screen: the figures of the app, from their recipes."
    )
    parser.add_argument("--version", action="version", version=f"relscope {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)
    _add_figure(commands)
    about = "list the spaces that can be loaded here and now, and those that need the network"
    listing = commands.add_parser("available", help=about, description=f"{about.capitalize()}. Nothing is downloaded.")
    listing.add_argument(
        "--data", type=Path, metavar="FOLDER", help="also list the files of vectors in this folder (default: $RELSCOPE_DATA)"
    )
    listing.set_defaults(run=list_available)
    return parser


def _add_figure(commands: argparse._SubParsersAction) -> None:
    figure = commands.add_parser(
        "figure",
        help="draw a figure again from its recipe",
        description="Draw a figure again from its recipe: load the spaces, compute everything, write one file. The numbers are "
        "those of the app; spaces that have changed since are refused.",
    )
    figure.add_argument(
        "recipe", type=Path, help="a .json recipe, or any pdf, png, svg or html that Relscope exported: they carry their recipe"
    )
    figure.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="what to write; its suffix says what: .pdf, .svg, .png (for print), .html (interactive), .csv (the plotted "
        "numbers), .json (the recipe, all settings filled in). Without it, a PDF with the figure's name, here",
    )
    figure.add_argument(
        "--width",
        type=float,
        default=6.75,
        metavar="INCHES",
        help="3.25 for one column, 6.75 for the page; 2 to 12; default %(default)s",
    )
    figure.add_argument(
        "--dpi", type=int, default=300, help="of png, and of rastered points in pdf and svg; 72 to 1200; default %(default)s"
    )
    figure.add_argument("--font-size", type=float, default=8, metavar="POINTS", help="4 to 24; default %(default)s")
    figure.add_argument("--dark", action="store_true", help="on a dark page")
    figure.add_argument(
        "--no-panel-letters", dest="panel_letters", action="store_false", help="leave out the a, b, c, d before the titles"
    )
    figure.set_defaults(run=draw_figure)
