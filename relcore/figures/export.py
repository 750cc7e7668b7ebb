"""Export figures as files. Each file contains its recipe: the settings with which the figure can be drawn
again.

In a PDF file, the recipe is in Keywords; in PNG, in a text chunk; in SVG, in the metadata; in HTML, in a JSON
script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from html import escape, unescape
from importlib import import_module
from pathlib import Path
from pprint import pformat
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.access import read_at_most
from relcore.base.errors import SpaceError, extra, need_one_of
from relcore.base.kinds import takes_kinds
from relcore.base.records import MOST_BYTES, parse, without_paths
from relcore.base.report import delimited_text
from relcore.base.text import encodable, harmless, visible
from relcore.base.writing import write
from relcore.figures.charts import (
    Diagram,
    Lines,
    MapWithEvidence,
    MovingPanels,
    MovingPoints,
    histogram_lines,
    histogram_table,
    score_points,
)
from relcore.figures.matrices import Matrices, printed_scores
from relcore.figures.style import LIGHT, PAPER, Style, Theme

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.figure import Figure


# Read the recipe in the file of a figure, in one pass over its bytes.

KEY = "relscope-recipe"
_PNG = b"\x89PNG\r\n\x1a\n"
# The quantifiers are possessive, so that no file can cause long backtracking.
_KEYWORDS = re.compile(rb"/Keywords \(((?:[^\\)]++|\\.)*+)\)", re.DOTALL)
_ELEMENT = re.compile(rb'<(metadata|script)\b[^<>]{0,200}\bid="relscope-recipe"[^<>]{0,200}>')


def read_recipe(file: str | Path | bytes) -> dict[str, Any]:
    """Read the recipe inside a PDF, PNG, SVG or HTML file that Relscope wrote, or from a JSON file. The file
    is given by its path or its bytes.

    Raises
    ------
    SpaceError
        The file is missing or has more than 256 MB, or its recipe is missing or damaged.
    """
    name = "the file"
    data = file
    if not isinstance(file, bytes):
        name = Path(file).name
        data = read_at_most(Path(file), 256 << 20, "a figure with a recipe inside")
    try:
        text = _recipe_text(data)
        if text is None:
            recipe = None
        else:
            recipe = parse(text, "recipe")
    except (ValueError, zlib.error) as error:
        raise SpaceError(
            f"{name}: expected a recipe in JSON, got one that cannot be read ({error})"
        ) from error
    if not isinstance(recipe, dict):
        raise SpaceError(
            f"{name}: expected a PDF, PNG, SVG, HTML or JSON with a recipe inside, got none; export it again"
        )
    return recipe


def recipe_script(recipe: str | None) -> str:
    """An HTML element with the recipe in JSON, escaped so that no text can end the element."""
    if recipe is None:
        safe = None
    else:
        safe = recipe.replace("<", "\\u003c")
    if safe:
        return f'<script type="application/json" id="{KEY}">{safe}</script>\n'
    return ""


def _recipe_text(data: bytes) -> str | bytes | None:
    start = data[:1024].lstrip()
    if start.startswith(_PNG):
        return next(_png_texts(data), None)
    if start.startswith(b"%PDF"):
        # The keywords in a PDF file: the first string after "Keywords", up to its first unescaped bracket.
        keywords = _KEYWORDS.match(data, max(data.find(b"/Keywords ({"), 0))
        if keywords is None:
            return None
        return b"\\".join(part.replace(b"\\", b"") for part in keywords[1].split(b"\\\\"))
    if start.startswith(b"{"):
        return data
    at = data.find(b'id="relscope-recipe"')
    element = None
    if at >= 0:
        element = _ELEMENT.match(data, max(data.rfind(b"<", 0, at), 0))
    if element is None:
        return None
    end = data.find(b"<", element.end())
    content = data[element.end() : end]
    if not data.startswith(b"</" + element[1] + b">", end):
        return None
    if element[1] == b"metadata":
        return unescape(content.decode())
    return content


def _png_texts(data: bytes) -> Iterator[bytes]:
    at = len(_PNG)
    key = KEY.encode() + b"\0"
    while at + 8 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4])
        kind = data[at + 4 : at + 8]
        text = at + 8 + len(key)
        if kind == b"tEXt" and data.startswith(key, at + 8):
            yield data[text:end]
        elif kind == b"zTXt" and data.startswith(key, at + 8):
            yield zlib.decompressobj().decompress(data[text + 1 : end], MOST_BYTES + 1)
        if not kind.isalpha():
            return
        at = end + 4


MEDIA_TYPES = {
    "html": "text/html",
    "pdf": "application/pdf",
    "svg": "image/svg+xml",
    "png": "image/png",
    "csv": "text/csv",
    "tex": "application/x-tex",
    "json": "application/json",
    "py": "text/x-python",
}
KINDS = tuple(MEDIA_TYPES)
_LONG = 2000  # in a script, settings with more characters come last
_SCRIPT = """\
# Draws the figure {name} again. Run it in the folder of your data, or give that folder as FOLDER:
#     PATH/TO/RELSCOPE/.venv/bin/python {name}.py FOLDER
import sys

