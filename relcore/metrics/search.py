"""The nearest rows of a space, exactly: by faiss on the CPU, by torch on a GPU."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from relcore.similarity import row_blocks
from relcore.spaces import SpaceError

_SAMPLED_ROWS = 64
_FEWEST_FOR_BLAS = 20  # queries
_ALIKE = 2.0**-8  # mean squared distance of unit rows from their mean


def nearest(queries: np.ndarray, base: np.ndarray, k: int, device: str = "auto") -> np.ndarray:
    """Rows of `base` (n, d) with the largest inner product to each query (m, d), nearest first: (m, k) int64.

    Exact. faiss on the CPU, torch on a GPU; in blocks of queries, so that memory stays at block × n.
    """
    if k > len(base):
        raise SpaceError(f"k: expected at most {len(base)}, the rows there are, got {k}; choose fewer neighbours")
    if device == "auto":
        device = "cuda" if _cuda_is_available() else "cpu"
    return _nearest_torch(queries, base, k, device) if device != "cpu" else _nearest_faiss(queries, base, k)


def nearest_directions(queries: np.ndarray, base: np.ndarray, k: int, device: str = "auto") -> np.ndarray:
    """`nearest` for rows of length 1, also where they all point in nearly one direction, as those of a space far from zero do.

    Their products then differ in the last digits of float32 only. The distances of their differences from a common row, which
    are exact, order them in the same way: |x − y|² = |x|² − 2 (x·y − |y|² / 2).
    """
    common = base[:: max(1, len(base) // _SAMPLED_ROWS)].mean(axis=0, dtype=np.float64).astype(np.float32)
    if 1 - common @ common > _ALIKE:
        return nearest(queries, base, k, device)
    queries, base = queries - common, base - common
    queries = np.column_stack([queries, np.ones(len(queries), dtype=np.float32)])
    return nearest(queries, np.column_stack([base, -np.vecdot(base, base) / 2]), k, device)


def gpu_name() -> str | None:
    """Name of the CUDA device that searches run on, None where there is none."""
    if not _cuda_is_available():
        return None
    import torch

    return torch.cuda.get_device_name()


def _cuda_is_available() -> bool:
    # torch takes seconds to import: only a process that has it already, or a machine with an NVIDIA driver, needs to ask it.
    has_driver = Path("/proc/driver/nvidia/version").exists()
    if "torch" not in sys.modules and not (has_driver and find_spec("torch")):
        return False
    import torch

    return torch.cuda.is_available()


def _nearest_faiss(queries: np.ndarray, base: np.ndarray, k: int) -> np.ndarray:
    import faiss

    # Its own default sends up to some hundred queries past BLAS, which takes nine times as long. It is put back, because other
    # searches of the process, those of UMAP, would come to other last digits.
    usual, faiss.cvar.distance_compute_blas_threshold = faiss.cvar.distance_compute_blas_threshold, _FEWEST_FOR_BLAS
    try:
        # Not an index: it would copy the base, which for a few queries takes as long as the search.
        return faiss.knn(np.ascontiguousarray(queries), np.ascontiguousarray(base), k, metric=faiss.METRIC_INNER_PRODUCT)[1]
    finally:
        faiss.cvar.distance_compute_blas_threshold = usual


def _nearest_torch(queries: np.ndarray, base: np.ndarray, k: int, device: str) -> np.ndarray:
    import torch

    transposed = torch.from_numpy(np.ascontiguousarray(base)).to(device).T
    rows = np.empty((len(queries), k), dtype=np.int64)
    for block in row_blocks(len(queries)):
        similarity = torch.from_numpy(np.ascontiguousarray(queries[block])).to(device) @ transposed
        rows[block] = torch.topk(similarity, k, dim=1).indices.cpu().numpy()
    return rows
