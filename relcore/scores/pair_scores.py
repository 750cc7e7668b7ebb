"""PairScores: the similarity of every pair of several spaces, each score with its chance level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from relcore.base.names import METRICS
from relcore.base.numbers import band, short
from relcore.scores.score import ChanceLevel, Score


@dataclass(frozen=True)
class PairScores:
    """The scores of all pairs of several spaces by one metric: a symmetric matrix.

    Attributes
    ----------
    names : s distinct names
    metric : str
        One of `names.METRICS`.
    scores : s × s of Score or None
        None if two spaces cannot be compared.
    reasons : s × s of str
        The reason why there is no score; "" if there is one.
    best_chance : ChanceLevel or None
        The chance level of the largest score of two different spaces. None for a single pair, for spaces with
        different rows, and in results of older versions.
    """

    names: tuple[str, ...]
    metric: str
    scores: tuple[tuple[Score | None, ...], ...]
    reasons: tuple[tuple[str, ...], ...]
    best_chance: ChanceLevel | None = None

    @property
    def values(self) -> np.ndarray:
        """The scores as numbers, (s, s), NaN for missing ones."""
        return np.array([[np.nan if score is None else float(score) for score in row] for row in self.scores])

    @property
    def title(self) -> str:
        """The metric as people write it: ``"mutual kNN, k = 10"``."""
        k = next((score.k for row in self.scores for score in row if score is not None), None)
        return METRICS[self.metric].title + (f", k = {k}" if k else "")

    def describe(self, i: int, j: int) -> str:
        """The text of a cell: metric and score with its sampling interval, chance level and rows, or why
        there is no score.
        """
        score = self.scores[i][j]
        if score is None:
            return self.reasons[i][j]
        text = f"{self.title}: {short(score)}"
        text += f" ({band(*score.interval)}, sampled)" if score.interval else ""
        if null := score.null:
            text += f"\nchance level: {short(null.mean)}, 95 % band {band(null.low, null.high)}"
        queries = "" if score.n_queries == score.n else f"{score.n_queries:,} of "
        text += f"\nn: {queries}{score.n:,} rows{' as queries' * bool(queries)}"
        return f"{text}\n{score.note}" if score.note else text

    @property
    def best(self) -> tuple[str, str, Score] | None:
        """The two different spaces that are most similar, and their score; None if no two can be compared."""
        pairs = [(i, j) for i in range(len(self.names)) for j in range(i) if self.scores[i][j] is not None]
        if not pairs:
            return None
        i, j = max(pairs, key=lambda pair: self.scores[pair[0]][pair[1]])
        return self.names[j], self.names[i], self.scores[i][j]

    def grouped(self) -> PairScores:
        """The scores, sorted so that similar spaces are side by side: the leaf order of average linkage of 1
        − score.

        A pair without a score counts as less similar than all others.
        """
        from scipy.cluster.hierarchy import leaves_list

        order = leaves_list(average_linkage(self.values)).tolist()
        names = tuple(self.names[i] for i in order)
        scores, reasons = (
            tuple(tuple(cells[i][j] for j in order) for i in order) for cells in (self.scores, self.reasons)
        )
        return replace(self, names=names, scores=scores, reasons=reasons)

    def table(self) -> pd.DataFrame:
        """One row per pair, including each space with itself, as `figures` and CSV use it.

        Columns: first, second, score, chance (its mean), null_low, null_high (its 95 % band), low, high
        (sampling interval, if rows were sampled), n, k, queries, reason (for a missing score).
        """
        rows = []
        for i, first in enumerate(self.names):
            for j in range(i, len(self.names)):
                score, pair = self.scores[i][j], {"first": first, "second": self.names[j]}
                rows.append(pair | (score.to_row() if score is not None else {"reason": self.reasons[i][j]}))
        numbers = dict.fromkeys(["score", "chance", "null_low", "null_high", "low", "high"], "float64")
        types = numbers | dict.fromkeys(["n", "k", "queries"], "Int64")
        table = pd.DataFrame(rows).reindex(columns=["first", "second", *types, "reason"])
        return table.astype(types).fillna({"reason": ""})


def distances(similarity: np.ndarray) -> np.ndarray:
    """The distances 1 − similarity (s, s), at least 0; a pair without a score gets the largest one."""
    distance = np.maximum(1 - similarity, 0)
    distance = np.nan_to_num(distance, nan=np.nanmax(distance, initial=1.0))
    np.fill_diagonal(distance, 0)
    return distance


def average_linkage(similarity: np.ndarray) -> np.ndarray:
    """SciPy's average linkage (s − 1, 4) of the `distances`, with similar leaves side by side."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    return linkage(squareform(distances(similarity), checks=False), "average", optimal_ordering=True)


