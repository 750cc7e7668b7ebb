"""The precision of torch, and its errors of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

OUT_OF_MEMORY = (
    "the memory of the GPU ran out, so the rest is computed on the CPU, with the same scores; end what else"
    " uses the GPU, or choose device='cpu'"
)
_lock = Lock()
_users = 0
_before: Any = None


@contextmanager
def full_precision(torch: Any, kind: str) -> Iterator[None]:
    """While it lasts, no TF32, no bfloat16 and no autocast in products on this kind of device.

    The precision belongs to the process: the first thread that enters sets it, the last one restores it.
    """
    global _users, _before
    with _lock:
        if not _users:
            _before = _precision(torch)
            _set_precision(torch, "highest" if isinstance(_before, str) else ("ieee", "ieee"))
        _users += 1
    try:
        with torch.autocast(kind, enabled=False):
            yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _set_precision(torch, _before)


def _precision(torch: Any) -> str | tuple[str, str]:
    """Of cuBLAS and of the CPU's library; one word in torch 2.8."""
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        return torch.get_float32_matmul_precision()
    return torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision


def _set_precision(torch: Any, precision: str | tuple[str, str]) -> None:
    if isinstance(precision, str):
        torch.set_float32_matmul_precision(precision)
    else:
        torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision = precision


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether torch raised it because the device's memory is full."""
    return type(error).__name__ == "OutOfMemoryError" or "CUBLAS_STATUS_ALLOC_FAILED" in str(error)
