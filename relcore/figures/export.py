"""Export: every figure as a file of any kind, with the recipe that makes it again inside.

An `Exportable` knows a figure's three forms (screen, paper, numbers) and its recipe, so the app's export bar and the command
line treat all figures alike. The recipe, a dictionary of settings, travels in PDF (Keywords), PNG (a text chunk), SVG
(metadata) and HTML (a JSON script); `embedded.read_recipe` gets it back from any of them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.charts.lines import Lines
from relcore.charts.options import Options
from relcore.extras import extra
from relcore.figures.embedded import KEY, recipe_script
from relcore.figures.palette import LIGHT, Theme
from relcore.figures.style import PAPER, Style
from relcore.figures.tables import histogram_table, printed_scores, score_table, spectrum_table
from relcore.plain_text import encodable, harmless
from relcore.portable import without_paths
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
    page : (theme, recipe in JSON) → bytes, optional
        Its HTML, where this is not the plotly Figure.
    """

    name: str
    interactive: Callable[[Theme], go.Figure]
    publication: Callable[[Style], Figure]
    table: Callable[[], pd.DataFrame]
    recipe: Mapping[str, Any] | None = None
    latex: Callable[[], pd.DataFrame] | None = None
    page: Callable[[Theme, str | None], bytes] | None = None

    def filename(self, kind: str) -> str:
        return f"{self._slug}.{kind}"

    def bytes(self, kind: str, style: Style | None = None, theme: Theme | None = None, *, full_paths: bool = False) -> bytes:
        """The file as "html", "pdf", "svg", "png", "csv", "tex" (a booktabs table) or "json" (the recipe alone).

        `style` is of pdf, svg and png (without it, the paper's default); `theme` of html (without it, the style's, or light).
        The recipe inside names files without their folders, unless `full_paths`; see `relcore.portable`.

        Raises
        ------
        SpaceError
            Another kind, a recipe that is absent from "json" or is not JSON, "tex" of a figure without a table to print.
        """
        described = self.recipe if full_paths else without_paths(self.recipe)
        recipe = None if described is None else _to_json(described)
        if kind == "html":
            return (self.page or self._html)(theme or (style.theme if style else LIGHT), recipe)
        if kind == "csv":
            return self.table().to_csv(index=False, lineterminator="\n").encode()
        if kind == "tex":
            if self.latex is None:
                raise SpaceError(f"{self.name}: expected a figure with a table for tex, got one without; export csv instead")
            with extra():
                return _latex(self.latex()).encode()
        if kind == "json":
            if described is None:
                raise SpaceError(f"{self.name}: expected a recipe to write as json, got a figure without one")
            return (json.dumps(described, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
        if kind in ("pdf", "svg", "png"):
            return self._printed(kind, style, recipe)
        raise SpaceError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")

    def save(self, path: str | Path, style: Style | None = None, *, full_paths: bool = False) -> None:
        """Write the file that the suffix of the path names; settings and errors as in `bytes`."""
        Path(path).write_bytes(self.bytes(Path(path).suffix.lstrip(".").lower(), style, full_paths=full_paths))

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
        return (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(plot)}">\n'
            f"<title>{escape(self.name)}</title>\n{recipe_script(recipe)}"
            f"<style>body {{ margin: 16px; background: {theme.surface}; }}</style>\n</head>\n"
            f'<body>\n<main role="img" aria-label="{alt}">{plot}</main>\n</body>\n</html>\n'
        ).encode()

    def _printed(self, kind: str, style: Style | None, recipe: str | None) -> bytes:
        from relcore.figures.paper import write

        style = style or PAPER
        key = {"pdf": "Keywords", "png": KEY}.get(kind)
        metadata = {"Title": self.name} | ({key: recipe} if key and recipe else {})
        written = write(self.publication(style), kind, style, metadata)
        if kind == "svg" and recipe:
            element = f'<metadata id="{KEY}">{escape(recipe, quote=False)}</metadata>\n <metadata>'
            written = written.replace(b"<metadata>", element.encode(), 1)
        return written


def _policy(plot: str) -> str:
    """What the browser lets a page do: run the scripts of this plot, by their digests, and ask no server for anything.

    A second wall: no text of a user can end a script or an attribute, and if one could, it would not run. Plotly compiles code
    for points drawn by WebGL, hence 'unsafe-eval', and writes styles into elements.
    """
    scripts = re.findall(r"<script\b[^>]*>(.*?)</script>", plot, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def drawn(screen: str, paper: str, *data: Any) -> tuple[Callable[[Theme], go.Figure], Callable[[Style], Figure]]:
    """The two renderers of these data, ``"lines_interactive:lines_figure"`` and the like, imported when they are called.

    They get the data `encodable`, as Matplotlib and Plotly fail on texts that UTF-8 cannot hold.
    """

    def renderer(name: str) -> Callable[[Any], Any]:
        module, function = name.split(":")
        return lambda look: getattr(import_module(f"relcore.figures.{module}"), function)(*map(encodable, data), look)

    return renderer(screen), renderer(paper)


def lines_exportable(
    lines: Lines,
    recipe: Mapping[str, Any] | None = None,
    name: str = "lines",
    latex: Callable[[], pd.DataFrame] | None = None,
) -> Exportable:
    """A chart of lines or points; `latex` gives the table to print."""
    renderers = drawn("lines_interactive:lines_figure", "lines_publication:lines_figure", lines)
    return Exportable(name, *renderers, lambda: encodable(lines).table(), recipe, latex)


def options_exportable(
    options: Options,
    recipe: Mapping[str, Any] | None = None,
    name: str = "options",
    latex: Callable[[], pd.DataFrame] | None = None,
) -> Exportable:
    """Options beside curves; `latex` gives the table to print."""
    renderers = drawn("options_interactive:options_figure", "options_publication:options_figure", options)
    return Exportable(name, *renderers, options.table, recipe, latex)


def scores_exportable(table: pd.DataFrame, recipe: Mapping[str, Any] | None = None, name: str = "scores") -> Exportable:
    """Bars of scores beside their chance levels; see `tables.score_table`."""
    renderers = drawn("interactive:score_bars_figure", "publication:score_bars_figure", table)
    return Exportable(name, *renderers, lambda: score_table(table), recipe, lambda: printed_scores(score_table(table)))


def histogram_exportable(
    values_by_name: Mapping[str, np.ndarray],
    x_title: str,
    recipe: Mapping[str, Any] | None = None,
    name: str = "histogram",
    panels: bool = False,
) -> Exportable:
    """Distributions in common bins, in one chart or with a panel for each; see `tables.histogram_table`."""
    screen, paper = "interactive:histogram_figure", "publication:histogram_figure"
    if panels:
        screen, paper = "panels_interactive:panels_figure", "panels_publication:panels_figure"
    renderers = drawn(screen, paper, values_by_name, x_title)
    return Exportable(name, *renderers, lambda: histogram_table(values_by_name), recipe)


def spectrum_exportable(
    singular_values_by_name: Mapping[str, np.ndarray], recipe: Mapping[str, Any] | None = None, name: str = "spectrum"
) -> Exportable:
    """Singular values of anchor sets; see `tables.spectrum_table`."""
    renderers = drawn("interactive:spectrum_figure", "publication:spectrum_figure", singular_values_by_name)
    return Exportable(name, *renderers, lambda: spectrum_table(singular_values_by_name), recipe)


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
    return harmless(table.to_latex(index=False, escape=True, float_format="%.3f", na_rep="–"))
