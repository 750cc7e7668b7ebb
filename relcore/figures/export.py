"""Export: every figure as a file of any kind, with the recipe that makes it again inside.

An `Exportable` knows a figure's three forms (screen, paper, numbers) and its recipe, so the app's export bar and the command
line treat all figures alike. The recipe, a dictionary of settings, travels in PDF (Keywords), PNG (a text chunk), SVG
(metadata) and HTML (a JSON script); `read_recipe` gets it back from any of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape, unescape
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.charts.lines import Lines
from relcore.charts.scene import Scene
from relcore.extras import extra
from relcore.figures.palette import LIGHT, Theme
from relcore.figures.style import PAPER, Style
from relcore.figures.tables import histogram_table, score_table, spectrum_table
from relcore.spaces import SpaceError

if TYPE_CHECKING:  # each library is loaded with the first figure that needs it, as the app's first screen waits for neither
    import plotly.graph_objects as go
    from matplotlib.figure import Figure


MEDIA_TYPES = {
    "html": "text/html",
    "pdf": "application/pdf",
    "svg": "image/svg+xml",
    "png": "image/png",
    "csv": "text/csv",
    "tex": "application/x-tex",
    "json": "application/json",
}
KINDS = tuple(MEDIA_TYPES)
_KEY = "relscope-recipe"


@dataclass(frozen=True)
class Exportable:
    """One figure in all its forms, each made on demand.

    Attributes
    ----------
    name : str
        The stem of the file's name.
    interactive : theme → plotly Figure
    publication : Style → matplotlib Figure
    table : () → DataFrame
        The numbers that are plotted.
    recipe : dict, optional
        The settings that draw the figure again; JSON values only.
    latex : () → DataFrame, optional
        The printed table, if it is small.
    """

    name: str
    interactive: Callable[[Theme], go.Figure]
    publication: Callable[[Style], Figure]
    table: Callable[[], pd.DataFrame]
    recipe: Mapping[str, Any] | None = None
    latex: Callable[[], pd.DataFrame] | None = None

    def filename(self, kind: str) -> str:
        return f"{self._slug}.{kind}"

    def bytes(self, kind: str, style: Style | None = None, theme: Theme | None = None) -> bytes:
        """The file as "html", "pdf", "svg", "png", "csv", "tex" (a booktabs table) or "json" (the recipe alone).

        `style` is of pdf, svg and png (without it, the paper's default); `theme` of html (without it, the style's, or light).

        Raises
        ------
        SpaceError
            Another kind, a recipe that is absent from "json" or is not JSON, "tex" of a figure without a table to print.
        """
        recipe = None if self.recipe is None else _to_json(self.recipe)
        if kind == "html":
            return self._html(theme or (style.theme if style else LIGHT), recipe)
        if kind == "csv":
            return self.table().to_csv(index=False, lineterminator="\n").encode()
        if kind == "tex":
            if self.latex is None:
                raise SpaceError(f"{self.name}: expected a figure with a table for tex, got one without; export csv instead")
            with extra():
                return _latex(self.latex()).encode()
        if kind == "json":
            if self.recipe is None:
                raise SpaceError(f"{self.name}: expected a recipe to write as json, got a figure without one")
            return (json.dumps(self.recipe, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
        if kind in ("pdf", "svg", "png"):
            return self._printed(kind, style, recipe)
        raise SpaceError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")

    def save(self, path: str | Path, style: Style | None = None) -> None:
        """Write the file that the suffix of the path names; errors as in `bytes`."""
        Path(path).write_bytes(self.bytes(Path(path).suffix.lstrip(".").lower(), style))

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        return self.bytes("png")

    @property
    def _slug(self) -> str:
        return re.sub(r"[^\w.-]+", "-", self.name).strip("-.") or "figure"

    @extra()
    def _html(self, theme: Theme, recipe: str | None) -> bytes:
        figure = self.interactive(theme)
        alt = escape(str((figure.layout.meta or {}).get("alt", self.name)))
        plot = figure.to_html(
            full_html=False,
            include_plotlyjs=True,  # inlined, so that the page works without a network
            div_id=f"relscope-{self._slug}",  # else a random one, and other bytes each time
            config={"responsive": True, "displaylogo": False, "scrollZoom": True},
        )
        # In JSON a "<" is as well written so, and then no text can end the script early.
        safe = None if recipe is None else recipe.replace("<", "\\u003c")
        script = f'<script type="application/json" id="{_KEY}">{safe}</script>\n' if safe else ""
        return (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(self.name)}</title>\n{script}'
            f"<style>body {{ margin: 16px; background: {theme.surface}; }}</style>\n</head>\n"
            f'<body>\n<main role="img" aria-label="{alt}">{plot}</main>\n</body>\n</html>\n'
        ).encode()

    def _printed(self, kind: str, style: Style | None, recipe: str | None) -> bytes:
        from relcore.figures.paper import write

        style = style or PAPER
        key = {"pdf": "Keywords", "png": _KEY}.get(kind)
        metadata = {"Title": self.name} | ({key: recipe} if key and recipe else {})
        written = write(self.publication(style), kind, style, metadata)
        if kind == "svg" and recipe:
            element = f'<metadata id="{_KEY}">{escape(recipe, quote=False)}</metadata>\n <metadata>'
            written = written.replace(b"<metadata>", element.encode(), 1)
        return written


def drawn(screen: str, paper: str, *data: Any) -> tuple[Callable[[Theme], go.Figure], Callable[[Style], Figure]]:
    """The two renderers of these data, ``"lines_interactive:lines_figure"`` and the like, imported when they are called."""

    def renderer(name: str) -> Callable[[Any], Any]:
        module, function = name.split(":")
        return lambda look: getattr(import_module(f"relcore.figures.{module}"), function)(*data, look)

    return renderer(screen), renderer(paper)


def scene_exportable(scene: Scene, recipe: Mapping[str, Any] | None = None, name: str = "panes") -> Exportable:
    """The panes of a scene; their table is `Scene.table`."""
    renderers = drawn("panes_interactive:panes_figure", "publication:panes_figure", scene)
    return Exportable(name, *renderers, scene.table, recipe)


def lines_exportable(
    lines: Lines,
    recipe: Mapping[str, Any] | None = None,
    name: str = "lines",
    latex: Callable[[], pd.DataFrame] | None = None,
) -> Exportable:
    """A chart of lines or points; `latex` gives the table to print."""
    renderers = drawn("lines_interactive:lines_figure", "lines_publication:lines_figure", lines)
    return Exportable(name, *renderers, lines.table, recipe, latex)


def scores_exportable(table: pd.DataFrame, recipe: Mapping[str, Any] | None = None, name: str = "scores") -> Exportable:
    """Bars of scores beside their chance levels; see `tables.score_table`."""
    renderers = drawn("interactive:score_bars_figure", "publication:score_bars_figure", table)
    return Exportable(name, *renderers, lambda: score_table(table), recipe)


def histogram_exportable(
    values_by_name: Mapping[str, np.ndarray], x_title: str, recipe: Mapping[str, Any] | None = None, name: str = "histogram"
) -> Exportable:
    """Distributions in common bins; see `tables.histogram_table`."""
    renderers = drawn("interactive:histogram_figure", "publication:histogram_figure", values_by_name, x_title)
    return Exportable(name, *renderers, lambda: histogram_table(values_by_name), recipe)


def spectrum_exportable(
    singular_values_by_name: Mapping[str, np.ndarray], recipe: Mapping[str, Any] | None = None, name: str = "spectrum"
) -> Exportable:
    """Singular values of anchor sets; see `tables.spectrum_table`."""
    renderers = drawn("interactive:spectrum_figure", "publication:spectrum_figure", singular_values_by_name)
    return Exportable(name, *renderers, lambda: spectrum_table(singular_values_by_name), recipe)


def read_recipe(file: str | Path | bytes) -> dict[str, Any]:
    """The recipe inside a PDF, PNG, SVG or HTML that Relscope wrote, or a JSON recipe; a path or the bytes.

    Raises
    ------
    SpaceError
        No recipe in it, or one that cannot be read.
    """
    name, data = ("the file", file) if isinstance(file, bytes) else (Path(file).name, Path(file).read_bytes())
    try:
        found = _find_recipe(data)
        recipe = None if found is None else json.loads(found)
    except (ValueError, OSError, SyntaxError) as error:  # Pillow raises SyntaxError for a broken PNG
        raise SpaceError(f"{name}: expected a recipe in JSON, got one that cannot be read ({error})") from error
    if not isinstance(recipe, dict):
        raise SpaceError(f"{name}: expected a PDF, PNG, SVG, HTML or JSON with a recipe inside, got none; export it again")
    return recipe


def _find_recipe(data: bytes) -> str | bytes | None:
    start = data[:1024].lstrip()
    if start.startswith(b"\x89PNG"):
        from PIL import Image

        with Image.open(BytesIO(data)) as image:
            return image.text.get(_KEY)
    if start.startswith(b"%PDF"):
        found = re.search(rb"/Keywords \(((?:\\.|[^\\)])*)\)", data, re.DOTALL)
        return found and re.sub(rb"\\(.)", rb"\1", found[1])
    if start.startswith(b"{"):
        return data
    found = re.search(rb'<(metadata|script)\b[^<>]*\bid="relscope-recipe"[^<>]*>([^<]*)</\1>', data)
    if found is None:
        return None
    return unescape(found[2].decode()) if found[1] == b"metadata" else found[2]


def _to_json(recipe: Mapping[str, Any]) -> str:
    """In ASCII, which every kind of file can hold unchanged."""
    try:
        return json.dumps(dict(recipe), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SpaceError(
            f"recipe: expected values that JSON can hold, got {error}; use plain numbers, strings and lists"
        ) from error


def _latex(table: pd.DataFrame) -> str:
    """For a paper that uses booktabs; numbers with three digits, signs that LaTeX reads otherwise escaped."""
    return table.to_latex(index=False, escape=True, float_format="%.3f", na_rep="–")
