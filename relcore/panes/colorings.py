"""The colourings of a scene as the linked panes take them: classes with their colours, and the class of each row as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from relcore.charts.coloring import PARTS, STEPS, Coloring
from relcore.figures.marks import OTHER, colors_of, point_size
from relcore.figures.palette import DARK, LIGHT

NO_CATEGORY = 0xFFFF  # what -1 is in the payload's uint16


def described(coloring: Coloring, side: str) -> dict[str, Any]:
    """The classes of a colouring with its colours; of a scale the parts of its colour bar."""
    scale, n_named = coloring.scale, int(np.count_nonzero(np.asarray(coloring.categories) >= 0))
    return {
        "title": coloring.title,
        "side": side,
        "tokens": coloring.tokens(),
        "labels": [*(scale.parts() if scale else map(str, coloring.names)), OTHER],
        "stepsAClass": STEPS // PARTS if scale else 1,
        "ticks": scale.ticks() if scale else None,
        "ramp": bool(coloring.colors),  # steps of a number, which have no place on the map
        "colors": [colors_of(coloring, theme) for theme in (LIGHT, DARK)],
        "pointSize": point_size(n_named or len(coloring.categories)),
        "otherSize": point_size(len(coloring.categories)),
        "hidden": list(coloring.hidden),
    }


def arrays_of(coloring: Coloring, i: int) -> dict[str, bytes]:
    """The categories of the colouring number `i`, and the values of a scale."""
    categories = np.asarray(coloring.categories)
    arrays = {f"categories{i}": np.where(categories < 0, NO_CATEGORY, categories).astype("<u2").tobytes()}
    if coloring.values is not None:
        arrays[f"values{i}"] = np.asarray(coloring.values, dtype="<f4").tobytes()
    return arrays
