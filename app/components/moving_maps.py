"""A component that plays the frames of moving maps, beside a chart of lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st

from app.components.page import scripts
from app.components.served_files import data_of
from relcore.base.numbers import general, short
from relcore.figures.charts import Line, MovingPanels
from relcore.figures.scene import point_size
from relcore.figures.style import DARK, LIGHT
from relcore.panes.page import POINT_SCRIPTS, part, script
from relcore.panes.payload import NO_CATEGORY, POSITION_STEPS, Payload, joined_texts

_FARTHEST = 8  # times the reach of the maps; points beyond it are not seen, wherever they are

_payloads: WeakKeyDictionary[MovingPanels, Payload] = WeakKeyDictionary()
_mount = st.components.v2.component(
    "relscope_moving_maps",
    css=part("panes.css") + (Path(__file__).parent / "moving_maps.css").read_text(encoding="utf-8"),
    js=script(scripts("arrivals", "moving_maps"), POINT_SCRIPTS),
)


def moving_maps(
    moving: MovingPanels,
    *,
    key: str,
    height: int,
    frame: int,
    on_frame: Callable[[str], None],
    film: str = "",
) -> None:
    """Draw this frame, with controls that show the others. Each map is up to `height` pixels high. `on_frame`
    is a callback that gets the title of the frame at which the reader rests. If `film` is a new name, the
    frames play once by themselves; where motion is to be reduced, the last one is shown."""

    def receive() -> None:
        title = st.session_state[key].get("frame")
        if title in moving.frames:
            on_frame(title)

    payload = packed(moving)
    shown = Payload({**payload.header, "height": height, "frame": frame, "film": film}, payload.arrays)
    _mount(key=key, data=data_of(shown, key), on_frame_change=receive)


def packed(moving: MovingPanels) -> Payload:
    """The payload of the maps: all frames as uint16 (p, t, n, 2), the groups and names of the points, and the
    chart of the lines. It is made once for the same panels."""
    if moving not in _payloads:
        _payloads[moving] = _pack(moving)
    return _payloads[moving]


def _pack(moving: MovingPanels) -> Payload:
    reach = moving.reach
    widest = min(float(np.abs(moving.places).max()) or 1.0, _FARTHEST * reach)
    shares = 0.5 + 0.5 * np.clip(moving.places / widest, -1, 1)
    groups = np.where(moving.groups < 0, NO_CATEGORY, moving.groups)
    header = {
        "n": len(moving.names),
        "panels": moving.panels,
        "frames": moving.frames,
        "groupNames": moving.group_names,
        "about": f"{len(moving.names):,} {moving.about}",
        "alt": moving.describe(),
        "zoom": widest / reach,
        "pointSize": point_size(len(moving.names)),
        "themes": [asdict(theme) for theme in (LIGHT, DARK)],
        "colors": [theme.category_colors(len(moving.group_names)) for theme in (LIGHT, DARK)],
        "lineColors": [moving.lines.colors(theme) for theme in (LIGHT, DARK)],
        "elsewhere": {},
        "carried": [],
        **_chart(moving),
    }
    arrays = {
        "places": np.rint(shares * POSITION_STEPS).astype("<u2").tobytes(),
        "groups": groups.astype("<u2").tobytes(),
        "names": joined_texts(np.array(moving.names, object)),
    }
    return Payload(header, {}).having(arrays)


def _chart(moving: MovingPanels) -> dict[str, Any]:
    """The chart of the lines, in shares of its width and height."""
    lines = moving.lines
    xs = np.concatenate([moving.xs, *(line.x for line in lines.lines)])
    ends = (float(xs.min()), float(xs.max()))
    low, high = lines.y_range or (0.0, 1.0)

    def across(values: Any) -> np.ndarray:
        return _shares(values, *ends, log=lines.log_x)

    def up(values: Any) -> np.ndarray:
        return _shares(values, low, high)

    ticks = [tick for tick in lines.log_ticks if ends[0] <= tick <= ends[1]]
    # Step 0 has no place on a logarithmic axis, so it is drawn below 1.
    words = ["0" if tick < 1 else general(tick) for tick in ticks]
    heights = [value for value in (0.0, 0.5, 1.0) if low <= value <= high]
    return {
        "lines": [_line(line, moving.xs, across, up) for line in lines.lines],
        "baselines": [(name, short(value)) for name, value in lines.baselines],
        "baselineShares": up([value for _, value in lines.baselines]).tolist(),
        "shares": across(moving.xs).tolist(),
        "xTicks": list(zip(across(ticks).tolist(), words, strict=True)),
        "yTicks": list(zip(up(heights).tolist(), map(general, heights), strict=True)),
        "xTitle": lines.x_title,
        "yTitle": lines.y_title,
    }


def _line(
    line: Line,
    xs: Sequence[float],
    across: Callable[[Any], np.ndarray],
    up: Callable[[Any], np.ndarray],
) -> dict[str, Any]:
    """A line with its places and values, and for each frame the number of the last of them at or before
    it; −1 if there is none."""
    known = np.isfinite(line.y)
    x = np.asarray(line.x)[known]
    y = np.asarray(line.y)[known]
    return {
        "name": line.name,
        "dashed": line.dashed,
        "places": np.column_stack([across(x), up(y)]).tolist(),
        "texts": list(map(short, y)),
        "points": (np.searchsorted(x, xs, side="right") - 1).tolist(),
    }


def _shares(values: Any, low: float, high: float, log: bool = False) -> np.ndarray:
    """Values as shares of the way from `low` to `high`, .5 if these are equal."""
    values = np.asarray(values, dtype=np.float64)
    if low == high:
        return np.full(values.shape, 0.5)
    if log:
        return _shares(np.log(values), np.log(low), np.log(high))
    return np.round((values - low) / (high - low), 4)
