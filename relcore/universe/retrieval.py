"""The scores of a universe: held-out rows of one space search the same rows in another one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pandas as pd

from relcore.base.rows import unit_rows
from relcore.engine.nearest import nearest
from relcore.scores.neighbours import Neighbours
from relcore.scores.score import ChanceLevel, Score
from relcore.spaces.space import LatentSpace
from relcore.universe.generalised_procrustes import Grid

FEWEST_ROWS = 20  # minimum number of shared rows, a fifth of which is held out
NEAREST = 10
_PERMUTATIONS = 200


def retrieval(source: np.ndarray, target: np.ndarray) -> Score:
    """The mean reciprocal rank and `top1` of a search by cosine, in which each row (n, D) searches its
    partner, the row with the same number in `target`. Without rows, both are 0.
    """
    if not len(source):
        return Score(0.0, metric="mrr", convention="paper", k=NEAREST, n=0, n_queries=0, top1=0.0)
    return _retrieval(unit_rows(source), unit_rows(target))[0]


def _retrieval(
    source: np.ndarray, target: np.ndarray, own: np.ndarray | None = None
) -> tuple[Score, np.ndarray]:
    """The score of `retrieval` for unit rows, and for each row the number of the nearest target row, an array
    (n,). `own` are the neighbours of target rows within the target; if it is None, they are computed.
    """
    k = min(NEAREST, len(source))
    every = np.arange(len(source))
    if own is None:
        own = nearest(target, target, k).rows
    lists = {"own": own, "forward": nearest(source, target, k).rows}
    score = Neighbours.listed((source, target), every, lists, k, "paper").mrr()
    return score, lists["forward"][:, 0]


def labels_of_rows(spaces: Sequence[LatentSpace], rows: np.ndarray) -> np.ndarray:
    """The label of each row, an array (t,), from the first space that has one; "" if none has. `rows` (N, t)
    are row numbers in each space, −1 if the row is missing.
    """
    labels = np.full(rows.shape[1], "", dtype=object)
    for space, own in zip(spaces, rows, strict=True):
        if space.labels is not None:
            new = (own >= 0) & (labels == "")
            labels[new] = space.labels[own[new]]
    return labels


def scores_of_pairs(
    places: Sequence[np.ndarray], present: np.ndarray, labels: np.ndarray
) -> tuple[Grid, ChanceLevel | None, tuple[float, float] | None]:
    """The `scores`, `best_chance` and `same_class` of a universe. The same permutations are used for all
    pairs of spaces, so that the chance level is that of the largest `top1`.
    """
    n = len(places)
    units = [unit_rows(rows) for rows in places]
    scores: list[list[Score | None]] = [[None] * n for _ in range(n)]
    rng = np.random.default_rng(0)
    keys = rng.random((_PERMUTATIONS, present.shape[1]), dtype=np.float32)
    orders: dict[bytes, np.ndarray] = {}
    own: dict[tuple[int, bytes], np.ndarray] = {}
    best = np.zeros(_PERMUTATIONS)
    alike = []
    for i, j in permutations(range(n), 2):
        both = present[i] & present[j]
        if (m := both.sum()) < FEWEST_ROWS:
            continue
        packed = np.packbits(both).tobytes()
        target = units[j][both]
        if packed not in orders:
            orders[packed] = np.argsort(keys[:, both], axis=1)
        if (j, packed) not in own:
            own[j, packed] = nearest(target, target, min(NEAREST, m)).rows
        scores[i][j], partners = _retrieval(units[i][both], target, own[j, packed])
        best = np.maximum(best, (orders[packed] == partners).mean(axis=1))
        if len(classes := labels[both]) < 2 * np.count_nonzero(known := classes != ""):
            shares = pd.Series(classes).value_counts(normalize=True)[classes[known]]
            alike.append(((classes[partners] == classes)[known].mean(), shares.mean()))
    same_class = None
    if alike:
        same_class = tuple(np.mean(alike, axis=0).tolist())
    chance = None
    if orders:
        chance = ChanceLevel.from_draws(best)
    return tuple(map(tuple, scores)), chance, same_class
