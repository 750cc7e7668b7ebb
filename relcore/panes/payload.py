"""The payload that brings a scene to the browser, and the events that the browser reports."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from relcore.base.memory import MadeOnce
from relcore.base.text import encodable
from relcore.figures.colorings import (
    OPACITIES,
    OTHER,
    PARTS,
    SIZES,
    STEPS,
    Coloring,
    Condition,
    Facet,
    Pane,
    StarLook,
)
from relcore.figures.scene import NUMBERED, Clusters, Scene, point_size, star_opacity, star_size
from relcore.figures.style import DARK, LIGHT

NO_CATEGORY = 0xFFFF  # −1 in the uint16 arrays of the payload
EXACT = 60_000  # maximum number of rows that are sent as float32
POSITION_STEPS = 65_535  # steps of an axis; even at a zoom of 100, rounding moves no point by half a pixel


def _coloring_header(coloring: Coloring, side: str, mute: bool) -> dict[str, Any]:
    """What the browser needs to know about a colouring: its classes with their colours. For a colour scale,
    the parts of the bar are the classes."""
    scale = coloring.scale
    labels = [str(name) for name in coloring.names]
    steps_of_class = 1
    ticks = None
    if scale:
        labels = scale.parts()
        steps_of_class = STEPS // PARTS
        ticks = scale.ticks()
    n = len(coloring.categories)
    n_named = int(np.count_nonzero(np.asarray(coloring.categories) >= 0))
    return {
        "title": coloring.title,
        "side": side,
        "tokens": coloring.tokens(),
        "labels": [*labels, OTHER],
        "stepsAClass": steps_of_class,
        "ticks": ticks,
        # Class names are not written on the map if they are steps of a scale ("ramp") or single ids ("mute").
        "ramp": bool(coloring.colors),
        "mute": mute,
        "colors": [coloring.palette(theme) for theme in (LIGHT, DARK)],
        "pointSize": point_size(n_named or n),
        "otherSize": point_size(n),
        "kept": coloring.kept_class,
        "hidden": list(coloring.hidden),
    }


def _facet_header(facet: Facet) -> dict[str, Any]:
    header = {name: getattr(facet, name) for name in ("column", "title", "names", "edges")}
    lows, highs = facet.bounds()
    return header | {"lows": lows, "highs": highs}


def _category_bytes(categories: np.ndarray) -> bytes:
    categories = np.asarray(categories)
    return np.where(categories < 0, NO_CATEGORY, categories).astype("<u2").tobytes()


def is_quantised(coordinates: np.ndarray) -> bool:
    """Whether coordinates are sent as integer steps (see `quantise`): if they are two-dimensional and
    many."""
    return len(coordinates) > EXACT and coordinates.shape[1] == 2


def packed_positions(coordinates: np.ndarray) -> bytes:
    """The coordinates as bytes: little-endian float32 (n, 2 or 3), or the steps of `quantise`."""
    if is_quantised(coordinates):
        return quantise(coordinates).tobytes()
    return np.ascontiguousarray(coordinates, dtype="<f4").tobytes()


def quantise(coordinates: np.ndarray) -> np.ndarray:
    """The coordinates as steps along the range of each axis, (n, 2) uint16, 0 to 65,535. If all coordinates
    of an axis are equal, they are set to the middle."""
    low = coordinates.min(axis=0).astype(np.float64)
    high = coordinates.max(axis=0).astype(np.float64)
    extent = np.where(high > low, high - low, 1.0)
    shares = np.where(high > low, (coordinates - low) / extent, 0.5)
    return np.rint(shares * POSITION_STEPS).astype("<u2")


CRISP = 32  # pixels per side; pictures up to this size are enlarged without smoothing


@dataclass(frozen=True, eq=False)
class Sheet:
    """A file with small pictures in cells of `side` pixels, `columns` per line. Row i has the cell
    `cells[i]`."""

    content: bytes
    mimetype: str
    side: int
    columns: int
    lines: int
    cells: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


def pack_rows(rows: Sequence[int] | np.ndarray, n: int) -> bytes:
    """A selection of n rows as a bitset of ⌈n / 8⌉ bytes, lowest bit first."""
    chosen = np.zeros(n, dtype=bool)
    chosen[np.asarray(rows, dtype=np.int64)] = True
    return np.packbits(chosen, bitorder="little").tobytes()


def unpack_rows(bits: bytes, n: int) -> np.ndarray:
    """The row numbers in a bitset of n rows, (m,) int64, ascending."""
    if len(bits) != (n + 7) // 8:
        raise ValueError(f"expected a bitset of {(n + 7) // 8} bytes for {n} rows, got {len(bits)}")
    return np.flatnonzero(np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=n, bitorder="little"))


@dataclass(frozen=True)
class Payload:
    """A JSON header, and arrays as little-endian bytes.

    ``header["arrays"][name]`` is ``[start, number of bytes, digest]``; the start is counted from the end of
    the header in `to_bytes`. ``header["files"]`` has the addresses of texts, notes and sheet.
    ``header["elsewhere"]`` has the addresses of arrays that the browser loads by itself.
    ``header["carried"]`` names those of them that are new, so that the payload contains them nevertheless.
    """

    header: dict[str, Any]
    arrays: dict[str, bytes]

    def having(self, arrays: Mapping[str, bytes], digests: Mapping[str, str] = {}) -> Payload:
        """The payload with these arrays added. Digests that are not in `digests` are computed."""
        layout = dict(self.header.get("arrays", {}))
        start = sum(map(_padded_size, self.arrays.values()))
        for name, content in arrays.items():
            layout[name] = [start, len(content), digests.get(name) or _with_digest(content)[1]]
            start += _padded_size(content)
        return Payload({**self.header, "arrays": layout}, {**self.arrays, **arrays})

    def leaving(self, elsewhere: Mapping[str, str], carried: Sequence[str] = ()) -> Payload:
        """The payload without the arrays in `elsewhere`, except those in `carried`. The browser loads them
        from the given addresses."""
        kept = {}
        layout = {}
        start = 0
        for name, (_, size, digest) in self.header["arrays"].items():
            layout[name] = [start, size, digest]
            if name not in elsewhere or name in carried:
                kept[name] = self.arrays[name]
                start += _padded_size(kept[name])
        header = {"arrays": layout, "elsewhere": dict(elsewhere), "carried": list(carried)}
        return Payload({**self.header, **header}, kept)

    def to_bytes(self) -> bytes:
        """The payload as bytes: the length of the header (uint32), the header in JSON, and the arrays, each
        aligned to four bytes."""
        text = _utf8(json.dumps(self.header, ensure_ascii=False))
        text += b" " * (-(4 + len(text)) % 4)
        blocks = (content + b"\0" * (-len(content) % 4) for content in self.arrays.values())
        return b"".join((np.uint32(len(text)).astype("<u4").tobytes(), text, *blocks))


@dataclass(frozen=True)
class PaneSettings:
    """How the panes are laid out, and what they offer where they are.

    Attributes
    ----------
    height : int
        Height of all panes together, in pixels.
    fill : bool or float
        True if panes are as high as there is room; a number is their height as a share of their width.
    link_zoom : bool
        Whether all panes are zoomed together at first.
    dark : bool, optional
        The theme; None for that of the page around the panes.
    tool : str
    filters : bool
        Whether Python sends facets on request.
    named_by_class : bool
        Whether the classes of the colours name rows whose ids are plain numbers.
    filter_note : str
        The end of the line that says that a filter holds.
    live : dict, optional
        The address that answers requests while an anchor is dragged, or the reason why none does.
    single : row numbers
        Selected rows with a dashed ring.
    worded : bool
        Whether a star has its id beside its number.
    edges : for each model, list of (row, neighbour, whether they share a feature)
        The panes of that model join these rows by lines.
    trails : for each pane, list of (row, x, y)
        Lines from rows to these places, in units of the full range of the pane's coordinates, −1 … 1 (see
        `trails_between`).
    """

    height: int = 640
    fill: bool | float = False
    link_zoom: bool = False
    dark: bool | None = None
    tool: str = "lasso"
    filters: bool = False
    named_by_class: bool = False
    filter_note: str = ""
    live: Mapping[str, Any] | None = None
    single: Sequence[int] = ()
    worded: bool = False
    edges: Sequence[Sequence[tuple[int, int, bool]]] = ()
    trails: Sequence[Sequence[tuple[int, float, float]]] = ()

    def header(self) -> dict[str, Any]:
        """The settings under the names that the scripts of the panes know."""
        settings = dict(vars(self))
        settings["linkZoom"] = settings.pop("link_zoom")
        settings["namedByClass"] = settings.pop("named_by_class")
        settings["filterNote"] = settings.pop("filter_note")
        return settings


def trails_between(panes: Sequence[Pane], rows: Sequence[int]) -> list[list[tuple[int, float, float]]]:
    """For each of two panes whose coordinates have the same axes, the trails from these rows to the places
    that they have in the other pane; see `PaneSettings.trails`."""
    first, second = (pane.coordinates for pane in panes)
    return [_trails(first, second, rows), _trails(second, first, rows)]


def _trails(
    coordinates: np.ndarray, others: np.ndarray, rows: Sequence[int]
) -> list[tuple[int, float, float]]:
    low = coordinates.min(axis=0).astype(np.float64)
    high = coordinates.max(axis=0).astype(np.float64)
    half = np.where(high > low, (high - low) / 2, 1.0)
    ends = (others[list(rows)] - (low + high) / 2) / half
    return [(int(row), *np.round(end, 4).tolist()) for row, end in zip(rows, ends, strict=True)]


def payload_of(
    scene: Scene,
    *,
    version: str,
    answered: int = 0,
    selected: Sequence[int] | np.ndarray | None = None,
    sheet: Sheet | None = None,
    files: dict[str, str] | None = None,
    old: Sequence[str] = (),
    settings: PaneSettings = PaneSettings(),
) -> Payload:
    """The payload of a scene. Raises a ValueError for coordinates that are not finite.

    Parameters
    ----------
    version : str
        The `ids_digest` of the scene.
    answered : int
        Serial number of the last event that was answered; see `read_events`.
    selected : row numbers, optional
        The selected rows. If it is None, the browser keeps its selection.
    sheet : Sheet, optional
        A small picture of each row.
    files : addresses of "texts", "notes" and "sheet", optional
    old : one string per pane, optional
        The note of each pane if its map is outdated; "" if it is up to date.
    settings : PaneSettings
    """
    arrays, digests = _arrays_of(scene, version, selected, sheet)
    notices = old or [""] * len(scene.panes)
    header = {
        "version": version,
        "answered": answered,
        "n": len(scene),
        "columns": scene.columns,
        "panes": [_pane_header(scene, i, notice) for i, notice in enumerate(notices)],
        "colorings": [
            _coloring_header(coloring, side, scene.mute and set(coloring.names) <= set(scene.ids))
            for coloring, side in zip(scene.colorings(), scene.sides, strict=True)
        ],
        "facets": [_facet_header(facet) for facet in scene.facets],
        "filter": [asdict(condition) for condition in scene.filter],
        "named": scene.named,
        "density": scene.density,
        "mute": scene.mute,
        "turn": scene.turn,
        "clusters": [level.names for level in _levels(scene)],
        "caption": scene.caption,
        "alt": " ".join([*(f"{notice}." for notice in dict.fromkeys(old) if notice), scene.alt()]),
        "starSize": star_size(len(scene.anchors)),
        "starOpacity": star_opacity(len(scene.anchors)),
        "stars": asdict(scene.stars),
        "numbered": len(scene.anchors) <= NUMBERED,
        "numbers": np.asarray(scene.numbers).tolist(),
        "files": files or {},
        "elsewhere": {},
        "carried": [],
        "sheet": sheet and _sheet_header(sheet),
        "themes": [asdict(theme) for theme in (LIGHT, DARK)],
        **settings.header(),
    }
    return Payload(header, {}).having(arrays, digests)


def _pane_header(scene: Scene, i: int, notice: str) -> dict[str, Any]:
    """What the browser needs to know about pane i; `notice` is the note of an outdated map."""
    pane = scene.panes[i]
    return {
        "title": pane.title,
        "note": pane.note,
        "dimensions": pane.coordinates.shape[1],
        "quantised": is_quantised(pane.coordinates),
        "old": notice,
        "coloring": int(scene.second is not None and i in scene.second_panes),
    }


def _sheet_header(sheet: Sheet) -> dict[str, Any]:
    return {
        "side": sheet.side,
        "columns": sheet.columns,
        "lines": sheet.lines,
        "crisp": sheet.side <= CRISP,
    }


def _arrays_of(
    scene: Scene, version: str, selected: Sequence[int] | np.ndarray | None, sheet: Sheet | None
) -> tuple[dict[str, bytes], dict[str, str]]:
    """The arrays of a scene as bytes, and the digests that are already known."""
    arrays = {}
    digests = {"ids": version}
    for i, pane in enumerate(scene.panes):
        if bad := int((~np.isfinite(pane.coordinates).all(axis=1)).sum()):
            raise ValueError(
                f"pane {pane.title!r}: expected finite coordinates, got {bad} rows with NaN or infinite"
                " values; leave these out"
            )
        arrays[f"pane{i}"], digests[f"pane{i}"] = _coordinates_with_digest(pane.coordinates)
    for i, coloring in enumerate(scene.colorings()):
        arrays[f"categories{i}"] = _category_bytes(coloring.categories)
        if coloring.values is not None:
            arrays[f"values{i}"] = np.asarray(coloring.values, dtype="<f4").tobytes()
    for i, facet in enumerate(scene.facets):
        arrays[f"facet{i}"] = np.asarray(facet.codes, dtype=np.uint8).tobytes()
    if scene.facets and scene.facet_rows is not None:
        arrays["facetRows"] = np.asarray(scene.facet_rows, dtype="<u4").tobytes()
    arrays["anchors"] = np.asarray(scene.anchors, dtype="<u4").tobytes()
    arrays["ids"], _ = _texts_with_digest(scene.ids)
    for i, level in enumerate(_levels(scene)):
        arrays[f"clusters{i}"] = _category_bytes(level.numbers)
    if scene.prominence is not None:
        arrays["prominence"] = np.asarray(scene.prominence, dtype="<u4").tobytes()
    if sheet is not None:
        arrays["cells"] = np.asarray(sheet.cells, dtype="<u4").tobytes()
    if selected is not None:
        arrays["selected"] = pack_rows(selected, len(scene))
    return arrays, digests


def _levels(scene: Scene) -> list[Clusters]:
    """The clusters of a scene and, if it has them, their finer ones."""
    levels = []
    level = scene.clusters
    while level is not None:
        levels.append(level)
        level = level.finer
    return levels


def ids_digest(scene: Scene) -> str:
    """The digest of the ids in their order. Events with another digest belong to another scene, and are
    ignored."""
    return _texts_with_digest(scene.ids)[1]


def joined_texts(strings: np.ndarray) -> bytes:
    """The texts in UTF-8, joined by the unit separator. If a text contains a separator, it is replaced by its
    symbol."""
    return _utf8("\x1f".join(str(text).replace("\x1f", "␟") for text in strings))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, for which it takes too long to look beforehand
        return encodable(text).encode()


def _with_digest(content: bytes) -> tuple[bytes, str]:
    return content, hashlib.blake2b(content, digest_size=8).hexdigest()


_texts_with_digest = MadeOnce(lambda strings: _with_digest(joined_texts(strings)))
_coordinates_with_digest = MadeOnce(lambda coordinates: _with_digest(packed_positions(coordinates)))


def _padded_size(content: bytes) -> int:
    return len(content) + -len(content) % 4


@dataclass(frozen=True, eq=False)
class PaneEvent:
    """An action of the user. For "select" and "click", `rows` are the rows. For "anchor", an anchor was moved
    from the first to the second of two `rows`. "spread" requests a few anchors that are far from each other,
    and "facets" the columns by which rows can be filtered. An event of another kind has its value in the
    field of the same name.

    `hidden` has the hidden classes of each colouring. `turn` has the same form as `Scene.turn`.
    """

    kind: Literal[
        "select",
        "clear",
        "click",
        "anchor",
        "spread",
        "stars",
        "hidden",
        "named",
        "density",
        "turn",
        "filter",
        "facets",
    ]
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    stars: StarLook | None = None
    hidden: tuple[tuple[str, ...], ...] | None = None
    named: bool | None = None
    density: bool | None = None
    turn: tuple[float, ...] | None = None
    filter: tuple[Condition, ...] | None = None

    @property
    def row(self) -> int:
        return int(self.rows[0])


def read_events(
    messages: Iterable[dict[str, Any]], version: str, n: int, answered: int
) -> tuple[list[PaneEvent], int]:
    """Return the events after the serial number `answered`, and the serial number of the last event.

    The browser repeats events until they are answered, because Streamlit may drop one of two messages in
    quick succession. Events that belong to another `version` of the ids are dropped.
    """
    events = []
    for message in sorted(messages, key=lambda message: message["serial"]):
        if message["serial"] <= answered:
            continue
        answered = message["serial"]
        kind = message["kind"]
        if kind in _LOOKS:
            events.append(PaneEvent(kind, **{kind: _LOOKS[kind](message)}))
        elif kind in ("facets", "spread"):
            events.append(PaneEvent(kind))
        elif message["version"] == version and kind in ("click", "anchor"):
            rows = np.array([message[name] for name in ("row", "to") if name in message], dtype=np.int64)
            if rows.min() >= 0 and rows.max() < n:
                events.append(PaneEvent(kind, rows))
        elif message["version"] == version:
            rows = unpack_rows(base64.b64decode(message["bits"]), n)
            events.append(PaneEvent("select" if len(rows) else "clear", rows))
    return events, answered


def _star_look(message: dict[str, Any]) -> StarLook:
    size = np.clip(message["size"], *SIZES)
    opacity = np.clip(message["opacity"], *OPACITIES)
    return StarLook(float(size), float(opacity), bool(message["shown"]))


# Kinds of events about the look of the maps → the new look, from the message.
_LOOKS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "stars": _star_look,
    "hidden": lambda message: tuple(tuple(map(str, classes)) for classes in message["hidden"]),
    "named": lambda message: bool(message["named"]),
    "density": lambda message: bool(message["density"]),
    "filter": lambda message: tuple(
        Condition(str(one["column"]), tuple(map(str, one["classes"])), one["low"], one["high"])
        for one in message["filter"]
    ),
    "turn": lambda message: tuple(round(float(x), 4) for x in message["turn"]),
}
