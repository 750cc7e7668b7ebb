"""The linked panes as an HTML page that needs no server.

The page joins the SCRIPTS of the renderer, a style sheet, and the script of its home, which is the
environment that shows the panes: app, notebook or page. That script calls ``render(host, payload, home)``;
its object `home` sends events and loads files (see `linked_scatter.js`).
"""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from relcore.base.text import encodable
from relcore.figures.export import Exportable, content_policy, drawing_functions, recipe_script
from relcore.figures.scene import Scene
from relcore.figures.style import DARK, LIGHT, Theme
from relcore.panes.payload import PaneSettings, ids_digest, joined_texts, payload_of

SCRIPTS = (
    "coloring.js",
    "legend.js",
    "filter.js",
    "points.js",
    "discs.js",
    "solid.js",
    "row_grid.js",
    "density.js",
    "dense.js",
    "contours.js",
    "text_column.js",
    "moving.js",
    "edges.js",
    "pane.js",
    "gestures.js",
    "stars.js",
    "names.js",
    "hand.js",
    "toolbar.js",
    "payload.js",
    "tip.js",
    "height.js",
    "theme.js",
    "linked_scatter.js",
)
# What a component that draws only points needs of them.
POINT_SCRIPTS = (
    "points.js",
    "discs.js",
    "row_grid.js",
    "text_column.js",
    "pane.js",
    "payload.js",
    "tip.js",
    "theme.js",
)

_COMMENT = re.compile(r"^ *\/\*.*?\*\/\n|^ *// [^\n]*\n| +// [^\n]*$", re.DOTALL | re.MULTILINE)
PROPORTION = 0.8


def script(home: str, parts: Sequence[str] = SCRIPTS) -> str:
    """The renderer, or these parts of it, and the script of a home as a single JavaScript module, because
    inline scripts cannot import. Comments are removed."""
    return _COMMENT.sub("", "\n".join([*map(part, parts), home]))


def part(name: str) -> str:
    return files("relcore.panes").joinpath(name).read_text(encoding="utf-8")


def hover_columns(scene: Scene) -> dict[str, bytes]:
    """The hover texts of a scene, as bytes for the payload."""
    columns = {"texts": scene.texts, "notes": scene.notes}
    return {name: joined_texts(column) for name, column in columns.items() if column is not None}


class PageUnits(NamedTuple):
    """The data with which a page without a server moves its maps while an anchor is dragged: the header of
    the maps (see `follower.js`), and the unit rows (n, d) of each space.
    """

    live: Mapping[str, Any]
    units: tuple[np.ndarray, ...]


def panes_page(
    scene: Scene,
    title: str,
    theme: Theme = LIGHT,
    recipe: str | None = None,
    units: PageUnits | None = None,
    about: str = "",
) -> bytes:
    """The HTML page of these panes. For four panes, it takes 100 kB and about 40 bytes per row. `units`, with
    which anchors can be dragged, add 2.7 bytes per number. Equal scenes give equal pages.

    `about` is shown above the panes, below the names of the models. `recipe` is JSON from which the figure
    can be drawn again; `relcore.figures.export.read_recipe` reads it.
    """
    scene, title, recipe, about = encodable((scene, title, recipe, about))
    models = " and ".join(dict.fromkeys(pane.title.partition(" · ")[0] for pane in scene.panes))
    columns = hover_columns(scene)
    files = {name: name for name in columns}
    settings = PaneSettings(fill=PROPORTION, dark=theme == DARK)
    if units is not None:
        settings = replace(settings, live={**units.live, "name": "page"})
        columns |= {f"units{side}": rows.astype("<f2").tobytes() for side, rows in enumerate(units.units)}
    payload = payload_of(
        scene, version=ids_digest(scene), selected=scene.marked, files=files, settings=settings
    )
    content = base64.b64encode(gzip.compress(payload.having(columns).to_bytes(), mtime=0)).decode()
    alt = escape(scene.alt())
    run = script(part("inspector.js") + part("follower.js") + part("page.js"))
    colors = "; ".join(f"--{name}: {getattr(theme, name)}" for name in ("text", "muted", "accent"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta'
        f' http-equiv="Content-Security-Policy" content="{content_policy([run])}">\n<meta name="viewport"'
        f' content="width=device-width">\n<title>{escape(title)}</title>\n{recipe_script(recipe)}<style>:root'
        f" {{ {colors}; font-family: {theme.font} }}\nbody {{ background: {theme.surface};"
        f" }}\n{part('panes.css')}{part('page.css')}</style>\n</head>\n<body>\n<header>"
        f"<h1>{escape(models)}</h1><p>{escape(about)}</p></header>\n<main"
        f' aria-label="{alt}"><noscript>{alt} The panes are drawn'
        ' by JavaScript, which is switched off.</noscript></main>\n<script type="text/plain"'
        f' id="relscope-panes">{content}</script>\n<script type="module">{run}</script>\n</body>\n</html>\n'
    ).encode()


def scene_exportable(
    scene: Scene,
    recipe: Mapping[str, Any] | None = None,
    name: str = "panes",
    units: Callable[[], PageUnits | None] = lambda: None,
    about: str = "",
) -> Exportable:
    """The panes of a scene as an `Exportable`. With `units`, anchors can be dragged on its HTML page, which
    shows the text `about` at the top."""

    def page(theme: Theme, described: str | None) -> bytes:
        return panes_page(scene, name, theme, described, units(), about)

    _, publication = drawing_functions("panes_figure", scene)
    return Exportable(name, None, publication, scene.table, recipe, page=page)
