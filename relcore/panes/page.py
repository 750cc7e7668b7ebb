"""The panes as a page that needs no server: brush, zoom and inspector work in the file itself."""

from __future__ import annotations

import base64
import gzip
import hashlib
from html import escape

from relcore.charts.scene import Scene
from relcore.figures.embedded import recipe_script
from relcore.figures.marks import scene_alt
from relcore.figures.palette import DARK, LIGHT, Theme
from relcore.panes.payload import ids_digest, joined, payload_of
from relcore.panes.source import part, script, style
from relcore.plain_text import encodable

_HOVERS = ("texts", "notes")


def panes_page(scene: Scene, title: str, theme: Theme = LIGHT, recipe: str | None = None) -> bytes:
    """The HTML of these panes, some 100 kB and about 40 bytes for a row of four panes; the same scene gives the same bytes.

    The browser runs its one script, which its policy names by its digest, and asks no server for anything.

    Parameters
    ----------
    recipe : str, optional
        JSON that draws the figure again; `relcore.figures.embedded.read_recipe` reads it.
    """
    scene, title, recipe = encodable((scene, title, recipe))
    columns = {name: column for name in _HOVERS if (column := getattr(scene, name)) is not None}
    payload = payload_of(
        scene,
        version=ids_digest(scene),
        files={name: name for name in columns},
        settings={"linkZoom": False, "height": 640, "fill": True, "dark": theme == DARK, "tool": "lasso"},
    )
    for name, column in columns.items():
        payload = payload.having(name, joined(column))
    content = base64.b64encode(gzip.compress(payload.to_bytes(), mtime=0)).decode()
    run = script(part("inspector.js") + part("page.js"))
    colors = "; ".join(f"--{name}: {getattr(theme, name)}" for name in ("text", "muted", "accent"))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(run)}">\n'
        f'<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n{recipe_script(recipe)}"
        f"<style>:root {{ {colors}; font-family: {theme.font} }}\nbody {{ background: {theme.surface}; }}\n"
        f'{style()}{part("page.css")}</style>\n</head>\n<body>\n<main aria-label="{escape(scene_alt(scene))}">'
        f"<noscript>{escape(scene_alt(scene))} The panes are drawn by JavaScript, which is switched off.</noscript></main>\n"
        f'<script type="text/plain" id="relscope-panes">{content}</script>\n'
        f'<script type="module">{run}</script>\n</body>\n</html>\n'
    ).encode()


def _policy(run: str) -> str:
    digest = base64.b64encode(hashlib.sha256(run.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
