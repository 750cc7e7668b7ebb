"""Self-learning: fit a rotation to a few pairs, match more pairs with it, and repeat (Artetxe et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from relcore.anchors.csls import Matching, match_csls
from relcore.anchors.unseeded import FIRST_KEEP, pairs_without_seeds
from relcore.similarity import unit_rows

Rows = tuple[np.ndarray, np.ndarray]  # source rows and target rows, pair by pair or set beside set
SEED_WEIGHT = 5.0  # one known pair counts as much as five that were found
STALLED = 1e-3  # a gain of the mean CSLS below this is none
MOST_ROUNDS, MOST_ROUNDS_UNSEEDED = 15, 60  # without seeds the share that takes part begins at a tenth


@dataclass(frozen=True)
class Place:
    """The position of self-learning, in plain numbers; together with the rotation it suffices to resume.

    Attributes
    ----------
    stage, done : int
        The stage of the next round, and rounds done in it.
    keep : float
        Share of the similarities that take part in the next round.
    best : float, optional
        The largest mean CSLS so far at this stage and share; None before the first.
    """

    stage: int = 0
    done: int = 0
    keep: float = 1.0
    best: float | None = None


@dataclass(frozen=True, eq=False)
class Step:
    """One round: the rotation and the position for the next round, and the rows of its stage that this one matched."""

    place: Place
    rotation: np.ndarray
    rows: Rows
    matching: Matching

    @property
    def pairs(self) -> Rows:
        """Mutual pairs as rows of the whole spaces."""
        source, target = self.matching.pairs
        return self.rows[0][source], self.rows[1][target]


def rotation_between(source: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Orthogonal Procrustes of paired rows (k, d_source), (k, d_target), without shift or scale: (d_source, d_target).

    Fewer pairs than dimensions determine the rotation only on their span. Outside it the matrix is zero rather than
    arbitrary. Starting from 15 seeds, this saves half of the rounds.
    """
    weighted = source if weights is None else source * weights[:, None]
    left, singular_values, right = np.linalg.svd(weighted.T.astype(np.float64) @ target, full_matrices=False)
    rank = np.count_nonzero(singular_values > 1e-6 * singular_values[0])
    return (left[:, :rank] @ right[:rank]).astype(np.float32)


def begin(source: np.ndarray, target: np.ndarray, seeds: Rows, rows: Rows, k: int = 10) -> tuple[np.ndarray, Place]:
    """The first rotation: from the seeds, or without seeds from similarities within each space's `rows`."""
    if len(seeds[0]):
        return rotation_between(source[seeds[0]], target[seeds[1]]), Place()
    pairs = pairs_without_seeds(source[rows[0]], target[rows[1]], k)
    return rotation_between(source[rows[0][pairs[0]]], target[rows[1][pairs[1]]]), Place(keep=FIRST_KEEP)


def learned_rotation(source: np.ndarray, target: np.ndarray, seeds: Rows, k: int = 10, random_state: int = 0) -> np.ndarray:
    """The whole of self-learning, with or without seeds, over all rows at once; the last rotation (d_source, d_target)."""
    every = np.arange(len(source)), np.arange(len(target))
    rotation, place = begin(source, target, seeds, every, k)
    for step in self_learn(source, target, rotation, seeds, [every], k=k, random_state=random_state, place=place):
        rotation = step.rotation
    return rotation


def self_learn(
    source: np.ndarray,
    target: np.ndarray,
    rotation: np.ndarray,
    seeds: Rows,
    stages: Sequence[Rows],
    *,
    k: int = 10,
    random_state: int = 0,
    place: Place = Place(),
) -> Iterator[Step]:
    """Rounds over each stage's rows of unit rows (n, d_source), (m, d_target), until the mean CSLS stops rising.

    Match by CSLS, keep the mutual pairs, add the seeds with their weight, rotate again. Where the place's `keep` is below 1 the
    choice is made among a random share of the similarities, which doubles whenever a round gains nothing. To resume, give the
    `rotation` and the `place` of the last finished step: the result is the same as without the interruption.
    """
    most_rounds = MOST_ROUNDS if len(seeds[0]) else MOST_ROUNDS_UNSEEDED
    while place.stage < len(stages):
        rows = stages[place.stage]
        X, Y = source[rows[0]], target[rows[1]]
        stage = place.stage
        while place.stage == stage:
            rng = np.random.default_rng((random_state, stage, place.done + 1)) if place.keep < 1 else None
            matching = match_csls(unit_rows(X @ rotation), Y, k, keep=place.keep, rng=rng)
            rotation = _with_seeds(source, target, (rows[0][matching.pairs[0]], rows[1][matching.pairs[1]]), seeds)
            place = _next_place(place, matching.mean, most_rounds)
            yield Step(place, rotation, rows, matching)


def _next_place(place: Place, mean: float, most_rounds: int) -> Place:
    stalled = place.best is not None and mean - place.best < STALLED
    if (stalled and place.keep >= 1) or place.done + 1 == most_rounds:
        keep = min(1.0, 2 * place.keep) if stalled else place.keep
        return Place(place.stage + 1, 0, keep)
    if stalled:
        return Place(place.stage, place.done + 1, min(1.0, 2 * place.keep))
    best = mean if place.best is None else max(mean, place.best)
    return Place(place.stage, place.done + 1, place.keep, best)


def _with_seeds(source: np.ndarray, target: np.ndarray, pairs: Rows, seeds: Rows) -> np.ndarray:
    rows = [np.concatenate(both) for both in zip(pairs, seeds, strict=True)]
    weights = np.ones(len(rows[0]), dtype=np.float32)
    weights[len(pairs[0]) :] = SEED_WEIGHT
    return rotation_between(source[rows[0]], target[rows[1]], weights)
