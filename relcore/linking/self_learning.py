"""Self-learning: rotations between two spaces from known pairs, or from similarities within each space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import mean_row, unit_rows
from relcore.engine.engine import Engine
from relcore.linking.clusters import Matching, Stage, match_csls, rotation_between

# Self-learning (Artetxe et al. 2017): fit a rotation on a few pairs, match more pairs by it, and repeat.

MOST_ROWS = 4000  # number of rows in the first stage, and in a start without seeds
FIRST_KEEP = 0.1
SEED_WEIGHT = 5.0  # weight of a known pair in a fit; matched pairs have weight 1
STALLED = 1e-3  # minimum gain of the mean CSLS that counts
MOST_ROUNDS = 15
MOST_ROUNDS_UNSEEDED = 60


def first_rotation(
    source: np.ndarray, target: np.ndarray, seeds: np.ndarray, stage: Stage, k: int = 10
) -> tuple[np.ndarray, float]:
    """Two values with which `self_learn` starts: the rotation, and the probability `keep`. The rotation is
    fitted on the seeds. Without seeds, it is fitted on rows that are matched by their similarities within
    each space (Artetxe et al. 2018, § 3.2).

    The profile of a row is the sorted list of its similarities to all rows of its space. Profiles do not
    depend on the axes, so they can be compared between spaces. Rows with similar profiles are matched.
    """
    if len(seeds[0]):
        return rotation_between(source[seeds[0]], target[seeds[1]]), 1.0
    X = source[stage[0]]
    Y = target[stage[1]]
    if max(len(X), len(Y)) > MOST_ROWS:
        raise SpaceError(
            f"no seeds: expected at most {MOST_ROWS:,} rows, got {max(len(X), len(Y)):,}; give seeds, or"
            " spaces with counts, so that the most frequent rows come first"
        )
    n = min(len(X), len(Y), _PLACES)
    rows, others = match_csls(_profile(X, n), _profile(Y, n), k).pairs
    return rotation_between(X[rows], Y[others]), FIRST_KEEP


_PLACES = 1000  # maximum number of entries of a profile; more do not help


def _profile(X: np.ndarray, n: int) -> np.ndarray:
    """The profiles of the rows of X, an array (rows, n): each row of the square root of X Xᵀ is sorted,
    reduced to n evenly spaced ranks, centred, and scaled to length 1.
    """
    left, singular_values, _ = Engine().svd(X)
    root = np.sort((left * singular_values) @ left.T, axis=1)
    if root.shape[1] > n:
        root = root[:, np.linspace(0, root.shape[1] - 1, n).round().astype(int)]
    root = unit_rows(root)
    return unit_rows(root, mean_row(root))


def self_learn(
    source: np.ndarray,
    target: np.ndarray,
    rotation: np.ndarray,
    seeds: np.ndarray,
    stages: Sequence[Stage],
    *,
    k: int = 10,
    random_state: int = 0,
    keep: float = 1.0,
) -> Iterator[tuple[np.ndarray, Stage, Matching]]:
    """Repeat two steps on unit rows (n, d_source) and (m, d_target): match rows by the current rotation, and
    fit the next rotation on the matches. Yield the rotation, the stage and the matching of each round.

    A stage is a pair of arrays, the rows of the source and of the target that it uses. A round matches these
    rows by CSLS, keeps the mutual pairs, adds the weighted seeds, and fits the next rotation on all of these
    pairs. To escape poor matches, each similarity is used only with the probability `keep`, which is doubled
    after a round without gain. A stage ends when the mean CSLS stops rising.
    """
    most_rounds = MOST_ROUNDS if len(seeds[0]) else MOST_ROUNDS_UNSEEDED
    for number, stage in enumerate(stages):
        best = -np.inf
        for done in range(1, 1 + most_rounds):
            rng = None
            if keep < 1:
                rng = np.random.default_rng((random_state, number, done))
            rotated = unit_rows(source[stage[0]] @ rotation)
            matching = match_csls(rotated, target[stage[1]], k, keep=keep, rng=rng)
            rows, others = np.hstack([whole(stage, matching.pairs), seeds])
            weights = np.ones(len(rows), dtype=np.float32)
            weights[len(matching.mutual) :] = SEED_WEIGHT
            rotation = rotation_between(source[rows], target[others], weights)
            yield rotation, stage, matching
            stalled = matching.mean - best < STALLED
            if stalled and keep >= 1:
                break
            if stalled:
                keep = min(1.0, 2 * keep)
                best = -np.inf
            else:
                best = max(best, matching.mean)


def whole(stage: Stage, pairs: np.ndarray) -> np.ndarray:
    return np.stack([stage[0][pairs[0]], stage[1][pairs[1]]])
