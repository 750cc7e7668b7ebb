"""The numbers of an inverse, chosen by anchors that are held out of the fit: no test row is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore.inversion import pruned_decoders
from relcore.similarity import unit_rows

if TYPE_CHECKING:
    from relcore.inverting.recovery import InversionSpec

DELTAS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
OMEGAS = (1, 4, 8, 16)
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_PARTS = 4  # a quarter of the anchors is held out
_MANY = 1000  # of more anchors one quarter is held out, of fewer each in turn
FEWEST = 8  # anchors, to hold out two


@dataclass(frozen=True)
class Choice:
    """What was chosen, and how.

    Attributes
    ----------
    delta, omega, ridge : float, int, float
    cosine : float
        Mean cosine of the held-out anchors with these numbers; optimistic, as the best of `n_tried`.
    n_tried, n_held_out : int
        Settings that were compared; anchors that were held out at a time.
    """

    delta: float
    omega: int
    ridge: float
    cosine: float
    n_tried: int
    n_held_out: int

    def numbers(self) -> dict[str, Any]:
        """δ, ω and λ, as fields of an `InversionSpec`."""
        return {"delta": self.delta, "omega": self.omega, "ridge": self.ridge}


def choose_numbers(
    source: np.ndarray, target: np.ndarray, means: tuple[np.ndarray, np.ndarray], spec: InversionSpec
) -> Choice | None:
    """The best numbers for the spec's method: δ and ω of "pruned", λ of the others; those of the spec for what is not chosen.

    Source (k, d_source) and target (k, d_target) are paired anchors, the means those of all rows. The best on the held-out
    anchors is to be fitted on all of them. None with fewer than `FEWEST` anchors.
    """
    k = len(source)
    if k < FEWEST:
        return None
    A, B = unit_rows(source, means[0]), unit_rows(target, means[1])
    order = np.random.default_rng([spec.random_state, k]).permutation(k)
    parts = [order[part::_PARTS] for part in range(_PARTS)][: _PARTS if k <= _MANY else 1]
    totals: dict[tuple[float, int, float], list[float]] = {}
    for held_out in parts:
        known = np.setdiff1d(order, held_out)
        for numbers, decoded in _tried(A, B, known, held_out, spec):
            cosines = np.einsum("ij,ij->i", unit_rows(decoded), B[held_out])
            totals.setdefault(numbers, []).append(float(cosines.mean(dtype=np.float64)))
    scores = {numbers: float(np.mean(found)) for numbers, found in totals.items() if len(found) == len(parts)}
    if not scores:
        return None
    best = max(scores, key=scores.get)
    return Choice(*best, scores[best], len(scores), len(parts[0]))


def _tried(A: np.ndarray, B: np.ndarray, known: np.ndarray, held_out: np.ndarray, spec: InversionSpec) -> Iterator:
    """(δ, ω, λ) and the held-out anchors as that inverse translates them, for each setting of the method's grid."""
    if spec.method == "pruned":
        relative = A[held_out] @ A[known].T
        for pruned in pruned_decoders(B[known], DELTAS, OMEGAS, spec.random_state):
            if min(map(len, pruned.kept)) > 1:
                yield (pruned.delta, pruned.omega, spec.ridge), relative @ pruned.matrix
        return
    # With A = U S Vᵀ, A's K = A Aᵀ has the eigenvectors U: each λ costs one product of small matrices, not an inverse.
    u_x, s_x, v_x = np.linalg.svd(A[known], full_matrices=False)
    u_y, s_y, v_y = np.linalg.svd(B[known], full_matrices=False)
    inputs = A[held_out] @ v_x.T
    crossed = u_x.T @ u_y
    for ridge in RIDGES:
        if spec.method == "ridge":
            left, right = s_x, s_y / (s_y**2 + ridge)
        else:
            left, right = s_x / np.sqrt(s_x**2 + ridge), s_y / np.sqrt(s_y**2 + ridge)
        yield (spec.delta, spec.omega, ridge), ((inputs * left) @ crossed * right) @ v_y
