"""A component that draws the same rows in a few small maps. When coordinates change, the points move to their
new places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import streamlit as st

_HERE = Path(__file__).parent
_mount = st.components.v2.component(
    "relscope_small_maps",
    css=(_HERE / "small_maps.css").read_text(encoding="utf-8"),
    js=(_HERE / "small_maps.js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True, eq=False)
class SmallMap:
    """A square map: the coordinates (n, 2) of its points, its `middle` (2,), and the distance `reach` from
    the middle to each edge."""

    title: str
    xy: np.ndarray
    middle: np.ndarray
    reach: float
    alt: str

    def places(self, xy: np.ndarray) -> list[int]:
        """The places of points (m, 2) on the map as x₀, y₀, x₁, … in thousandths of the width, from the top
        left corner."""
        shares = 0.5 + (np.asarray(xy, dtype=np.float64) - self.middle) * (0.5, -0.5) / self.reach
        return np.round(1000 * shares).astype(int).ravel().tolist()


def small_maps(
    maps: Sequence[SmallMap],
    key: str,
    *,
    names: Sequence[str],
    colors: Sequence[str],
    labelled: Sequence[int] = (),
    starred: Sequence[int] = (),
) -> None:
    """Draw maps of the same rows, which have `names` and `colors`. `labelled` and `starred` are row
    numbers."""
    drawn = [
        {"title": one.title, "alt": one.alt, "xy": one.places(one.xy), "origin": one.places(np.zeros((1, 2)))}
        for one in maps
    ]
    rows = {"labelled": list(map(int, labelled)), "starred": list(map(int, starred))}
    _mount(key=key, data={"maps": drawn, "names": list(names), "colors": list(colors), **rows})
