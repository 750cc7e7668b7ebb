"""The nearest rows of a space, exactly: by faiss on the CPU, by torch on a GPU."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from relcore.base.errors import SpaceError
from relcore.represent.similarity import row_blocks

_SAMPLED_ROWS = 64
# faiss's own defaults send up to some hundred queries past BLAS, which takes nine times as long, and form
# products of 16 MB, which leave the cache. They are put back: other searches of the process, those of UMAP,
# would come to other last digits.
_FAISS = {"distance_compute_blas_threshold": 20, "distance_compute_blas_query_bs": 1024}
_ALIKE = 2.0**-8  # mean squared distance of unit rows from their mean


def nearest(queries: np.ndarray, base: np.ndarray, k: int, device: str = "auto") -> np.ndarray:
    """Rows of `base` (n, d) with the largest inner product to each query (m, d), nearest first: (m, k) int64.

    Exact. faiss on the CPU, torch on a GPU; in blocks of queries, so that memory stays at block × n.
    """
    if k > len(base):
        raise SpaceError(
            f"k: expected at most {len(base)}, the rows there are, got {k}; choose fewer neighbours"
        )
    if device == "auto":
        device = "cuda" if _cuda_is_available() else "cpu"
    return (
        _nearest_torch(queries, base, k, device)
        if device != "cpu"
        else nearest_with_products(queries, base, k)[1]
    )


def nearest_directions(queries: np.ndarray, base: np.ndarray, k: int, device: str = "auto") -> np.ndarray:
    """`nearest` for rows of length 1, also where they all point in nearly one direction, as those of a space
    far from zero do.

    Their products then differ in the last digits of float32 only. The distances of their differences from a
    common row, which are exact, order them in the same way: |x − y|² = |x|² − 2 (x·y − |y|² / 2).
    """
    common = common_direction(base[:: max(1, len(base) // _SAMPLED_ROWS)])
    return nearest(apart(queries, common, queries=True), apart(base, common), k, device)


def common_direction(sample: np.ndarray) -> np.ndarray | None:
    """The mean (d,) of some unit rows (m, d) if all point in nearly one direction, else None."""
    common = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
    return None if 1 - common @ common > _ALIKE else common


def apart(rows: np.ndarray, common: np.ndarray | None, queries: bool = False) -> np.ndarray:
    """Rows of length 1 as `nearest` takes them where they have a common direction, (m, d + 1); else the
    rows themselves.
    """
    if common is None:
        return rows
    rows = rows - common
    return np.column_stack(
        [rows, np.ones(len(rows), dtype=np.float32) if queries else -np.vecdot(rows, rows) / 2]
    )


def gpu_name() -> str | None:
    """Name of the CUDA device that searches run on, None where there is none."""
    if not _cuda_is_available():
        return None
    import torch

    return torch.cuda.get_device_name()


def _cuda_is_available() -> bool:
    # torch takes seconds to import: only a process that has it already, or a machine with an NVIDIA driver,
    # needs to ask it.
    has_driver = Path("/proc/driver/nvidia/version").exists()
    if "torch" not in sys.modules and not (has_driver and find_spec("torch")):
        return False
    import torch

    return torch.cuda.is_available()


def nearest_with_products(queries: np.ndarray, base: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """`nearest` on the CPU: the inner products (m, k) float32, largest first, and the rows (m, k) int64."""
    import faiss

    usual = _usual()
    try:
        for name, value in _FAISS.items():
            setattr(faiss.cvar, name, value)
        # Not an index: it would copy the base, which for a few queries takes as long as the search.
        return faiss.knn(
            np.ascontiguousarray(queries), np.ascontiguousarray(base), k, metric=faiss.METRIC_INNER_PRODUCT
        )
    finally:
        for name, value in usual.items():
            setattr(faiss.cvar, name, value)


@cache
def _usual() -> dict[str, int]:
    """faiss's own settings; read once, since another thread may be searching with ours."""
    import faiss

    return {name: getattr(faiss.cvar, name) for name in _FAISS}


def _nearest_torch(queries: np.ndarray, base: np.ndarray, k: int, device: str) -> np.ndarray:
    import torch

    transposed = torch.from_numpy(np.ascontiguousarray(base)).to(device).T
    rows = np.empty((len(queries), k), dtype=np.int64)
    for block in row_blocks(len(queries)):
        similarity = torch.from_numpy(np.ascontiguousarray(queries[block])).to(device) @ transposed
        rows[block] = torch.topk(similarity, k, dim=1).indices.cpu().numpy()
    return rows
