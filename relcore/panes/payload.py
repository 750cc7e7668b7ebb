"""The payload of a scene: what the linked panes draw, as a header in JSON and arrays of numbers, each with
its digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from relcore.base.caching import MadeOnce
from relcore.base.text import encodable
from relcore.charts.coloring import PARTS, STEPS, Coloring
from relcore.charts.scene import Scene
from relcore.figures.marks import (
    NAMED,
    NUMBERED,
    OTHER,
    colors_of,
    point_size,
    scene_alt,
    sides,
    star_opacity,
    star_size,
)
from relcore.figures.style import DARK, LIGHT

# The colourings of a scene as the linked panes take them: classes with their colours, and the class of each
# row as bytes.

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


# Where the rows of a pane are, as it travels: coordinates, or steps of the full range where there are very
# many rows.

EXACT = 60_000  # rows at most that travel as float32; more are drawn as density where many are in view
# of an axis: a place is at most half a step off, below half a pixel of a pane 600 pixels wide at a zoom of
# 100
POSITION_STEPS = 65_535


def quantised(coordinates: np.ndarray) -> np.ndarray:
    """Each axis in steps of its own full range, (n, 2) uint16: 0 is its least value, 65,535 its greatest.

    At most 1/131,070 of the range is lost. An axis without extent lies in the middle.
    """
    low, high = coordinates.min(axis=0).astype(np.float64), coordinates.max(axis=0).astype(np.float64)
    steps = np.empty(coordinates.shape, dtype="<u2")
    for axis in range(coordinates.shape[1]):
        extent = high[axis] - low[axis]
        share = (coordinates[:, axis] - low[axis]) / extent if extent > 0 else np.full(len(coordinates), 0.5)
        steps[:, axis] = np.rint(share * POSITION_STEPS)
    return steps


def is_quantised(coordinates: np.ndarray) -> bool:
    """Whether these travel in steps: many rows in the plane. A solid is turned in the browser, which needs
    its coordinates.
    """
    return len(coordinates) > EXACT and coordinates.shape[1] == 2


def need_finite(title: str, coordinates: np.ndarray) -> None:
    """Refuse what cannot be drawn.

    Raises
    ------
    ValueError
        Coordinates that are not finite.
    """
    if not np.isfinite(coordinates).all():
        bad = int((~np.isfinite(coordinates).all(axis=1)).sum())
        raise ValueError(
            f"pane {title!r}: expected finite coordinates, got {bad} rows with NaN or infinite values; leave"
            " these out"
        )


def packed_positions(coordinates: np.ndarray) -> bytes:
    """The positions in a pane, little-endian: float32 (n, 2 or 3), or uint16 steps (n, 2)."""
    if is_quantised(coordinates):
        return quantised(coordinates).tobytes()
    return np.ascontiguousarray(coordinates, dtype="<f4").tobytes()


# A sheet: small pictures of many rows in one file, so that a hover shows one at once.

CRISP = 32  # pixels per side up to which pictures are kept unchanged and drawn as squares


@dataclass(frozen=True, eq=False)
class Sheet:
    """Pictures in square cells of `side` pixels, `columns` per line; row i is in cell `cells[i]`."""

    content: bytes
    mimetype: str
    side: int
    columns: int
    lines: int
    cells: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def crisp(self) -> bool:
        return self.side <= CRISP


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


@dataclass(frozen=True)
class Payload:
    """What the panes draw: a header of JSON values, and the bytes of its arrays, little-endian.

    ``header["arrays"][name]`` says ``[start, bytes, digest]``; the start counts from the end of the header in
    `to_bytes`. ``header["files"]`` says where the texts, the notes and the sheet of the rows can be had, and
    ``header["elsewhere"]`` where the arrays are that need not travel with it; those in ``header["carried"]``
    do so once, as they are new.
    """

    header: dict[str, Any]
    arrays: dict[str, bytes]

    def having(self, name: str, content: bytes) -> Payload:
        """With one more array."""
        start = sum(len(one) + -len(one) % 4 for one in self.arrays.values())
        layout = {**self.header["arrays"], name: [start, len(content), _digest(content)]}
        return Payload({**self.header, "arrays": layout}, {**self.arrays, name: content})

    def leaving(self, elsewhere: Mapping[str, str], carried: Sequence[str] = ()) -> Payload:
        """Without these arrays, which the home finds at these addresses, but with those of them that are
        `carried`.
        """
        kept, layout, start = {}, {}, 0
        for name, (_, size, digest) in self.header["arrays"].items():
            layout[name] = [start, size, digest]
            if name not in elsewhere or name in carried:
                kept[name] = self.arrays[name]
                start += size + -size % 4
        return Payload(
            {**self.header, "arrays": layout, "elsewhere": dict(elsewhere), "carried": list(carried)}, kept
        )

    def to_bytes(self) -> bytes:
        """The length of the header (uint32), the header in JSON, then the arrays, each at a multiple of
        four.
        """
        text = _utf8(json.dumps(self.header, ensure_ascii=False))
        text += b" " * (-(4 + len(text)) % 4)
        blocks = (content + b"\0" * (-len(content) % 4) for content in self.arrays.values())
        return b"".join((np.uint32(len(text)).astype("<u4").tobytes(), text, *blocks))


def payload_of(
    scene: Scene,
    *,
    version: str,
    answered: int = 0,
    selected: Sequence[int] | None = None,
    sheet: Sheet | None = None,
    files: dict[str, str] | None = None,
    old: Sequence[str] = (),
    settings: dict[str, Any] | None = None,
) -> Payload:
    """The payload of a scene.

    Parameters
    ----------
    version : str
        `ids_digest` of the scene.
    answered : int
        Serial number of the latest event that this scene answers; see `relcore.panes.events.read_events`.
    selected : row numbers, optional
        What to highlight; None leaves the browser its own selection.
    sheet : Sheet, optional
        A small picture of each row.
    files : addresses of "texts", "notes" and "sheet", optional
        Where the home finds what hovers show.
    old : one string per pane, optional
        What an old map shows; "" for a pane that is up to date.
    settings : dict, optional
        How the home starts the panes: ``linkZoom``, ``height``, ``fill``, ``dark`` and ``tool``.

    Raises
    ------
    ValueError
        Coordinates that are not finite, rows that do not exist, a sheet of other rows.
    """
    n = len(scene)
    arrays, digests = {}, {"ids": version}
    for i, pane in enumerate(scene.panes):
        need_finite(pane.title, pane.coordinates)
        arrays[f"pane{i}"], digests[f"pane{i}"] = _packed(pane.coordinates)
    for i, coloring in enumerate(scene.colorings()):
        arrays |= arrays_of(coloring, i)
    arrays["anchors"] = np.asarray(scene.anchors, dtype="<u4").tobytes()
    arrays["ids"], _ = _digested(scene.ids)
    if scene.clusters is not None:
        arrays["clusters"] = (
            np.where(scene.clusters.numbers < 0, NO_CATEGORY, scene.clusters.numbers).astype("<u2").tobytes()
        )
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
        layout[name] = [start, len(content), digests.get(name) or _digest(content)]
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
                "quantised": is_quantised(pane.coordinates),
                "old": told,
                "coloring": int(scene.second is not None and i in scene.second_panes),
            }
            for i, (pane, told) in enumerate(zip(scene.panes, old or [""] * len(scene.panes), strict=True))
        ],
        "colorings": [
            described(one, side) for one, side in zip(scene.colorings(), sides(scene), strict=True)
        ],
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
        "elsewhere": {},
        "carried": [],
        "sheet": (
            sheet
            and {"side": sheet.side, "columns": sheet.columns, "lines": sheet.lines, "crisp": sheet.crisp}
        ),
        "themes": [asdict(theme) for theme in (LIGHT, DARK)],
        **(settings or {}),
    }
    return Payload(header, arrays)


def ids_digest(scene: Scene) -> str:
    """What the rows are: events are only good for a scene with the same ids in the same order."""
    return _digested(scene.ids)[1]


def joined(strings: np.ndarray) -> bytes:
    """A column of texts as the panes take it: UTF-8, with the unit separator between texts, and its symbol
    within.
    """
    return _utf8("\x1f".join(str(one).replace("\x1f", "␟") for one in strings))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair; looked for only here, as a million ids take a while
        return encodable(text).encode()


@MadeOnce
def _digested(strings: np.ndarray) -> tuple[bytes, str]:
    content = joined(strings)
    return content, _digest(content)


@MadeOnce
def _packed(coordinates: np.ndarray) -> tuple[bytes, str]:
    content = packed_positions(coordinates)
    return content, _digest(content)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
