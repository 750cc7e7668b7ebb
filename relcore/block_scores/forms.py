"""What the rows of one space become in each representation, from coordinates that representations share.

A representation is used in coordinates of its own that keep every inner product: the relative rows U Aᵀ, U the unit rows (n, d)
and A the anchors (k, d) = P S Qᵀ, are the rows of U Q · S, turned by P, and the whitened ones those of U Q · S / √(S² + ridge).
So both need one product with Q (d, min(d, k)), and no row of k similarities is formed. Procrustes turns the centred rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from relcore.block_scores.device import Array, NumpyDevice, TorchDevice
from relcore.projection import RelativeProjection


@dataclass(frozen=True, eq=False)
class Form:
    """One representation of one space: its rows are coordinates · factors, or centred coordinates @ matrix + shift.

    Attributes
    ----------
    frame : str
        Which coordinates: "raw" (the rows themselves), "turned" (unit rows times Q) or "own" (as the projection makes them).
    of_centred : bool
        Whether the rows come from the coordinates less their centre.
    factors : array (w,), matrix : array (w, w'), shift : array (w',), optional
    basis : array (out, w), optional
        The rows of the representation as it is shown are these rows times its transpose; None: they are the same.
    """

    frame: str
    of_centred: bool = False
    factors: np.ndarray | None = None
    matrix: np.ndarray | None = None
    shift: np.ndarray | None = None
    basis: np.ndarray | None = None

    def on(self, device: NumpyDevice | TorchDevice) -> Form:
        """With its numbers in float32 on a device."""
        return _on(device, self, ("factors", "matrix", "shift"))

    def mapped(self, vectors: np.ndarray) -> np.ndarray:
        """Differences of coordinates (m, w) or (w,), as differences of rows of the representation; float64."""
        if self.factors is not None:
            return vectors * self.factors
        return vectors if self.matrix is None else vectors @ self.matrix

    def mapped_products(self, products: np.ndarray, other: Form | None = None) -> np.ndarray:
        """XᵀX or XᵀY of coordinates, as that of the representations."""
        return (other or self).mapped(self.mapped(products.T).T)


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates of one space.

    Attributes
    ----------
    centre : array (w,)
        Close to their mean over the rows that are scored, float32 or float64; sums are taken about it.
    mean : array (d,), optional
        Of the space, which "turned" subtracts before it takes directions.
    turn : array (d, w), optional
        Q of "turned".
    projection : RelativeProjection, optional
        Makes "own".
    exponent : int
        Coordinates are divided by this power of two.
    stretch : array (w,), basis : array (k, w), optional
        S and P of "turned".
    """

    centre: np.ndarray
    mean: np.ndarray | None = None
    turn: np.ndarray | None = None
    projection: RelativeProjection | None = None
    exponent: int = 0
    stretch: np.ndarray | None = None
    basis: np.ndarray | None = None

    def on(self, device: NumpyDevice | TorchDevice) -> Frame:
        """With its numbers on a device."""
        return _on(device, self, ("centre", "mean", "turn"))


def _on(device: NumpyDevice | TorchDevice, facts: Form | Frame, names: tuple[str, ...]):
    given = {name: array for name in names if (array := getattr(facts, name)) is not None}
    kept = {name: array if name in ("centre", "mean") else array.astype(np.float32) for name, array in given.items()}
    return replace(facts, **{name: device.put(array) for name, array in kept.items()})


class BlockRows:
    """A block of rows of one space (m, d) in its coordinates and representations, each computed when it is first needed.

    On NumPy they are buffers, good until the next block of the side; the unit rows until those of the next representation.
    """

    def __init__(self, device: NumpyDevice | TorchDevice, frames: Mapping[str, Frame], X: np.ndarray, side: int) -> None:
        self.device, self.frames, self.given, self.side = device, frames, X, side
        self._held: dict[str, Array] = {}

    def coordinates(self, name: str) -> Array:
        """(m, w), not centred."""
        return self._once(name, lambda buffer: self._coordinates(self.frames[name], buffer))

    def centred(self, name: str) -> Array:
        """(m, w) less the centre."""
        centre = self.frames[name].centre
        return self._once(f"{name} centred", lambda buffer: self.device.centred(self.coordinates(name), centre, buffer))

    def directions(self, form: Form) -> Array:
        """The rows of a representation scaled to length 1, (m, w)."""
        rows, buffer = self.coordinates(form.frame), f"moved {self.side}"
        if form.factors is not None:
            rows = self.device.stretched(rows, form.factors, buffer)
        elif form.of_centred:
            rows = self._turned(form)
        if form.shift is not None:
            rows = self.device.centred(rows, -form.shift, buffer)
        return self.device.directions(rows, None, f"unit {self.side}")

    def squares(self, form: Form) -> Array:
        """Squared lengths (m,) of the rows of a representation about its centre."""
        if form.factors is None:
            return self.device.squares(self._turned(form))
        rows = self.centred(form.frame)
        squared = self._once(f"{form.frame} squared", lambda buffer: self.device.stretched(rows, rows, buffer))
        return squared @ (form.factors * form.factors)

    def _turned(self, form: Form) -> Array:
        """Centred coordinates @ matrix."""
        rows = self.centred(form.frame)
        if form.matrix is None:
            return rows
        return self._once("by matrix", lambda buffer: self.device.product(rows, form.matrix, buffer))

    def _coordinates(self, frame: Frame, buffer: str) -> Array:
        if frame.turn is not None:
            unit = self.device.directions(self.coordinates("raw"), frame.mean, f"moved {self.side}")
            return self.device.product(unit, frame.turn, buffer)
        if frame.projection is not None:
            return self.device.block(frame.projection.transform(np.asarray(self.given, dtype=np.float32)), frame.exponent)
        return self.device.block(self.given, frame.exponent)

    def _once(self, name: str, make: Callable[[str], Array]) -> Array:
        if name not in self._held:
            self._held[name] = make(f"{name} {self.side}")
        return self._held[name]
