"""`NumpyDevice` and `TorchDevice`: the same operations for arrays in memory (NumPy) and on a GPU (torch)."""

from __future__ import annotations

import os
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from threading import RLock, Thread
from typing import Any

import numpy as np

from relcore.base.environment import gpu_bytes, resolve, torch_name
from relcore.base.errors import SpaceError, extra
from relcore.base.mapped_rows import MappedRows
from relcore.base.memory import content_of, is_constant
from relcore.base.rows import NO_LENGTH, Rows, SizedRows, inverse_lengths
from relcore.engine.threads import ProcessSetting, T

Array = Any  # a NumPy array, or a tensor on the device
_GATHERED = 1 << 16  # number of rows that are copied to the device at a time
_STAGED = 1 << 25  # bytes of a piece of pinned memory, through which arrays are copied piece by piece
# Copies of rows on devices: (content, device) → rows. Equal content is stored once for all users. The least
# recently used rows come first.
_resident: OrderedDict[tuple[Hashable, str], Any] = OrderedDict()
_resident_lock = RLock()
_owners: dict[tuple[Hashable, str], set[int]] = {}  # entry → the id() of each array whose copy it is
_MEMORY = "memory"  # stands for the device of NumPy arrays
_MEMORY_ROOM = 2**30  # maximum number of bytes of rows that stay in memory
_COPYING = 4  # number of threads that copy memory; one thread reaches a quarter of the bandwidth


