"""Losers: which classes or clusters of queries lose by an option."""

from __future__ import annotations

import numpy as np
import pandas as pd

from relcore.metrics.group_test import lowest_groups
from relcore.similarity import unit_rows

CLUSTERS = 8
FEWEST = 5  # queries of a group


def losses_by_group(change: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    """One row per group with five queries or more, the greatest loss first; empty where there are fewer than two.

    Columns: group, queries, change (mean over its queries), low and high (the 95 % band of random groups of that size), p
    (corrected for the number of groups).

    Parameters
    ----------
    change : array (q,)
        Score of an option less that of another, per query.
    groups : q strings, "" for none
    """
    groups = np.asarray(groups, dtype=object)
    names, sizes = np.unique(groups[groups != ""].astype(str), return_counts=True)
    kept = names[sizes >= FEWEST]
    columns = ["group", "queries", "change", "low", "high", "p"]
    if len(kept) < 2:
        return pd.DataFrame(columns=columns)
    places = {name: number for number, name in enumerate(kept)}
    numbers = np.array([places.get(group, -1) for group in groups])
    found = lowest_groups(change, numbers)
    mean = float(np.mean(change))
    table = pd.DataFrame(
        {
            "group": kept,
            "queries": np.bincount(numbers[numbers >= 0], minlength=len(kept)),
            "change": found.mean,
            "low": mean - found.reach,
            "high": mean + found.reach,
            "p": found.p,
        }
    )
    return table.sort_values("change", kind="stable", ignore_index=True)


def clusters_of(vectors: np.ndarray, ids: np.ndarray, n_clusters: int = CLUSTERS, random_state: int = 0) -> np.ndarray:
    """A cluster for each row, (q,), named after its most central row; by k-means on rows of length 1.

    Parameters
    ----------
    vectors : array (q, d)
    ids : array (q,)
    """
    from sklearn.cluster import KMeans

    rows = unit_rows(vectors)
    n_clusters = max(1, min(n_clusters, len(rows) // FEWEST))
    fitted = KMeans(n_clusters, n_init=3, random_state=random_state).fit(rows)
    nearness = rows @ unit_rows(fitted.cluster_centers_).T
    central = [int(np.argmax(np.where(fitted.labels_ == number, nearness[:, number], -2))) for number in range(n_clusters)]
    names = np.array([f"around {ids[row]}" for row in central], dtype=object)
    return names[fitted.labels_]
