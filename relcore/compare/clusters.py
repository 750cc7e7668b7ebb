"""Groups of rows: classes, and clusters that are named by their words."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import mean_row, unit_rows
from relcore.compare.columns import class_numbers
from relcore.figures.colorings import Coloring
from relcore.figures.scene import Clusters
from relcore.maps.pane_maps import View
from relcore.represent.similarity import mean_of
from relcore.spaces.space import LatentSpace

Texts = Callable[[Sequence[str]], list[str]]  # from ids to texts
_CENTRAL = 20
_MOSTLY = 0.5


def clusters_of(space: LatentSpace, n_clusters: int, random_state: int = 0) -> tuple[np.ndarray, list[str]]:
    """The cluster number of each row (n,), and the names of the clusters, by k-means of the centred unit
    rows.

    A cluster is named after the label that half of its rows have. Without such a label, it is named
    after three central rows.

    Raises
    ------
    SpaceError
        Fewer rows than clusters.
    """
    from sklearn.cluster import MiniBatchKMeans

    if not 1 <= n_clusters <= len(space):
        raise SpaceError(f"n_clusters: expected 1 … {len(space)} for {len(space)} rows, got {n_clusters}")
    units = unit_rows(space.vectors, mean_row(space.vectors))
    k_means = MiniBatchKMeans(n_clusters, batch_size=4096, n_init=3, random_state=random_state)
    groups = k_means.fit_predict(units)
    present, groups = np.unique(groups, return_inverse=True)  # k-means can leave a cluster empty
    names: list[str] = []
    for number, centre in enumerate(k_means.cluster_centers_[present]):
        name = _name(space, np.flatnonzero(groups == number), units, centre)
        if name in names:
            name = f"{name} ({number + 1})"
        names.append(name)
    return groups, names


def _name(space: LatentSpace, members: np.ndarray, units: np.ndarray, centre: np.ndarray) -> str:
    if space.labels is not None:
        label, count = Counter(space.labels[members]).most_common(1)[0]
        if label and count >= _MOSTLY * len(members):
            return f"mostly {label}"
    central = members[np.argsort(-(units[members] @ centre), kind="stable")][:_CENTRAL]
    if space.counts is not None:
        central = central[np.argsort(-space.counts[central], kind="stable")]
    return ", ".join(space.ids[central[:3]])


# Clusters of texts are found by HDBSCAN (Campello, Moulavi and Sander, 2013) in the space itself, so that
# both maps show the same clusters. The share of rows in clusters is at most .43 on 24 draws of Gaussian,
# uniform, heavy-tailed and anisotropic rows. It is .69 for sentences embedded by MiniLM, and .95 or more for
# digits in three networks. A cluster is named by the terms that add most to the Kullback–Leibler divergence
# of its words from all words (class-based TF-IDF of Grootendorst, 2022). Stop words, and words that
# other clusters have nearly as often, are no names.

_MOST_LABELS = 50
_FEWEST_ROWS = 60
_CLUSTERS = (4, 14)
_FINER = 4  # times as many regions, and a quarter of the smallest dense cluster, on an enlarged map
_FITTED = 2000  # maximum number of points that k-means and HDBSCAN are fitted on
_STEPS = 20
_READ = 4000  # maximum number of texts that are read
_TERMS = 2  # maximum number of terms in a name
_FEWEST_TEXTS = 3  # minimum number of texts in a cluster that contain its term
_FREQUENT = 0.25  # share of a cluster's words, the most frequent ones, from which its name is chosen
_LIFT = 3.0  # minimum ratio of a term's share of the words of its cluster to its share of all other words
# Words of scikit-learn's list of stop words that can be topics.
_TOPICS = {"amount", "bill", "bottom", "cry", "fire", "interest", "mill", "mine", "system"}
_FREE = 0.05  # minimum share of rows without a class for clusters to be named
_TERM = re.compile(r"[^\W\d_]{3,}")
_COMPONENTS = 25  # principal components in which rows are clustered
_SMALLEST = 0.02  # minimum size of a cluster, as a share of the rows
_CLUSTERED = 0.5  # minimum share of rows in clusters; below it, no clusters are shown


def are_readable_ids(ids: np.ndarray) -> bool:
    """Whether ids can be read as words. At least half of them must have three letters in a row."""
    some = ids[:: max(1, len(ids) // _FITTED)]
    return 2 * sum(bool(_TERM.search(identifier)) for identifier in some) >= len(some)


def lacks_names(view: View, second: View | None) -> bool:
    """Whether one of the views has no names for its colours: they show numbers, or too many rows have no
    class."""
    return any(
        drawn.scale is not None or np.mean(np.asarray(drawn.categories) < 0) > _FREE
        for drawn in (view, second)
        if drawn is not None
    )


def among_free_rows(clusters: Clusters, colorings: Sequence[Coloring]) -> Clusters:
    """Leave out clusters of which most rows have a class in the colours. The name of a cluster stands at the
    median of its rows without a class, and few such rows can lie anywhere."""
    numbers = clusters.numbers
    for coloring in colorings:
        if coloring.scale is not None:
            continue
        sizes = np.bincount(numbers[numbers >= 0], minlength=len(clusters.names))
        is_free = (numbers >= 0) & (np.asarray(coloring.categories) < 0)
        free = np.bincount(numbers[is_free], minlength=len(clusters.names))
        is_covered = 2 * free < sizes
        numbers = np.where((numbers >= 0) & is_covered[numbers], -1, numbers)
    finer = clusters.finer
    if finer is not None:
        finer = among_free_rows(finer, colorings)
    return replace(clusters, numbers=numbers, finer=finer)


def named_clusters(
    space: LatentSpace,
    rows: np.ndarray,
    coordinates: np.ndarray,
    texts: Texts | None = None,
    other: LatentSpace | None = None,
) -> Clusters | None:
    """Groups of the drawn rows (m,), with names; None if no names can be found.

    If most rows have one of a few labels, the labels are the groups. Otherwise, with `texts` (a function from
    ids to texts), the groups are dense clusters of the space or, if it has none, of the space `other`.
    Without `texts`, they are regions of the map with these `coordinates` (m, 2 or 3). Clusters and regions
    have finer ones for an enlarged map.
    """
    if space.labels is not None:
        labels = space.labels[rows]
    else:
        labels = np.empty(0)
    if 2 * np.count_nonzero(labels != "") > len(labels):
        numbers, names = class_numbers(labels)
        if len(names) <= _MOST_LABELS:
            return Clusters(numbers, tuple(names))
    if len(rows) < _FEWEST_ROWS:
        return None
    if texts is not None:
        return _clusters_of_texts(space, rows, texts, other)
    some = space.ids[rows][:_FITTED]
    if 2 * sum(bool(_TERM.fullmatch(identifier)) for identifier in some) <= len(some):
        return None  # ids such as 17 or "digits/17" make no names
    return _clusters_of_words(space, rows, coordinates)


def _clusters_of_words(space: LatentSpace, rows: np.ndarray, coordinates: np.ndarray) -> Clusters:
    """The regions of a map, and smaller ones as its finer clusters."""
    few = int(np.clip(round(np.sqrt(len(rows)) / 10), *_CLUSTERS))
    levels = []
    for n_clusters in (few, _FINER * few):
        numbers = _regions(coordinates, n_clusters)
        levels.append(Clusters(numbers, tuple(_central_words(space, rows, numbers))))
    whole, finer = levels
    return replace(whole, finer=finer)


def _clusters_of_texts(
    space: LatentSpace, rows: np.ndarray, texts: Texts, other: LatentSpace | None
) -> Clusters:
    """The dense clusters of the space or, if it has none, of the space `other`; and smaller ones of the same
    space as its finer clusters."""
    for one in (space, other):
        if one is None:
            continue
        vectors = one.vectors[rows]
        whole = _named_dense(space, rows, dense_clusters(vectors), texts)
        if not len(whole.names):
            continue
        finer = _named_dense(space, rows, dense_clusters(vectors, smallest=_SMALLEST / _FINER), texts)
        if len(finer.names) > len(whole.names):
            return replace(whole, finer=finer)
        return whole
    return Clusters(np.full(len(rows), -1), ())


def _named_dense(space: LatentSpace, rows: np.ndarray, numbers: np.ndarray, texts: Texts) -> Clusters:
    """The clusters with their names. Rows of clusters without a name are in none."""
    inside = numbers >= 0
    if not inside.any():
        return Clusters(numbers, ())
    names = _terms(space.ids[rows][inside], numbers[inside], texts)
    named = np.array([*map(bool, names), False])  # the last value is for number −1: rows in no cluster
    return Clusters(np.where(named[numbers], numbers, -1), tuple(names))


def dense_clusters(vectors: np.ndarray, random_state: int = 0, smallest: float = _SMALLEST) -> np.ndarray:
    """The cluster of each row (n,), −1 for rows in no cluster. If fewer than half of the rows lie in
    clusters, all are −1.

    HDBSCAN clusters the centred unit rows in up to 25 principal components. It is fitted on at most 2,000
    rows; each other row is in the cluster of the nearest of these. `smallest` is the minimum size of a
    cluster, as a share of the fitted rows.
    """
    from sklearn.cluster import HDBSCAN
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier

    none = np.full(len(vectors), -1)
    rng = np.random.default_rng(random_state)
    rows = np.sort(rng.permutation(len(vectors))[:_FITTED])
    centre = mean_row(vectors[rows])
    some = unit_rows(vectors[rows], centre)
    width = min(_COMPONENTS, some.shape[1], len(rows) - 1)
    fewest = max(10, round(smallest * len(rows)))
    if len(rows) < fewest:
        return none  # fewer rows than the smallest cluster has
    pca = PCA(width, random_state=random_state)
    reduced = unit_rows(pca.fit_transform(some))
    found = HDBSCAN(min_cluster_size=fewest, min_samples=5, copy=True)
    clusters = found.fit_predict(reduced)
    if np.mean(clusters >= 0) < _CLUSTERED:
        return none
    if len(rows) == len(vectors):
        return clusters
    nearest = KNeighborsClassifier(n_neighbors=1, algorithm="brute").fit(reduced, clusters)
    return nearest.predict(unit_rows(pca.transform(unit_rows(vectors, centre))))


def _regions(coordinates: np.ndarray, n_clusters: int) -> np.ndarray:
    # Not scikit-learn's k-means, which spends more time waiting for threads than computing.
    from scipy.cluster.vq import kmeans2, vq

    rng = np.random.default_rng(0)
    points = np.asarray(coordinates, dtype=np.float64)
    if len(points) <= _FITTED:
        fitted = points
    else:
        fitted = points[rng.choice(len(points), _FITTED, replace=False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mean of an empty cluster, which gets no name
        centres, _ = kmeans2(fitted, n_clusters, iter=_STEPS, minit="++", seed=rng)
    return vq(points, centres)[0]


def _terms(ids: np.ndarray, numbers: np.ndarray, texts: Texts) -> list[str]:
    """The name of each cluster: the terms that distinguish its texts from those of the others."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    read = np.arange(len(ids))
    if len(read) > _READ:
        read = np.sort(np.random.default_rng(0).choice(read, _READ, replace=False))
    counts: list[Counter[str]] = [Counter() for _ in range(numbers.max() + 1)]
    for number, text in zip(numbers[read], texts(ids[read].tolist()), strict=True):
        counts[number].update(set(_TERM.findall(text.lower())))
    total = sum(counts, Counter())
    names = []
    excluded = set(ENGLISH_STOP_WORDS - _TOPICS)
    for count in counts:
        weights = _weights_of_terms(count, total, excluded)
        best = sorted(weights, key=lambda term: (-weights[term], term))[:_TERMS]
        excluded.update(best)
        names.append(" · ".join(best))
    return names


