"""MadeRows: some rows of a space in a representation, each block made when it is used; the whole matrix is never formed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np

from relcore.magnitude import brought, scaled

_FIRST = 4096  # rows that tell the magnitude of all


class MadeRows:
    """Rows (n, w) that are made from the rows of a space.

    Parameters
    ----------
    vectors : array (N, d)
        A space; a memory map, too.
    made : function (m, d) → (m, w)
        Brings rows of the space to the representation.
    numbers : array (n,)
        Rows of the space, in the order in which they count here.
    """

    def __init__(self, vectors: np.ndarray, made: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray) -> None:
        self.vectors, self.made, self.numbers = vectors, made, numbers
        self.shape = (len(numbers), made(np.asarray(vectors[numbers[:1]])).shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """(m, w) float32; the rows of the space are taken as a view where they stand one after the other."""
        numbers = self.numbers[rows]
        if len(numbers) and np.array_equal(numbers, np.arange(numbers[0], numbers[0] + len(numbers))):
            return self.made(np.asarray(self.vectors[numbers[0] : numbers[0] + len(numbers)]))
        return self.made(np.asarray(self.vectors[numbers]))

    @property
    def nbytes(self) -> int:
        """Of all rows as float32."""
        return 4 * self.shape[0] * self.shape[1]

    def of(self, rows: np.ndarray) -> Self:
        """Some of these rows, or all in another order."""
        return type(self)(self.vectors, self.made, self.numbers[rows])


def exponent_of(rows: np.ndarray | MadeRows) -> int:
    """See `magnitude.brought`; of made rows by the first ones."""
    return brought(rows[:_FIRST] if isinstance(rows, MadeRows) else rows)[1]


def rows_scaled(rows: np.ndarray | MadeRows, exponent: int) -> np.ndarray | MadeRows:
    """Rows · 2⁻ᵉ, see `magnitude.scaled`."""
    if not exponent or not isinstance(rows, MadeRows):
        return scaled(rows, exponent)
    return MadeRows(rows.vectors, lambda X: scaled(rows.made(X), exponent), rows.numbers)
