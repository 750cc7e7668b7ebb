"""Groups of rows to compare: the classes of a space, or clusters of it with names that people can read."""

from __future__ import annotations

from collections import Counter

import numpy as np

from relcore.evaluation import row_keys
from relcore.similarity import mean_row, unit_rows
from relcore.spaces import LatentSpace, SpaceError

LEAST_ROWS = 5  # scored rows of a group that a mean is computed of
_CENTRAL = 20  # rows nearest to the centre of a cluster, of which the most frequent name it
_MOSTLY = 0.5


def classes_of(space: LatentSpace) -> tuple[np.ndarray, list[str]]:
    """The number of each row's label (n,), −1 for none, and the labels in alphabetical order.

    Raises
    ------
    SpaceError
        A space without labels.
    """
    if space.labels is None:
        raise SpaceError(f"groups 'classes': {space.name!r} has no labels; compare clusters")
    names = sorted(set(space.labels) - {""})
    numbers = {name: number for number, name in enumerate(names)} | {"": -1}
    return np.array([numbers[label] for label in space.labels]), names


def clusters_of(space: LatentSpace, n_clusters: int, random_state: int = 0) -> tuple[np.ndarray, list[str]]:
    """k-means clusters of the directions of a centred space: the number of each row's cluster (n,), and names.

    A cluster is named by its most common label where half of its rows have it, else by three central rows, the most frequent
    ones where counts are known.

    Raises
    ------
    SpaceError
        Fewer rows than clusters.
    """
    from sklearn.cluster import MiniBatchKMeans

    if not 1 <= n_clusters <= len(space):
        raise SpaceError(f"n_clusters: expected 1 … {len(space)} for {len(space)} rows, got {n_clusters}")
    directions = unit_rows(space.vectors, mean_row(space.vectors))
    k_means = MiniBatchKMeans(n_clusters, batch_size=4096, n_init=3, random_state=random_state)
    groups = k_means.fit_predict(directions)
    present, groups = np.unique(groups, return_inverse=True)  # k-means may leave a cluster empty
    names: list[str] = []
    for number, centre in enumerate(k_means.cluster_centers_[present]):
        name = _name(space, np.flatnonzero(groups == number), directions, centre)
        names.append(name if name not in names else f"{name} ({number + 1})")
    return groups, names


def _name(space: LatentSpace, members: np.ndarray, directions: np.ndarray, centre: np.ndarray) -> str:
    if space.labels is not None:
        label, count = Counter(space.labels[members]).most_common(1)[0]
        if label and count >= _MOSTLY * len(members):
            return f"mostly {label}"
    central = members[np.argsort(-(directions[members] @ centre), kind="stable")][:_CENTRAL]
    if space.counts is not None:
        central = central[np.argsort(-space.counts[central], kind="stable")]
    return ", ".join(space.ids[central[:3]])


def queries_of_groups(groups: np.ndarray, ids: np.ndarray, n_queries: int) -> np.ndarray:
    """Places of the rows to compare, ascending: all n rows, or `n_queries` of them at random.

    Half of the queries are shared among the groups, so that a small class among many rows without a label is compared in
    full; the rest are drawn from all rows. The keys of `row_keys` draw them: one more row replaces few of the others.

    Parameters
    ----------
    groups : array (n,) of int
        0 … g − 1, −1 for rows of no group.
    ids : array (n,)

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.where(np.arange(1000) < 20, 0, -1)
    >>> chosen = queries_of_groups(groups, np.arange(1000).astype(str), 100)
    >>> len(chosen), int((chosen < 20).sum())
    (100, 20)
    """
    if n_queries >= len(groups):
        return np.arange(len(groups))
    order = np.argsort(row_keys(ids, "queries"), kind="stable")
    inside = order[groups[order] >= 0]
    n_groups = max(len(np.unique(groups[inside])), 1)
    share = max(n_queries // (2 * n_groups), min(LEAST_ROWS, n_queries // n_groups))
    by_group = inside[np.argsort(groups[inside], kind="stable")]
    starts = np.searchsorted(groups[by_group], groups[by_group])
    first = by_group[np.arange(len(by_group)) - starts < share]
    others = order[~np.isin(order, first)]
    return np.sort(np.concatenate([first, others[: n_queries - len(first)]]))
