"""The panes of a scene as a figure in all its forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relcore.charts.scene import Scene
from relcore.figures.export import Exportable, drawn
from relcore.panes.page import panes_page


def scene_exportable(scene: Scene, recipe: Mapping[str, Any] | None = None, name: str = "panes") -> Exportable:
    """The panes of a scene; their table is `Scene.table`, their page that of `panes_page`."""
    renderers = drawn("panes_interactive:panes_figure", "panes_publication:panes_figure", scene)

    def page(theme, described):
        return panes_page(scene, name, theme, described)

    return Exportable(name, *renderers, scene.table, recipe, page=page)
