"""Pairs of spaces whose difference no feature explains, and pairs in which one space is coarser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.explained.rows import (
    FREQUENT,
    ROWS,
    WORDS,
    Drawn,
    drawn,
    network,
    noisy,
    rotated,
    sentence_vectors,
)
from relcore import load_space
from relcore.explain.items import RowItems
from relcore.explain.result import Explanation
from relcore.spaces.space import LatentSpace

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2)  # noise, as a share of the spread
_OF_SPACES = ("norm", "hubness", "cluster")
_ORDER = 1e-6  # weight of the unrounded vectors, which breaks ties between rounded rows


def copy(kind: str, rng: np.random.Generator) -> Explanation:
    one = drawn(kind, rng)
    return one.explained(one.vectors, rotated(one.vectors, rng))


def equal_noise(kind: str, rng: np.random.Generator) -> Explanation:
    one = drawn(kind, rng)
    level = LEVELS[rng.integers(len(LEVELS))]
    return one.explained(noisy(one.vectors, level, rng), noisy(rotated(one.vectors, rng), level, rng))


def another_state(kind: str, rng: np.random.Generator) -> Explanation:
    """The same training from two random states: of networks on the digits, or of LSA on sentences."""
    if kind in ("pictures", "columns"):
        one = drawn("pictures", rng)
        make = network
    else:
        one = drawn("texts", rng)
        make = lsa_of_one_pass
    states = rng.choice(200, 2, replace=False).tolist()
    rows = [int(name.partition("/")[2]) for name in one.ids]
    first, second = (make(state)[rows] for state in states)
    return one.explained(first, second)


def lsa_of_one_pass(state: int) -> np.ndarray:
    return sentence_vectors(state, 1)


def random_features(kind: str, rng: np.random.Generator) -> Explanation:
    """Two different models, and columns of random classes and numbers."""
    rows = np.sort(rng.choice(FREQUENT, ROWS, replace=False))
    vectors = [load_space(name).vectors[rows] for name in WORDS]
    ids = [f"row/{row}" for row in rows]
    items = RowItems()
    columns = {"number": rng.normal(size=ROWS).tolist()}
    for classes in (2, 5, 20):
        columns[f"{classes} classes"] = [f"c{one}" for one in rng.integers(classes, size=ROWS)]
    items.add(LatentSpace(vectors[0], ids), columns=columns)
    return _of_items(Drawn(vectors[0], ids, items).explained(*vectors))


def shuffled_ids(kind: str, rng: np.random.Generator) -> Explanation:
    """Two different models, whose words were shuffled alike in both."""
    rows = np.sort(rng.choice(FREQUENT, ROWS, replace=False))
    first, second = map(load_space, WORDS)
    ids = rng.permutation(first.ids[rows]).tolist()
    counts = rng.permutation(first.counts[rows])
    one = Drawn(first.vectors[rows], ids, RowItems(), counts=counts)
    return _of_items(one.explained(one.vectors, second.vectors[rows]))


def _of_items(found: Explanation) -> Explanation:
    """Only reasons about items count, because the two models do differ in clusters and lengths."""
    kept = tuple(one for one in found.reasons if not one.family.startswith(_OF_SPACES))
    return replace(found, reasons=kept)


# Two copies of a space with noise of the same size, of one of nine kinds.


def of_one_size(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    return noisy(X, level, rng)


def by_length(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    size = np.linalg.norm(X, axis=1, keepdims=True) / np.sqrt(X.shape[1])
    return X + level * size * rng.normal(size=X.shape)


def by_axis(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    return X + level * X.std(axis=0) * rng.normal(size=X.shape)


def correlated(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    """Noise with the covariance of the rows: differences of random pairs of them."""
    n = len(X)
    difference = X[rng.integers(n, size=n)] - X[rng.integers(n, size=n)]
    return X + level * difference / np.sqrt(2)


def heavy_tailed(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    """Noise whose size differs between rows, as Student's t with 3 degrees of freedom has."""
    size = np.sqrt(3 / rng.chisquare(3, size=(len(X), 1)))
    spread = (X - X.mean(axis=0)).std()
    return X + level * spread * size * rng.normal(size=X.shape)


def rounded_by_row(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    steps = np.abs(X).max(axis=1, keepdims=True) * level
    return np.rint(X / steps) * steps + _ORDER * X


def rounded(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    """Rounded to steps of one size. The level is a share of four standard deviations."""
    step = 4 * level * X.std()
    return np.rint(X / step) * step + _ORDER * X


def masked(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    """A share of the numbers is 0."""
    return np.where(rng.random(X.shape) < level / 2, 0, X)


def fewer_dimensions(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    return X[:, : max(3, round(X.shape[1] / (1 + 2 * level)))]


NOISES: dict[str, Callable[[np.ndarray, float, np.random.Generator], np.ndarray]] = {
    "of one size": of_one_size,
    "by length": by_length,
    "by axis": by_axis,
    "correlated": correlated,
    "heavy-tailed": heavy_tailed,
    "rounded by row": rounded_by_row,
    "rounded": rounded,
    "masked": masked,
    "fewer dimensions": fewer_dimensions,
}
_NOISE_LEVELS = (0.1, 0.8)


def equal_noise_of(noise: str, kind: str, rng: np.random.Generator) -> Explanation:
    """Two copies in random axes, to which the same kind of noise of one size was added."""
    one = drawn(kind, rng)
    level = rng.uniform(*_NOISE_LEVELS)
    add = NOISES[noise]
    copies = [np.float32(add(rotated(one.vectors, rng), level, rng)) for _ in range(2)]
    return one.explained(*copies)


# One model is coarser.


def coarse(how: str, kind: str, rng: np.random.Generator) -> Explanation:
    one = drawn(kind, rng)
    X = one.vectors
    if how == "noise":
        worse = noisy(X, rng.uniform(0.4, 1.2), rng)
    elif how == "rounded":
        worse = rounded_by_row(rotated(X, rng), rng.uniform(0.3, 1.2), rng)
    elif how == "fewer dimensions":
        worse = rotated(X, rng)[:, : _fewer(X, rng)]
    else:
        axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2]
        worse = X @ axes[: _fewer(X, rng)].T
    sides = [X, rotated(worse, rng)]
    if rng.random() < 0.5:
        sides.reverse()
    return one.explained(*sides)


def _fewer(X: np.ndarray, rng: np.random.Generator) -> int:
    return max(3, int(X.shape[1] * rng.uniform(0.1, 0.4)))


CONTROLS: dict[str, Callable[[str, np.random.Generator], Explanation]] = {
    "rotated copy": copy,
    "equal noise, ten levels": equal_noise,
    "another random state of the training": another_state,
    "random features": random_features,
    "shuffled ids": shuffled_ids,
}
COARSE = ("noise", "rounded", "fewer dimensions", "principal axes")
