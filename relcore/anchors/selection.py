"""Choose anchors by strategy; other spaces use the same ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.names import STRATEGIES
from relcore.similarity import mean_row, unit_rows
from relcore.spaces import LatentSpace, SpaceError, need_one_of, quote


def select_anchors(
    space: LatentSpace,
    n_anchors: int,
    strategy: str = "random",
    *,
    pool: int | None = None,
    random_state: int = 0,
) -> np.ndarray:
    """Ids (n_anchors,) of anchors chosen in this space; zero vectors are never chosen.

    Parameters
    ----------
    strategy : {"random", "farthest-point", "k-means", "most-frequent", "class-balanced"}
        The strategies of Moschella et al. 2023 (their code): uniform; each next anchor farthest (in angle) from those
        chosen; the row nearest to each k-means centroid; the most frequent rows in falling order; the same number from
        each label, where a label is too small the others fill up.
    pool : int, optional
        Choose among the `pool` most frequent rows only (the paper's code: 1,000, 5,000, 10,000).

    Raises
    ------
    SpaceError
        More anchors than (distinct) candidates, an unknown strategy, class-balanced without labels.

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
    need_one_of("strategy", strategy, STRATEGIES)
    if n_anchors < 1:
        raise SpaceError(f"n_anchors: expected 1 or more, got {n_anchors}")
    if random_state < 0:
        raise SpaceError(f"random_state: expected a whole number from 0, got {random_state}")
    if pool is not None and pool < 1:
        raise SpaceError(f"pool: expected 1 or more rows, got {pool}")
    candidates = _by_frequency(space)[:pool]
    if n_anchors > len(candidates):
        raise SpaceError(
            f"n_anchors: expected at most {len(candidates)}, the rows of {space.name!r} that can be chosen, got {n_anchors}; "
            "ask for fewer, or widen the pool"
        )
    rows = STRATEGIES[strategy].load()(space, candidates, n_anchors, np.random.default_rng(random_state))
    return space.ids[rows]


def shared_anchors(ids: Sequence[str], *spaces: LatentSpace) -> list[str]:
    """The ids as a list, checked to be distinct and in every space.

    Raises
    ------
    SpaceError
        An empty list, an id given twice, or ids that a space lacks or holds as zero vectors.
    """
    ids = list(ids)
    if not ids:
        raise SpaceError("anchors: expected at least one id, got none")
    if len(set(ids)) < len(ids):
        twice = sorted({identifier for identifier in ids if ids.count(identifier) > 1})
        raise SpaceError(f"anchors: expected distinct ids, got {quote(twice[:3])} more than once")
    for space in spaces:
        rows = space.rows(ids)
        zero = [identifier for identifier, norm in zip(ids, space.norms[rows], strict=True) if norm == 0]
        if zero:
            raise SpaceError(
                f"anchors: {quote(zero[:3])} are zero vectors in {space.name!r} and have no direction; remove them"
            )
    return ids


def _by_frequency(space: LatentSpace) -> np.ndarray:
    rows = np.arange(len(space)) if space.counts is None else np.argsort(-space.counts, kind="stable")
    return rows[space.norms[rows] > 0]


def at_random(space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(candidates, n_anchors, replace=False)


def most_frequent(space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    return candidates[:n_anchors]


def farthest_point(space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    return candidates[farthest_points(_directions(space, candidates), n_anchors, start=int(rng.integers(len(candidates))))]


def farthest_points(directions: np.ndarray, n_points: int, start: int) -> np.ndarray:
    """Greedy farthest-point sampling of unit rows (n, d) under 1 − cos, from row `start`; row numbers (n_points,).

    Raises
    ------
    SpaceError
        The rows have fewer distinct directions than `n_points`.
    """
    chosen = np.empty(n_points, dtype=np.int64)
    chosen[0] = start
    nearest = directions @ directions[start]  # cosine of each row to the nearest point chosen so far
    nearest[start] = np.inf
    for step in range(1, n_points):
        farthest = int(np.argmin(nearest))
        if nearest[farthest] > 1 - 1e-6:
            raise SpaceError(f"n_anchors: expected at most {step}, the number of distinct directions, got {n_points}")
        chosen[step] = farthest
        np.maximum(nearest, directions @ directions[farthest], out=nearest)
        nearest[farthest] = np.inf
    return chosen


def k_means(space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans

    directions = _directions(space, candidates)
    # Mini-batches: on 20,000 × 100 and 300 centroids under two seconds, where full k-means takes some twenty.
    k_means = MiniBatchKMeans(n_anchors, batch_size=4096, n_init=1, random_state=int(rng.integers(2**31)))
    centroids = k_means.fit(directions).cluster_centers_
    similarity = unit_rows(centroids) @ directions.T
    chosen = np.empty(n_anchors, dtype=np.int64)
    for centroid, row in enumerate(similarity):
        chosen[centroid] = np.argmax(row)
        similarity[:, chosen[centroid]] = -np.inf  # two centroids may share their nearest row: the second takes its next
    return candidates[chosen]


def class_balanced(space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    if space.labels is None:
        raise SpaceError(f"strategy 'class-balanced': expected labels, {space.name!r} has none; choose another strategy")
    shuffled = rng.permutation(candidates)
    labels = space.labels[shuffled]
    labelled = labels != ""
    if np.count_nonzero(labelled) < n_anchors:
        raise SpaceError(f"n_anchors: expected at most {np.count_nonzero(labelled)}, the labelled rows, got {n_anchors}")
    shuffled, labels = shuffled[labelled], labels[labelled]
    classes, positions = np.unique(labels.astype(str), return_inverse=True)
    # Deal round by round: the first of every class, then the second of every class, until enough are dealt.
    turn = np.empty(len(labels), dtype=np.int64)
    for number in range(len(classes)):
        members = np.flatnonzero(positions == number)
        turn[members] = np.arange(len(members))
    return shuffled[np.lexsort((positions, turn))[:n_anchors]]


def _directions(space: LatentSpace, rows: np.ndarray) -> np.ndarray:
    return unit_rows(space.vectors[rows], mean_row(space.vectors))
