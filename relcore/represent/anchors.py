"""Choose anchors by strategy; other spaces use the same ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import STRATEGIES
from relcore.represent.similarity import mean_of, mean_row, project_directions, unit_rows
from relcore.spaces.space import LatentSpace


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
        The strategies of Moschella et al. 2023 (their code): uniform; each next anchor farthest (in angle)
        from those chosen; the row nearest to each k-means centroid; the most frequent rows in falling order;
        the same number from each label, where a label is too small the others fill up.
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
            f"n_anchors: expected at most {len(candidates)}, the rows of {space.name!r} that can be chosen,"
            f" got {n_anchors}; ask for fewer, or widen the pool"
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
                f"anchors: {quote(zero[:3])} are zero vectors in {space.name!r} and have no direction; remove"
                " them"
            )
    return ids


def _by_frequency(space: LatentSpace) -> np.ndarray:
    rows = np.arange(len(space)) if space.counts is None else np.argsort(-space.counts, kind="stable")
    return rows[space.norms[rows] > 0]


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
    return candidates[
        farthest_points(_directions(space, candidates), n_anchors, start=int(rng.integers(len(candidates))))
    ]


def farthest_points(directions: np.ndarray, n_points: int, start: int) -> np.ndarray:
    """Greedy farthest-point sampling of unit rows (n, d) under 1 − cos, from row `start`; row numbers
    (n_points,).

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
            raise SpaceError(
                f"n_anchors: expected at most {step}, the number of distinct directions, got {n_points}"
            )
        chosen[step] = farthest
        np.maximum(nearest, directions @ directions[farthest], out=nearest)
        nearest[farthest] = np.inf
    return chosen


def k_means(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans

    directions = _directions(space, candidates)
    # Mini-batches: on 20,000 × 100 and 300 centroids under two seconds, where full k-means takes some twenty.
    k_means = MiniBatchKMeans(n_anchors, batch_size=4096, n_init=1, random_state=int(rng.integers(2**31)))
    centroids = k_means.fit(directions).cluster_centers_
    similarity = unit_rows(centroids) @ directions.T
    chosen = np.empty(n_anchors, dtype=np.int64)
    for centroid, row in enumerate(similarity):
        chosen[centroid] = np.argmax(row)
        similarity[
            :, chosen[centroid]
        ] = -np.inf  # two centroids may share their nearest row: the second takes its next
    return candidates[chosen]


def class_balanced(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    if space.labels is None:
        raise SpaceError(
            f"strategy 'class-balanced': expected labels, {space.name!r} has none; choose another strategy"
        )
    shuffled = rng.permutation(candidates)
    labels = space.labels[shuffled]
    labelled = labels != ""
    if np.count_nonzero(labelled) < n_anchors:
        raise SpaceError(
            f"n_anchors: expected at most {np.count_nonzero(labelled)}, the labelled rows, got {n_anchors}"
        )
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


# Diagnostics of a set of anchors: rank, condition, coverage and near-duplicates.

_SAMPLED_ROWS = 1000
_SAME, _MANY = 1 - 1e-4, 0.05  # cosine of anchors that coincide; share of the anchors


@dataclass(frozen=True)
class AnchorDiagnostics:
    """Diagnostics of an anchor set in one space.

    Attributes
    ----------
    singular_values : array (min(k, d),)
        Of the centred, unit anchors, falling.
    rank : int
        Numerical rank; below min(k, d) some anchors are combinations of others.
    condition_number : float
        Largest over smallest singular value, 1 … ∞; a large value means that inverting a relative space
        amplifies noise.
    effective_rank : float
        exp of the entropy of the normalised squared singular values, 1 … min(k, d): the effective number of
        directions (Roy and Vetterli 2007, on the squared values).
    coverage : float
        Mean over all rows of the cosine to the nearest anchor, −1 … 1.
    coverage_random : float
        The same for equally many random anchors: the baseline.
    near_duplicates : tuple of (id, id, cosine)
        Anchor pairs with a cosine above the threshold, closest first.
    """

    n_anchors: int
    singular_values: np.ndarray
    rank: int
    condition_number: float
    effective_rank: float
    coverage: float
    coverage_random: float
    near_duplicates: tuple[tuple[str, str, float], ...]


def diagnose_anchors(
    space: LatentSpace, anchor_ids: Sequence[str], *, duplicate_above: float = 0.9, random_state: int = 0
) -> AnchorDiagnostics:
    """Diagnostics of the anchors in this space, all after centring and scaling to length 1.

    Raises
    ------
    SpaceError
        Anchors that the space lacks, twice the same, or none.
    """
    ids = shared_anchors(anchor_ids, space)
    mean = mean_of(space)
    anchors = unit_rows(space.vectors[space.rows(ids)], mean)
    singular_values = np.linalg.svd(anchors.astype(np.float64), compute_uv=False)
    floor = singular_values[0] * max(anchors.shape) * np.finfo(np.float32).eps
    energy = singular_values**2 / np.sum(singular_values**2)
    energy = energy[energy > 0]
    random_ids = select_anchors(
        space, min(len(ids), np.count_nonzero(space.norms)), random_state=random_state
    )
    return AnchorDiagnostics(
        n_anchors=len(ids),
        singular_values=singular_values,
        rank=int(np.count_nonzero(singular_values > floor)),
        condition_number=(
            float(singular_values[0] / singular_values[-1]) if singular_values[-1] > floor else float("inf")
        ),
        effective_rank=float(np.exp(-np.sum(energy * np.log(energy)))),
        coverage=_coverage(space, anchors, mean),
        coverage_random=_coverage(space, unit_rows(space.vectors[space.rows(random_ids)], mean), mean),
        near_duplicates=_near_duplicates(ids, anchors, duplicate_above),
    )


def coinciding_anchors(space: LatentSpace, anchor_ids: Sequence[str]) -> str:
    """Says that 5 % of the anchors or more lie where another one does; "" where fewer do.

    Each is one more column of the relative space, so their direction counts as often as it has anchors. The
    mean is that of at most 1,000 rows, as this is computed again for each change of an anchor.
    """
    ids = shared_anchors(anchor_ids, space)
    sample = space.vectors[:: -(-len(space) // _SAMPLED_ROWS)]
    anchors = unit_rows(space.vectors[space.rows(ids)], mean_row(sample))
    again = np.flatnonzero((np.triu(anchors @ anchors.T, 1) > _SAME).any(axis=0))
    if len(again) < max(2, _MANY * len(ids)):
        return ""
    named = quote([ids[row] for row in again[:3]]) + (", …" if len(again) > 3 else "")
    return (
        f"{len(again):,} of {len(ids):,} anchors coincide with another anchor in {quote([space.name])}"
        f" ({named}), so one direction counts several times in relative scores. Remove them, or read the"
        " whitened scores."
    )


def _coverage(space: LatentSpace, anchors: np.ndarray, mean: np.ndarray) -> float:
    return float(project_directions(space.vectors, anchors.T, mean).max(axis=1).mean(dtype=np.float64))


def _near_duplicates(ids: list[str], anchors: np.ndarray, above: float) -> tuple[tuple[str, str, float], ...]:
    cosines = np.triu(anchors @ anchors.T, 1)
    pairs = np.argwhere(cosines > above)
    duplicates = [(ids[first], ids[second], float(cosines[first, second])) for first, second in pairs]
    return tuple(sorted(duplicates, key=lambda pair: -pair[2]))
