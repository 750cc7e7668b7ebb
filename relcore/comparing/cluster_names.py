"""Names of the groups on a map that has no labels: k-means of the points, and the term or the row that tells each group apart.

Labels are used where most rows have one. The terms are those whose share of a cluster's words exceeds their share of all words
most, weighted by that share (a term's part of the Kullback–Leibler divergence; Grootendorst's class-based TF-IDF, 2022, without
a list of stop words: a word that is everywhere tells nothing). Rows without texts that are words give the most central word.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from relcore.charts.scene import Clusters
from relcore.similarity import mean_of
from relcore.spaces import LatentSpace
from relcore.views import View

_MOST_LABELS = 50
_FEWEST_ROWS = 60
_CLUSTERS = (4, 14)
_FITTED = 2000  # points that k-means is fitted on
_STEPS = 20
_READ = 4000  # texts that are read
_TERMS = 2  # in a name
_FEWEST_TEXTS = 3  # of a cluster that have its term
_FREQUENT = 0.25  # share of a cluster's words, the most frequent, of which one is its name
_FREE = 0.05  # share of rows without the name of a class from which on clusters are named
_TERM = re.compile(r"[^\W\d_]{3,}")


def needs_clusters(view: View, second: View | None) -> bool:
    """Whether a colouring leaves rows without a name."""
    views = [one for one in (view, second) if one is not None]
    return any(one.scale is not None or np.mean(np.asarray(one.categories) < 0) > _FREE for one in views)


def named_clusters(
    space: LatentSpace, rows: np.ndarray, coordinates: np.ndarray, texts: Callable[[Sequence[str]], list[str]] | None = None
) -> Clusters | None:
    """Groups of the drawn rows with names; None where nothing tells what to call them.

    Parameters
    ----------
    space : LatentSpace
    rows : array (m,) of int
        The drawn rows of the space.
    coordinates : array (m, 2 or 3)
        The map whose clusters are named.
    texts : callable, optional
        Ids → texts.
    """
    if labels := _labels(space, rows):
        return labels
    if len(rows) < _FEWEST_ROWS or (texts is None and not _words(space.ids[rows])):
        return None
    numbers = _clusters(coordinates)
    names = _central_words(space, rows, numbers) if texts is None else _terms(space.ids[rows], numbers, texts)
    return Clusters(np.where(np.array([bool(name) for name in names])[numbers], numbers, -1), tuple(names))


def _labels(space: LatentSpace, rows: np.ndarray) -> Clusters | None:
    if space.labels is None:
        return None
    labels = space.labels[rows]
    names = sorted(set(labels) - {""})
    if not names or len(names) > _MOST_LABELS or 2 * np.count_nonzero(labels != "") <= len(labels):
        return None
    places = {name: place for place, name in enumerate(names)} | {"": -1}
    return Clusters(np.array([places[label] for label in labels]), tuple(names))


def _words(ids: np.ndarray) -> bool:
    """Whether most ids are words, not numbers such as 17 or "digits/17"."""
    some = ids[:_FITTED]
    return 2 * sum(bool(_TERM.fullmatch(one)) for one in some) > len(some)


def _clusters(coordinates: np.ndarray) -> np.ndarray:
    """The cluster of each point, (m,)."""
    from scipy.cluster.vq import kmeans2, vq  # scikit-learn's k-means waits for its threads longer than it computes

    rng, points = np.random.default_rng(0), np.asarray(coordinates, dtype=np.float64)
    fitted = points if len(points) <= _FITTED else points[rng.choice(len(points), _FITTED, replace=False)]
    n_clusters = int(np.clip(round(np.sqrt(len(points)) / 10), *_CLUSTERS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty cluster: it has no rows and no name
        centres, _ = kmeans2(fitted, _spread(fitted, n_clusters, rng), iter=_STEPS, minit="matrix")
    return vq(points, centres)[0]


def _spread(points: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Points to begin with, each drawn by its squared distance to those before (k-means++, Arthur and Vassilvitskii, 2007)."""
    chosen = [points[rng.integers(len(points))]]
    distances = np.full(len(points), np.inf)
    for _ in range(n - 1):
        distances = np.minimum(distances, np.square(points - chosen[-1]).sum(axis=1))
        weights = distances / distances.sum() if distances.any() else None
        chosen.append(points[rng.choice(len(points), p=weights)])
    return np.array(chosen)


def _terms(ids: np.ndarray, numbers: np.ndarray, texts: Callable[[Sequence[str]], list[str]]) -> list[str]:
    """The terms of each cluster, "" for one without."""
    read = np.arange(len(ids))
    if len(read) > _READ:
        read = np.sort(np.random.default_rng(0).choice(read, _READ, replace=False))
    counts: list[Counter[str]] = [Counter() for _ in range(numbers.max() + 1)]
    for number, text in zip(numbers[read], texts(ids[read]), strict=True):
        counts[number].update(set(_TERM.findall(text.lower())))
    total = sum(counts, Counter())
    n_all = max(total.total(), 1)
    names, taken = [], set()
    for count in counts:
        n_own = max(count.total(), 1)
        weights = {
            term: n / n_own * np.log(n / n_own / (total[term] / n_all))
            for term, n in count.items()
            if n >= _FEWEST_TEXTS and term not in taken
        }
        best = sorted((term for term in weights if weights[term] > 0), key=lambda term: (-weights[term], term))[:_TERMS]
        taken.update(best)
        names.append(" · ".join(best))
    return names


def _central_words(space: LatentSpace, rows: np.ndarray, numbers: np.ndarray) -> list[str]:
    """Of each cluster the word with the highest cosine to its mean, among its frequent ones where frequencies are known."""
    vectors = space.vectors[rows] - mean_of(space)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    names = []
    for number in range(numbers.max() + 1):
        members = np.flatnonzero(numbers == number)
        middle = vectors[members].mean(axis=0) if len(members) else None
        if space.counts is not None:
            n_kept = max(1, round(_FREQUENT * len(members)))
            members = members[np.argsort(-space.counts[rows[members]], kind="stable")[:n_kept]]
        names.append(str(space.ids[rows[members[np.argmax(vectors[members] @ middle)]]]) if len(members) else "")
    return names
