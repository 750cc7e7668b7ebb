"""Columns that colour the rows of a pair: numbers on a scale with a colour bar, and classes with a legend."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.row_tables import more_columns, read_column
from relcore.compare.neighbours import neighbour_agreement
from relcore.figures.scene import EDGES, Clusters, ColorScale, number_text
from relcore.maps.views import COLUMN, NUMBERS, View, ViewSpec
from relcore.represent.similarity import mean_of, mean_row, unit_rows
from relcore.spaces.space import LatentSpace, Match
from relcore.spaces.split import row_keys

AGREEMENT_ROWS = (500, 4000)  # rows at least and at most whose neighbourhoods are compared at once
_COMPARED = 250_000_000  # with how many pairs of rows: a second's work
MOST_CLASSES = 20  # the number of distinguishable colours
WHOLE_CLASSES = 12  # a column with at most as many whole numbers holds classes, not quantities
Cells = Callable[[str], pd.Series]


def columns_of(match: Match) -> list[str]:
    """The columns of numbers that every pair has, and counts where they are known."""
    return [name for name in NUMBERS if name != "counts" or match.source.counts is not None]


def cells_of(source: SpaceSpec, target: SpaceSpec, load: Callable[[SpaceSpec], LatentSpace]) -> Cells:
    """What reads a column of the tables that came with two spaces, the source's where both have one of
    this name.
    """

    def cells(name: str) -> pd.Series:
        spec = source if name in more_columns(source) else target
        return read_column(spec, load(spec), name)

    return cells


def values_of(match: Match, column: str, rows: np.ndarray) -> np.ndarray:
    """One number per row (m,), NaN where it was not computed: agreement is that of a sample, see
    `agreement_rows`.

    Raises
    ------
    SpaceError
        Counts of a space that has none.
    """
    if column == "counts" and match.source.counts is None:
        raise SpaceError(f"color_by 'counts': {match.source.name!r} has no counts; colour by pivots")
    readers: dict[str, Callable[[], np.ndarray]] = {
        "counts": lambda: match.source.counts[rows],
        "source norm": lambda: match.source.norms[rows],
        "target norm": lambda: match.target.norms[rows],
        "agreement": lambda: _agreement(match, rows),
    }
    return np.asarray(readers[column](), dtype=np.float64)


def colored(match: Match, view: View, spec: ViewSpec, cells: Cells | None = None) -> View:
    """The view in the colours of the column that `spec` names; as it is where that is pivots or labels.

    Raises
    ------
    SpaceError
        A column that is not there: `cells` reads those of the tables that came with the spaces.
    """
    if spec.color_by in NUMBERS:
        return _on_scale(view, values_of(match, spec.color_by, view.rows), spec.color_by)
    if not spec.color_by.startswith(COLUMN):
        return view
    name = spec.color_by.removeprefix(COLUMN)
    if cells is None:
        raise SpaceError(f"color_by: expected spaces with a column {name!r:.80}, got spaces without a table")
    found = cells(name)
    found = found[~found.index.duplicated()].reindex(pd.Index(match.ids[view.rows], dtype=object))
    numbers = numbers_in(list(found))
    if numbers is not None and not _few_whole(numbers):
        return _on_scale(view, numbers, name)
    return _by_classes(view, [_class(cell) for cell in found], name)


def numbers_in(cells: Sequence[Any]) -> np.ndarray | None:
    """The cells as numbers (m,), NaN where one is empty; None where one is no number, or none is."""
    numbers = pd.to_numeric(
        pd.Series([None if _empty(cell) else cell for cell in cells], dtype=object), errors="coerce"
    )
    full = sum(not _empty(cell) for cell in cells)
    values = numbers.to_numpy(dtype=np.float64, copy=True)
    values[~np.isfinite(values)] = np.nan
    return values if 0 < full == np.count_nonzero(np.isfinite(values)) else None


def classes_of(names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...], str]:
    """The class of each row (m,), -1 for "" and for rare ones; the names; and, where some are left out, how
    many.

    The most frequent `MOST_CLASSES` − 1 where there are more than `MOST_CLASSES`. Names come in their order,
    numbers by size.
    """
    counts = Counter(name for name in names if name)
    kept = [name for name, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]
    about = ""
    if len(kept) > MOST_CLASSES:
        kept = kept[: MOST_CLASSES - 1]
        about = f"the {len(kept)} most frequent of {len(counts):,} values, the rest as other"
    ordered = sorted(kept, key=_order(kept))
    places = {name: place for place, name in enumerate(ordered)}
    return np.array([places.get(name, -1) for name in names], dtype=np.int64), tuple(ordered), about


def _on_scale(view: View, values: np.ndarray, title: str) -> View:
    scale = ColorScale.of(values, title)
    low, high = (number_text(end) for end in (scale.low, scale.high))
    kind = ", logarithmic" if scale.logarithmic else ""
    about = f"colours from {low} to {high} ({EDGES[0]}st to {EDGES[1]}th percentile{kind})"
    return View(view.rows, scale.steps(values), (), scale, values, f"{title}: {about}")


def _by_classes(view: View, names: Sequence[str], title: str) -> View:
    categories, kept, about = classes_of(names)
    return View(view.rows, categories, kept, about=f"{title}: {about}" if about else "")


def _few_whole(numbers: np.ndarray) -> bool:
    known = np.unique(numbers[np.isfinite(numbers)])
    return len(known) <= WHOLE_CLASSES and np.array_equal(known, np.round(known))


def _class(cell: Any) -> str:
    if _empty(cell):
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return " ".join(str(cell).split())


def _empty(cell: Any) -> bool:
    return cell is None or cell == "" or (isinstance(cell, float) and cell != cell)


def _order(names: Sequence[str]) -> Callable[[str], Any]:
    sizes: Mapping[str, float] = {}
    numbers = numbers_in(list(names))
    if numbers is not None:
        sizes = dict(zip(names, numbers.tolist(), strict=True))
    return lambda name: (sizes.get(name, 0.0), name)


def agreement_rows(n: int) -> int:
    """The number of rows, of n, whose neighbourhoods are compared: fewer where each takes longer."""
    least, most = AGREEMENT_ROWS
    return int(np.clip(_COMPARED // n, least, most))


def _agreement(match: Match, rows: np.ndarray) -> np.ndarray:
    """Of a random sample where there are more rows than `agreement_rows`."""
    compared, most = np.arange(len(rows)), agreement_rows(len(match))
    if len(rows) > most:
        compared = np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))
    found = neighbour_agreement(match, rows[compared])
    values = np.full(len(match), np.nan)
    values[found.row] = found.overlap
    return values[rows]


# Groups of rows to compare: the classes of a space, or clusters of it with names that people can read.

LEAST_ROWS = 5  # scored rows of a group that a mean is computed of
_CENTRAL = 20  # rows nearest to the centre of a cluster, of which the most frequent name it
_MOSTLY = 0.5


def class_groups(space: LatentSpace) -> tuple[np.ndarray, list[str]]:
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
    """k-means clusters of the directions of a centred space: the number of each row's cluster (n,), and
    names.

    A cluster is named by its most common label where half of its rows have it, else by three central rows,
    the most frequent ones where counts are known.

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

    Half of the queries are shared among the groups, so that a small class among many rows without a label is
    compared in full; the rest are drawn from all rows. The keys of `row_keys` draw them: one more row
    replaces few of the others.

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