def _pieces(array: np.ndarray) -> list[slice]:
    size = max(1, _STAGED * len(array) // array.nbytes)
    return [slice(start, start + size) for start in range(0, len(array), size)]


def _copy(out: np.ndarray, array: np.ndarray) -> np.ndarray:
    if array.nbytes < _STAGED // 8:
        out[...] = array
        return out
    size = -(-len(array) // _COPYING)
    slices = [slice(start, start + size) for start in range(0, len(array), size)]
    list(_copiers().map(lambda part: np.copyto(out[part], array[part]), slices))
    return out


@cache
def _copiers() -> ThreadPoolExecutor:
    """The threads that copy arrays. They are kept, because starting them takes as long as copying a piece."""
    return ThreadPoolExecutor(_COPYING, "copy")


os.register_at_fork(after_in_child=_copiers.cache_clear)  # a forked process has no threads


def cached_size(device: str = "") -> tuple[int, int]:
    """Return the number of arrays of rows that stay on a device, and their bytes. Without a name, all devices
    are counted."""
    sizes = [rows.nbytes for (_, name), rows in list(_resident.items()) if device in ("", name)]
    return len(sizes), sum(sizes)


def release(is_unwanted: Callable[[Hashable], bool]) -> None:
    """On all devices, release the rows whose content is no longer wanted."""
    with _resident_lock:
        for key in [key for key in _resident if is_unwanted(key[0])]:
            _resident.pop(key)


def _cached_rows(device: str, content: Hashable, n_bytes: int, room: float, make: Callable[[], Any]) -> Any:
    """The rows on a device that are stored under `content`. If there are none, `make` computes them, and
    other rows are released to make room."""
    key = content, device
    with _resident_lock:
        if key not in _resident:
            for other in [other for other in _resident if other[1] == device]:
                if cached_size(device)[1] + n_bytes <= room:
                    break
                del _resident[other]
            _resident[key] = make()
        _resident.move_to_end(key)
        return _resident[key]


def _need_room(n_bytes: int, room: float) -> None:
    if n_bytes > room:
        raise SpaceError(
            f"rows that stay on the device: expected at most {room / 1e9:.2g} GB, got {n_bytes / 1e9:.2g} GB;"
            " draw fewer rows, or on a GPU raise RELSCOPE_GPU_GB"
        )


def _own(X: Rows, key: tuple[Hashable, str]) -> None:
    """Release the copy of an array as soon as the last array with this content is deleted."""
    owners = _owners.setdefault(key, set())
    if id(X) not in owners:
        owners.add(id(X))
        weakref.finalize(X, _disown, id(X), key)


def _disown(one: int, key: tuple[Hashable, str]) -> None:
    _owners[key].discard(one)
    if not _owners[key]:
        del _owners[key]
        _resident.pop(key, None)


# The devices. Blocks for a CPU fit into its cache; blocks for a GPU are larger, to keep it busy.


class NumpyDevice:
    """NumPy arrays in the machine's memory. Buffers are reused for each block, because allocating memory
    takes as long as a product. A result in a named buffer is valid until the next result overwrites that
    buffer."""

    name = "cpu"
    block_rows = 8192
    search_rows = 4096  # the products of these rows and 600 queries, 10 MB, stay in cache
    threads: int | None = None  # None: as many threads as BLAS uses

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def buffer(self, name: str, n_rows: int, width: int) -> np.ndarray:
        """The named buffer, as a float32 array (n_rows, width)."""
        held = self._buffers.get(name)
        if held is None or held.size < n_rows * width:
            held = np.empty(n_rows * width, dtype=np.float32)
            self._buffers[name] = held
        return held[: n_rows * width].reshape(n_rows, width)

    def clone_for_thread(self) -> NumpyDevice:
        """The same device with other buffers, for use in another thread."""
        return NumpyDevice()

    def block_on_device(self, X: Rows, block: slice) -> Array:
        """A block of rows as float32 on the device. An array in memory is copied to the device once, as a
        whole."""
        return self.rows(X[block])

    def all_on_device(self, X: Rows) -> Array:
        """All rows (n, d) as float32 in one array on the device."""
        return self.rows(X[:])

    def cached(self, content: Hashable, X: SizedRows) -> Array:
        """The result of `all_on_device`, which stays on the device under `content` while there is room.

        Raises a SpaceError if the rows are too large for the device.
        """
        _need_room(X.nbytes, _MEMORY_ROOM)
        return _cached_rows(_MEMORY, content, X.nbytes, _MEMORY_ROOM, lambda: self.all_on_device(X))

    def full_range(self, axes: Array, m: int) -> np.ndarray:
        """The first m columns of axes (c, n) as float16. Each axis is scaled such that it ranges over −1 … 1.
        A constant axis becomes 0.
        """
        low = axes.min(axis=1, keepdims=True)
        high = axes.max(axis=1, keepdims=True)
        half = (high - low) / 2
        units = axes[:, :m] - (low + high) / 2
        units /= np.where(half > 0, half, 1)
        return units.astype("<f2")

    def largest(self, values: Array, k: int) -> np.ndarray:
        """The indices (k,) of the k largest values (n,), with the largest first."""
        if k < len(values):
            best = np.argpartition(values, -k)[-k:]
        else:
            best = np.arange(len(values))
        return best[np.argsort(-values[best], kind="stable")]

    def exact(self) -> AbstractContextManager[None]:
        """Within the block, products keep all digits of float32."""
        return nullcontext()

    def rows_at_once(self, most: int, row_bytes: int) -> int:
        """The number of rows of a block: `most`, or fewer if memory is short. `row_bytes` is the memory of
        one row and of everything that is computed from it."""
        return most

    def put(self, array: np.ndarray) -> Array:
        return array

    def get(self, array: Array, out: np.ndarray | None = None) -> np.ndarray:
        """The array in the machine's memory. If `out` is given, it is written there."""
        if out is None:
            return array
        return _copy(out, array)

    def rows(self, X: np.ndarray) -> Array:
        """Rows (m, d) as float32 on the device. X may have any real type and may be mapped from a file."""
        return np.asarray(X, dtype=np.float32)

    def centred(self, rows: Array, mean: Array, name: str) -> Array:
        """The rows minus a mean row, in the named buffer."""
        return np.subtract(rows, mean, out=self.buffer(name, *rows.shape), casting="same_kind")

    def unit(self, rows: Array, name: str = "unit") -> Array:
        """The rows scaled to length 1, in the named buffer. A zero row stays zero."""
        return np.multiply(rows, inverse_lengths(rows)[:, None], out=self.buffer(name, *rows.shape))

    def product(self, rows: Array, matrix: Array, name: str) -> Array:
        return np.matmul(rows, matrix, out=self.buffer(name, rows.shape[0], matrix.shape[1]))

    def scaled(self, rows: Array, factors: Array, name: str) -> Array:
        return np.multiply(rows, factors, out=self.buffer(name, *rows.shape))

    def row_products(self, first: Array, second: Array) -> Array:
        """The inner product of each row of `first` with the same row of `second`, (m,)."""
        return np.vecdot(first, second)

    def double(self, array: Array) -> Array:
        return array.astype(np.float64)

    def total(self, rows: Array) -> Array:
        """The sum of the rows (d,), in float64."""
        return rows.sum(axis=0, dtype=np.float64)


class TorchDevice:
    """The methods of `NumpyDevice` for tensors on a GPU. Tests run the same code on the CPU.

    Within `exact`, TF32 and autocast are off, so matrix products keep all digits of float32. When memory runs
    out, the size of blocks is divided by `part`.
    """

    threads = 2  # one thread copies rows while the other computes

    def __init__(self, name: str = "cuda", part: int = 1) -> None:
        with extra():
            import torch

        self._torch = torch
        self.name = name
        self._part = part
        self.torch_name = "cpu" if name == "torch" else name
        if name == "torch":
            self.block_rows = 8192
            self.search_rows = 4096
        else:
            self.block_rows = 1 << 18
            self.search_rows = 1 << 17

    def clone_for_thread(self) -> TorchDevice:
        return self

    def exact(self) -> AbstractContextManager[None]:
        return full_precision(self._torch, self.torch_name.partition(":")[0])

    def rows_at_once(self, most: int, row_bytes: int) -> int:
        if self.name == "torch":
            return max(1, most // self._part)
        fitting = self._free() // (2 * self.threads * row_bytes)
        return max(256, min(most, fitting) // self._part)

    def put(self, array: np.ndarray) -> Array:
        # Copy read-only memory, such as that of a space: torch does not accept it, and would share it on the
        # CPU.
        if self.torch_name == "cpu" or array.nbytes < _STAGED:
            keep = self.torch_name != "cpu" and array.flags.writeable and array.flags.c_contiguous
            return self._torch.from_numpy(array if keep else np.array(array, order="C")).to(self.torch_name)
        # From pinned memory, a copy is six times as fast, but allocating pinned memory takes long. So the
        # array is copied through two small pinned pieces, which torch keeps: one is filled while the other is
        # copied.
        kind = self._torch.from_numpy(np.empty(0, array.dtype)).dtype
        out = self._torch.empty(array.shape, dtype=kind, device=self.torch_name)
        for piece in _pieces(array):
            staged = self._torch.empty(array[piece].shape, dtype=kind, pin_memory=True)
            _copy(staged.numpy(), array[piece])
            out[piece].copy_(staged, non_blocking=True)
        return out

    def get(self, array: Array, out: np.ndarray | None = None) -> np.ndarray:
        if self.torch_name == "cpu" or array.nbytes < _STAGED:
            if out is None:
                return array.cpu().numpy()
            return _copy(out, array.cpu().numpy())
        # As in `put`, there are two pinned pieces: the device fills one while the host empties the other.
        array = array.contiguous()
        if out is None:
            out = np.empty(array.shape, array[:0].cpu().numpy().dtype)
        waiting: list[tuple[slice, Any, Any]] = []
        for piece in [*_pieces(out), None]:
            if piece is not None:
                staged = self._torch.empty(array[piece].shape, dtype=array.dtype, pin_memory=True)
                staged.copy_(array[piece], non_blocking=True)
                copied = self._torch.cuda.Event()
                copied.record(self._torch.cuda.current_stream(array.device))
                waiting.append((piece, staged, copied))
            if len(waiting) == 2 or piece is None:
                done, staged, copied = waiting.pop(0)
                copied.synchronize()
                _copy(out[done], staged.numpy())
        return out

    def rows(self, X: np.ndarray) -> Array:
        # Copy half precision unchanged. Types that torch lacks, such as another byte order, are converted
        # first.
        kept = X.dtype in (np.float16, np.float32) and X.dtype.isnative
        return self.put(X if kept else np.array(X, dtype=np.float32)).float()

    def block_on_device(self, X: Rows, block: slice) -> Array:
        # Only read-only arrays and files may stay on the device, because other arrays could change before the
        # next call. Rows that are too large to stay are copied block by block.
        if isinstance(X, self._torch.Tensor):
            return X[block]
        if isinstance(X, MappedRows):
            constant = True
        else:
            constant = isinstance(X, np.ndarray) and is_constant(X)
        n_bytes = 4 * X.shape[0] * X.shape[1]
        if not constant or n_bytes > self._room():
            return self.rows(np.asarray(X[block]))
        copy: Callable[[Any], Array] = self.rows
        if isinstance(X, MappedRows):
            X.origin.need_unchanged()
            copy = self.all_on_device
        content = content_of(X)
        rows = _cached_rows(self.torch_name, content, n_bytes, self._room(), lambda: copy(X))
        _own(X, (content, self.torch_name))
        return rows[block]

    def cached(self, content: Hashable, X: SizedRows) -> Array:
        _need_room(X.nbytes, self._room())
        return _cached_rows(self.torch_name, content, X.nbytes, self._room(), lambda: self.all_on_device(X))

    def all_on_device(self, X: Rows) -> Array:
        out = self._torch.empty(X.shape, dtype=self._torch.float32, device=self.torch_name)
        for start in range(0, len(X), _GATHERED):
            out[start : start + _GATHERED] = self.put(X[start : start + _GATHERED])
        return out

    def full_range(self, axes: Array, m: int) -> np.ndarray:
        low = axes.amin(1, keepdim=True)
        high = axes.amax(1, keepdim=True)
        half = (high - low) / 2
        units = (axes[:, :m] - (low + high) / 2) / self._torch.where(half > 0, half, 1)
        return self.get(units.half())

    def largest(self, values: Array, k: int) -> np.ndarray:
        return self.get(values.topk(k).indices)

    def _room(self) -> float:
        """The number of bytes that all spaces together may take on the device: RELSCOPE_GPU_GB or, if it is
        not set, half of the memory that is free or taken by spaces."""
        if limit := gpu_bytes():
            return limit
        if self.torch_name == "cpu":
            return _MEMORY_ROOM
        return (self._free() + cached_size(self.torch_name)[1]) / 2

    def _free(self) -> int:
        cuda = self._torch.cuda
        free = cuda.mem_get_info(self.torch_name)[0]
        # Torch's cache counts as free, because blocks can use it. `memory_reserved` would take a millisecond
        # per call.
        bytes_of = cuda.memory_stats_as_nested_dict(self.torch_name)
        return free + sum(
            sign * bytes_of.get(f"{what}_bytes", {}).get("all", {}).get("current", 0)
            for what, sign in (("reserved", 1), ("allocated", -1))
        )

    def centred(self, rows: Array, mean: Array, name: str) -> Array:
        return (rows - mean).float()

    def product(self, rows: Array, matrix: Array, name: str) -> Array:
        return rows @ matrix

    def scaled(self, rows: Array, factors: Array, name: str) -> Array:
        return rows * factors

    def unit(self, rows: Array, name: str = "unit") -> Array:
        squares = self.row_products(rows, rows)
        return rows * (squares.rsqrt() * (squares >= NO_LENGTH)).nan_to_num(0)[:, None]

    def row_products(self, first: Array, second: Array) -> Array:
        return self._torch.linalg.vecdot(first, second)

    def double(self, array: Array) -> Array:
        return array.to(self._torch.float64, copy=True)

    def total(self, rows: Array) -> Array:
        return rows.sum(0, dtype=self._torch.float64)

    def smaller(self) -> TorchDevice:
        """The same device with blocks of half the size. Spaces on the device and torch's cache are
        released."""
        _resident.clear()
        if self.torch_name != "cpu":
            self._torch.cuda.empty_cache()
        return TorchDevice(self.name, 2 * self._part)


Device = NumpyDevice | TorchDevice


def device_of(name: str | None = None) -> Device:
    """The device with this name; by default the device that the user chose."""
    name = resolve(name)
    if name == "cpu":
        return NumpyDevice()
    return TorchDevice(name)


def preload_torch() -> None:
    """If a GPU is chosen, start a thread that imports torch and opens the GPU. This takes seconds, in which
    files can be read. The thread then imports the libraries that scores need after the pass over the rows.
    """

    def work() -> None:
        with suppress(Exception):  # the computation itself will report the error
            if (name := torch_name()) != "cpu":
                import torch

                torch.zeros(1, device=name)
                import scipy.sparse
                import scipy.special  # noqa: F401

    Thread(target=work, name="get-ready").start()


_HALVINGS = 3
SMALLER = "the memory of the GPU ran out, so blocks are made smaller; end what else uses the GPU"
OUT_OF_MEMORY = (
    "the memory of the GPU ran out, so the rest is computed on the CPU, with the same scores; end what else"
    " uses the GPU, or choose device='cpu'"
)
_MEMORY_ERRORS = (
    "out of memory",  # part of an AcceleratorError if another process took the free memory
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",  # cuBLAS raises this at first use, when it allocates its workspace
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_NOT_INITIALIZED",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch raised this error because the memory of the device is full."""
    return type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _MEMORY_ERRORS)
    )


def on_device(work: Callable[[Device], T], device: str | None = None) -> T:
    """The result of `work` on a device, by default the device that the user chose.

    If the memory of a GPU runs out, a warning is given, and the work is repeated with smaller blocks and
    finally on the CPU.
    """
    where = device_of(device)
    for halving in range(_HALVINGS + 1):
        try:
            return work(where)
        except RuntimeError as error:
            if isinstance(where, NumpyDevice) or not is_out_of_memory(error):
                raise
        # Retry outside the except clause, where the traceback would keep the tensors alive.
        if halving < _HALVINGS:
            warnings.warn(SMALLER, stacklevel=3)
            where = where.smaller()
    warnings.warn(OUT_OF_MEMORY, stacklevel=3)
    return work(NumpyDevice())


_precise = ProcessSetting()


@contextmanager
def full_precision(torch: Any, kind: str) -> Iterator[None]:
    """Within the block, products and convolutions on this kind of device use no TF32, bfloat16 or
    autocast."""

    def change() -> tuple[Any, bool]:
        before = _precision(torch)
        if isinstance(before[0], str):
            _set_precision(torch, "highest", False)
        else:
            _set_precision(torch, ("ieee", "ieee"), False)
        return before

    with (
        _precise.changed(change, lambda before: _set_precision(torch, *before)),
        torch.autocast(kind, enabled=False),
    ):
        yield


def _precision(torch: Any) -> tuple[str | tuple[str, str], bool]:
    """Return the precision of products by cuBLAS and on the CPU, and whether convolutions use TF32. In torch
    2.8, the precision of both is one word."""
    matmul = torch.backends.cuda.matmul
    convolutions = torch.backends.cudnn.allow_tf32
    if not hasattr(matmul, "fp32_precision"):
        return torch.get_float32_matmul_precision(), convolutions
    return (matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision), convolutions


def _set_precision(torch: Any, products: str | tuple[str, str], convolutions: bool) -> None:
    torch.backends.cudnn.allow_tf32 = convolutions
    if isinstance(products, str):
        torch.set_float32_matmul_precision(products)
    else:
        torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision = products
