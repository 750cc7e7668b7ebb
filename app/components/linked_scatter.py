"""linked_scatter: up to four WebGL panes over the same rows; a selection in one is highlighted in the others.

The browser draws, links and zooms; Python receives selections and clicks. Panes keep their zoom through every rerun. Only
changed
arrays are redrawn, by the digest of each array in the payload.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import streamlit as st

from app.components.linked_scatter_colorings import NO_CATEGORY, arrays_of, described
from app.sheets import Sheet, digest_of_bytes
from relcore.charts.scene import Scene
from relcore.charts.star_look import OPACITIES, SIZES, StarLook
from relcore.figures.marks import NAMED, NUMBERED, scene_alt, sides, star_opacity, star_size
from relcore.figures.palette import DARK, LIGHT

TOOLS = ("lasso", "box", "pan")

_HERE = Path(__file__).parent
_SCRIPTS = (
    "linked_scatter_coloring.js",
    "linked_scatter_legend.js",
    "linked_scatter_points.js",
    "linked_scatter_solid.js",
    "linked_scatter_pane.js",
    "linked_scatter_stars.js",
    "linked_scatter_names.js",
    "linked_scatter_toolbar.js",
    "linked_scatter_payload.js",
    "linked_scatter_tip.js",
    "linked_scatter_room.js",
    "linked_scatter.js",
)  # one module: inline scripts cannot import
_mount = st.components.v2.component(
    "relscope_linked_scatter",
    css=(_HERE / "linked_scatter.css").read_text(encoding="utf-8"),
    js="\n".join((_HERE / script).read_text(encoding="utf-8") for script in _SCRIPTS),
    isolate_styles=False,
)


@dataclass(frozen=True, eq=False)
class PaneEvent:
    """What the user did in the panes: brushed `rows`, cleared the brush, clicked one row, or changed how the maps look.

    `hidden` are the hidden classes of each colouring, as `Coloring.hidden`; `turn` is as `Scene.turn`.
    """

    kind: Literal["select", "clear", "click", "stars", "hidden", "named", "turn"]
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    stars: StarLook | None = None
    hidden: tuple[tuple[str, ...], ...] | None = None
    named: bool | None = None
    turn: tuple[float, ...] | None = None

    @property
    def row(self) -> int:
        """The row that was clicked."""
        if self.kind != "click":
            raise ValueError(f"expected a click, which has one row, got {self.kind!r} of {len(self.rows)}")
        return int(self.rows[0])


def linked_scatter(
    scene: Scene,
    *,
    key: str,
    selected: Sequence[int] | None = None,
    link_zoom: bool = False,
    height: int = 640,
    fill: bool = False,
    old: Sequence[str] = (),
    dark: bool | None = None,
    tool: Literal["lasso", "box", "pan"] = "lasso",
    sheet: Sheet | None = None,
    on_event: Callable[[PaneEvent], None] | None = None,
) -> tuple[PaneEvent, ...]:
    """Draw the scene; give the events since the last run, each exactly once, oldest first, mostly none or one.

    Parameters
    ----------
    scene : Scene
        Its panes may have two or three dimensions.
    key : str
        Names the component: the same key keeps zoom and tool through reruns.
    selected : row numbers, optional
        What to highlight; the browser follows whenever it differs. None leaves the browser its own selection.
    link_zoom, tool
        How it starts; the user's own choice lasts until these arguments change.
    height : int
        Pixels for all panes together.
    fill : bool
        Take the height that is left in the window instead.
    old : one string per pane, optional
        What an old map shows, such as "PCA until UMAP is done"; the pane is dimmed. "" for a pane that is up to date.
    dark : bool, optional
        None follows Streamlit's theme.
    sheet : Sheet, optional
        A small picture of each row, shown on hover.
    on_event : callable, optional
        Receives the events before the script runs, as a Streamlit callback; so the whole page knows. None is returned then.

    Raises
    ------
    ValueError
        Coordinates that are not finite, rows or a tool that do not exist.
    """
    if tool not in TOOLS:
        raise ValueError(f"tool: expected one of {', '.join(TOOLS)}, got {tool!r}")
    version = ids_digest(scene)
    events = tuple(st.session_state.pop(f"{key}:events", ()))
    if not events:  # what is returned only now cannot be in `selected` yet, so the browser must not take that for an answer
        st.session_state[f"{key}:told"] = st.session_state.get(f"{key}:answered", 0)
    data = pack_scene(
        scene,
        version=version,
        answered=st.session_state.get(f"{key}:told", 0),
        selected=selected,
        sheet=sheet,
        files=_serve(scene, sheet, key),
        old=old,
        settings={"linkZoom": link_zoom, "height": height, "fill": fill, "dark": dark, "tool": tool},
    )
    _mount(key=key, data=data, on_events_change=partial(_receive, key, version, len(scene), on_event))
    return events


def _receive(key: str, version: str, n: int, on_event: Callable[[PaneEvent], None] | None) -> None:
    # A callback runs once for each message, even if the run that follows is cut short: what it queues is not lost.
    answered = st.session_state.get(f"{key}:answered", 0)
    fresh, answered = read_events(st.session_state[key].get("events") or (), version, n, answered)
    st.session_state[f"{key}:answered"] = answered
    if on_event is None:
        st.session_state[f"{key}:events"] = [*st.session_state.get(f"{key}:events", ()), *fresh]
    for event in fresh if on_event else ():
        on_event(event)


def _serve(scene: Scene, sheet: Sheet | None, key: str) -> dict[str, str]:
    """Where the browser finds what hovers show: files that it loads once, as a payload is sent whole with every rerun."""
    if not st.runtime.exists():
        return {}
    columns = {"texts": scene.texts, "notes": scene.notes}
    files = {name: (_joined(column), "text/plain") for name, column in columns.items() if column is not None}
    if sheet is not None:
        files["sheet"] = (sheet.content, sheet.mimetype)
    # Named by us: Streamlit would name a file above a megabyte by samples of it, and show the old one for the new.
    media, base = st.runtime.get_instance().media_file_mgr, st.get_option("server.baseUrlPath").strip("/")
    urls = {
        name: media.add(content, mimetype, f"{key}:{name}", file_name=digest_of_bytes(content))
        for name, (content, mimetype) in files.items()
    }
    return {name: f"/{base}{url}" if base else url for name, url in urls.items()}


def read_events(messages: Iterable[dict[str, Any]], version: str, n: int, answered: int) -> tuple[list[PaneEvent], int]:
    """The events not answered before, and the serial number answered by now.

    The browser repeats what it has no answer for, as Streamlit may drop one of two messages that come close together. Events on
    other ids than `version`'s are answered but dropped: their rows are not these rows.
    """
    events = []
    for message in sorted(messages, key=lambda message: message["serial"]):
        if message["serial"] <= answered:
            continue
        answered = message["serial"]
        if message["kind"] in _LOOKS:
            events.append(_LOOKS[message["kind"]](message))
            continue
        if message["version"] != version:
            continue
        if message["kind"] == "click":
            events.append(PaneEvent("click", np.array([message["row"]], dtype=np.int64)))
        else:
            rows = unpack_rows(base64.b64decode(message["bits"]), n)
            events.append(PaneEvent("select" if len(rows) else "clear", rows))
    return events, answered


def _stars(message: dict[str, Any]) -> PaneEvent:
    look = {name: float(np.clip(message[name], *most)) for name, most in (("size", SIZES), ("opacity", OPACITIES))}
    return PaneEvent("stars", stars=StarLook(**look, shown=bool(message["shown"])))


# How the maps look does not depend on which rows they show.
_LOOKS: dict[str, Callable[[dict[str, Any]], PaneEvent]] = {
    "stars": _stars,
    "hidden": lambda message: PaneEvent("hidden", hidden=tuple(tuple(map(str, one)) for one in message["hidden"])),
    "named": lambda message: PaneEvent("named", named=bool(message["named"])),
    "turn": lambda message: PaneEvent("turn", turn=tuple(round(float(number), 4) for number in message["turn"])),
}


def pack_rows(rows: Sequence[int] | np.ndarray, n: int) -> bytes:
    """Rows of n as a bitset, ⌈n / 8⌉ bytes, the lowest bit first."""
    rows = np.asarray(rows, dtype=np.int64)
    if len(rows) and not (rows.min() >= 0 and rows.max() < n):
        raise ValueError(f"selected: expected rows from 0 to {n - 1}, got {rows.min()} to {rows.max()}")
    chosen = np.zeros(n, dtype=bool)
    chosen[rows] = True
    return np.packbits(chosen, bitorder="little").tobytes()


def unpack_rows(bits: bytes, n: int) -> np.ndarray:
    """The rows in a bitset of n, (m,) int64, ascending."""
    if len(bits) != (n + 7) // 8:
        raise ValueError(f"expected a bitset of {(n + 7) // 8} bytes for {n} rows, got {len(bits)}")
    return np.flatnonzero(np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=n, bitorder="little"))


def pack_scene(
    scene: Scene,
    *,
    version: str,
    answered: int = 0,
    selected: Sequence[int] | None = None,
    sheet: Sheet | None = None,
    files: dict[str, str] | None = None,
    old: Sequence[str] = (),
    settings: dict[str, Any] | None = None,
) -> bytes:
    """The payload: the length of a JSON header (uint32), the header, then arrays, little-endian, each at a multiple of four.

    ``header["arrays"][name]`` says ``[start, bytes, digest]``, the start counted from the end of the padded header.
    ``header["files"]`` says where the texts, the notes and the sheet of the rows can be had.
    """
    n = len(scene)
    arrays = {f"pane{i}": _coordinates(pane.title, pane.coordinates) for i, pane in enumerate(scene.panes)}
    for i, coloring in enumerate(scene.colorings()):
        arrays |= arrays_of(coloring, i)
    arrays["anchors"] = np.asarray(scene.anchors, dtype="<u4").tobytes()
    arrays["ids"] = _joined(scene.ids)
    if scene.clusters is not None:
        arrays["clusters"] = np.where(scene.clusters.numbers < 0, NO_CATEGORY, scene.clusters.numbers).astype("<u2").tobytes()
    if scene.prominence is not None:
        arrays["prominence"] = np.asarray(scene.prominence, dtype="<u4").tobytes()
    if sheet is not None:
        if len(sheet.cells) != n:
            raise ValueError(f"sheet: expected {n} cells, one per row, got {len(sheet.cells)}")
        arrays["cells"] = np.asarray(sheet.cells, dtype="<u4").tobytes()
    if selected is not None:
        arrays["selected"] = pack_rows(selected, n)
    layout, start = {}, 0
    for name, content in arrays.items():
        layout[name] = [start, len(content), version if name == "ids" else _digest(content)]
        start += len(content) + -len(content) % 4
    header = {
        "version": version,
        "answered": answered,
        "n": n,
        "arrays": layout,
        "panes": [
            {
                "title": pane.title,
                "note": pane.note,
                "dimensions": pane.coordinates.shape[1],
                "old": told,
                "coloring": int(scene.second is not None and i in scene.second_panes),
            }
            for i, (pane, told) in enumerate(zip(scene.panes, old or [""] * len(scene.panes), strict=True))
        ],
        "colorings": [described(one, side) for one, side in zip(scene.colorings(), sides(scene), strict=True)],
        "most": NAMED,
        "named": scene.named,
        "turn": scene.turn,
        "clusters": scene.clusters and scene.clusters.names,
        "caption": scene.caption,
        "alt": " ".join([*(f"{told}." for told in dict.fromkeys(old) if told), scene_alt(scene)]),
        "starSize": star_size(len(scene.anchors)),
        "starOpacity": star_opacity(len(scene.anchors)),
        "stars": asdict(scene.stars),
        "numbered": len(scene.anchors) <= NUMBERED,
        "files": files or {},
        "sheet": sheet and {"side": sheet.side, "columns": sheet.columns, "lines": sheet.lines, "crisp": sheet.crisp},
        "themes": [asdict(theme) for theme in (LIGHT, DARK)],
        **(settings or {}),
    }
    text = json.dumps(header, ensure_ascii=False).encode("utf-8", "replace")
    text += b" " * (-(4 + len(text)) % 4)
    blocks = (content + b"\0" * (-len(content) % 4) for content in arrays.values())
    return b"".join((np.uint32(len(text)).astype("<u4").tobytes(), text, *blocks))


def ids_digest(scene: Scene) -> str:
    """What the rows are: events are only good for a scene with the same ids in the same order."""
    return _digest(_joined(scene.ids))


def _joined(strings: np.ndarray) -> bytes:
    return "\x1f".join(map(str, strings)).encode("utf-8", "replace")


def _coordinates(title: str, coordinates: np.ndarray) -> bytes:
    if not np.isfinite(coordinates).all():
        bad = int((~np.isfinite(coordinates).all(axis=1)).sum())
        raise ValueError(
            f"pane {title!r}: expected finite coordinates, got {bad} rows with NaN or infinite values; leave these out"
        )
    return np.ascontiguousarray(coordinates, dtype="<f4").tobytes()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
