"""Anchor strategies: which rows become anchors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from relcore.base.arguments import need_ids, need_whole, random_generator
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.kinds import takes_kinds
from relcore.base.names import STRATEGIES
from relcore.base.rows import mean_row, unit_rows
from relcore.spaces.ids import GuessedIds, scored_rows
from relcore.spaces.matching import as_space
from relcore.spaces.space import LatentSpace, MatrixLike

# Anchors: strategies that select them, diagnostics of a set, and audits of pairs.

USUAL_ANCHORS = 300


def usual_anchors(n: int) -> int:
    """The default number of anchors of n rows: 300 as in the papers, but at most a fifth of the rows.

    Measured with 120 of the bundled words (8 draws): by similarities to 24 anchors, 94 % of the other words
    are nearest to the same word in the second space. With 12 anchors, 76 % are. With 60, 98 % are, but only
    half of the words are left to be scored. If there are fewer than 50 rows, up to 10 are anchors, but at
    most half of the rows.
    """
    return max(1, min(USUAL_ANCHORS, max(n // 5, min(n // 2, 10))))


Strategy: TypeAlias = Literal[
    "random", "farthest-point", "k-means", "most-frequent", "class-balanced", "learned"
]


@takes_kinds
def select_anchors(
    space: MatrixLike,
    n_anchors: int,
    strategy: Strategy = "random",
    *,
    pool: int | None = None,
    random_state: int = 0,
) -> np.ndarray:
    """Select anchors of a space. Returns their ids (n_anchors,). Zero vectors are never selected.

    Parameters
    ----------
    space : LatentSpace, or matrix (n, d) in any form
        Rows without ids have the ids "0", "1", ….
    strategy : one of `names.STRATEGIES`
        Most are strategies of Moschella et al. 2023 and their code. "random" draws uniformly.
        "farthest-point" repeatedly adds the row with the largest angle to its nearest anchor. "k-means" takes
        the row nearest to each centroid. "most-frequent" takes the most frequent rows. "class-balanced" takes
        the same number of rows from each label; if a label has too few rows, more from others.
    pool : int, optional
        Select only among the `pool` most frequent rows (in the code of the paper: 1,000, 5,000, 10,000).

    Raises
    ------
    SpaceError
        More anchors than distinct candidates; an unknown strategy; "class-balanced" for a space without
        labels.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, select_anchors
    >>> vectors = [[1, 0], [1, 0.1], [0, 1], [-1, 0]]
    >>> space = LatentSpace(vectors, ["a", "b", "c", "d"], counts=[9, 2, 5, 1])
    >>> select_anchors(space, 2, "most-frequent").tolist()
    ['a', 'c']
    >>> len(select_anchors(space, 3, random_state=0))
    3
    """
    space = as_space(space)
    need_one_of("strategy", strategy, STRATEGIES)
    need_whole("n_anchors", n_anchors)
    if pool is not None:
        need_whole("pool", pool)
    rng = random_generator(random_state)
    if space.counts is None:
        rows = np.arange(len(space))
    else:
        rows = np.argsort(-space.counts, kind="stable")
    candidates = rows[space.norms[rows] > 0][:pool]
    if n_anchors > len(candidates):
        raise SpaceError(
            f"n_anchors: expected at most {len(candidates)}, the rows of {space.name!r} that can be chosen,"
            f" got {n_anchors}; ask for fewer, or widen the pool"
        )
    rows = STRATEGIES[strategy].load()(space, candidates, n_anchors, rng)
    return space.ids[rows]


def unscored_first(space: LatentSpace, n_anchors: int) -> LatentSpace:
    """The rows among which this many anchors are selected. If enough pairs of rows were only guessed, these
    are the rows: guessed pairs cannot be scored, so all other pairs can be. Otherwise, all rows are."""
    if isinstance(space.ids, GuessedIds):
        guesses = np.flatnonzero(~scored_rows(space.ids))
        if n_anchors <= len(guesses):
            return space.take(guesses)
    return space


def shared_anchors(ids: Sequence[str], *spaces: LatentSpace) -> list[str]:
    """The ids as a list, after a check. Raises a SpaceError if there are no ids, if an id is repeated, and if
    a row is zero in one of the spaces."""
    ids = need_ids("anchors", ids)
    if not ids:
        raise SpaceError("anchors: expected at least one id, got none")
    if len(set(ids)) < len(ids):
        twice = sorted({identifier for identifier in ids if ids.count(identifier) > 1})
        raise SpaceError(f"anchors: expected distinct ids, got {quote(twice[:3])} more than once")
    for space in spaces:
        zero = np.flatnonzero(space.norms[space.rows(ids)] == 0)
        if len(zero):
            raise SpaceError(
                f"anchors: {quote([ids[place] for place in zero[:3]])} are zero vectors in {space.name!r} and"
                " have no direction; remove them"
            )
    return ids


# The strategies return the row numbers of n anchors, from `candidates` (m,): row numbers by descending
# frequency.


def at_random(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    return rng.choice(candidates, n_anchors, replace=False)


def most_frequent(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    return candidates[:n_anchors]


def farthest_point(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    rows = _directions(space, candidates)
    start = int(rng.integers(len(candidates)))
    order, _ = farthest_order(lambda row: rows @ rows[row], len(rows), start, 1e-6, n_anchors)
    if len(order) < n_anchors:
        raise SpaceError(
            f"n_anchors: expected at most {len(order)}, the number of distinct directions, got {n_anchors}"
        )
    return candidates[order]


def farthest_order(
    similarity: Callable[[int], np.ndarray], n: int, start: int, delta: float = 0.0, most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The greedy farthest-point order of n rows, with the distance 1 − similarity. It starts at row `start`,
    and ends when the next row is nearer than δ.

    Returns at most `most` rows, and the distance of each row to the nearest earlier row, which is 1 for the
    first row. Distances never increase, so the order for a larger δ is a prefix of that for a smaller δ.
    """
    if most is None:
        most = n
    order = [int(start)]
    distances = [1.0]
    nearest = similarity(start).copy()
    nearest[start] = np.inf
    while len(order) < most:
        farthest = int(np.argmin(nearest))
        distance = max(1 - float(nearest[farthest]), 0.0)
        if distance < delta:
            break
        order.append(farthest)
        distances.append(distance)
        np.maximum(nearest, similarity(farthest), out=nearest)
        nearest[farthest] = np.inf
    return np.array(order), np.array(distances)


