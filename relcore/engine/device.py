"""Where numbers are computed: the operations that NumPy and torch name differently."""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, lru_cache
from threading import Event, Lock, RLock, Thread
from typing import Any, TypeVar

import numpy as np

from relcore.base.caching import content_of, is_constant
from relcore.base.environment import gpu_bytes, resolve, torch_name
from relcore.base.errors import SpaceError
from relcore.base.libraries import extra
from relcore.base.rows import NO_LENGTH, Rows, inverse_lengths

Array = Any  # a NumPy array, or a tensor on the device
T = TypeVar("T")

_GATHERED = 1 << 16  # rows that are made before the device gets them
_STAGED = 1 << 25  # bytes of pinned memory that a piece of an array goes through
# Rows that stay on a device, once for all who use them, by their content; the least recently used first.
_resident: OrderedDict[tuple[Hashable, str], Any] = OrderedDict()
_resident_lock = RLock()
_owners: dict[tuple[Hashable, str], set[int]] = {}  # the arrays whose copy an entry is
_MEMORY = "memory"  # the device of a NumPy array
_MEMORY_ROOM = 2**30  # bytes of derived rows that stay there

_COPYING = 4  # threads that copy memory: one alone takes a quarter of its bandwidth


def _pieces(array: np.ndarray) -> list[slice]:
    """Slices of rows of at most 32 MB, or of one row."""
    size = max(1, _STAGED * len(array) // array.nbytes)
    return [slice(start, start + size) for start in range(0, len(array), size)]


def _copy(out: np.ndarray, array: np.ndarray) -> np.ndarray:
    """`out`, to which the array was copied, in several threads where it is large."""
    if array.nbytes < _STAGED // 8:
        out[...] = array
        return out
    size = -(-len(array) // _COPYING)
    slices = [slice(start, start + size) for start in range(0, len(array), size)]
    list(_copiers().map(lambda part: np.copyto(out[part], array[part]), slices))
    return out


@cache
def _copiers() -> ThreadPoolExecutor:
    """The threads that copy, which would take as long to start as to copy a piece."""
    return ThreadPoolExecutor(_COPYING, "copy")


os.register_at_fork(after_in_child=_copiers.cache_clear)  # a process that was forked has no threads


def held(device: str = "") -> tuple[int, int]:
    """How many arrays of rows stay on a device, by default on all, and how many bytes they take there."""
    sizes = [rows.nbytes for (_, name), rows in list(_resident.items()) if device in ("", name)]
    return len(sizes), sum(sizes)


def leave(is_unwanted: Callable[[Hashable], bool]) -> None:
    """Give back the rows, on all devices, whose content is not wanted any more."""
    with _resident_lock:
        for key in [key for key in _resident if is_unwanted(key[0])]:
            _resident.pop(key)


def _stay(device: str, content: Hashable, n_bytes: int, room: float, make: Callable[[], Any]) -> Any:
    """The rows of this content on a device, made where they are not there; others leave for them."""
    key = content, device
    with _resident_lock:
        if key not in _resident:
            for other in [other for other in _resident if other[1] == device]:
                if held(device)[1] + n_bytes <= room:
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


def _own(X: np.ndarray, key: tuple[Hashable, str]) -> None:
    """Have the copy of an array leave with the last array of this content."""
    owners = _owners.setdefault(key, set())
    if id(X) not in owners:
        owners.add(id(X))
        weakref.finalize(X, _disown, id(X), key)


def _disown(one: int, key: tuple[Hashable, str]) -> None:
    _owners[key].discard(one)
    if not _owners[key]:
        del _owners[key]
        _resident.pop(key, None)


# The devices. Their blocks are as large as is good for them: a CPU's fit its cache, a GPU's keep it busy.


class NumpyDevice:
    """Blocks in memory. Buffers are reused from block to block: new memory costs as much as a product. A
    result in a named buffer holds until the next one of that name.
    """

    name = "cpu"
    block_rows = 8192  # of a pass over all rows
    search_rows = 4096  # the products of 600 queries with as many rows are 10 MB, which stay in cache
    threads: int | None = None  # as many as BLAS has

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def buffer(self, name: str, n_rows: int, width: int) -> np.ndarray:
        """Memory for (n_rows, width) float32."""
        held = self._buffers.get(name)
        if held is None or held.size < n_rows * width:
            self._buffers[name] = held = np.empty(n_rows * width, dtype=np.float32)
        return held[: n_rows * width].reshape(n_rows, width)

    def alike(self) -> NumpyDevice:
        """The same device with buffers of its own, for another thread."""
        return NumpyDevice()

    def resident(self, X: Rows, block: slice) -> Array:
        """A block of rows as float32 on the device; what is in memory is brought there as a whole, once."""
        return self.rows(X[block])

    def gathered(self, X: Rows) -> Array:
        """All rows (n, d) as float32 in one array on the device."""
        return self.rows(X[:])

    def stay(self, content: Hashable, X: Rows) -> Array:
        """All rows as by `gathered`, which stay on the device for all who ask for this content, as long as
        there is room.

        Raises a SpaceError where there never is.
        """
        _need_room(X.nbytes, _MEMORY_ROOM)
        return _stay(_MEMORY, content, X.nbytes, _MEMORY_ROOM, lambda: self.gathered(X))

    def full_range(self, axes: Array, m: int) -> np.ndarray:
        """The first m columns of axes (c, n) as float16 in units of the range of each axis, −1 … 1; 0 where
        one has none.
        """
        low, high = axes.min(axis=1, keepdims=True), axes.max(axis=1, keepdims=True)
        half = (high - low) / 2
        units = axes[:, :m] - (low + high) / 2
        units /= np.where(half > 0, half, 1)
        return units.astype("<f2")

    def largest(self, values: Array, k: int) -> np.ndarray:
        """The places (k,) of the largest of values (n,), the largest first."""
        best = np.argpartition(values, -k)[-k:] if k < len(values) else np.arange(len(values))
        return best[np.argsort(-values[best], kind="stable")]

    def exact(self) -> AbstractContextManager:
        """While it lasts, products keep all digits of float32."""
        return nullcontext()

    def rows_at_once(self, most: int, row_bytes: int) -> int:
        """Rows of a block, where `most` are best, and a row with all that is made of it takes `row_bytes`."""
        return most

    def put(self, array: np.ndarray) -> Array:
        return array

    def get(self, array: Array, out: np.ndarray | None = None) -> np.ndarray:
        """The array in memory, in `out` where that is given."""
        return array if out is None else _copy(out, array)

    def rows(self, X: np.ndarray) -> Array:
        """Rows (m, d) of any real type as float32 on the device; also mapped from a file."""
        return np.asarray(X, dtype=np.float32)

    def centred(self, rows: Array, mean: Array, name: str) -> Array:
        """Rows less a mean row, in the named buffer."""
        return np.subtract(rows, mean, out=self.buffer(name, *rows.shape), casting="same_kind")

    def unit(self, rows: Array, name: str = "unit") -> Array:
        """Rows scaled to length 1, in the named buffer; a zero row stays zero."""
        return np.multiply(rows, inverse_lengths(rows)[:, None], out=self.buffer(name, *rows.shape))

    def product(self, rows: Array, matrix: Array, name: str) -> Array:
        return np.matmul(rows, matrix, out=self.buffer(name, rows.shape[0], matrix.shape[1]))

    def stretched(self, rows: Array, factors: Array, name: str) -> Array:
        return np.multiply(rows, factors, out=self.buffer(name, *rows.shape))

    def paired(self, first: Array, second: Array) -> Array:
        """Inner product of each row with the other's, (m,)."""
        return np.vecdot(first, second)

    def double(self, array: Array) -> Array:
        return array.astype(np.float64)

    def total(self, rows: Array) -> Array:
        """The sum of the rows (d,), in float64."""
        return rows.sum(axis=0, dtype=np.float64)


class TorchDevice:
    """The methods of `NumpyDevice` for tensors, on a GPU or, to test the same path, on the CPU.

    Matrix products within `exact` keep all digits of float32: TF32 and autocast are off, and afterwards as
    they were. `part` divides the size of blocks, after the memory ran out with larger ones.
    """

    threads = 2  # one copies rows while the other's are computed

    def __init__(self, name: str = "cuda", part: int = 1) -> None:
        with extra():
            import torch

        self._torch, self.name, self._part = torch, name, part
        self.torch_name = "cpu" if name == "torch" else name
        self.block_rows, self.search_rows = (8192, 4096) if name == "torch" else (1 << 18, 1 << 17)

    def alike(self) -> TorchDevice:
        return self

    def exact(self) -> AbstractContextManager:
        return full_precision(self._torch, self.torch_name.partition(":")[0])

    def rows_at_once(self, most: int, row_bytes: int) -> int:
        if self.name == "torch":
            return max(1, most // self._part)
        fitting = self._free() // (2 * self.threads * row_bytes)
        return max(256, min(most, fitting) // self._part)

    def put(self, array: np.ndarray) -> Array:
        # Copied in any case: torch takes no read-only memory, such as that of a mapped file or of a space.
        if self.torch_name == "cpu" or array.nbytes < _STAGED:
            return self._torch.from_numpy(np.array(array)).to(self.torch_name)
        # Pinned memory is copied six times as fast as other memory, but takes long to get: the array goes
        # through small pieces of it, which torch keeps for the next ones, while earlier pieces are copied.
        kind = self._torch.from_numpy(np.empty(0, array.dtype)).dtype
        out = self._torch.empty(array.shape, dtype=kind, device=self.torch_name)
        for piece in _pieces(array):
            staged = self._torch.empty(array[piece].shape, dtype=kind, pin_memory=True)
            _copy(staged.numpy(), array[piece])
            out[piece].copy_(staged, non_blocking=True)
        return out

    def get(self, array: Array, out: np.ndarray | None = None) -> np.ndarray:
        if self.torch_name == "cpu" or array.nbytes < _STAGED:
            return array.cpu().numpy() if out is None else _copy(out, array.cpu().numpy())
        # As in `put`: while the host empties one piece of pinned memory, the device fills the next one.
        array = array.contiguous()
        out = np.empty(array.shape, array[:0].cpu().numpy().dtype) if out is None else out
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
        # Half precision is copied as it is. Rare: types that torch lacks, as of another byte order.
        kept = X.dtype in (np.float16, np.float32) and X.dtype.isnative
        return self.put(X if kept else np.array(X, dtype=np.float32)).float()

    def resident(self, X: Rows, block: slice) -> Array:
        # Only what nobody can change may stay: of another array the copy could differ in the next call.
        # Of a map the blocks are read one by one, as its file may be larger than the device.
        if isinstance(X, self._torch.Tensor):
            return X[block]
        if not self.keeps(X):
            return self.rows(np.asarray(X[block]))
        content = content_of(X)
        rows = _stay(self.torch_name, content, 4 * X.size, self._room(), lambda: self.rows(X))
        _own(X, (content, self.torch_name))
        return rows[block]

    def stay(self, content: Hashable, X: Rows) -> Array:
        _need_room(X.nbytes, self._room())
        return _stay(self.torch_name, content, X.nbytes, self._room(), lambda: self.gathered(X))

    def gathered(self, X: Rows) -> Array:
        out = self._torch.empty(X.shape, dtype=self._torch.float32, device=self.torch_name)
        for start in range(0, len(X), _GATHERED):
            out[start : start + _GATHERED] = self.put(X[start : start + _GATHERED])
        return out

    def full_range(self, axes: Array, m: int) -> np.ndarray:
        low, high = axes.amin(1, keepdim=True), axes.amax(1, keepdim=True)
        half = (high - low) / 2
        units = (axes[:, :m] - (low + high) / 2) / self._torch.where(half > 0, half, 1)
        return self.get(units.half())

    def largest(self, values: Array, k: int) -> np.ndarray:
        return self.get(values.topk(k).indices)

    def keeps(self, X: Rows) -> bool:
        """Whether the rows stay on the device once they are there."""
        return isinstance(X, np.ndarray) and is_constant(X) and 4 * X.size <= self._room()

    def column_sums(self, X: Rows) -> np.ndarray:
        """Sums of the columns of rows that the device keeps, (d,) float64."""
        return self.get(self.resident(X, slice(None)).sum(0, dtype=self._torch.float64))

    def _room(self) -> float:
        """Bytes that all spaces together may take on the device: RELSCOPE_GPU_GB, or half of what is free and
        of what spaces take there now.
        """
        if given := gpu_bytes():
            return given
        return np.inf if self.torch_name == "cpu" else (self._free() + held(self.torch_name)[1]) / 2

    def _free(self) -> int:
        cuda = self._torch.cuda
        free = cuda.mem_get_info(self.torch_name)[0]
        # What torch holds in its cache is free for our blocks, too.
        return free + cuda.memory_reserved(self.torch_name) - cuda.memory_allocated(self.torch_name)

    def centred(self, rows: Array, mean: Array, name: str) -> Array:
        return (rows - mean).float()

    def product(self, rows: Array, matrix: Array, name: str) -> Array:
        return rows @ matrix

    def stretched(self, rows: Array, factors: Array, name: str) -> Array:
        return rows * factors

    def unit(self, rows: Array, name: str = "unit") -> Array:
        squares = self.paired(rows, rows)
        return rows * (squares.rsqrt() * (squares >= NO_LENGTH)).nan_to_num(0)[:, None]

    def paired(self, first: Array, second: Array) -> Array:
        return self._torch.linalg.vecdot(first, second)

    def double(self, array: Array) -> Array:
        return array.to(self._torch.float64, copy=True)

    def total(self, rows: Array) -> Array:
        return rows.sum(0, dtype=self._torch.float64)

    def smaller(self) -> TorchDevice:
        """The same device with blocks of half the size; spaces and what torch holds in its cache are given
        back.
        """
        _resident.clear()
        if self.torch_name != "cpu":
            self._torch.cuda.empty_cache()
        return TorchDevice(self.name, 2 * self._part)


Device = NumpyDevice | TorchDevice


def device_of(name: str | None = None) -> Device:
    """The device of a name, by default the chosen one."""
    name = resolve(name)
    return NumpyDevice() if name == "cpu" else TorchDevice(name)


def get_ready() -> None:
    """Begin to import torch and to open the GPU, in a thread, if one is chosen: it takes seconds, in which
    files can be read.
    """

    def work() -> None:
        with suppress(Exception):  # the work itself will tell
            if (name := torch_name()) != "cpu":
                import torch

                torch.zeros(1, device=name)

    Thread(target=work, name="get-ready").start()


# Out of memory.

_HALVINGS = 3
SMALLER = "the memory of the GPU ran out, so its blocks are made smaller; end what else uses the GPU"
OUT_OF_MEMORY = (
    "the memory of the GPU ran out, so the rest is computed on the CPU, with the same scores; end what else"
    " uses the GPU, or choose device='cpu'"
)
_MEMORY_ERRORS = (
    "out of memory",  # also of AcceleratorError, when another process takes what was free
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",  # cuBLAS allocates its workspace when it is first used
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_NOT_INITIALIZED",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch raised it because the device's memory is full."""
    return type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _MEMORY_ERRORS)
    )


def on_device(work: Callable[[Device], T], device: str | None = None) -> T:
    """What the work gives on a device, by default the chosen one.

    Where the memory of a GPU runs out, the work is done again with smaller blocks, and at last on the CPU,
    which a warning says.
    """
    where = device_of(device)
    for halving in range(_HALVINGS + 1):
        try:
            return work(where)
        except RuntimeError as error:
            if isinstance(where, NumpyDevice) or not is_out_of_memory(error):
                raise
        # Outside of the except clause, whose traceback keeps the tensors alive.
        if halving < _HALVINGS:
            warnings.warn(SMALLER, stacklevel=3)
            where = where.smaller()
    warnings.warn(OUT_OF_MEMORY, stacklevel=3)
    return work(NumpyDevice())


# Precision. It belongs to the process: the first thread that enters sets it, the last one restores it.

_precision_lock = Lock()
_precise = 0
_before: Any = None


@contextmanager
def full_precision(torch: Any, kind: str) -> Iterator[None]:
    """While it lasts, no TF32, no bfloat16 and no autocast in products and convolutions on this kind of
    device.
    """
    global _precise, _before
    with _precision_lock:
        if not _precise:
            _before = _precision(torch)
            _set_precision(torch, "highest" if isinstance(_before[0], str) else ("ieee", "ieee"), False)
        _precise += 1
    try:
        with torch.autocast(kind, enabled=False):
            yield
    finally:
        with _precision_lock:
            _precise -= 1
            if not _precise:
                _set_precision(torch, *_before)


def _precision(torch: Any) -> tuple[str | tuple[str, str], bool]:
    """Of products by cuBLAS and on the CPU, one word in torch 2.8; whether convolutions use TF32."""
    matmul, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn.allow_tf32
    if not hasattr(matmul, "fp32_precision"):
        return torch.get_float32_matmul_precision(), convolutions
    return (matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision), convolutions


def _set_precision(torch: Any, products: str | tuple[str, str], convolutions: bool) -> None:
    torch.backends.cudnn.allow_tf32 = convolutions
    if isinstance(products, str):
        torch.set_float32_matmul_precision(products)
    else:
        torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision = products


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
    """The merged result of all parts: each thread has what `make` returns, to which `add` adds a fixed share
    of the parts, in order; at the end they are merged by `merge`.

    `done(parts, all)` is called in the caller's thread, from time to time. An exception in any thread ends
    all. There are at most `most` threads.
    """
    stopped = Event()

    def work(turn: int, n_threads: int) -> T:
        result = make()
        try:
            for place in range(turn, len(parts), n_threads):
                if stopped.is_set():
                    break
                if not turn:
                    done(place, len(parts))
                add(result, parts[place])
        except BaseException:
            stopped.set()
            raise
        return result

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