try:
    from relcore import SpaceError, figure_of
except ImportError:
    sys.exit("This Python has no Relscope. Use the one in Relscope's folder: .venv/bin/python {name}.py")

# All settings. Change one, and the figure and its numbers follow.
# source, target: the spaces. anchors: ids. view: colours and example rows. reduction: the map. look: filter.
# "key" and "…_digest" are fingerprints, which tell if the data has changed: leave them as they are.
recipe = {recipe}

print("Drawing {name}; a map by UMAP or t-SNE takes minutes …", flush=True)
try:
    figure = figure_of(recipe, sys.argv[1:])
except SpaceError as error:
    sys.exit(str(error))
figure.save("{name}-script.pdf")  # or .svg, .png, .html
print("Wrote {name}-script.pdf. The plotted numbers, a DataFrame of pandas:")
print(figure.table())
"""


@dataclass(frozen=True)
class Exportable:
    """A figure that can be written in all file formats.

    Attributes
    ----------
    name : str
        The name of the file, without suffix.
    interactive : theme → plotly Figure, or None
        A function that draws the figure with Plotly; None if there is a `page`.
    publication : Style → matplotlib Figure
    table : () → DataFrame
        The plotted numbers.
    recipe : dict, optional
        The settings that draw the figure again. All values must be JSON values.
    latex : () → DataFrame, optional
        A function that returns a small table for LaTeX, if the figure has one.
    page : (theme, recipe in JSON) → bytes, optional
        A function that returns an HTML page, which replaces the Plotly figure.
    caption : str
        The caption of the printed table. A table with a caption has a label, too: ``tab:`` and the name.
    """

    name: str
    interactive: Callable[[Theme], go.Figure] | None
    publication: Callable[[Style], Figure]
    table: Callable[[], pd.DataFrame]
    recipe: Mapping[str, Any] | None = None
    latex: Callable[[], pd.DataFrame] | None = None
    page: Callable[[Theme, str | None], bytes] | None = None
    caption: str = ""

    def __repr__(self) -> str:
        return f"<Figure {self.name!r}; .save('{self._slug}.pdf') writes it, also as html, svg, png, csv>"

    @takes_kinds
    def filename(self, kind: str) -> str:
        need_one_of("kind", kind, (*KINDS, "parquet"))  # the app writes a table for Embedding Atlas, too
        return f"{self._slug}.{kind}"

    @takes_kinds
    def bytes(
        self, kind: str, style: Style | None = None, theme: Theme | None = None, *, full_paths: bool = False
    ) -> bytes:
        """The content of a file of the figure. `kind` is "html", "pdf", "svg", "png", "csv", "tex"
        (booktabs), "json" (the recipe) or "py" (a script that draws the figure again).

        `style` applies to pdf, svg and png. `theme` applies to html; by default, it is the theme of the
        style. The recipe names files without their folders, unless `full_paths` is True; see
        `relcore.base.records`.

        Raises
        ------
        SpaceError
            The kind is unknown, the figure lacks the recipe or the table of this kind, or the recipe is not
            JSON.
        """
        need_one_of("kind", kind, KINDS)
        if full_paths:
            recipe = self.recipe
        else:
            recipe = without_paths(self.recipe)
        if kind == "csv":
            return delimited_text(self.table()).encode()
        if kind == "tex" and self.latex:
            with extra():
                table = self.latex()
                options = {"index": False, "escape": True, "float_format": "{:z.3f}".format, "na_rep": "–"}
                sides = "".join("r" if _has_numbers(table.iloc[:, i]) else "l" for i in range(table.shape[1]))
                if self.caption:
                    options["caption"] = re.sub(r"([&%$#_{}])", r"\\\1", visible(self.caption))
                    options["label"] = f"tab:{self._slug}"
                return harmless(table.to_latex(column_format=sides, **options)).encode()
        if (kind in ("json", "py") and recipe is None) or kind == "tex":
            raise SpaceError(
                f"{self.name}: expected a figure with a {'table' if kind == 'tex' else 'recipe'} for {kind},"
                " got a figure without one"
            )
        try:  # JSON in ASCII is stored unchanged by every format
            if recipe is None:
                text = None
            else:
                text = json.dumps(dict(recipe), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise SpaceError(
                f"recipe: expected values that JSON can hold, got {error}; use plain numbers, strings and"
                " lists"
            ) from error
        if kind == "json":
            return (json.dumps(recipe, indent=2, ensure_ascii=False) + "\n").encode()
        if kind == "py":
            ordered = sorted(recipe.items(), key=lambda item: len(str(item[1])) > _LONG)  # long ones last
            literal = pformat(dict(ordered), width=100, compact=True, sort_dicts=False)
            return _SCRIPT.format(name=self._slug, recipe=literal).encode()
        if kind == "html":
            if theme is None:
                theme = style.theme if style else LIGHT
            write_page = self.page or self._html
            return write_page(theme, text)
        return self._printed(kind, style or PAPER, text)

    @takes_kinds
    def save(self, path: str | Path, style: Style | None = None, *, full_paths: bool = False) -> None:
        """Write the figure to a file, in the format of the path's suffix. Other settings and errors are those
        of `bytes`."""
        kind = Path(path).suffix.lstrip(".").lower()
        write(Path(path), self.bytes(kind, style, full_paths=full_paths))

    def _repr_png_(self) -> bytes:
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
            auto_play=False,
            include_plotlyjs=True,  # inlined, so that the page works without a network
            div_id=f"relscope-{self._slug}",  # a fixed id, because a random one would change the bytes
            config={"responsive": True, "displaylogo": False, "scrollZoom": True},
        )
        # Allow compiled scripts, because Plotly compiles code for WebGL.
        scripts = re.findall(r"<script\b[^>]*>(.*?)</script>", plot, re.DOTALL)
        policy = content_policy(scripts, " 'unsafe-eval'")
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            f"<title>{escape(self.name)}</title>\n{recipe_script(recipe)}"
            f"<style>body {{ margin: 16px; background: {theme.surface}; }}</style>\n</head>\n"
            f'<body>\n<main role="img" aria-label="{alt}">{plot}</main>\n</body>\n</html>\n'
        ).encode()

    def _printed(self, kind: str, style: Style, recipe: str | None) -> bytes:
        from relcore.figures.paper_style import write

        metadata = {"Title": self.name}
        if kind == "pdf" and recipe:
            metadata["Keywords"] = recipe
        elif kind == "png" and recipe:
            metadata[KEY] = recipe
        written = write(self.publication(style), kind, style, metadata)
        if kind == "svg" and recipe:
            element = f'<metadata id="{KEY}">{escape(recipe, quote=False)}</metadata>\n <metadata>'
            written = written.replace(b"<metadata>", element.encode(), 1)
        return written


def _has_numbers(column: pd.Series) -> bool:
    return column.map(lambda value: re.fullmatch(r"[-−–+±…\[\]().,%\d\s]*|nan", str(value)) is not None).all()


def content_policy(scripts: Iterable[str], also: str = "") -> str:
    """The content security policy of an HTML page, which allows only these scripts to run, and no contact to
    a server.

    It is a second defence: a script in a user's text that was not escaped could not run.
    """
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}{also}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )


# Drawing function → its module on screen and its module on paper.
_DRAWN_IN = {
    "lines_figure": ("screen", "paper_charts"),
    "diagram_figure": ("screen", "paper_charts"),
    "moving_figure": ("screen", "paper_charts"),
    "evidence_figure": ("screen_evidence", "paper_evidence"),
    "moving_panels_figure": ("screen_panels", "paper_panels"),
    "matrices_figure": ("screen_matrices", "paper_charts"),
    "panes_figure": ("screen", "paper"),  # on screen, the component draws the panes
}


def drawing_functions(
    function: str, *data: Any
) -> tuple[Callable[[Theme], go.Figure], Callable[[Style], Figure]]:
    """Two functions that draw these data: by the function of this name on screen, and by that on paper.
    These modules are imported only when a figure is drawn.

    The data are made `encodable`, because Matplotlib and Plotly fail on texts that UTF-8 cannot represent.
    """

    on_screen, on_paper = _DRAWN_IN[function]

    def draw(module: str, look: Any) -> Any:
        return getattr(import_module(f"relcore.figures.{module}"), function)(*map(encodable, data), look)

    return partial(draw, on_screen), partial(draw, on_paper)


@takes_kinds
def chart_exportable(
    chart: Lines | Matrices | Diagram | MovingPoints | MovingPanels | MapWithEvidence,
    recipe: Mapping[str, Any] | None = None,
    name: str = "chart",
    latex: Callable[[], pd.DataFrame] | None = None,
    table: Callable[[], pd.DataFrame] | None = None,
) -> Exportable:
    """Make an `Exportable`, which can be written to files, from a chart. If `table` is given, it replaces the
    table of the chart.

    Examples
    --------
    >>> from relcore import Line, Lines, chart_exportable
    >>> figure = chart_exportable(Lines((Line("score", [1, 2], [0.2, 0.4]),), "anchors", "score"))
    >>> figure.bytes("pdf")[:4]
    b'%PDF'
    """
    if not hasattr(chart, "figure"):
        raise SpaceError(f"chart: expected a chart, such as Lines or Matrices, got {chart!r:.40}")
    table = table or (lambda: encodable(chart).table())
    return Exportable(name, *drawing_functions(chart.figure, chart), table, recipe, latex)


def scores_exportable(
    make_table: Callable[[], pd.DataFrame],
    recipe: Mapping[str, Any] | None = None,
    name: str = "scores",
    note: str = "",
    caption: str = "",
) -> Exportable:
    """A figure of scores, with a table for LaTeX. `make_table` returns the scores, one line for each; it runs
    once, when the first file is written, because the export menus offer this figure in each run of a page."""
    table = cache(make_table)

    @cache
    def drawing() -> tuple[Callable[[Theme], go.Figure], Callable[[Style], Figure]]:
        points = replace(score_points(table()), note=note)
        return drawing_functions(points.figure, points)

    return Exportable(
        name,
        lambda theme: drawing()[0](theme),
        lambda style: drawing()[1](style),
        table,
        recipe,
        lambda: printed_scores(table()),
        caption=caption,
    )


@takes_kinds
def histogram_exportable(
    values_by_name: Mapping[str, np.ndarray],
    x_title: str,
    recipe: Mapping[str, Any] | None = None,
    name: str = "histogram",
) -> Exportable:
    """Make an `Exportable` with a histogram of each array of values.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import histogram_exportable
    >>> figure = histogram_exportable({"errors": np.random.default_rng(0).random(500)}, "error")
    >>> int(figure.table()["count"].sum())
    500
    """

    lines = histogram_lines(values_by_name, x_title)
    return chart_exportable(lines, recipe, name, table=partial(histogram_table, values_by_name))
