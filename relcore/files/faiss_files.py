"""Indexes of faiss as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.files.formats import Blocks, Description, Format, Request, in_blocks


class Faiss(Format):
    """Files of faiss indexes that store vectors without compression: Flat, IDMap (which also stores ids),
    HNSWFlat, IVFFlat."""

    libraries = ("faiss",)

    def describe(self, path: Path) -> Description:
        import faiss

        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        return Description({"": (index.ntotal, index.d)}, "")

    def blocks(self, path: Path, request: Request) -> Blocks:
        n = request.rows(path, *self.describe(path).shape)  # raises an error before the index fills memory
        index = open_faiss(path)
        ids = faiss_ids(path, index)
        for rows in in_blocks(n, 4 * index.d):
            yield faiss_rows(index, ids, rows)
        return {} if ids is None else {"ids": ids[:n]}


def open_faiss(path: Path) -> Any:
    """The faiss index in a file. Raises a SpaceError if it compresses the vectors."""
    import faiss

    with path.open("rb") as stream:
        index = faiss.read_index(faiss.PyCallbackIOReader(stream.read))
        if stream.read(1):
            raise ValueError("more than one index")
    inner = index
    if hasattr(index, "index"):
        inner = faiss.downcast_index(index.index)
    if isinstance(inner, faiss.IndexHNSW):
        inner = faiss.downcast_index(inner.storage)
    if not isinstance(inner, faiss.IndexFlat | faiss.IndexIVFFlat):
        raise SpaceError(
            f"{path.name}: expected an index of whole vectors (Flat, IDMap, HNSWFlat, IVFFlat), got"
            f" {type(inner).__name__}; save the vectors that the index was made of"
        )
    if inner.ntotal != index.ntotal or inner.d != index.d or index.d < 1:
        raise ValueError(f"an index of {index.ntotal} rows around one of {inner.ntotal}")
    return index


def faiss_ids(path: Path, index: Any) -> np.ndarray | None:
    """The ids (n,) of an index as int64, in ascending order for an IVF index. None if the ids are the row
    numbers."""
    import faiss

    if hasattr(index, "id_map"):
        ids = faiss.vector_to_array(index.id_map)
        if len(ids) != index.ntotal:
            raise ValueError(f"{len(ids)} ids of {index.ntotal} rows")
        return ids
    if not isinstance(index, faiss.IndexIVF):
        return None
    lists = index.invlists
    get = faiss.rev_swig_ptr
    parts = [get(lists.get_ids(item), lists.list_size(item)).copy() for item in range(index.nlist)]
    ids = np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
    if (ids[1:] == ids[:-1]).any():
        raise SpaceError(f"{path.name}: expected distinct ids, got some twice; write the index again")
    index.set_direct_map_type(faiss.DirectMap.Hashtable)
    if np.array_equal(ids, np.arange(index.ntotal)):
        return None
    return ids


def faiss_rows(index: Any, ids: np.ndarray | None, rows: slice) -> np.ndarray:
    """The vectors of the given rows. `ids` is the result of `faiss_ids`."""
    import faiss

    if isinstance(index, faiss.IndexIVF):
        numbers = np.arange(rows.start, rows.stop)
        if ids is not None:
            numbers = ids[rows]
        return index.reconstruct_batch(numbers)
    inner = index
    if hasattr(index, "index"):
        inner = index.index
    return inner.reconstruct_n(rows.start, rows.stop - rows.start)
