"""The rows of a live comparison, and their columns of similarities to anchors."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import DerivedRows, unit_rows
from relcore.engine.device import Array, NumpyDevice, device_of, release
from relcore.engine.engine import Engine, Moments
from relcore.maps.pane_maps import DrawnUnits, DrawnUnitsOf
from relcore.scores.comparison import class_labels
from relcore.spaces.matching import Match

MOST_NUMBERS = 2**26  # number of values in a space's unit rows without a GPU: 268 MB


class LiveScores(NamedTuple):
    """Four scores of the held-out relative rows, as in Explore. `top1` is the share of queries whose own row
    is the nearest row of the other space (NaN for the convention "mutual"). The others are the mean
    reciprocal rank, linear CKA, and class agreement (NaN without labels). With a single anchor, all but CKA
    are NaN.
    """

    top1: float
    mrr: float
    cka: float
    classes: float = np.nan


class LiveFrame(NamedTuple):
    """One frame of the maps while an anchor is dragged. `maps` are ordered by representation and space; each
    is the bytes of a little-endian float16 array (2, m). `near` (spaces, k) int64 are the shown rows that are
    nearest to one row in each space, nearest first."""

    maps: list[bytes]
    near: np.ndarray


class Overtaken(Exception):
    """The exception that stops computing scores if an anchor has moved again."""


class UnitRowsKey(NamedTuple):
    """The key by which unit rows are kept on a device: the digest of their space, whether its mean is
    subtracted, and a digest of the row numbers ("" for all rows)."""

    space: str
    center: bool
    rows: str


def release_other_rows(digests: Collection[str]) -> None:
    """Free the memory of the unit rows of all spaces whose digests are not in `digests`."""
    release(lambda content: isinstance(content, UnitRowsKey) and content.space not in digests)


class RowSubset(NamedTuple):
    """The numbers of some rows of a pair (None for all rows), and the digest of these numbers."""

    numbers: np.ndarray | None
    digest: str


class LiveRows:
    """The part of a comparison that does not depend on the anchors: the unit rows of each space on the
    device, and their moments.

    Parameters
    ----------
    pair : Match
    rows : array (m,)
        The rows that are drawn.
    center : bool
        Whether each space's mean is subtracted first.
    reference : array (m, 2), optional
        A map onto which all maps are rotated, as by `orient_pairs`.
    """

    def __init__(
        self,
        pair: Match,
        rows: np.ndarray,
        center: bool = True,
        reference: np.ndarray | None = None,
        random_state: int = 0,
        units_of: DrawnUnitsOf = DrawnUnits.of,
    ) -> None:
        self.pair = pair
        self.rows = rows
        self.where = device_of()
        self.spaces = pair.spaces
        known = [units_of(space, rows, center, random_state) for space in self.spaces]
        self.origins = [one.mean if center else None for one in known]
        self.moments = [one.moments for one in known]
        self.center = center
        self._few = [one.few for one in known]
        self.drawn_rows = self.subset(rows)
        if reference is None:
            self.onto = None
        else:
            self.onto = self._products(self.drawn[0], reference)

    def anchor(self, side: int, row: int) -> np.ndarray:
        """The unit row (d,) of an anchor in one space, float64."""
        return unit_rows(self.spaces[side].vectors[row : row + 1], self.origins[side])[0].astype(np.float64)

    @property
    def drawn(self) -> list[Array]:
        """The unit rows of the drawn rows of each space, (m, d), on the device."""
        return [self.units(side, self.drawn_rows) for side in range(len(self.spaces))]

    @property
    def all_units(self) -> list[Array]:
        """The unit rows of the source and the target, (n, d) each, on the device."""
        return [self.units(side, self.subset(None)) for side in (0, 1)]

    @cached_property
    def cross_moments(self) -> list[np.ndarray]:
        """For each space except the source, the sum Σ y (x − x̄)ᵀ over the drawn rows, where x are rows of
        the source and y rows of this space: (d', d) float64."""
        first, *others = self.drawn
        return [Engine().moments(other, first).products for other in others]

    @cached_property
    def moments_of_all(self) -> dict[tuple[int, int], Moments]:
        """The moments of all rows: of the source, of the target, and of their pairs of rows."""
        X, Y = self.all_units
        return {(0, 0): Engine().moments(X), (1, 1): Engine().moments(Y), (0, 1): Engine().moments(X, Y)}

    @cached_property
    def classes(self) -> np.ndarray | None:
        """The class number of each row, (n,), −1 for rows without a class. None without labels, with a single
        class, or if each row has a class of its own."""
        labels = class_labels(self.pair)
        if labels is None:
            return None
        names, codes = np.unique(labels, return_inverse=True)
        n_classes = np.count_nonzero(names != "")
        n_labelled = np.count_nonzero(labels != "")
        if not 1 < n_classes < n_labelled:
            return None
        return np.where(labels == "", -1, codes)

    def subset(self, rows: np.ndarray | None) -> RowSubset:
        if rows is None or len(rows) == len(self.pair):
            return RowSubset(None, "")
        return RowSubset(rows, hashlib.blake2b(rows.tobytes(), digest_size=16).hexdigest())

    def units(self, side: int, some: RowSubset) -> Array:
        """The unit rows (r, d) of a subset of a space. They stay on the device for all sessions."""
        space = self.spaces[side]
        origin = self.origins[side]
        if some.numbers is None:
            n = len(space)
        else:
            n = len(some.numbers)
        if isinstance(self.where, NumpyDevice):
            if self._few[side] is not None and some.digest == self.drawn_rows.digest:
                return self._few[side]
            if n * space.dimension > MOST_NUMBERS:
                raise SpaceError(
                    f"live: expected at most {MOST_NUMBERS // space.dimension:,} rows without a GPU, got"
                    f" {n:,}; draw fewer rows"
                )
        units = DerivedRows(space.vectors, lambda X: unit_rows(X, origin), some.numbers)
        return self.where.cached(UnitRowsKey(space.digest, self.center, some.digest), units)

    def _products(self, units: Array, reference: np.ndarray) -> np.ndarray:
        """The sum Σ u (t − t̄)ᵀ over unit rows u and rows t of the reference, (d, 2) float64."""
        goal = (reference - reference.mean(axis=0, dtype=np.float64)).astype(np.float32)
        return Engine().moments(units, self.where.put(goal)).products


class AnchorColumns:
    """The matrices B (d, k), M B (d, k) and Bᵀ M B (k, k) of one space, for its unit anchors B and the
    scatter M (d, d) of its unit rows. If an anchor moves, only its column is computed again."""

    def __init__(self, held: LiveRows, side: int) -> None:
        self.held = held
        self.side = side
        d = held.spaces[side].dimension
        self.basis = np.empty((d, 0))
        self.moved = np.empty((d, 0))
        self.scatter = np.empty((0, 0))

    def resize(self, k: int) -> None:
        keep = min(k, self.basis.shape[1])
        grown = max(0, k - self.basis.shape[1])
        self.basis = np.pad(self.basis[:, :keep], ((0, 0), (0, grown)))
        self.moved = np.pad(self.moved[:, :keep], ((0, 0), (0, grown)))
        self.scatter = np.pad(self.scatter[:keep, :keep], ((0, grown), (0, grown)))

    def put(self, column: int, row: int) -> None:
        unit = self.held.anchor(self.side, row)
        self.basis[:, column] = unit
        self.moved[:, column] = self.held.moments[self.side].products @ unit
        products = self.moved.T @ unit
        self.scatter[:, column] = products
        self.scatter[column] = products
