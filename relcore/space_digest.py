"""The digest of a space's content, block by block: equal content, equal digest, in memory or on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from relcore.row_columns import RowNumbers

Columns = Sequence[Sequence[str] | np.ndarray | None]
_BLOCK, _ROWS = 1 << 16, 4096


def digest_of_content(shape: tuple[int, int], blocks: Iterable[np.ndarray], columns: Columns) -> str:
    """Hexadecimal digest of float32 rows (n, d), given in blocks, and of ids, labels and counts."""
    digest = hashlib.blake2b(repr(shape).encode(), digest_size=16)
    for block in blocks:
        digest.update(memoryview(block).cast("B"))
    for piece in as_json(*columns):
        digest.update(piece)
    return digest.hexdigest()


def digest_of_columns(columns: Columns) -> str:
    """Hexadecimal digest of ids, labels and counts; of row numbers without making them."""
    digest = hashlib.blake2b(digest_size=16)
    numbers = [len(one) if isinstance(one, RowNumbers) else None for one in columns]
    digest.update(json.dumps(numbers).encode())
    for piece in as_json(*(None if isinstance(one, RowNumbers) else one for one in columns)):
        digest.update(piece)
    return digest.hexdigest()


def as_json(*columns: Sequence[str] | np.ndarray | None) -> Iterator[bytes]:
    """What `json.dumps` makes of the list of these columns, null for a missing one, in pieces."""
    for place, column in enumerate(columns):
        yield b", " if place else b"["
        if column is None:
            yield b"null"
            continue
        for start in range(0, len(column), _BLOCK):
            part = column[start : start + _BLOCK]
            text = json.dumps(part.tolist() if isinstance(part, np.ndarray) else part)
            yield ((", " if start else "[") + text[1:-1]).encode()
        yield b"]"
    yield b"]"


def n_equal_rows(vectors: np.ndarray) -> int:
    """How many rows (n, d) float32 have the very bytes of another row; of a mapped file with the memory of a block.

    Rows of different hashes (64 bits) differ. Those of equal hashes, few unless rows are equal, are compared by their bytes.
    """
    hashes = np.empty(len(vectors), dtype=np.int64)
    for start in range(0, len(vectors), _ROWS):
        block = np.ascontiguousarray(vectors[start : start + _ROWS])
        hashes[start : start + len(block)] = [hash(row.tobytes()) for row in block]
    order = np.argsort(hashes)
    alike = np.diff(hashes[order]) == 0
    rows = order[np.append(alike, False) | np.append(False, alike)]
    found = np.ascontiguousarray(vectors[np.sort(rows)])
    _, counts = np.unique(found.view(f"V{found.itemsize * found.shape[1]}"), return_counts=True)
    return int(counts[counts > 1].sum())