# The chance level of a maximum: by chance, the best score of many pairs of spaces.

SAMPLED_ROWS = 400
PERMUTATIONS = 400
_AT_ONCE = 2**26  # floats of permuted matrices in memory at a time


def best_by_chance(
    scores: Mapping[tuple[int, int], Score], forms: Sequence[np.ndarray], *, both_axes: bool
) -> ChanceLevel | None:
    """The chance level of the largest of these scores; None for fewer than two scores.

    The second spaces of all pairs are permuted by the same permutation. Scores of pairs that share a space,
    or of layers of one model, are correlated, so their maximum is lower than that of independent scores. The
    correlation is estimated on a sample of rows; each score's mean and spread are those of its own chance
    level.

    Parameters
    ----------
    scores : (i, j) → Score with a chance level, i ≠ j
        All scores are over the same rows.
    forms : arrays (m, w), one per space
        For a sample of these rows, either a matrix of similarities, which is permuted along both axes, or
        rows, which are permuted along the first.
    """
    scored = {cell: score for cell, score in scores.items() if score is not None and score.null is not None}
    if len(scored) < 2:
        return None
    (fixed, first), (moved, second) = (
        np.unique(side, return_inverse=True) for side in zip(*scored, strict=True)
    )
    flat = np.stack(forms).astype(np.float32)
    permuted = _drawn(flat[fixed], flat[moved], both_axes)[:, first, second]
    low, high = np.quantile(permuted, [0.025, 0.975], axis=0)
    widths = np.array([score.null.high - score.null.low for score in scored.values()])
    means = np.array([score.null.mean for score in scored.values()])
    rescaled = means + (permuted - permuted.mean(axis=0)) * np.divide(
        widths, high - low, out=np.zeros_like(widths), where=high > low
    )
    return ChanceLevel.from_draws(rescaled.max(axis=1))


def _drawn(fixed: np.ndarray, moved: np.ndarray, both_axes: bool) -> np.ndarray:
    """Inner products (permutations, s, t) of forms (s, m, w) with permuted ones (t, m, w), all of length
    1."""
    rng, (t, m, _) = np.random.default_rng(0), moved.shape
    fixed, moved = (
        forms / np.maximum(np.linalg.norm(forms.reshape(len(forms), -1), axis=1), 1e-30)[:, None, None]
        for forms in (fixed, moved)
    )
    flat = fixed.reshape(len(fixed), -1)
    inner_products = np.empty((PERMUTATIONS, len(fixed), t))
    at_once = max(1, _AT_ONCE // moved.size)
    for start in range(0, PERMUTATIONS, at_once):
        orders = [rng.permutation(m) for _ in range(min(at_once, PERMUTATIONS - start))]
        permuted = [moved[:, order][:, :, order] if both_axes else moved[:, order] for order in orders]
        products = flat @ np.stack(permuted).reshape(len(orders) * t, -1).T
        inner_products[start : start + len(orders)] = products.reshape(len(fixed), len(orders), t).transpose(
            1, 0, 2
        )
    return inner_products
