"""Inversion that follows a slider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import lengths, unit_rows
from relcore.engine.device import NumpyDevice
from relcore.engine.engine import Engine
from relcore.invert.inversion import MOST_OMEGA, InversionSpec, PairedRows
from relcore.panes.channel import SCORE, SLIDE, maps_answer, sampled_places
from relcore.represent.inverse import pruning_orders, pseudo_inverse

# Inversions that follow a slider: the map of the recovered rows for any δ, ω and λ, without computing the
# rows.
#
# For a unit row x, the recovered row is ‖a_y‖ x W + mean_y. So its place on the map needs only x (W P),
# where P (d, 2) are the axes of the map. The order in which anchors are pruned does not depend on δ.
# Prunings that keep the same anchors have the same inverse.

_N_NUMBERS = 6  # number of values in a request


class LiveInversion:
    """Updates the map and the mean cosine of recovered rows when settings other than the route and the random
    state change."""

    def __init__(self, rows: PairedRows, spec: InversionSpec) -> None:
        self.rows = rows
        self.spec = replace(spec, tuned=False)
        self.anchors = [unit_rows(side, mean) for side, mean in zip(rows.paired, rows.means, strict=True)]
        self.scale = float(lengths(rows.paired[1], rows.means[1]).mean(dtype=np.float64))
        self.axes = rows.map[1].axes.astype(np.float64)
        self._solved: dict[bytes, np.ndarray] = {}
        if spec.method == "pruned":
            self._matrix(self.spec)

    def coordinates(self, spec: InversionSpec) -> np.ndarray:
        """The coordinates (m, 2) float32 of the recovered rows, equal to those of `PairedRows.coordinates`.

        Raises a SpaceError as `invert_pair` does.
        """
        rows = self.rows
        of_target = self.rows.map[1]
        shift = (rows.means[1].astype(np.float64) - of_target.mean) @ self.axes
        return Engine().map_rows(
            rows.X, self.scale * self._matrix(spec), mean=rows.means[0], unit=True, shift=shift
        )

    def cosine(self, spec: InversionSpec) -> float:
        """The mean cosine of the held-out rows, equal to that in the scores of an `Inversion`."""
        return float(self.rows.scored_rows(self.rows.fit(spec).transform(self.rows.X))[1])

    def _matrix(self, spec: InversionSpec) -> np.ndarray:
        """The product W P, (d, 2) float64: W translates rows, and P are the axes of the map."""
        if spec.method != "pruned":
            return self.rows.fit(spec).matrix_ @ self.axes
        # Equal arguments for every spec, so that the orders are computed only once.
        orders = pruning_orders(self.anchors[1], MOST_OMEGA, random_state=spec.random_state)[: spec.omega]
        kept = [np.sort(order[distances >= spec.delta]) for order, distances in orders]
        if min(map(len, kept)) < 2:
            raise SpaceError(
                f"delta: expected two or more anchors after pruning, got one with {spec.delta:g}"
            )
        return np.mean([self._part(members) for members in kept], axis=0)

    def _part(self, members: np.ndarray) -> np.ndarray:
        """The matrix A_x[S]ᵀ pinv(A_y[S]ᵀ) P, (d, 2), for the kept anchors S."""
        key = members.tobytes()
        if key not in self._solved:
            (source, target) = self.anchors
            A = source[members].astype(np.float64)
            B = target[members].astype(np.float64)
            # Cholesky takes at most a quarter of the time that eigenvectors take.
            wide = len(B) <= B.shape[1]
            if wide:
                products = B @ B.T
                sides = B @ self.axes
            else:
                products = B.T @ B
                sides = self.axes
            solved = Engine().solve_definite(products, sides)
            if solved is None:
                solved = pseudo_inverse(B)[0] @ self.axes
            elif not wide:
                solved = B @ solved
            self._solved[key] = A.T @ solved
        return self._solved[key]


class SlidAnswers:
    """Answers the requests of panes whose maps follow sliders.

    Parameters
    ----------
    live : LiveInversion
    sliders : {field: values}
        The fields of the spec that sliders change, in the order of the sliders. Each has the values at the
        positions 0, 1, … of its slider, or None if the position is the value itself.
    """

    def __init__(self, live: LiveInversion, sliders: Mapping[str, Sequence[float] | None]) -> None:
        self.live = live
        self.sliders = list(sliders.items())
        self.spec = live.spec
        self._map = NumpyDevice().full_range(live.coordinates(self.spec).T, len(live.rows.X))

    def read(self, message: bytes) -> np.ndarray | None:
        """The numbers of a request, an int32 array. In order: serial number, kind, index of the slider,
        position of the slider in thousandths, −1, and number of drawn rows (0 for all). None if the message
        is no request.
        """
        if len(message) != 4 * _N_NUMBERS:
            return None
        request = np.frombuffer(message, "<i4")
        _, kind, slider, position, _, most = request
        known = kind in (SCORE, SLIDE) and 0 <= slider < len(self.sliders)
        if known and position >= 0 and 0 <= most <= self._map.shape[1]:
            return request
        return None

    def answer(self, request: np.ndarray, overtaken: Callable[[], bool] = lambda: False) -> bytes:
        """The answer as bytes. For scores, these are the serial number and the kind of the request, the mean
        cosine, and three zeros as float32. For maps, see `maps_answer`; if the settings cannot be used, the
        answer has the last map.
        """
        _, kind, slider, position, _, most = map(int, request)
        n = self._map.shape[1]
        with suppress(SpaceError):
            if kind == SLIDE:
                spec = self._spec_at(slider, position)
                self._map = NumpyDevice().full_range(self.live.coordinates(spec).T, n)
                self.spec = spec
            elif not overtaken():
                scores = np.array([self.live.cosine(self.spec), 0, 0, 0], "<f4")
                return request[:2].tobytes() + scores.tobytes()
        if kind == SCORE:
            return b""
        if 0 < most < n:
            coordinates = self._map[:, sampled_places(n, most)]
        else:
            coordinates = self._map
        return maps_answer(request, coordinates.shape[1], [coordinates.tobytes()])

    def _spec_at(self, slider: int, position: int) -> InversionSpec:
        """The settings with the value at a position, in thousandths, of a slider."""
        field, values = self.sliders[slider]
        value: float = position / 1000
        if values:
            value = values[min(position // 1000, len(values) - 1)]
        elif field == "omega":
            value = position // 1000
        changed: dict[str, Any] = {field: value}
        return replace(self.spec, **changed)
