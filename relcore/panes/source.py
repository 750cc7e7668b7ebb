"""The renderer of the linked panes: scripts that become one module with the script of their home, and one style sheet.

A home is the place that shows the panes. It calls ``render(host, payload, home)`` with an object that can send events and load
files; `linked_scatter.js` lists what it may offer.
"""

from __future__ import annotations

from importlib.resources import files

SCRIPTS = (
    "coloring.js",
    "legend.js",
    "points.js",
    "discs.js",
    "solid.js",
    "row_grid.js",
    "density.js",
    "dense.js",
    "text_column.js",
    "moving.js",
    "pane.js",
    "gestures.js",
    "stars.js",
    "names.js",
    "toolbar.js",
    "payload.js",
    "tip.js",
    "room.js",
    "theme.js",
    "linked_scatter.js",
)


def script(home: str) -> str:
    """One module: the renderer, then the script of a home; inline scripts cannot import."""
    return "\n".join([*map(part, SCRIPTS), home])


def style() -> str:
    """The style sheet; its classes begin with ``ls-``."""
    return part("panes.css")


def part(name: str) -> str:
    """The text of one file of this package."""
    return files("relcore.panes").joinpath(name).read_text(encoding="utf-8")