def k_means(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans

    directions = _directions(space, candidates)
    # k-means with mini-batches takes a tenth of the time of full k-means.
    k_means = MiniBatchKMeans(n_anchors, batch_size=4096, n_init=1, random_state=int(rng.integers(2**31)))
    return candidates[_nearest_rows(k_means.fit(directions).cluster_centers_, directions)]


def _nearest_rows(centres: np.ndarray, directions: np.ndarray) -> np.ndarray:
    similarity = unit_rows(centres) @ directions.T
    chosen = np.empty(len(centres), dtype=np.int64)
    for centre, row in enumerate(similarity):
        chosen[centre] = np.argmax(row)
        similarity[:, chosen[centre]] = -np.inf  # another centroid may have the same nearest row
    return chosen


def class_balanced(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    if space.labels is None:
        raise SpaceError(
            f"strategy 'class-balanced': expected labels, {space.name!r} has none; choose another strategy"
        )
    shuffled = rng.permutation(candidates)
    shuffled = shuffled[space.labels[shuffled] != ""]
    if len(shuffled) < n_anchors:
        raise SpaceError(f"n_anchors: expected at most {len(shuffled)}, the labelled rows, got {n_anchors}")
    # Take the first row of every class, then the second of every class, and so on, until there are enough.
    labels = pd.Series(space.labels[shuffled])
    turn = labels.groupby(labels).cumcount()
    place = np.unique(labels, return_inverse=True)[1]
    return shuffled[np.lexsort((place, turn))[:n_anchors]]


def _directions(space: LatentSpace, rows: np.ndarray) -> np.ndarray:
    return unit_rows(space.vectors[rows], mean_row(space.vectors))
