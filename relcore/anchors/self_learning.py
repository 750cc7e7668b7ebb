"""Self-learning: from a few pairs to a rotation, from the rotation to more pairs, and again (Artetxe et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from relcore.anchors.csls import Matching, match_csls
from relcore.similarity import unit_rows

Rows = tuple[np.ndarray, np.ndarray]  # source rows and target rows, pair by pair or set beside set
SEED_WEIGHT = 5.0  # one known pair counts as much as five that were found
STALLED = 1e-3  # a gain of the mean CSLS below this is none
MOST_ROUNDS = 15


@dataclass(frozen=True, eq=False)
class Step:
    """One round: the rotation that the next begins with, and the matching that this one found among the rows of its stage."""

    stage: int
    rotation: np.ndarray
    keep: float
    rows: Rows
    matching: Matching
    last: bool

    @property
    def pairs(self) -> Rows:
        """Mutual pairs as rows of the whole spaces."""
        source, target = self.matching.pairs
        return self.rows[0][source], self.rows[1][target]


def rotation_between(source: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Orthogonal Procrustes of paired rows (k, d_source), (k, d_target), without shift or scale: (d_source, d_target).

    Fewer pairs than dimensions say nothing about the rest of the space: there the matrix is zero rather than arbitrary, and
    rows are compared within what the pairs span. From 15 seeds that saves half of the rounds.
    """
    weighted = source if weights is None else source * weights[:, None]
    left, singular_values, right = np.linalg.svd(weighted.T.astype(np.float64) @ target, full_matrices=False)
    rank = np.count_nonzero(singular_values > 1e-6 * singular_values[0])
    return (left[:, :rank] @ right[:rank]).astype(np.float32)


def self_learn(
    source: np.ndarray,
    target: np.ndarray,
    rotation: np.ndarray,
    seeds: Rows,
    stages: Sequence[Rows],
    *,
    k: int = 10,
    keep: float = 1.0,
    random_state: int = 0,
    stage: int = 0,
    most_rounds: int = MOST_ROUNDS,
) -> Iterator[Step]:
    """Rounds over each stage's rows of unit rows (n, d_source), (m, d_target), until the mean CSLS gains nothing.

    Match by CSLS, keep the mutual pairs, add the seeds with their weight, rotate anew. With `keep` below 1 the choice is
    made among a random share of the similarities, which doubles whenever a round gains nothing. To resume, give the
    `rotation`, `stage` and `keep` of the last finished step.
    """
    for number in range(stage, len(stages)):
        rows, best = stages[number], -np.inf
        X, Y = source[rows[0]], target[rows[1]]
        for round_ in range(1, most_rounds + 1):
            rng = np.random.default_rng((random_state, number, round_)) if keep < 1 else None
            matching = match_csls(unit_rows(X @ rotation), Y, k, keep=keep, rng=rng)
            stalled = matching.mean - best < STALLED
            best = max(best, matching.mean)
            rotation = _with_seeds(source, target, (rows[0][matching.pairs[0]], rows[1][matching.pairs[1]]), seeds)
            over = (stalled and keep >= 1) or round_ == most_rounds
            if stalled and keep < 1:
                keep, best = min(1.0, 2 * keep), -np.inf
            yield Step(number, rotation, keep, rows, matching, over and number == len(stages) - 1)
            if over:
                break


def _with_seeds(source: np.ndarray, target: np.ndarray, pairs: Rows, seeds: Rows) -> np.ndarray:
    rows = [np.concatenate(both) for both in zip(pairs, seeds, strict=True)]
    weights = np.ones(len(rows[0]), dtype=np.float32)
    weights[len(pairs[0]) :] = SEED_WEIGHT
    return rotation_between(source[rows[0]], target[rows[1]], weights)


def structureless(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Unit rows (n, d) with the spread of X along its principal axes and nothing else: each axis permuted by itself."""
    left, singular_values, right = np.linalg.svd(X, full_matrices=False)
    return unit_rows(rng.permuted(left * singular_values, axis=0).astype(np.float32) @ right)


def null_objectives(
    source: np.ndarray, target: np.ndarray, n_seeds: int, *, k: int = 10, n_draws: int = 2, random_state: int = 0
) -> tuple[float, ...]:
    """Mean CSLS that self-learning reaches where there is nothing to find: the target made structureless, pairs at random.

    A rotation always fits something of what it was fitted to, so this lies above 0. On at most 4,000 rows: with more rows
    than that there is less room to fit, and the null would be lower.
    """
    rng = np.random.default_rng(random_state)
    n = min(len(source), len(target), 4000)
    reached = []
    for _ in range(n_draws):
        X = source[rng.choice(len(source), n, replace=False)]
        Y = structureless(target[rng.choice(len(target), n, replace=False)], rng)
        every, pairs = np.arange(n), (rng.permutation(n)[:n_seeds], rng.permutation(n)[:n_seeds])
        start = rotation_between(X[pairs[0]], Y[pairs[1]])
        steps = self_learn(X, Y, start, pairs, [(every, every)], k=k, most_rounds=8)
        reached.append(max(step.matching.mean for step in steps))
    return tuple(reached)
