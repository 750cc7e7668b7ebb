"""An entry with a large matrix, `vectors`, which is written block by block: its memory is that of one block."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from relcore.store.entry_file import CHECKED, data_check, header_check, layout_of

_ALIGNED = 64
_LAST = "vectors"  # by its name, so that the checksum of the other arrays is known before it is written


def write_matrix(
    path: Path, blocks: Iterable[np.ndarray], shape: tuple[int, int], others: Mapping[str, np.ndarray], text: str
) -> None:
    """Write float32 blocks (m, d) of a matrix (n, d), small arrays, the metadata's JSON and checksums, and flush them to disk.

    Raises
    ------
    ValueError
        Another shape; arrays whose names come after "vectors".
    OSError
        The disk is full, or fails.
    """
    if max(others, default="") > _LAST:
        raise ValueError(f"expected names before {_LAST!r}, got {max(others)!r}")
    check, written = int(data_check(others), 16), 0
    with path.open("xb") as stream:
        stream.write(_header(shape, others, text, 0))
        for block in blocks:
            if block.shape[1] != shape[1]:
                raise ValueError(f"expected rows of {shape[1]:,} numbers, got {block.shape[1]:,}")
            content = np.ascontiguousarray(block, "<f4").data.cast("B")
            check, written = zlib.crc32(content, check), written + len(block)
            stream.write(content)
        if written != shape[0]:
            raise ValueError(f"expected {shape[0]:,} rows, got {written:,}")
        for name in sorted(others):
            stream.write(others[name].tobytes())
        stream.seek(0)
        stream.write(_header(shape, others, text, check))  # as long as before, now with the checksum
        stream.flush()
        os.fsync(stream.fileno())


def _header(shape: tuple[int, int], others: Mapping[str, np.ndarray], text: str, check: int) -> bytes:
    layout, end = {_LAST: ("F32", list(shape))} | layout_of(others), 0
    header: dict = {"__metadata__": {CHECKED: f"{header_check(text, layout)} {check:08x} {text}"}}
    for name in (_LAST, *sorted(others)):
        begin, end = end, end + (4 * shape[0] * shape[1] if name == _LAST else others[name].nbytes)
        header[name] = {"dtype": layout[name][0], "shape": layout[name][1], "data_offsets": [begin, end]}
    content = json.dumps(header).encode()
    content += b" " * (-(8 + len(content)) % _ALIGNED)
    return len(content).to_bytes(8, "little") + content
