"""Asking twice: the scores of an old query and of a bridged new one, added; or their ranks.

Scores of two models have different means and spreads, so they are standardised for each query, over the whole corpus: a z-score
over the first results only would depend on how many there are, and would have none for a row that one of the searches lacks.

That costs nothing. The scores of a query q have the mean q·c̄ and the variance qᵀ Σ q, with c̄ and Σ the mean and the covariance
of the corpus. So the sum of the two z-scores is, up to a number of the query's own, the product of one longer query with one
longer corpus row; and where bridged queries search the old vectors as they are, of one query with the old vectors themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.metrics.search import nearest
from relcore.migration.retrieval import padded, without
from relcore.similarity import row_blocks

FUSIONS = {"z": "z-scores, added", "reciprocal": "reciprocal ranks, added"}
DEPTH = 1000  # of the lists whose ranks are added
_RANK_OFFSET = 60  # Cormack, Clarke and Büttcher 2009


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean (d,) and covariance (d, d) of the rows of a corpus, float64."""

    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, corpus: np.ndarray) -> Moments:
        """Of the rows (n, d), block by block."""
        total, products = np.zeros(corpus.shape[1]), np.zeros((corpus.shape[1],) * 2)
        for block in row_blocks(len(corpus)):
            rows = corpus[block].astype(np.float64)
            total += rows.sum(axis=0)
            products += rows.T @ rows
        mean = total / len(corpus)
        return cls(mean, products / len(corpus) - np.outer(mean, mean))

    def standardised(self, queries: np.ndarray) -> np.ndarray:
        """Queries (m, d) whose scores over the corpus have variance 1; a query whose scores are all equal becomes zero."""
        wide = queries.astype(np.float64)
        spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", wide, self.covariance, wide, optimize=True), 0))
        factors = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
        return (wide * factors[:, None]).astype(np.float32)


def added_scores(
    old: np.ndarray, new: np.ndarray, corpora: tuple[np.ndarray, np.ndarray], weight: float = 1.0, moments=None
) -> tuple[np.ndarray, np.ndarray]:
    """Queries and corpus whose products order rows by z_old + weight · z_new.

    Parameters
    ----------
    old, new : arrays (m, d_old), (m, d)
        The old queries, and the bridged ones.
    corpora : arrays (n, d_old), (n, d)
        What each of them searches; the same object where both search the old vectors.
    weight : float
        0 is the old model alone.
    moments : two `Moments`, optional
        Of the corpora, where they are known.
    """
    shared = corpora[0] is corpora[1]
    moments = moments or (Moments.of(corpora[0]), None if shared else Moments.of(corpora[1]))
    return added_queries(old, new, moments, weight), corpora[0] if shared else np.column_stack(corpora)


def added_queries(old: np.ndarray, new: np.ndarray, moments: tuple[Moments, Moments | None], weight: float = 1.0) -> np.ndarray:
    """The queries of `added_scores`: (m, d) where both search the old vectors, whose moments then come alone, else
    (m, d_old + d), for corpus rows side by side."""
    first, second = moments
    old = first.standardised(old)
    new = np.float32(weight) * (second or first).standardised(new)
    return old + new if second is None else np.column_stack([old, new])


def reciprocal_ranks(
    lists: tuple[np.ndarray, np.ndarray], k: int, weight: float = 1.0, offset: int = _RANK_OFFSET
) -> np.ndarray:
    """The k rows with the largest Σ w / (60 + rank) over two lists of rows (m, depth), (m, k); −1 where both lists end.

    The second list counts `weight` times as much; equal sums in the order of the first list, then of the second.
    """
    m, depth = lists[0].shape
    rows = np.concatenate(lists, axis=1)
    scores = np.concatenate([np.ones(depth), np.full(lists[1].shape[1], weight)]) / np.concatenate(
        [offset + 1 + np.arange(one.shape[1]) for one in lists]
    )
    found = np.full((m, k), -1, dtype=np.int64)
    for number in range(m):
        kept = rows[number] >= 0
        distinct, first, place = np.unique(rows[number][kept], return_index=True, return_inverse=True)
        sums = np.bincount(place, weights=scores[kept])
        order = np.lexsort((first, -sums))[:k]
        found[number, : len(order)] = distinct[order]
    return found


def searched_twice(
    old: np.ndarray,
    new: np.ndarray,
    corpora: tuple[np.ndarray, np.ndarray],
    k: int,
    *,
    fusion: str = "z",
    weight: float = 1.0,
    own: np.ndarray | None = None,
) -> np.ndarray:
    """Rows (m, k) that old and bridged queries find together; arguments as in `added_scores`, and `own` as in `search`."""
    n = len(corpora[0])
    if fusion == "z":
        queries, corpus = added_scores(old, new, corpora, weight)
        found = nearest(queries, corpus, min(k + (own is not None), n))
        return padded(found if own is None else without(found, own), k)
    lists = tuple(nearest(q, c, min(DEPTH + (own is not None), n)) for q, c in zip((old, new), corpora, strict=True))
    return reciprocal_ranks(lists if own is None else tuple(without(one, own) for one in lists), k, weight)
