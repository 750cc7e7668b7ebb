"""The payload of a scene: what the linked panes draw, as a header in JSON and arrays of numbers, each with its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from relcore.charts.scene import Scene
from relcore.figures.marks import NAMED, NUMBERED, scene_alt, sides, star_opacity, star_size
from relcore.figures.palette import DARK, LIGHT
from relcore.made_once import MadeOnce
from relcore.panes.colorings import NO_CATEGORY, arrays_of, described
from relcore.panes.positions import is_quantised, need_finite, packed_positions
from relcore.panes.sheet import Sheet
from relcore.plain_text import encodable


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

    ``header["arrays"][name]`` says ``[start, bytes, digest]``; the start counts from the end of the header in `to_bytes`.
    ``header["files"]`` says where the texts, the notes and the sheet of the rows can be had, and ``header["elsewhere"]`` where
    the arrays are that need not travel with it; those in ``header["carried"]`` do so once, as they are new.
    """

    header: dict[str, Any]
    arrays: dict[str, bytes]

    def having(self, name: str, content: bytes) -> Payload:
        """With one more array."""
        start = sum(len(one) + -len(one) % 4 for one in self.arrays.values())
        layout = {**self.header["arrays"], name: [start, len(content), _digest(content)]}
        return Payload({**self.header, "arrays": layout}, {**self.arrays, name: content})

    def leaving(self, elsewhere: Mapping[str, str], carried: Sequence[str] = ()) -> Payload:
        """Without these arrays, which the home finds at these addresses, but with those of them that are `carried`."""
        kept, layout, start = {}, {}, 0
        for name, (_, size, digest) in self.header["arrays"].items():
            layout[name] = [start, size, digest]
            if name not in elsewhere or name in carried:
                kept[name] = self.arrays[name]
                start += size + -size % 4
        return Payload({**self.header, "arrays": layout, "elsewhere": dict(elsewhere), "carried": list(carried)}, kept)

    def to_bytes(self) -> bytes:
        """The length of the header (uint32), the header in JSON, then the arrays, each at a multiple of four."""
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
        "elsewhere": {},
        "carried": [],
        "sheet": sheet and {"side": sheet.side, "columns": sheet.columns, "lines": sheet.lines, "crisp": sheet.crisp},
        "themes": [asdict(theme) for theme in (LIGHT, DARK)],
        **(settings or {}),
    }
    return Payload(header, arrays)


def ids_digest(scene: Scene) -> str:
    """What the rows are: events are only good for a scene with the same ids in the same order."""
    return _digested(scene.ids)[1]


def joined(strings: np.ndarray) -> bytes:
    """A column of texts as the panes take it: UTF-8, with the unit separator between texts, and its symbol within."""
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
