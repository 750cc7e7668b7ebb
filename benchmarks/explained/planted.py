"""Features that are planted at the smallest effect that an explanation states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.explained.rows import drawn, noisy
from relcore.base.rows import centred, mean_row, unit_rows
from relcore.engine.nearest import nearest_within
from relcore.explain.explanation import _families
from relcore.explain.families import Features
from relcore.explain.reasons import smallest_effect
from relcore.explain.responses import of_neighbours
from relcore.explain.result import Explanation
from relcore.explain.search import ReasonSearch
from relcore.spaces.matching import match

K = 10
SHARES = (0.01, 0.1)  # of the rows that have the feature
SIZES = (1500, 3000, 6000)  # numbers of rows
_LARGEST = 6.0  # of a shift, as a multiple of the mean length of a row
_STEPS = 9
_NEARLY = 0.9
_SAME = 0.5  # share of rows in common with the planted ones


@dataclass(frozen=True, eq=False)
class Planted:
    """What an explanation made of a planted feature.

    Attributes
    ----------
    first : bool
        Whether it was named first.
    gathered : bool
        Whether its rows were gathered in one copy, or dispersed.
    """

    title: str
    share: float
    effect: float
    gathered: bool
    first: bool
    found: Explanation


def plant(kind: str, rng: np.random.Generator) -> Planted | None:
    """Gather or disperse the rows of a random feature in one of two equally noisy copies, until the effect is the
    smallest one that the explanation of the unchanged copies states. None if it states none for a feature of this size,
    or if no such effect can be made."""
    one = drawn(kind, rng, int(rng.choice(SIZES)))
    level = rng.uniform(0.1, 0.5)
    A = noisy(one.vectors, level, rng)
    B = noisy(one.vectors, level, rng)
    pair = match(one.space(A, "first"), one.space(B, "second"))
    of_rows, families = _families(one.ids, one.items, labels=one.labels, counts=one.counts)
    features = Features(families, len(pair))
    sizes = np.asarray(features.members.mean(axis=0)).ravel()
    number = int(rng.choice(np.flatnonzero((sizes >= SHARES[0]) & (sizes <= SHARES[1]))))
    rows = features.members[:, number].nonzero()[0]
    plain = ReasonSearch(pair, families, of_rows, K, 0, len(pair))
    response = of_neighbours(plain.queries, plain.lists, plain.features, plain.regions)
    wanted = smallest_effect(response.of_part(~plain.suggesting), sizes[number], len(plain.features))
    if np.isnan(wanted):
        return None
    before = share_within(A, rows)
    gathered = bool(rng.random() < 0.5)
    changed = None
    for gather in (gathered, not gathered):
        changed = _changed(B, rows, before, wanted, gather, rng)
        if changed is not None:
            gathered = gather
            break
    if changed is None:
        return None
    spaces = [pair.source, one.space(changed, "second")]
    if rng.random() < 0.5:
        spaces.reverse()
    found = ReasonSearch(match(*spaces), families, of_rows, K, 0, len(pair)).result()
    first = _named_first(found, rows)
    return Planted(features.listed[number].title, float(sizes[number]), wanted, gathered, first, found)


def _changed(
    X: np.ndarray, rows: np.ndarray, before: float, wanted: float, gather: bool, rng: np.random.Generator
) -> np.ndarray | None:
    """Move some rows of the vectors X (n, d) until the share of their neighbours among them changes by `wanted`. A
    common vector gathers the rows, or noise disperses them. Returns None if no move changes the share so much."""
    X = centred(X, mean_row(X))
    length = np.linalg.norm(X, axis=1).mean()
    d = X.shape[1]
    moves = rng.normal(size=(len(rows), d))
    if gather:
        moves = np.broadcast_to(moves[0], (len(rows), d))
    moves = np.float32(moves * length / np.sqrt(d))
    low = 0.0
    high = _LARGEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        made = X.copy()
        made[rows] += np.float32(middle) * moves
        effect = abs(share_within(made, rows) - before)
        if effect < wanted:
            low = middle
        else:
            high = middle
    if effect < _NEARLY * wanted:
        return None
    return made


def share_within(X: np.ndarray, rows: np.ndarray) -> float:
    """The mean share of the neighbours of these rows that are among them."""
    inside = np.zeros(len(X), dtype=bool)
    inside[rows] = True
    near = nearest_within(unit_rows(centred(X, mean_row(X))), rows, K)
    return float(inside[near].mean())


def _named_first(found: Explanation, rows: np.ndarray) -> bool:
    """Whether the first reason, or a part of it, has mostly these rows."""
    if not found.reasons:
        return False
    reason = found.reasons[0]
    listed = [reason.rows, *(part.rows for part in reason.parts)]
    return any(len(np.intersect1d(one, rows)) >= _SAME * len(np.union1d(one, rows)) for one in listed)
