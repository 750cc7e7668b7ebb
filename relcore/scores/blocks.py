"""Blocks of rows in their representations: absolute, relative, whitened, rotated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from relcore.base.rows import Rows as RowSource
from relcore.base.rows import mean_row, unit_rows
from relcore.engine.device import Array, Device, NumpyDevice
from relcore.represent.projection import RelativeProjection
from relcore.represent.representations import ProjectionSpec
from relcore.represent.similarity import AnchorAxes
from relcore.scores.roles import RowRoles, ScoreRequest

# The rows of one space in each representation, computed from common coordinates that preserve all inner
# products. Let U (n, d) be the unit rows and A = P S Qᵀ (k, d) the anchors. Then the relative rows U Aᵀ are U
# Q · S, rotated by P, and the whitened rows are U Q · S / √(S² + ridge). So both representations need only
# the product with Q (d, min(d, k)), and no row of k similarities is computed. Procrustes rotates the centred
# rows.


@dataclass(frozen=True, eq=False)
class Representation:
    """How the rows of one space are computed in a representation: coordinates · factors, or centred
    coordinates @ matrix + shift.

    Attributes
    ----------
    frame : str
        The name of the coordinates: "raw" (the rows themselves), "turned" (unit rows times Q) or "own" (the
        output of the projection).
    size : float
        A power of two near the mean squared length of the centred rows.
    of_centred : bool
        Whether the centre is subtracted from the coordinates first.
    factors : array (w,), matrix : array (w, w'), shift : array (w',), optional
    basis : array (out, w), optional
        The rows of the representation, as users see them, are these rows times the transpose of `basis`. None
        if they are the same.
    """

    frame: str
    of_centred: bool = False
    size: float = 1.0
    factors: np.ndarray | None = None
    matrix: np.ndarray | None = None
    shift: np.ndarray | None = None
    basis: np.ndarray | None = None

    def mapped(self, vectors: np.ndarray) -> np.ndarray:
        """Convert differences between coordinates, (m, w) or (w,), to differences between rows of the
        representation, as float64."""
        if self.factors is not None:
            return vectors * self.factors
        if self.matrix is None:
            return vectors
        return vectors @ self.matrix

    def mapped_products(self, products: np.ndarray, other: Representation) -> np.ndarray:
        """Convert Σ x yᵀ (w, w), where x are coordinates of this space and y those of another, to the sum of
        products of rows of the representations."""
        return other.mapped(self.mapped(products.T).T)

    def row_of_centre(self, frame: Coordinates) -> np.ndarray:
        """The row of the representation whose coordinates are the centre of the frame, as float64."""
        if not self.of_centred:
            return self.mapped(frame.centre.astype(np.float64))
        if self.shift is None:
            return np.zeros(1)
        return self.shift.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """How coordinates of one space are computed from its rows.

    Attributes
    ----------
    centre : array (w,)
        A point close to the mean of the scored rows, float32 or float64. It is subtracted before rows are
        summed.
    mean : array (d,), optional
        The mean of the space. It is subtracted before rows are scaled to length 1.
    turn : array (d, w), stretch : array (w,), basis : array (k, w), optional
        For "turned": Q, S and P of the SVD P S Qᵀ of the unit anchors.
    spec, anchors, known
        For "own": the projection, its anchors (k, d), and rows (m, d) that it may learn from.
    """

    centre: np.ndarray
    mean: np.ndarray | None = None
    turn: np.ndarray | None = None
    stretch: np.ndarray | None = None
    basis: np.ndarray | None = None
    spec: ProjectionSpec | None = None
    anchors: np.ndarray | None = None
    known: np.ndarray | None = None

    @cached_property
    def projection(self) -> RelativeProjection:
        assert self.spec is not None, "only the frame “own” has a projection"
        assert self.mean is not None
        assert self.anchors is not None
        assert self.known is not None
        return self.spec.projection().fit_from(self.mean, self.anchors, self.known)


CoordinatesByName = dict[str, Coordinates]
Facts = TypeVar("Facts", Representation, Coordinates)


def to_device(device: Device, facts: Facts) -> Facts:
    names = ["factors", "matrix", "shift", "centre", "turn"]
    if getattr(facts, "turn", None) is not None:
        names.append("mean")
    arrays = {name: getattr(facts, name, None) for name in names}
    return replace(facts, **{name: device.put(array) for name, array in arrays.items() if array is not None})


class BlockRows:
    """The rows `kept` of a block (m, d) of one space, in each system of coordinates and each representation.
    Each result is computed when it is first needed.

    With NumPy, results are buffers, which the next block of the same space overwrites. The buffer of unit
    rows is overwritten for each representation.
    """

    def __init__(
        self,
        device: Device,
        frames: CoordinatesByName,
        side: int,
        X: RowSource,
        block: slice = slice(None),
        kept: np.ndarray | None = None,
    ) -> None:
        self.device = device
        self.frames = frames
        self.side = side
        self._source = X
        self._block = block
        self._kept = kept
        self._held: dict[str, Array] = {}

    def coordinates(self, name: str) -> Array:
        return self._once(name, self._coordinates, self.frames[name])

    def centred(self, name: str) -> Array:
        rows = self.coordinates(name)
        centre = self.frames[name].centre
        return self._once(f"{name} centred", self.device.centred, rows, centre)

    def directions(self, representation: Representation) -> Array:
        """The rows of a representation scaled to length 1, (m, w)."""
        rows = self.coordinates(representation.frame)
        buffer = f"moved {self.side}"
        if representation.factors is not None:
            rows = self.device.scaled(rows, representation.factors, buffer)
        elif representation.of_centred:
            rows = self._turned(representation)
        if representation.shift is not None:
            rows = self.device.centred(rows, -representation.shift, buffer)
        return self.device.unit(rows, f"unit {self.side}")

    def squares(self, representation: Representation) -> Array:
        """The squared lengths (m,) of the centred rows of a representation."""
        if representation.factors is None:
            turned = self._turned(representation)
            return self.device.row_products(turned, turned)
        rows = self.centred(representation.frame)
        name = f"{representation.frame} squared"
        squares = self._once(name, self.device.scaled, rows, rows)
        # OpenBLAS may report invalid values of memory that it overwrites. The rows are known to be finite.
        with np.errstate(invalid="ignore"):
            return squares @ (representation.factors * representation.factors)

    def _turned(self, representation: Representation) -> Array:
        rows = self.centred(representation.frame)
        if representation.matrix is None:
            return rows
        return self._once("by matrix", self.device.product, rows, representation.matrix)

    def _coordinates(self, frame: Coordinates, buffer: str) -> Array:
        if frame.turn is not None:
            rows = self.coordinates("raw")
            moved = f"moved {self.side}"
            if frame.mean is not None:
                rows = self.device.centred(rows, frame.mean, moved)
            return self.device.product(self.device.unit(rows, moved), frame.turn, buffer)
        if frame.spec is not None:
            rows = np.asarray(self._source[self._block], dtype=np.float32)
            return self.device.rows(
                frame.projection.transform(rows if self._kept is None else rows[self._kept])
            )
        rows = self.device.block_on_device(self._source, self._block)
        if self._kept is None:
            return rows
        return rows[self.device.put(self._kept)]

    def _once(self, name: str, make: Callable[..., Array], *arguments: Any) -> Array:
        if name not in self._held:
            self._held[name] = make(*arguments, f"{name} {self.side}")
        return self._held[name]


def frames_of(
    request: ScoreRequest, roles: RowRoles, mean: np.ndarray, gathered: Mapping[str, np.ndarray], side: int
) -> CoordinatesByName:
    """The coordinates in which the representations of a space are computed. `mean` (d,) is that of all rows;
    `gathered` are the rows that were read before the pass, by role."""
    representations = set(request.representations)
    spec = request.projection
    sample = gathered["centre"]
    origin = mean_row(sample, mean)
    centre = origin
    if len(roles.left_out):  # an anchor can be so long that the mean is far from all rows that are no anchors
        rest = roles.n * mean - gathered["left out"].sum(axis=0, dtype=np.float64)
        centre = mean_row(sample, rest / len(roles))
    frames = {"raw": Coordinates(centre)}
    if "whitened" in representations or ("relative" in representations and spec.similarity == "cosine"):
        subtracted = None
        if spec.center:
            subtracted = origin
        axes = AnchorAxes.of(unit_rows(gathered["anchors"], subtracted))
        turn = axes.turn.astype(np.float32)
        frames["turned"] = Coordinates(np.zeros(1), subtracted, turn, axes.stretch, axes.basis)
    if "relative" in representations and spec.similarity != "cosine":
        known = gathered.get("clustered", sample[:0])
        frames["own"] = Coordinates(np.zeros(1), origin, spec=spec, anchors=gathered["anchors"], known=known)
    rows = BlockRows(NumpyDevice(), frames, side, sample)
    for name in frames:
        if name != "raw":  # the mean of a sample: exact for few rows, otherwise corrected after the pass
            frames[name] = replace(frames[name], centre=mean_row(rows.coordinates(name)))
    return frames
