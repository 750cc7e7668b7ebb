"""Where the blocks of a pass are computed: the few operations that NumPy and torch name differently, and
threads.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock
from typing import Any, TypeVar

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.libraries import extra
from relcore.base.magnitude import centred, scaled, sized, within
from relcore.base.torch_state import OUT_OF_MEMORY, full_precision, is_out_of_memory

Array = Any  # a NumPy array, or a tensor on the device


class NumpyDevice:
    """Blocks in memory. Buffers are reused from block to block: new memory costs as much as a product. A
    result in a named buffer holds until the next one of that name.
    """

    name = "cpu"

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def buffer(self, name: str, n_rows: int, width: int) -> np.ndarray:
        """Memory for (n_rows, width) float32."""
        held = self._buffers.get(name)
        if held is None or held.size < n_rows * width:
            self._buffers[name] = held = np.empty(n_rows * width, dtype=np.float32)
        return held[: n_rows * width].reshape(n_rows, width)

    def exact(self) -> AbstractContextManager:
        """While it lasts, products keep all digits of float32."""
        return nullcontext()

    def rows_at_once(self, most: int, row_bytes: int, n_threads: int) -> int:
        """Rows of a block, where `most` are best, each thread has a block in work, and a row with all that is
        made of it takes `row_bytes`."""
        return most

    def put(self, array: np.ndarray) -> Array:
        return array

    def get(self, array: Array) -> np.ndarray:
        return array

    def block(self, X: np.ndarray, exponent: int) -> Array:
        """Rows times 2^−exponent as float32, (m, d); of any real type, also mapped from a file."""
        return scaled(np.asarray(X, dtype=np.float32), exponent)

    def centred(self, rows: Array, mean: Array, name: str) -> Array:
        """Rows less a mean row, in the named buffer."""
        return centred(rows, mean, self.buffer(name, *rows.shape))

    def directions(self, rows: Array, mean: Array | None, name: str) -> Array:
        """Rows, less a mean row if one is given, scaled to length 1, in the named buffer; a zero row stays
        zero.
        """
        out = self.buffer(name, *rows.shape)
        moved, factors = sized(rows, mean, out)
        return np.multiply(moved, factors[:, None], out=out)

    def product(self, rows: Array, matrix: Array, name: str) -> Array:
        return np.matmul(rows, matrix, out=self.buffer(name, rows.shape[0], matrix.shape[1]))

    def stretched(self, rows: Array, factors: Array, name: str) -> Array:
        return np.multiply(rows, factors, out=self.buffer(name, *rows.shape))

    def paired(self, first: Array, second: Array) -> Array:
        """Inner product of each row with the other's, (m,)."""
        return np.vecdot(first, second)

    def double(self, array: Array) -> Array:
        return array.astype(np.float64)

    def candidates(
        self, scores: Array, least: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Query numbers, columns and values of the scores (q, m) among which are all that belong to the k
        largest of a query. Those below `least` (q,), the k-th largest so far, are left out.
        """
        if least[0] == -np.inf and scores.shape[1] > k:
            least = np.maximum(least, _lower_bound(scores, k))
        rows = np.flatnonzero(scores.max(axis=1) >= least)
        if 2 * len(rows) > len(scores):
            rows = np.arange(len(scores))
        else:
            scores, least = scores[rows], least[rows]
        flat = np.flatnonzero(scores >= least[:, None])  # of one dimension it is much faster than of two
        which, columns = np.divmod(flat, scores.shape[1])
        return rows[which], columns, scores[which, columns]


def _lower_bound(scores: np.ndarray, k: int) -> np.ndarray:
    """For each query at most its k-th largest of the scores (q, m), mostly that itself: the k-th largest of
    the largest scores of many groups of columns."""
    groups = min(max(512, 16 * k), scores.shape[1])
    largest = scores[:, :groups].copy()
    for start in range(groups, scores.shape[1] - groups + 1, groups):
        np.maximum(largest, scores[:, start : start + groups], out=largest)
    largest.partition(groups - k, axis=1)
    return largest[:, groups - k]


class TorchDevice:
    """The methods of `NumpyDevice` for tensors, on a GPU or, to test the same path, on the CPU.

    Matrix products within `exact` keep all digits of float32: TF32 and autocast are off, and afterwards as
    they were.

    Raises
    ------
    SpaceError
        torch is not installed, or finds no such GPU.
    """

    def __init__(self, name: str = "cuda") -> None:
        with extra():
            import torch

        if name != "cpu" and not torch.cuda.is_available():
            raise SpaceError(
                f"device: expected a GPU for {name!r}, but PyTorch finds none; use 'auto' or 'cpu'"
            )
        self._torch, self.name = torch, name

    def exact(self) -> AbstractContextManager:
        return full_precision(self._torch, self.name.partition(":")[0])

    def rows_at_once(self, most: int, row_bytes: int, n_threads: int) -> int:
        if self.name == "cpu":
            return most
        free, _ = self._torch.cuda.mem_get_info(self.name)  # half of it is used, for at least 256 rows
        return max(min(most, 256), min(most, free // (2 * n_threads * row_bytes)))

    def put(self, array: np.ndarray) -> Array:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self.name)

    def get(self, array: Array) -> np.ndarray:
        return array.cpu().numpy()

    def block(self, X: np.ndarray, exponent: int) -> Array:
        # Half precision is copied as it is. Rare: types that torch lacks, such as those of another byte
        # order, and an exponent, since 2^−exponent alone may be beyond float32.
        plain = not exponent and X.dtype in (np.float16, np.float32) and X.dtype.isnative
        # A copy, because a mapped file is read-only, which torch does not take.
        return self.put(np.array(X) if plain else scaled(np.array(X, dtype=np.float32), exponent)).float()

    def centred(self, rows: Array, mean: Array, name: str) -> Array:
        return (rows - mean).float()

    def directions(self, rows: Array, mean: Array | None, name: str) -> Array:
        moved = rows if mean is None else self.centred(rows, mean, name)
        squares = self.paired(moved, moved)
        if bool(within(squares).all()):
            return moved / self._torch.sqrt(squares)[:, None]
        # Rows that float32 cannot square are few, and treated in one place.
        moved, factors = sized(self.get(rows), None if mean is None else self.get(mean))
        return self.put(moved * factors[:, None])

    def product(self, rows: Array, matrix: Array, name: str) -> Array:
        return rows @ matrix

    def stretched(self, rows: Array, factors: Array, name: str) -> Array:
        return rows * factors

    def paired(self, first: Array, second: Array) -> Array:
        return self._torch.linalg.vecdot(first, second)

    def double(self, array: Array) -> Array:
        return array.to(self._torch.float64, copy=True)

    def candidates(
        self, scores: Array, least: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        least = self.put(least)
        if scores.shape[1] >= k:  # of equal scores topk gives any, so it gives the smallest one that counts
            least = self._torch.maximum(least, self._torch.topk(scores, k, dim=1).values[:, -1])
        which, columns = self._torch.nonzero(scores >= least[:, None], as_tuple=True)
        return self.get(which), self.get(columns), self.get(scores[which, columns])


Device = NumpyDevice | TorchDevice


def device_of(name: str) -> Device:
    """ "cpu": NumPy; "cuda", or "torch" for tensors on the CPU: torch; "auto": "cuda" where there is a GPU,
    else "cpu".

    Raises
    ------
    SpaceError
        An unknown name, no GPU, torch is not installed.
    """
    if name == "auto":
        name = "cuda" if gpu_name() else "cpu"
    if name == "cpu":
        return NumpyDevice()
    if name == "torch" or name.startswith("cuda"):
        return TorchDevice("cpu" if name == "torch" else name)
    raise SpaceError(f"device: expected 'auto', 'cpu', 'torch' or 'cuda', got {name!r}")


T = TypeVar("T")


def on_device(device: str, work: Callable[[str], T]) -> T:
    """What the work gives on a device; where the memory of a GPU runs out, again on the CPU, which a warning
    says.
    """
    try:
        return work(device)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        warnings.warn(OUT_OF_MEMORY, stacklevel=3)
    return work("cpu")  # outside of the except clause, whose traceback keeps the tensors alive


def gpu_name() -> str | None:
    """Name of the CUDA device that searches run on, None where there is none."""
    # torch takes seconds to import: only a process that has it already, or a machine with an NVIDIA driver,
    # needs to ask it.
    has_driver = Path("/proc/driver/nvidia/version").exists()
    if "torch" not in sys.modules and not (has_driver and find_spec("torch")):
        return None
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


# One thread of BLAS for each block, and as many blocks at a time as BLAS has threads, so that the steps
# between two products use all cores, too. The setting belongs to the process and is put back after the last
# pass.

_lock = Lock()
_users: dict[int, int] = {}  # number of threads before → passes at work
_limits: list[Any] = []


def in_threads(
    parts: Sequence[Any],
    make: Callable[[], T],
    add: Callable[[T, Any], None],
    done: Callable[[int, int], None] = lambda n_done, n: None,
    most: int | None = None,
) -> T:
    """Give each thread something that `make` returns, `add` a fixed share of the parts to it, in order, and
    `merge` those of all threads.

    `done(parts, all)` is called in the caller's thread, from time to time. An exception in any thread ends
    all. There are at most `most` threads.
    """
    stopped = Event()

    def work(turn: int, n_threads: int) -> T:
        own = make()
        try:
            for place in range(turn, len(parts), n_threads):
                if stopped.is_set():
                    break
                if not turn:
                    done(place, len(parts))
                add(own, parts[place])
        except BaseException:
            stopped.set()
            raise
        return own

    with one_thread_products() as available:
        n_threads = max(1, min(available, len(parts), most or available))
        with ThreadPoolExecutor(n_threads) as pool:
            others = [pool.submit(work, turn, n_threads) for turn in range(1, n_threads)]
            first = work(0, n_threads)
            for other in others:
                first.merge(other.result())
    done(len(parts), len(parts))
    return first


@lru_cache(maxsize=1)
def _blas(n_modules: int) -> Any:
    """The libraries of BLAS that this process has loaded: looked for again, which takes milliseconds,
    after further imports.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread_products() -> Iterator[int]:
    """While it lasts, a matrix product runs in one thread; gives the number of threads that it had."""
    with _lock:
        if not _users:
            controller = _blas(len(sys.modules))
            usual = max((library["num_threads"] for library in controller.info()), default=1)
            _limits.append(controller.limit(limits=1))
            _users[usual] = 0
        (usual,) = _users
        _users[usual] += 1
    try:
        yield usual
    finally:
        with _lock:
            _users[usual] -= 1
            if not _users[usual]:
                _users.clear()
                _limits.pop().restore_original_limits()
