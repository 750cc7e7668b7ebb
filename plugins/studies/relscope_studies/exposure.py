"""Exposure: what a stranger with another model and a few leaked pairs learns about stored vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relcore.base.rows import mean_row, unit_rows
from relcore.linking.clusters import link_clusters, map_from_pairs

ROWS, TESTED = 1500, 500  # of either side, with other texts; unseen rows among which one is guessed
PAIRS = (0, 5, 15, 30, 100)
Defence = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _rotated(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0].astype(np.float32)


def _rounded(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    step = np.abs(X).max(axis=1, keepdims=True) / 127
    return np.round(X / step) * step


def _dropped(share: float) -> Defence:
    return lambda X, rng: X[:, np.sort(rng.permutation(X.shape[1])[round(share * X.shape[1]) :])]


def _noise(size: float) -> Defence:
    """Of `size` times the rows' own length."""

    def added(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        noise = rng.normal(size=X.shape).astype(np.float32) / np.sqrt(X.shape[1])
        return X + size * np.linalg.norm(X, axis=1, keepdims=True) * noise

    return added


DEFENCES: dict[str, Defence] = {
    "none": lambda X, rng: X,
    "secret rotation": _rotated,
    "secret permutation": lambda X, rng: X[:, rng.permutation(X.shape[1])],
    "rounded to int8": _rounded,
    "signs only": lambda X, rng: np.sign(X),
    "half of the dimensions": _dropped(0.5),
    "a fifth of the dimensions": _dropped(0.8),
    "noise of half the length": _noise(0.5),
    "noise of the length": _noise(1.0),
    "noise of twice the length": _noise(2.0),
}


def exposed(
    mine: np.ndarray, theirs: np.ndarray, defence: str, n_pairs: int, random_state: int
) -> dict[str, float]:
    """How well a stranger names unseen rows, and what the defence costs.

    `mine` (n, d) and `theirs` (n, e) are vectors of the same texts by two models. The stranger has 1,500
    defended vectors of mine, their own vectors of 1,500 other texts, and `n_pairs` texts with both.

    Returns
    -------
    top1 : share of 500 unseen rows whose text the stranger picks among these 500 (chance 1/500)
    recall : recall@10 of my search of the defended rows, by that of the rows as they were
    """
    rng = np.random.default_rng((random_state, 41))
    order = rng.permutation(len(mine))
    own, other, tested, leaked = np.split(
        order[: 2 * ROWS + TESTED + n_pairs], [ROWS, 2 * ROWS, 2 * ROWS + TESTED]
    )
    stored = unit_rows(DEFENCES[defence](unit_rows(mine), rng))
    known = np.r_[own, leaked], np.r_[other, leaked]
    means = mean_row(stored[known[0]]), mean_row(theirs[known[1]])
    first, second = unit_rows(stored[known[0]], means[0]), unit_rows(theirs[known[1]], means[1])
    pairs = np.stack([np.arange(ROWS, ROWS + n_pairs)] * 2)
    if n_pairs:
        mapping = map_from_pairs(first, second, pairs, random_state)
    else:
        *_, fit = link_clusters(first, second, random_state)
        mapping = fit.mapping
    guessed = unit_rows(unit_rows(stored[tested], means[0]) @ mapping) @ unit_rows(theirs[tested], means[1]).T
    top1 = float(np.mean(guessed.argmax(axis=1) == np.arange(TESTED)))
    return {"top1": top1, "recall": _kept(unit_rows(mine)[order[:4000]], stored[order[:4000]])}


def _kept(before: np.ndarray, after: np.ndarray, k: int = 10) -> float:
    """Recall@10 of 500 rows as queries, which the owner defends as well."""
    lists = []
    for rows in (before, after):
        near = rows[:TESTED] @ rows.T
        near[np.arange(TESTED), np.arange(TESTED)] = -np.inf
        lists.append(np.argpartition(-near, k, axis=1)[:, :k])
    return float(np.mean([len(set(a) & set(b)) / k for a, b in zip(*lists, strict=True)]))
