"""What an adapter does to a row, as the few kinds of step that every program can repeat: NumPy, ONNX, faiss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from relcore.similarity import row_blocks, unit_rows


@dataclass(frozen=True, eq=False)
class Unit:
    """Rows to length 1; a zero row stays zero."""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return unit_rows(X)


@dataclass(frozen=True, eq=False)
class Affine:
    """x·matrix + offset.

    Attributes
    ----------
    matrix : array (d_in, d_out) float32
    offset : array (d_out,) float32
    """

    matrix: np.ndarray
    offset: np.ndarray

    @classmethod
    def between(cls, matrix: np.ndarray, start: np.ndarray, end: np.ndarray | float = 0.0) -> Affine:
        """(x − start)·matrix + end, computed in float64 and kept in float32."""
        return cls(np.ascontiguousarray(matrix, dtype=np.float32), np.asarray(end - start @ matrix, dtype=np.float32))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        found = np.asarray(X, dtype=np.float32) @ self.matrix
        found += self.offset
        return found


@dataclass(frozen=True, eq=False)
class Residual:
    """x + relu(x·inner + inner_offset)·outer + outer_offset.

    Attributes
    ----------
    inner : array (d, h) float32
    inner_offset : array (h,) float32
    outer : array (h, d) float32
    outer_offset : array (d,) float32
    """

    inner: np.ndarray
    inner_offset: np.ndarray
    outer: np.ndarray
    outer_offset: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        hidden = X @ self.inner
        hidden += self.inner_offset
        np.maximum(hidden, 0, out=hidden)
        return X + hidden @ self.outer + self.outer_offset


Step = Unit | Affine | Residual


def apply_steps(steps: Iterable[Step], X: np.ndarray) -> np.ndarray:
    """Rows after all steps in their order, (n, d_in) → (n, d_out) float32."""
    for step in steps:
        X = step(X)
    return X


def apply_by_block(steps: tuple[Step, ...], X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """As `apply_steps`, with memory for one block of rows beside the result."""
    for block in row_blocks(len(X)):
        found = apply_steps(steps, X[block])
        if out is None:
            out = np.empty((len(X), found.shape[1]), dtype=np.float32)
        out[block] = found
    return out
