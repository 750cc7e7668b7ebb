"""Stores of every kind with the same rows, for tests."""

import numpy as np

from relcore.base.names import INDEXES
from relcore.stores.index import StoredRows, StorePlace, Target, write_index

KINDS = ("npy", "parquet", "faiss", "lancedb")
WITH_PAYLOAD = ("parquet", "lancedb")
N = 53
WIDTH = 6


def place_of(kind, folder):
    if not INDEXES[kind].suffixes:
        return StorePlace(kind, str(folder / kind), "news")
    return StorePlace(kind, str(folder / f"rows.{kind}"))


def made(n=N, width=WIDTH, payload=False):
    """Unit rows, ids that are no row numbers, and a payload where a store keeps one."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(n, width)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    told = tuple({"title": f"Row {row} ü", "year": 1990 + row % 7, "seen": row % 2 == 0} for row in range(n))
    return StoredRows([f"doc-{row * 7 % n}" for row in range(n)], vectors, told if payload else ())


def in_blocks(rows, size=20):
    for first in range(0, len(rows.ids), size):
        some = slice(first, first + size)
        yield StoredRows(rows.ids[some], rows.vectors[some], rows.payload[some])


def written(kind, folder, rows):
    place = place_of(kind, folder)
    write_index(place, in_blocks(rows), Target(len(rows.ids), rows.vectors.shape[1]))
    return place


def ids_of(index):
    return [one for block in index.blocks() for one in block.ids]


def whole(index, size=16, start=0):
    """All blocks as one; a database may order rows as it likes, so they come sorted by id."""
    blocks = list(index.blocks(size, start))
    assert all(len(one.ids) == len(one.vectors) <= size for one in blocks)
    ids = [one for block in blocks for one in block.ids]
    payload = [one for block in blocks for one in block.payload]
    order = sorted(range(len(ids)), key=ids.__getitem__)
    vectors = np.concatenate([block.vectors for block in blocks])[order]
    return StoredRows(
        [ids[row] for row in order], vectors, tuple(payload[row] for row in order) if payload else ()
    )