def _weights_of_terms(
    count: Counter[str], total: Counter[str], excluded: Collection[str]
) -> dict[str, float]:
    """How much each frequent term distinguishes a cluster: its terms of the Kullback–Leibler divergence from
    all texts. `count` and `total` are the numbers of texts with each term, in the cluster and in all."""
    n_own = max(count.total(), 1)
    n_all = max(total.total(), 1)
    weights = {}
    for term, n in count.items():
        if n < _FEWEST_TEXTS or term in excluded:
            continue
        # Also in other languages, words of all topics are not much more frequent in one cluster.
        if n * max(n_all - n_own, 1) < _LIFT * (total[term] - n) * n_own:
            continue
        weight = n / n_own * np.log(n / n_own / (total[term] / n_all))
        if weight > 0:
            weights[term] = weight
    return weights


def _central_words(space: LatentSpace, rows: np.ndarray, numbers: np.ndarray) -> list[str]:
    """For each cluster, the id of the row nearest to its mean; "" for a cluster without rows. `numbers` (m,)
    are the clusters of the rows. In a space with counts, only frequent rows give names."""
    vectors = unit_rows(space.vectors[rows], mean_of(space))
    names = []
    for number in range(numbers.max() + 1):
        members = np.flatnonzero(numbers == number)
        if not len(members):
            names.append("")
            continue
        middle = vectors[members].mean(axis=0)
        if space.counts is not None:
            n_kept = max(1, round(_FREQUENT * len(members)))
            by_count = np.argsort(-space.counts[rows[members]], kind="stable")
            members = members[by_count[:n_kept]]
        nearest = members[np.argmax(vectors[members] @ middle)]
        names.append(str(space.ids[rows[nearest]]))
    return names
