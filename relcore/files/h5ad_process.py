"""A process that reads one AnnData file for `relcore.files.h5ad`: libhdf5 trusts what a file says, and may
crash on it.

It is run by its path and imports nothing of Relscope. It gets the file and the request as arguments, writes a
line of JSON, waits for "go", and then writes blocks of rows, a line of JSON and little-endian float32 each,
and a line for each column. Links to other files, and data that lie in other files, are refused: they could
lead to files that the asker may not read.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

import h5py
import numpy as np

_MEMORY, _SECONDS = 6 << 30, 900
_FILTERS = {1, 2, 3, 32000}  # gzip, shuffle, checksum, lzf
_LARGEST_CHUNK = 1 << 30
_BLOCK = 1 << 24
_MOST_NAMES = 1000
_USUAL_LABELS = ("label", "labels", "cell_type", "celltype")


class WrongError(Exception):
    """What is wrong with the file, as the rest of a sentence that begins with its name."""


def main(path: str, request: dict[str, Any]) -> None:
    out = sys.stdout.buffer
    try:
        with h5py.File(path, "r", locking=False) as file:
            matrices = {name: _shape(child(file, name)) for name in _names(file)}
            columns = _columns(file)
            if "matrix" not in request:
                _line({"matrices": matrices, "columns": columns})
                return
            name = request["matrix"]
            node, (n, d) = child(file, name), matrices[name]
            n_read = n if request["limit"] is None else min(n, request["limit"])
            wanted = {role: column for role, column in request["columns"].items() if column is not None}
            usual = next((column for column in _USUAL_LABELS if column in columns), None)
            if "labels" not in wanted and usual:
                wanted["labels"] = usual
            _line({"n": n, "d": d, "columns": sorted({"ids", *wanted})})
            if sys.stdin.readline() != "go\n":
                return
            for block in _blocks(node, n_read, d):
                _line({"rows": len(block)})
                out.write(np.ascontiguousarray(block, "<f4").tobytes())
            wanted.setdefault("ids", _index_name(file))
            for role in sorted(wanted):
                _line(_texts(child(file, f"obs/{wanted[role]}"), n, n_read, request["max_bytes"]))
    except WrongError as error:
        _line({"error": str(error)})
    except (
        OSError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        RuntimeError,
        IndexError,
        MemoryError,
        OverflowError,
    ) as error:
        _line({"error": f"expected an AnnData file, got one that cannot be read ({error!s:.150})"})


def child(file: h5py.File, name: str) -> Any:
    """The group or dataset of this path; refused where a link leads elsewhere, or data lie in another
    file.
    """
    node: Any = file
    for part in name.split("/", 1) if not name.startswith("obs/") else ("obs", name[4:]):
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
        if link is None:
            raise WrongError(f"expected {name!r:.80} in an AnnData file, got nothing of this name")
        if not isinstance(link, h5py.HardLink):
            raise WrongError(f"expected data in the file itself, got a link to elsewhere at {name!r:.80}")
        node = node[part]
    return node


def _own(node: Any, what: str, dimensions: int) -> h5py.Dataset:
    """A dataset of this many dimensions whose data lie in the file, in chunks that fit into memory."""
    if not isinstance(node, h5py.Dataset) or node.ndim != dimensions:
        raise WrongError(
            f"expected {what} as an array of {dimensions} dimension{'s' * (dimensions > 1)}, got something"
            " else"
        )
    if node.is_virtual or node.external:
        raise WrongError(f"expected data in the file itself, got {what} whose data lie in another file")
    plist = node.id.get_create_plist()
    unknown = {plist.get_filter(number)[0] for number in range(plist.get_nfilters())} - _FILTERS
    if unknown:
        raise WrongError(f"expected {what} compressed by gzip or lzf, got filter {min(unknown)}")
    if node.chunks and int(np.prod(node.chunks, dtype=float)) * node.dtype.itemsize > _LARGEST_CHUNK:
        raise WrongError(f"expected {what} in chunks of at most 1 GB, got larger ones")
    return node


def _part(group: Any, name: str, what: str) -> h5py.Dataset:
    link = group.get(name, getlink=True) if isinstance(group, h5py.Group) else None
    if not isinstance(link, h5py.HardLink):
        raise WrongError(f"expected {what} with {name!r}, got none")
    return _own(group[name], f"{what}, {name!r}", 1)


def _names(file: h5py.File) -> list[str]:
    """ "X", and what is in obsm and layers, as far as it is a matrix."""
    found = ["X"] if "X" in file else []
    for group in ("obsm", "layers"):
        if group in file and isinstance(inner := child(file, group), h5py.Group):
            found += [f"{group}/{name}" for name in list(inner)[:_MOST_NAMES]]
    return [name for name in found if _is_matrix(child(file, name))]


def _is_matrix(node: Any) -> bool:
    if isinstance(node, h5py.Dataset):
        return node.ndim == 2 and node.dtype.kind in "fiu"
    return str(node.attrs.get("encoding-type", "")) in ("csr_matrix", "csc_matrix")


def _shape(node: Any) -> tuple[int, int]:
    shape = node.shape if isinstance(node, h5py.Dataset) else node.attrs.get("shape", ())
    n, d = (int(one) for one in shape)
    return n, d


def _blocks(node: Any, n: int, d: int):
    """Rows of the matrix, block by block, as dense numbers."""
    step = max(1, _BLOCK // (8 * max(1, d)))
    if isinstance(node, h5py.Dataset):
        node = _own(node, "a matrix", 2)
        for start in range(0, n, step):
            yield node[start : min(start + step, n)]
        return
    parts = {name: _part(node, name, "a sparse matrix") for name in ("data", "indices", "indptr")}
    rows = str(node.attrs["encoding-type"]) == "csr_matrix"
    lines = _shape(node)[0] if rows else d
    if (
        len(parts["indptr"]) != lines + 1
        or len(parts["data"]) != len(parts["indices"])
        or parts["data"].dtype.kind not in "fiub"
    ):
        raise WrongError("expected a sparse matrix whose parts fit its shape, got others")
    starts = parts["indptr"][:].astype(np.int64)
    if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > len(parts["data"]):
        raise WrongError("expected a sparse matrix whose rows follow each other, got others")
    if not rows:
        from scipy.sparse import csc_matrix

        limit = _shape(node)[0]
        indices = _indices(parts["indices"][: starts[-1]], limit)
        whole = csc_matrix((parts["data"][: starts[-1]], indices, starts), (limit, d)).tocsr()
        for start in range(0, n, step):
            yield whole[start : min(start + step, n)].toarray()
        return
    for start in range(0, n, step):
        own = starts[start : min(start + step, n) + 1]
        block = np.zeros((len(own) - 1, d))
        at = np.repeat(np.arange(len(own) - 1), np.diff(own))
        np.add.at(
            block, (at, _indices(parts["indices"][own[0] : own[-1]], d)), parts["data"][own[0] : own[-1]]
        )
        yield block


def _indices(found: np.ndarray, below: int) -> np.ndarray:
    found = found.astype(np.int64)
    if len(found) and not 0 <= found.min() <= found.max() < below:
        raise WrongError("expected a sparse matrix whose indices fit its shape, got others")
    return found


def _columns(file: h5py.File) -> list[str]:
    obs = child(file, "obs")
    if not isinstance(obs, h5py.Group):
        raise WrongError(
            "expected obs as anndata 0.7 and later write it, got an older form; write the file again"
        )
    return [name for name in list(obs)[:_MOST_NAMES] if name != _index_name(file)]


def _index_name(file: h5py.File) -> str:
    return str(child(file, "obs").attrs.get("_index", "_index"))


def _texts(node: Any, n: int, n_read: int, max_bytes: int) -> list[Any]:
    """A column of obs as texts or numbers, "" where one is missing."""
    if isinstance(node, h5py.Dataset):
        return _values(node, n, n_read, max_bytes)
    kind = str(node.attrs.get("encoding-type", ""))
    if kind == "categorical":
        names = _values(node["categories"], None, None, max_bytes)
        codes = _values(_part(node, "codes", "a column"), n, n_read, max_bytes)
        if not all(isinstance(code, int) and -1 <= code < len(names) for code in codes):
            raise WrongError("expected a column of categories, got codes of no category")
        if sum(len(str(names[code])) for code in codes) * 3 > max_bytes:
            raise WrongError(f"expected ids and labels that fit into {max_bytes:,} bytes, got more")
        return ["" if code < 0 else names[code] for code in codes]
    if kind.startswith("nullable"):
        missing = _values(_part(node, "mask", "a column"), n, n_read, max_bytes)
        values = _values(_part(node, "values", "a column"), n, n_read, max_bytes)
        return ["" if gone else value for value, gone in zip(values, missing, strict=True)]
    raise WrongError(f"expected a column of texts, numbers or categories, got {kind or 'another kind'!r:.60}")


def _values(node: Any, n: int | None, n_read: int | None, max_bytes: int) -> list[Any]:
    node = _own(node, "a column", 1)
    if n is not None and len(node) != n:
        raise WrongError(f"expected {n:,} values in a column, one per row, got {len(node):,}")
    n_read = len(node) if n_read is None else n_read
    if 60 * n_read > 4 * max_bytes:
        raise WrongError(f"expected columns that fit into {max_bytes:,} bytes, got {n_read:,} values")
    found: list[Any] = []
    size = 0
    text = h5py.check_string_dtype(node.dtype) is not None
    if not text and node.dtype.kind not in "fiub":
        raise WrongError(f"expected a column of texts or numbers, got {node.dtype!s:.40}")
    for start in range(0, n_read, 4096):
        block = (node.asstr() if text else node)[start : min(start + 4096, n_read)].tolist()
        size += sum(map(len, block)) if text else 8 * len(block)
        if 3 * size > max_bytes:
            raise WrongError(f"expected ids and labels that fit into {max_bytes:,} bytes, got more")
        found += block
    return found


def _line(value: Any) -> None:
    sys.stdout.buffer.write(json.dumps(value).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    with suppress(ImportError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main(sys.argv[1], json.loads(sys.argv[2]))