# Names of the groups on a map that has no labels: k-means of the points, and the term or the row that tells
# each group apart.
#
# Labels are used where most rows have one. The terms are those whose share of a cluster's words exceeds their
# share of all words most, weighted by that share (a term's part of the Kullback–Leibler divergence;
# Grootendorst's class-based TF-IDF, 2022, without a list of stop words: a word that is everywhere tells
# nothing). Rows without texts that are words give the most central word.

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
    space: LatentSpace,
    rows: np.ndarray,
    coordinates: np.ndarray,
    texts: Callable[[Sequence[str]], list[str]] | None = None,
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
    from scipy.cluster.vq import (
        kmeans2,
        vq,
    )  # scikit-learn's k-means waits for its threads longer than it computes

    rng, points = np.random.default_rng(0), np.asarray(coordinates, dtype=np.float64)
    fitted = points if len(points) <= _FITTED else points[rng.choice(len(points), _FITTED, replace=False)]
    n_clusters = int(np.clip(round(np.sqrt(len(points)) / 10), *_CLUSTERS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty cluster: it has no rows and no name
        centres, _ = kmeans2(fitted, _spread(fitted, n_clusters, rng), iter=_STEPS, minit="matrix")
    return vq(points, centres)[0]


def _spread(points: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Points to begin with, each drawn by its squared distance to those before (k-means++, Arthur and
    Vassilvitskii, 2007).
    """
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
        best = sorted(
            (term for term in weights if weights[term] > 0), key=lambda term: (-weights[term], term)
        )[:_TERMS]
        taken.update(best)
        names.append(" · ".join(best))
    return names


def _central_words(space: LatentSpace, rows: np.ndarray, numbers: np.ndarray) -> list[str]:
    """Of each cluster the word with the highest cosine to its mean, among its frequent ones where
    frequencies are known.
    """
    vectors = space.vectors[rows] - mean_of(space)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    names = []
    for number in range(numbers.max() + 1):
        members = np.flatnonzero(numbers == number)
        middle = vectors[members].mean(axis=0) if len(members) else None
        if space.counts is not None:
            n_kept = max(1, round(_FREQUENT * len(members)))
            members = members[np.argsort(-space.counts[rows[members]], kind="stable")[:n_kept]]
        names.append(
            str(space.ids[rows[members[np.argmax(vectors[members] @ middle)]]]) if len(members) else ""
        )
    return names
