"""Generalised Procrustes analysis: orthogonal maps of several spaces into a common one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from relcore.base.errors import NoCommonId, SpaceError, quote
from relcore.base.rows import lengths, mean_row, unit_rows
from relcore.engine.engine import Engine
from relcore.represent.estimator import need_finite
from relcore.scores.score import Score
from relcore.spaces.space import LatentSpace

_SETTLED = 1e-5  # minimum relative gain; a smaller one ends the fit and would change accuracy by at most .001
Grid = tuple[tuple[Score | None, ...], ...]


def known_rows(space: LatentSpace, ids: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row numbers of the rows that a space shares with `ids`, and the rows of `places` that belong to
    these ids."""
    rows = space.index.get_indexer(pd.Index(ids))
    rows[np.isin(rows, space.zero_rows)] = -1
    return rows[rows >= 0], places[rows >= 0]


def mean_and_scale(X: np.ndarray, unit: bool, name: str) -> tuple[np.ndarray, float]:
    """The mean (d,) of the rows, and their root mean square distance from it. With `unit`, of unit rows."""
    if not len(X):
        raise NoCommonId(f"{name}: expected rows that another space has, got none; leave this space out")
    if unit:
        X = unit_rows(X)
    else:
        X = np.asarray(X, dtype=np.float32)
    mean = np.asarray(mean_row(X), dtype=np.float32)
    spread = lengths(X, mean).astype(np.float64)
    need_finite(spread, name)
    if not (largest := spread.max()):
        raise SpaceError(
            f"{name}: expected rows that differ, got {len(X):,} equal ones; leave this space out"
        )
    return mean, float(largest * np.sqrt(np.mean((spread / largest) ** 2)))


def centred_rows(X: np.ndarray, mean: np.ndarray, scale: float, unit: bool) -> np.ndarray:
    """The rows (n, d) less the mean, divided by the scale. With `unit`, of unit rows."""
    if unit:
        X = unit_rows(X)
    else:
        X = np.asarray(X, dtype=np.float32)
    return (X - mean) / np.float32(scale)


def align(space: LatentSpace, own: np.ndarray, mean: np.ndarray, scale: float, unit: bool) -> np.ndarray:
    """The rows of a space, centred and scaled, as an array (n, d) for the n row numbers `own`; zero where the
    space lacks the row (−1)."""
    rows = np.zeros((len(own), space.dimension), np.float32)
    rows[own >= 0] = centred_rows(space.vectors[own[own >= 0]], mean, scale, unit)
    return rows


def fit_rotations(
    fitted: Sequence[np.ndarray], present: np.ndarray, rounds: int, names: Sequence[str]
) -> list[np.ndarray]:
    """Fit the maps Rᵢ (dᵢ, D), with orthonormal rows, that minimise the distances of rows from their mean
    places. They maximise Σ_{i<j} tr Rᵢᵀ Cᵢⱼ Rⱼ. Here Cᵢⱼ = Xᵢᵀ diag(1/m) Xⱼ, the Xᵢ are the `fitted` rows,
    and m has, for each row, the number of spaces that have it.

    Each map in turn is set to the best one given all others, so the sum never decreases (Ten Berge 1977). To
    find a start, the widest space comes first; then spaces are added one by one, always the one that
    correlates most with those before.
    """
    n = len(fitted)
    weights = (1 / np.maximum(present.sum(axis=0), 1)).astype(np.float32)[:, None]
    products: dict[tuple[int, int], np.ndarray] = {}
    for i in range(n):
        weighted = fitted[i] * weights
        for j in range(i + 1, n):
            if (present[i] & present[j]).any():
                products[i, j] = Engine().product(weighted.T, fitted[j], np.float32)
                products[j, i] = products[i, j].T
    first = max(range(n), key=lambda i: fitted[i].shape[1])
    wide = fitted[first].shape[1]
    rotations: dict[int, np.ndarray] = {first: np.eye(wide, dtype=np.float32)}

    def target(i: int) -> np.ndarray:
        linked = (products[i, j] @ rotations[j] for j in list(rotations) if j != i and (i, j) in products)
        return sum(linked, np.zeros((fitted[i].shape[1], wide)))  # the array of zeros makes the sum float64

    while len(rotations) < n:
        waiting = {i: target(i) for i in range(n) if i not in rotations}
        best = max(waiting, key=lambda i: float(np.linalg.norm(waiting[i])))
        if not waiting[best].any():
            lone = quote([names[i] for i in waiting])
            raise NoCommonId(
                f"universe: expected rows that link all spaces, got none to {lone}; leave these out"
            )
        rotations[best] = Engine().rotation(waiting[best])[0].astype(np.float32)
    before = 0.0
    for _ in range(rounds):
        total = 0.0
        for i in range(n):
            rotation, values = Engine().rotation(target(i))
            rotations[i] = rotation.astype(np.float32)
            total += float(values.sum())
        if total - before <= _SETTLED * total:
            break
        before = total
    return [rotations[i] for i in range(n)]


def mean_place(
    places: Sequence[np.ndarray], present: np.ndarray, without: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The mean place of each row over the spaces that have the row, an array (n, D), and whether any space
    has the row, an array (n,). The space number `without` is left out.
    """
    used = [i for i in range(len(places)) if i != without]
    count = present[used].sum(axis=0)
    total = np.zeros_like(places[0])
    for i in used:
        total += places[i]
    return total / np.maximum(count, 1).astype(np.float32)[:, None], count > 0
