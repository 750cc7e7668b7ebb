"""`Engine`, linear algebra on rows in blocks and on any device: moments, products, solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from relcore.base.environment import chosen
from relcore.base.rows import NO_LENGTH, ROWS_PER_BLOCK, Rows, inverse_lengths, row_blocks, unit_rows
from relcore.engine.device import Array, Device, NumpyDevice, on_device
from relcore.engine.threads import in_threads

# Linear algebra on the chosen device: solvers, and blockwise products and moments of many rows.

_IN_CACHE = 2**17  # number of values in a block that stays in the cache (half a megabyte)
_CONDITIONED = 1e-8  # minimum squared inverse condition number; below it, eigenvalues lose too many digits
_SAFE_CHOLESKY = 1e-6  # minimum inverse condition number for a Cholesky decomposition
_FEW = 2**14  # maximum number of values in a matrix that is solved on the CPU


class Moments(NamedTuple):
    """The moments of n rows X (n, d), or of n pairs of rows of X and Y. They are the means (d,), and the sum
    of the products of centred rows, (d, d) or (d, d'), as float64.
    """

    n: int
    means: tuple[np.ndarray, np.ndarray]
    products: np.ndarray


@dataclass(frozen=True)
class Engine:
    """Computations on a device, by default the device that is chosen when a method is called. They take and
    return NumPy arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.engine.engine import Engine
    >>> rotation, values = Engine().rotation(np.diag([2.0, 1.0]))
    >>> np.round(rotation, 6).tolist(), np.round(values, 6).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    """

    device: str | None = None

    # Solvers. They compute in float64.

    def svd(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return U (n, w), S (w,) and Vᵀ (w, d) with A (n, d) = U S Vᵀ and w = min(n, d). The singular values
        descend."""
        return self._solve(thin_svd, lambda torch, A: torch.linalg.svd(A, full_matrices=False), A)

    def eigh(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvalues (d,) of a symmetric matrix, ascending, and its eigenvectors (d, d)."""
        return self._solve(np.linalg.eigh, lambda torch, A: torch.linalg.eigh(A), A)

    def pinv(self, A: np.ndarray) -> np.ndarray:
        """The pseudo-inverse (d, n) of A (n, d)."""
        return self._solve(np.linalg.pinv, lambda torch, A: torch.linalg.pinv(A), A)

    def lstsq(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The matrix X (d, d') that minimises ‖A X − B‖, for A (n, d) and B (n, d'). If there are several,
        the shortest one."""

        def by_torch(torch: Any, A: Any, B: Any) -> Any:
            # On a GPU, torch's least squares need full rank, so first drop the singular values that NumPy
            # would drop.
            left, values, right = torch.linalg.svd(A, full_matrices=False)
            real = values > torch.finfo(A.dtype).eps * max(A.shape) * values[0]
            return right.T @ (torch.where(real, 1 / values, 0)[:, None] * (left.T @ B))

        return self._solve(lambda A, B: np.linalg.lstsq(A, B, rcond=None)[0], by_torch, A, B)

    def solve_definite(self, A: np.ndarray, B: np.ndarray) -> np.ndarray | None:
        """The matrix X (n, k) with A X = B for a symmetric positive definite A (n, n), by Cholesky. None if A
        is nearly singular.
        """
        solved, inverse_condition = self._solve(_cholesky_on_cpu, _cholesky_by_torch, A, B)
        if inverse_condition > _SAFE_CHOLESKY:
            return solved
        return None

    def product(self, A: np.ndarray, B: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        """The product (n, d) of A (n, k) and B (k, d)."""
        return self._solve(np.matmul, lambda torch, A, B: A @ B, A, B, dtype=dtype)

    def rotation(self, products: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rotation or reflection R (d, d') that minimises ‖A R − B‖, and the singular values of
        AᵀB. `products` is AᵀB, the sum of products of paired rows (orthogonal Procrustes: Schönemann 1966).
        """
        return self._solve(
            lambda A: _nearest_rotation(np, A, thin_svd),
            lambda torch, A: _nearest_rotation(torch, A, lambda A: torch.linalg.svd(A, full_matrices=False)),
            products,
        )

    def shrunk(self, A: np.ndarray, ridge: float, power: float) -> tuple[np.ndarray, np.ndarray]:
        """Return (A Aᵀ + λI)^p A (n, d), with λ = `ridge` and p = `power`, and the ascending eigenvalues of
        the smaller of the matrices A Aᵀ and AᵀA.
        """
        return self._solve(
            lambda A: _shrunk(np, A, ridge, power),
            lambda torch, A: _shrunk(torch, A, ridge, power),
            A,
        )

    def _solve(
        self,
        by_numpy: Callable[..., Any],
        by_torch: Callable[..., Any],
        *matrices: np.ndarray,
        dtype: type = np.float64,
    ) -> Any:
        def work(where: Device) -> Any:
            if isinstance(where, NumpyDevice):
                return by_numpy(*(np.asarray(matrix, dtype=dtype) for matrix in matrices))
            import torch

            with where.exact():
                arrays = (
                    where.put(np.asarray(matrix)).to(getattr(torch, np.dtype(dtype).name))
                    for matrix in matrices
                )
                solved = by_torch(torch, *arrays)
            if isinstance(solved, tuple):
                return tuple(map(where.get, solved))
            return where.get(solved)

        few = (self.device or chosen()) == "auto" and np.size(matrices[0]) <= _FEW
        return on_device(work, "cpu" if few else self.device)

    # Computations on many rows.

    def map_rows(
        self,
        X: Rows,
        matrix: np.ndarray,
        *,
        mean: np.ndarray | None = None,
        unit: bool = False,
        shift: np.ndarray | None = None,
    ) -> np.ndarray:
        """The product of the rows of X (n, d) and a matrix (d, k), as float32 (n, k). Before it, `mean` (d,)
        is subtracted from the rows, and with `unit` they are scaled to length 1. After it, `shift` (k,) is
        added.
        """
        matrix = np.asarray(matrix, dtype=np.float32)
        out = np.empty((len(X), matrix.shape[1]), dtype=np.float32)

        def work(where: Device) -> np.ndarray:
            if isinstance(where, NumpyDevice):
                return _map_on_cpu(X, matrix, mean, unit, shift, out)
            basis = where.put(matrix)
            middle = None if mean is None else where.put(mean)
            last = None if shift is None else where.put(shift)
            size = where.rows_at_once(where.block_rows, 4 * (3 * X.shape[1] + 2 * matrix.shape[1]))
            with where.exact():
                for block in row_blocks(len(X), size):
                    rows = where.block_on_device(X, block)
                    if middle is not None:
                        rows = (rows - middle).float()
                    if unit:
                        rows = where.unit(rows)
                    mapped = rows @ basis
                    if last is not None:
                        mapped = (mapped + last).float()
                    where.get(mapped, out[block])
            return out

        return on_device(work, self.device)

    def moments(self, X: Rows | Array, Y: Rows | Array | None = None) -> Moments:
        """The means and the sum of products of centred rows: Σ (x − x̄)(x − x̄)ᵀ, or Σ (x − x̄)(y − ȳ)ᵀ for
        paired rows. The products of a block are float32, and the sums over blocks are float64. The rows may
        already be on the device.
        """
        sides = (X,) if Y is None else (X, Y)
        # First subtract the mean of a sample, so that products in float32 keep their digits.
        step = max(1, len(X) // ROWS_PER_BLOCK)
        centres = [_on_host(side[::step]).mean(axis=0, dtype=np.float64) for side in sides]

        def work(where: Device) -> Moments:
            size = where.rows_at_once(where.block_rows, 12 * sum(side.shape[1] for side in sides))
            blocks = list(row_blocks(len(X), size))
            middles = [centre.astype(np.float32) for centre in centres]
            return in_threads(
                blocks, lambda: _MomentSums(where.clone_for_thread(), sides, middles), most=where.threads
            )

        return on_device(work, self.device)

    def mean(self, X: Rows) -> np.ndarray:
        """The mean row (d,) as float64."""
        sums = self._of_blocks(X, lambda where, rows: where.total(rows))
        return np.sum(sums, axis=0) / len(X)

    def lengths(self, X: Rows, mean: np.ndarray) -> np.ndarray:
        """The Euclidean lengths (n,) of the rows of X − mean, as float32; 0 for a row too short to have a
        direction."""

        def work(where: Device, rows: Array) -> Array:
            rows = where.centred(rows, where.put(mean), "rows")
            return where.row_products(rows, rows)

        squares = np.concatenate(self._of_blocks(X, work))
        squares[squares < NO_LENGTH] = 0
        return np.sqrt(squares, out=squares)

    def _of_blocks(self, X: Rows, work: Callable[[Device, Array], Array]) -> list[np.ndarray]:
        def on(where: Device) -> list[np.ndarray]:
            width = X.shape[1]
            size = where.rows_at_once(where.block_rows, 16 * width)
            # Blocks are so small that they are still in the cache when NumPy uses them again.
            if isinstance(where, NumpyDevice):
                size = min(size, max(1, 4 * _IN_CACHE // width))
            blocks = list(row_blocks(len(X), size))
            return in_threads(
                blocks, lambda: _BlockResults(where.clone_for_thread(), X, work), most=where.threads
            )

        return on_device(on, self.device)


@dataclass
class _BlockResults:
    """The result of `work` for each block of the rows, in the order of the rows."""

    device: Device
    rows: Rows
    work: Callable[[Device, Array], Array]
    by_start: dict[int, np.ndarray] = field(default_factory=dict)

    def add(self, block: slice) -> None:
        with self.device.exact():
            rows = self.device.block_on_device(self.rows, block)
            self.by_start[block.start] = self.device.get(self.work(self.device, rows))

    def merge(self, other: _BlockResults) -> None:
        self.by_start |= other.by_start

    def result(self) -> list[np.ndarray]:
        return [self.by_start[start] for start in sorted(self.by_start)]


def _on_host(rows: Array) -> np.ndarray:
    return np.asarray(rows.cpu() if hasattr(rows, "cpu") else rows)


class _MomentSums:
    """The sums of centred rows and of their products, over all blocks that were added."""

    def __init__(self, device: Device, sides: tuple[Rows | Array, ...], centres: list[np.ndarray]) -> None:
        self.device = device
        self.sides = sides
        self.host = centres
        self.centres = [device.put(centre) for centre in centres]
        self.sums: list[Array] | None = None

    def add(self, block: slice) -> None:
        with self.device.exact():
            rows = [
                self.device.centred(self.device.block_on_device(side, block), centre, f"rows {number}")
                for number, (side, centre) in enumerate(zip(self.sides, self.centres, strict=True))
            ]
            sums = [self.device.double(one.sum(0)) for one in rows]
            sums.append(self.device.double(rows[0].T @ rows[-1]))
            if self.sums is None:
                self.sums = sums
            else:
                self.sums = [a + b for a, b in zip(self.sums, sums, strict=True)]

    def merge(self, other: _MomentSums) -> None:
        if self.sums is not None and other.sums is not None:
            self.sums = [a + b for a, b in zip(self.sums, other.sums, strict=True)]

    def result(self) -> Moments:
        assert self.sums is not None, "a matrix has at least one row"
        n = len(self.sides[0])
        *sums, products = map(self.device.get, self.sums)
        products = products - np.outer(sums[0], sums[-1]) / n
        means = [centre.astype(np.float64) + total / n for centre, total in zip(self.host, sums, strict=True)]
        return Moments(n, (means[0], means[-1]), products)


def _nearest_rotation(xp: Any, A: Array, svd: Callable[[Array], Any]) -> tuple[Array, Array]:
    # The eigenvectors of AAᵀ take a third of the time of a singular value decomposition of A. But AAᵀ has the
    # squared condition number of A, so they are precise only if it is far below 1 / the precision of float64.
    is_wide = A.shape[0] <= A.shape[1]
    wide = A if is_wide else A.T
    squares, vectors = xp.linalg.eigh(wide @ wide.T)
    if squares[0] > _CONDITIONED * squares[-1]:
        roots = xp.sqrt(squares)
        rotation = (vectors / roots) @ (vectors.T @ wide)
        if not is_wide:
            rotation = rotation.T
        return rotation, xp.flip(roots, (0,))
    left, values, right = svd(A)
    return left @ right, values


def _shrunk(xp: Any, A: Array, ridge: float, power: float) -> tuple[Array, Array]:
    # f(A Aᵀ) A = A f(AᵀA), so it suffices to decompose the smaller of A Aᵀ and AᵀA.
    if A.shape[0] <= A.shape[1]:
        values, vectors = xp.linalg.eigh(A @ A.T)
        powers = (values.clip(0) + ridge) ** power
        return vectors * powers @ (vectors.T @ A), values
    values, vectors = xp.linalg.eigh(A.T @ A)
    powers = (values.clip(0) + ridge) ** power
    return A @ (vectors * powers) @ vectors.T, values


def _cholesky_on_cpu(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, float]:
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(A)
    if failed:
        return B, 0.0
    return lapack.dpotrs(factor, B)[0], lapack.dpocon(factor, np.linalg.norm(A, 1))[0]


def _cholesky_by_torch(torch: Any, A: Array, B: Array) -> tuple[Array, Array]:
    factor, failed = torch.linalg.cholesky_ex(A)
    solved = torch.cholesky_solve(B, factor)
    return solved, torch.where(failed == 0, 1 / torch.linalg.cond(A, 1), 0.0)


def thin_svd(product: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The thin SVD. It works even for matrices of low rank for which `np.linalg.svd` does not converge."""
    try:
        return np.linalg.svd(product, full_matrices=False)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd

        return svd(product, full_matrices=False, lapack_driver="gesvd")


def _map_on_cpu(
    X: Rows,
    matrix: np.ndarray,
    mean: np.ndarray | None,
    unit: bool,
    shift: np.ndarray | None,
    out: np.ndarray,
) -> np.ndarray:
    """Write the product of the rows and the matrix into `out`. Before, the `mean` is subtracted from the rows
    and, if `unit`, they are scaled to length 1; at the end, the `shift` is added."""
    # One buffer holds the centred and scaled rows, and the product is written directly into the result. So
    # the result needs no further pass and no new memory, which would take as long as a pass. Blocks are
    # large, because each product waits for all its threads. If the result is narrow, as for a map, it is
    # scaled instead of the rows.
    width = X.shape[1]
    narrow = matrix.shape[1] < X.shape[1]
    if narrow and unit:
        size = max(1, _IN_CACHE // width)
    else:
        size = 2 * ROWS_PER_BLOCK
    buffer = np.empty((min(len(X), size), width), dtype=np.float32)
    for block in row_blocks(len(X), size):
        rows = np.asarray(X[block], dtype=np.float32)
        factors = None
        part = buffer[: len(rows)]
        if unit and not narrow:
            rows = unit_rows(rows, mean, part)
        elif mean is not None:
            rows = np.subtract(rows, mean, out=part, casting="same_kind")
        if unit and narrow:
            factors = inverse_lengths(rows)
        np.matmul(rows, matrix, out=out[block])
        if factors is not None:
            out[block] *= factors[:, None]
        if shift is not None:
            np.add(out[block], shift, out=out[block], casting="same_kind")
    return out
