"""What a search should find where nobody has judged it: neighbours in the new model, in the old one, or in both together.

Whose neighbours are the truth decides the verdict, and no measurement on vectors alone can say which model serves users better.
What can be measured is which of the two contains the other's information. The information imbalance (Glielmo, Zeni, Cheng,
Csányi and Laio 2022) is the mean rank, in one space, of a row's nearest neighbours in the other: near 0 where they are nearest
there, too, 1 where they are any rows. Where it is clearly smaller from the new model to the old one, the new one contains what
the old one knows, and more, so its neighbours are the truth; and the reverse. Else both count alike. Noise that a model adds
looks like knowledge that the other one lacks: no vectors can tell the two apart, and judged queries are worth more.
"""

from __future__ import annotations

import numpy as np

from relcore.evaluation import drawn_rows
from relcore.migration.evaluate import Bootstrap, Interval
from relcore.migration.fusion import searched_twice
from relcore.migration.retrieval import Relevance, neighbours_as_truth, search
from relcore.similarity import row_blocks

MOST_ROWS = 2_000
# Imbalances whose ratio may be nearer to 1 are alike. Chosen on nine pairs of models on Cranfield and Wikipedia sentences: it
# sorts eight of these as judgements or labels do, and leaves one undecided. They are few, and it was tried on no others.
CLEAR = 1.02
_NEAR = 0.03  # share of the rows whose ranks are looked at; few of them are noisy, many are mostly alike


def imbalance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Mean rank in `second` of the 3 % of the rows nearest to each row in `first`, (n,), over half of n; 1 by chance.

    Parameters
    ----------
    first, second : arrays (n, d1), (n, d2)
        The same rows, of length 1.
    """
    n = len(first)
    k = min(max(5, round(_NEAR * n)), n - 1)
    found = np.empty(n)
    for block in row_blocks(n, 256):
        rows = np.arange(block.start, block.stop)
        own = rows - block.start, rows
        near, far = (side[block] @ side.T for side in (first, second))
        near[own], far[own] = -np.inf, -np.inf
        nearest = np.argpartition(-near, k - 1, axis=1)[:, :k]
        ranks = np.empty_like(far)
        np.put_along_axis(ranks, np.argsort(-far, axis=1), np.arange(n, dtype=far.dtype)[None], axis=1)
        found[block] = np.take_along_axis(ranks, nearest, axis=1).mean(axis=1)
    return found * 2 / n


def richer(old: np.ndarray, new: np.ndarray, random_state: int = 0) -> tuple[str, Interval]:
    """ "new", "old" or "both": which of the models contains what the other one knows; and the ratio of the imbalances.

    Parameters
    ----------
    old, new : arrays (n, d_old), (n, d_new)
        Paired rows of length 1; at most 2,000 of them are looked at.
    """
    kept = drawn_rows(len(old), MOST_ROWS, random_state)
    from_old, from_new = imbalance(old[kept], new[kept]), imbalance(new[kept], old[kept])
    ratio = Bootstrap(len(kept), random_state=random_state).ratio(from_old, from_new)
    if ratio.low > CLEAR:
        return "new", ratio
    return ("old" if ratio.high < 1 / CLEAR else "both"), ratio


def neighbours_of(truth: str, old: np.ndarray, new: np.ndarray, queries: np.ndarray, k: int) -> Relevance:
    """The k nearest rows of each query, a row of the corpus itself, by the new model, the old one, or both.

    Ranks of both are added, not z-scores: a model whose best scores stand out more would count for more than the other.

    Parameters
    ----------
    old, new : arrays (n, d_old), (n, d_new)
        The corpus by both models, of length 1.
    queries : array (q,)
        Rows of it.
    """
    if truth == "both":
        found = searched_twice(old[queries], new[queries], (old, new), k, fusion="reciprocal", own=queries)
    else:
        side = new if truth == "new" else old
        found = search(side[queries], side, k, queries)
    return neighbours_as_truth(found, len(old))
