"""Columns by which the rows of two matched spaces are coloured and filtered: numbers, classes, clusters,
agreement of neighbours. `rank_rows` finds the rows that are nearest to a query in either space."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.base.rows import directions, mean_row, unit_rows
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.row_tables import TableColumns
from relcore.engine.engine import Engine, nearest_within
from relcore.figures.scene import (
    BINS,
    EDGES,
    NO_CODE,
    SELECTED_ROWS,
    Clusters,
    ColorScale,
    Condition,
    Facet,
    column_title,
    number_text,
    passing,
)
from relcore.maps.pane_maps import COLUMN, NUMBERS, View, ViewSpec
from relcore.represent.similarity import mean_of
from relcore.scores.neighbours import jaccard_rows
from relcore.spaces.space import LatentSpace, Match, distinct_names, short_names
from relcore.spaces.split import row_keys


def centred_neighbours(match: Match, rows: np.ndarray, k: int) -> list[np.ndarray]:
    """Two arrays (m, k): the k nearest neighbours of these rows in the source and in the target, by cosine
    after centring."""
    k = min(k, len(match) - 1)
    spaces = match.source, match.target
    return [nearest_within(directions(space.vectors, mean_of(space)), rows, k) for space in spaces]


def neighbour_agreement(match: Match, rows: np.ndarray, k: int = 50) -> pd.DataFrame:
    """A table of these rows, sorted by the overlap of their neighbours in the two spaces, smallest first.

    Neighbours are searched in the absolute spaces (mutual kNN). Columns: row, id, overlap (Jaccard, 0 … 1),
    count (if known).
    """
    table = pd.DataFrame(
        {"row": rows, "id": match.ids[rows], "overlap": jaccard_rows(*centred_neighbours(match, rows, k))}
    )
    if match.source.counts is None:
        return table.sort_values("overlap", kind="stable", ignore_index=True)
    table["count"] = match.source.counts[rows]
    return table.sort_values(["overlap", "count"], ascending=[True, False], kind="stable", ignore_index=True)


def neighbours_of(
    match: Match, identifier: str, k: int = 10, made: tuple[np.ndarray, np.ndarray] | None = None
) -> pd.DataFrame:
    """A table of the k nearest neighbours of one row in both spaces. Columns: source, source cosine, target,
    target cosine, and whether it is a neighbour in both spaces.

    Neighbours are searched by cosine after centring: in the absolute spaces or, if it is given, in their
    representation `made`.
    """
    row = match.source.rows([identifier])
    k = min(k, len(match) - 1)
    if made is None:
        near = centred_neighbours(match, row, k)
        spaces = (match.source.vectors, match.target.vectors)
        means = [mean_of(match.source), mean_of(match.target)]
    else:
        near = [nearest_within(directions(X), row, k) for X in made]
        spaces = made
        means = [None, None]
    columns: dict[str, np.ndarray] = {}
    for side, space, mean, (nearest,) in zip(("source", "target"), spaces, means, near, strict=True):
        columns[side] = match.ids[nearest]
        columns[f"{side} cosine"] = unit_rows(space[nearest], mean) @ unit_rows(space[row], mean)[0]
    columns["source shared"] = np.isin(columns["source"], columns["target"])
    columns["target shared"] = np.isin(columns["target"], columns["source"])
    return pd.DataFrame(columns)


AGREEMENT_ROWS = (500, 4000)  # minimum and maximum number of rows whose neighbourhoods are compared
_COMPARED = 250_000_000  # number of pairs of rows that are compared in about a second
MOST_CLASSES = 20  # as many classes as there are colours that people can distinguish
WHOLE_CLASSES = 12  # maximum number of values in a column of whole numbers that holds classes, not quantities
_MOST_READ = 24  # number of columns in the cache
Cells = Callable[[str], pd.Series]


def columns_of(match: Match) -> list[str]:
    """The names of the numeric columns of a pair: those that every pair has, and counts if they are known."""
    return [name for name in NUMBERS if name != "counts" or match.source.counts is not None]


def cells_of(
    source: SpaceSpec,
    target: SpaceSpec,
    load: Callable[[SpaceSpec], LatentSpace],
    tables: Callable[[SpaceSpec], TableColumns] | None = None,
) -> Cells:
    """Return a function that reads a column by name from the tables of the two spaces; if both have it, from
    that of the source. `tables` returns the table of a space, for example one that is already open."""

    tables = tables or cache(TableColumns)

    @lru_cache(_MOST_READ)
    def cells(name: str) -> pd.Series:
        spec = target
        if name in tables(source).names:
            spec = source
        return tables(spec).read(name, load(spec))

    return cells


def values_of(match: Match, column: str, rows: np.ndarray) -> np.ndarray:
    """The number of each row in this column, an array (m,); NaN if it was not computed.

    Raises
    ------
    SpaceError
        The column is "counts", and the space has none.
    """
    if column == "counts" and match.source.counts is None:
        raise SpaceError(f"color_by 'counts': {match.source.name!r} has no counts; colour by pivots")
    if column == "agreement":
        return _agreement(match, rows)
    if column == "target norm":
        space = match.target
    else:
        space = match.source
    return np.asarray((space.counts if column == "counts" else space.norms)[rows], dtype=np.float64)


def with_color_column(match: Match, view: View, spec: ViewSpec, cells: Cells | None = None) -> View:
    """The view (drawn rows and their colours), coloured by the column that `spec` names. For "pivots" and
    "labels", it is unchanged.

    Raises
    ------
    SpaceError
        A column that is not there.
    """
    if spec.color_by in NUMBERS:
        values = values_of(match, spec.color_by, view.rows)
        return _on_scale(view, values, column_title(spec.color_by, _models(match)))
    if not spec.color_by.startswith(COLUMN):
        return view
    name = spec.color_by.removeprefix(COLUMN)
    content = cells_in(match, view.rows, name, cells)
    if isinstance(content, np.ndarray):
        return _on_scale(view, content, name)
    categories, kept, about = classes_of(content)
    return View(view.rows, categories, kept, about=f"{name}: {about}" if about else "")


def cells_in(match: Match, rows: np.ndarray, name: str, cells: Cells | None) -> np.ndarray | list[str]:
    """The cells of a column in the tables of the spaces, at these rows (m,): numbers, with NaN for empty
    cells; or names of classes, with "" for empty cells.

    Raises
    ------
    SpaceError
        A column that is not there.
    """
    if cells is None:
        raise SpaceError(f"color_by: expected spaces with a column {name!r:.80}, got spaces without a table")
    column = _at(match, rows, cells(name))
    numbers = numbers_in(column)
    if numbers is not None:
        known = np.unique(numbers[np.isfinite(numbers)])
        if len(known) > WHOLE_CLASSES or not np.array_equal(known, np.round(known)):
            return numbers
    codes, distinct = pd.factorize(column)
    return np.array([*map(_class, distinct), ""], dtype=object)[codes].tolist()


def _at(match: Match, rows: np.ndarray, column: pd.Series) -> np.ndarray:
    """The cells of a column at rows (m,) of the pair; None for rows without a cell. If an id appears more
    than once in the table, its first cell is used."""
    ids = match.source.index
    if not column.index.equals(ids):  # a comparison is ten times as fast as looking ids up
        column = column[~column.index.duplicated()].reindex(ids)
    return column.to_numpy()[rows]


def rows_table(
    match: Match,
    rows: np.ndarray,
    tables: Sequence[str] = (),
    cells: Cells | None = None,
    texts: Callable[[Sequence[str]], list[str]] | None = None,
) -> pd.DataFrame:
    """A table of rows (m,) with all known columns: id, text, label, count, and the columns of the tables of
    both spaces.

    Raises
    ------
    SpaceError
        A column that is not there.
    """
    space = match.source
    ids = match.ids[rows]
    columns: dict[str, Any] = {"id": ids}
    if texts is not None:
        columns["text"] = texts(ids.tolist())
    if space.labels is not None:
        columns["label"] = space.labels[rows]
    if space.counts is not None:
        columns["count"] = space.counts[rows]
    for name in tables:
        columns.setdefault(name, _at(match, rows, cells(name)))
    return pd.DataFrame(columns).infer_objects()


def numbers_in(cells: Sequence[Any]) -> np.ndarray | None:
    """The cells as numbers (m,), with NaN for empty cells. None if any cell is not a number, or if all are
    empty."""
    written = pd.Series(cells, dtype=object)
    empty = (written.isna() | (written == "")).to_numpy()
    values = pd.to_numeric(written.mask(empty), errors="coerce").to_numpy(dtype=np.float64, copy=True)
    values[~np.isfinite(values)] = np.nan
    if empty.all() or (np.isnan(values) & ~empty).any():
        return None
    return values


def classes_of(names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...], str]:
    """Three values: the class of each row (m,), −1 for "" and for rare classes; the names of the classes; and
    a note if classes are left out because there are more than `MOST_CLASSES`."""
    counts = Counter(name for name in names if name)
    kept = sorted(counts, key=lambda name: (-counts[name], name))
    about = ""
    if len(kept) > MOST_CLASSES:
        kept = kept[: MOST_CLASSES - 1]
        about = f"the {len(kept)} most frequent of {len(counts):,} values, the rest as other"
    numbers = numbers_in(kept)
    sizes = dict(zip(kept, [0.0] * len(kept) if numbers is None else numbers.tolist(), strict=True))
    kept.sort(key=lambda name: (sizes[name], name))
    places = {name: place for place, name in enumerate(kept)}
    return np.array([places.get(name, -1) for name in names], dtype=np.int64), tuple(kept), about


def _on_scale(view: View, values: np.ndarray, title: str) -> View:
    scale = ColorScale.of(values, title)
    low, high = (number_text(end) for end in (scale.low, scale.high))
    kind = ""
    if scale.logarithmic:
        kind = ", logarithmic"
    about = f"colours from {low} to {high} ({EDGES[0]}st to {EDGES[1]}th percentile{kind})"
    return View(view.rows, scale.steps(values), (), scale, values, f"{title}: {about}")


def _class(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    whole = isinstance(cell, float) and cell.is_integer()
    return " ".join(str(int(cell) if whole else cell).split())


def agreement_rows(n: int) -> int:
    """The number of rows whose neighbourhoods are compared. In larger spaces it is smaller, because each row
    takes longer."""
    return int(np.clip(_COMPARED // n, *AGREEMENT_ROWS))


def _agreement(match: Match, rows: np.ndarray) -> np.ndarray:
    compared = rows
    most = agreement_rows(len(match))
    if len(rows) > most:
        compared = rows[np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))]
    table = neighbour_agreement(match, compared)
    values = np.full(len(match), np.nan)
    values[table.row] = table.overlap
    return values[rows]


LEAST_ROWS = 5  # minimum number of scored rows of a group that gets a mean
_CENTRAL = 20
_MOSTLY = 0.5


def class_groups(space: LatentSpace) -> tuple[np.ndarray, list[str]]:
    """The class number of each row (n,), −1 for rows without a class, and the labels in alphabetical order.

    Raises
    ------
    SpaceError
        A space without labels.
    """
    if space.labels is None:
        raise SpaceError(f"groups 'classes': {space.name!r} has no labels; compare clusters")
    return _class_numbers(space.labels)


def _class_numbers(labels: np.ndarray) -> tuple[np.ndarray, list[str]]:
    names = sorted(set(labels) - {""})
    numbers = {name: number for number, name in enumerate(names)} | {"": -1}
    return np.array([numbers[label] for label in labels]), names


def clusters_of(space: LatentSpace, n_clusters: int, random_state: int = 0) -> tuple[np.ndarray, list[str]]:
    """The cluster number of each row (n,), and the names of the clusters, by k-means of the centred unit
    rows.

    If half of the rows of a cluster have the same label, this is its name. Otherwise, the cluster is named
    after three central rows.

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
    present, groups = np.unique(groups, return_inverse=True)  # k-means can leave a cluster empty
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
    """The rows to compare, ascending: all n, or a random sample of `n_queries`.

    Half of the queries are divided equally among the groups, so that small classes are compared in full.
    Queries are drawn by the keys of `row_keys`, so that adding a row to the spaces replaces few of them.

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


# Clusters of texts are found by HDBSCAN (Campello, Moulavi and Sander, 2013) in the space itself, so that
# both maps show the same clusters. The share of rows in clusters is at most .43 on 24 draws of Gaussian,
# uniform, heavy-tailed and anisotropic rows. It is .69 for sentences embedded by MiniLM, and .95 or more for
# digits in three networks. A cluster is named by the terms that add most to the Kullback–Leibler divergence
# of its words from all words (class-based TF-IDF of Grootendorst, 2022). Stop words, and words that
# other clusters have nearly as often, are no names.

_MOST_LABELS = 50
_FEWEST_ROWS = 60
_CLUSTERS = (4, 14)
_FITTED = 2000  # maximum number of points that k-means is fitted on
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


def named_clusters(
    space: LatentSpace,
    rows: np.ndarray,
    coordinates: np.ndarray,
    texts: Callable[[Sequence[str]], list[str]] | None = None,
    other: LatentSpace | None = None,
) -> Clusters | None:
    """Groups of the drawn rows (m,), with names; None if no names can be found.

    If most rows have one of a few labels, the labels are the groups. Otherwise, with `texts` (a function from
    ids to texts), the groups are dense clusters of the space or, if it has none, of the space `other`.
    Without `texts`, they are regions of the map with these `coordinates` (m, 2 or 3).
    """
    if space.labels is not None:
        labels = space.labels[rows]
    else:
        labels = np.empty(0)
    if 2 * np.count_nonzero(labels != "") > len(labels):
        numbers, names = _class_numbers(labels)
        if len(names) <= _MOST_LABELS:
            return Clusters(numbers, tuple(names))
    if len(rows) < _FEWEST_ROWS:
        return None
    if texts is None:
        some = space.ids[rows][:_FITTED]
        if 2 * sum(bool(_TERM.fullmatch(identifier)) for identifier in some) <= len(some):
            return None  # ids such as 17 or "digits/17" make no names
    if texts is None:
        numbers = _regions(coordinates)
        names = _central_words(space, rows, numbers)
    else:
        found = (dense_clusters(one.vectors[rows]) for one in (space, other) if one is not None)
        numbers = next((numbers for numbers in found if numbers.max() >= 0), np.full(len(rows), -1))
        inside = numbers >= 0
        names = []
        if inside.any():
            names = _terms(space.ids[rows][inside], numbers[inside], texts)
    if not names:
        return Clusters(numbers, ())
    named = np.array([*map(bool, names), False])  # the last value is for number −1: rows in no cluster
    return Clusters(np.where(named[numbers], numbers, -1), tuple(names))


def dense_clusters(vectors: np.ndarray, random_state: int = 0) -> np.ndarray:
    """The cluster of each row (n,), −1 for rows in no cluster. If fewer than half of the rows lie in
    clusters, all are −1.

    HDBSCAN clusters the centred unit rows in up to 25 principal components. It uses at most 2,000 rows; all
    other rows get −1.
    """
    from sklearn.cluster import HDBSCAN
    from sklearn.decomposition import PCA

    numbers = np.full(len(vectors), -1)
    rng = np.random.default_rng(random_state)
    rows = np.sort(rng.permutation(len(vectors))[:_FITTED])
    some = unit_rows(vectors[rows], mean_row(vectors[rows]))
    width = min(_COMPONENTS, some.shape[1], len(rows) - 1)
    smallest = max(10, round(_SMALLEST * len(rows)))
    if len(rows) < smallest:
        return numbers  # fewer rows than the smallest cluster has
    reduced = unit_rows(PCA(width, random_state=random_state).fit_transform(some))
    found = HDBSCAN(min_cluster_size=smallest, min_samples=5, copy=True)
    clusters = found.fit_predict(reduced)
    if np.mean(clusters >= 0) >= _CLUSTERED:
        numbers[rows] = clusters
    return numbers


def _regions(coordinates: np.ndarray) -> np.ndarray:
    # Not scikit-learn's k-means, which spends more time waiting for threads than computing.
    from scipy.cluster.vq import kmeans2, vq

    rng = np.random.default_rng(0)
    points = np.asarray(coordinates, dtype=np.float64)
    if len(points) <= _FITTED:
        fitted = points
    else:
        fitted = points[rng.choice(len(points), _FITTED, replace=False)]
    n_clusters = int(np.clip(round(np.sqrt(len(points)) / 10), *_CLUSTERS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mean of an empty cluster, which gets no name
        centres, _ = kmeans2(fitted, n_clusters, iter=_STEPS, minit="++", seed=rng)
    return vq(points, centres)[0]


def _terms(ids: np.ndarray, numbers: np.ndarray, texts: Callable[[Sequence[str]], list[str]]) -> list[str]:
    read = np.arange(len(ids))
    if len(read) > _READ:
        read = np.sort(np.random.default_rng(0).choice(read, _READ, replace=False))
    counts: list[Counter[str]] = [Counter() for _ in range(numbers.max() + 1)]
    for number, text in zip(numbers[read], texts(ids[read]), strict=True):
        counts[number].update(set(_TERM.findall(text.lower())))
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    stop_words = ENGLISH_STOP_WORDS - _TOPICS
    total = sum(counts, Counter())
    n_all = max(total.total(), 1)
    names = []
    taken = set()
    for count in counts:
        n_own = max(count.total(), 1)
        weights = {
            term: n / n_own * np.log(n / n_own / (total[term] / n_all))
            for term, n in count.items()
            if n >= _FEWEST_TEXTS
            and term not in taken
            and term not in stop_words
            # Also in other languages, words of all topics are not much more frequent in one cluster.
            and n * max(n_all - n_own, 1) >= _LIFT * (total[term] - n) * n_own
        }
        best = sorted(
            (term for term in weights if weights[term] > 0), key=lambda term: (-weights[term], term)
        )[:_TERMS]
        taken.update(best)
        names.append(" · ".join(best))
    return names


def _central_words(space: LatentSpace, rows: np.ndarray, numbers: np.ndarray) -> list[str]:
    vectors = unit_rows(space.vectors[rows], mean_of(space))
    names = []
    for number in range(numbers.max() + 1):
        members = np.flatnonzero(numbers == number)
        name = ""
        if len(members):
            middle = vectors[members].mean(axis=0)
            if space.counts is not None:
                n_kept = max(1, round(_FREQUENT * len(members)))
                members = members[np.argsort(-space.counts[rows[members]], kind="stable")[:n_kept]]
            name = str(space.ids[rows[members[np.argmax(vectors[members] @ middle)]]])
        names.append(name)
    return names


# Facets: classes and bins of numbers by which rows are filtered.

MOST_FACETS = 12
_TELLING = 0.2  # minimum share of rows with the most frequent values; below it, a column is free text


def facets_of(match: Match, columns: Sequence[str], cells: Cells | None = None) -> tuple[Facet, ...]:
    """A facet of each of these columns: the value of every row, by which users can filter. There are at most
    `MOST_FACETS`. Columns of free text are left out.

    Raises
    ------
    SpaceError
        A column that is not there.
    """
    return tuple(islice(filter(None, (_facet(match, column, cells) for column in columns)), MOST_FACETS))


def filter_columns(match: Match, tables: Sequence[str] = ()) -> list[str]:
    """The columns that rows can be filtered by: labels, those of `tables`, and numbers of the pair."""
    labels = []
    if match.source.labels is not None:
        labels = ["labels"]
    # Leave out the agreement, which is known only for a sample.
    numbers = [name for name in columns_of(match) if name != "agreement"]
    return [*labels, *(f"{COLUMN}{name}" for name in tables), *numbers]


def _models(match: Match) -> tuple[str, ...]:
    return short_names(distinct_names((match.source, match.target)))[0]


def _facet(match: Match, column: str, cells: Cells | None) -> Facet | None:
    rows = np.arange(len(match))
    title = column_title(column, _models(match))
    if column == "labels":
        if match.source.labels is None:
            raise SpaceError(f"filter: expected labels in {match.source.name!r}, got none; clear the filter")
        content = [str(label) for label in match.source.labels]
    elif column.startswith(COLUMN):
        content = cells_in(match, rows, title, cells)
    else:
        content = values_of(match, column, rows)
    if isinstance(content, np.ndarray):
        scale = ColorScale.of(content, title)
        known = np.isfinite(content)
        if scale.low == scale.high:
            return None
        if scale.logarithmic:
            spaced = np.geomspace
        else:
            spaced = np.linspace
        edges = spaced(scale.low, scale.high, BINS + 1)
        codes = np.clip(np.searchsorted(edges, content, side="right") - 1, 0, BINS - 1)
        return Facet(
            column, title, np.where(known, codes, NO_CODE).astype(np.uint8), (), tuple(edges.tolist())
        )
    numbers, names, _ = classes_of(content)
    if len(names) < 2 or np.mean(numbers >= 0) < _TELLING:
        return None
    return Facet(column, title, np.where(numbers < 0, NO_CODE, numbers).astype(np.uint8), names)


def kept_rows(
    match: Match, conditions: Sequence[Condition], cells: Cells | None = None
) -> tuple[tuple[Facet, ...], np.ndarray]:
    """The facets of the columns in the conditions, and whether each row meets all conditions, (n,) bool.

    Raises
    ------
    SpaceError
        A column that is not there; a column that holds neither classes nor numbers.
    """
    columns = dict.fromkeys(one.column for one in conditions if one.column != SELECTED_ROWS)
    facets = (*facets_of(match, list(columns), cells), *selected_facet(match, conditions))
    if missing := {one.column for one in conditions} - {facet.column for facet in facets}:
        raise SpaceError(
            f"filter: expected a column of numbers or classes, got {min(missing)!r:.80}; clear the filter"
        )
    return facets, passing(facets, conditions, len(match))


def selected_facet(match: Match, conditions: Sequence[Condition]) -> tuple[Facet, ...]:
    """A facet that says which rows a filter selects by their ids; () if no filter does so."""
    for one in conditions:
        if one.column == SELECTED_ROWS:
            inside = match.source.index.isin(list(one.classes))
            codes = np.where(inside, 0, NO_CODE).astype(np.uint8)
            return (Facet(SELECTED_ROWS, SELECTED_ROWS, codes, ("kept",)),)
    return ()


def of_rows(facets: Sequence[Facet], rows: np.ndarray) -> tuple[Facet, ...]:
    """The facets, reduced to these rows (m,)."""
    return tuple(replace(facet, codes=facet.codes[rows]) for facet in facets)


# Search: the rows of a pair that are nearest to a query in either space, ranked by both spaces.

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NUMBERS_AS_WORDS = 8  # maximum number of numbers without brackets that are read as words
_FEEDBACK = 5  # if a space cannot encode a query, the mean of this number of rows replaces it
_SIF = 1e-3  # a word of this frequency has half the weight of a very rare word

# Words about the query: in "kinds of drinks", only "drinks" counts.
_ASKING = re.compile("(?:example|kind|list|name|sort|thing|type|word)s?", re.IGNORECASE)
_FUSION = 60  # constant of reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009


@dataclass(frozen=True, eq=False)
class Ranking:
    """The rows found for a query, best first.

    Attributes
    ----------
    rows : array (m,)
        The row numbers in the pair.
    similarities : array (m, 2) float32
        The cosine to the query after centring, in the source and in the target, −1 to 1.
    found : array (m, 2) of bool
        Whether the row is among the nearest rows, in the source and in the target.
    how : two texts
        A text for each space that says what replaces the query if the space cannot encode it.
    """

    rows: np.ndarray
    similarities: np.ndarray
    found: np.ndarray
    how: tuple[str, str]


class TextIndex:
    """An index of texts by TF-IDF, which searches in spaces that cannot encode a query."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._n = len(texts)
        self._words = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
        try:
            self._matrix = self._words.fit_transform(texts)
        except ValueError:  # no text has a word that counts
            self._matrix = None

    def similarities(self, query: str) -> np.ndarray:
        """The cosine between each text and the query, (n,), 0 to 1. It is 0 for texts without a word of the
        query."""
        if self._matrix is None:
            return np.zeros(self._n, dtype=np.float32)
        return (self._matrix @ self._words.transform([query]).T).toarray()[:, 0]


def words_row(space: LatentSpace, query: str) -> np.ndarray | None:
    """The mean (d,) of the rows of the words in the query, centred and scaled to length 1. None if no word is
    an id.

    Words such as "kinds" count only if the query has no other word. If the space has counts, frequent words
    have less weight (SIF: Arora, Liang and Ma, ICLR 2017).
    """
    words = _WORD.findall(query.replace("’", "'"))
    words = [word for word in words if not _ASKING.fullmatch(word)] or words
    places = space.index.get_indexer([word if word in space.index else word.lower() for word in words])
    rows = places[places >= 0]
    if not len(rows):
        return None
    counts = space.counts
    if counts is None:
        weights = None
    else:
        weights = _SIF / (_SIF + counts[rows] / counts.sum())
    return _mean_direction(space, rows, weights)


def vector_in(query: str, widths: Collection[int] = ()) -> np.ndarray | None:
    """The vector (d,) that is written in a query, as in "[.2, −1, 3e-2]" or "0.2 -1 0.03". None if the query
    is a text. `widths` are the numbers of dimensions of the spaces.

    A few numbers may be words, such as "1984 2001". Numbers are a vector if they are in brackets, if there
    are as many as a space has dimensions, or if there are more than eight. A query in quotes is a text.
    """
    written = query.replace("−", "-").strip()
    numbers = written.strip("[]() \n\t").replace(",", " ").replace(";", " ").split()
    if len(numbers) < 2:
        return None
    try:
        vector = np.array(numbers, dtype=np.float64)
    except ValueError:
        return None
    is_vector = written.startswith(("[", "(")) or len(vector) in widths or len(vector) > _NUMBERS_AS_WORDS
    return vector if is_vector else None


def rank_rows(
    pair: Match,
    queries: tuple[np.ndarray | None, np.ndarray | None],
    n_each: int = 12,
    *,
    words: np.ndarray | None = None,
    how: tuple[str, str] = ("", ""),
) -> Ranking:
    """The rows nearest to a query in either space, ranked by the sum of their reciprocal ranks in both
    spaces.

    Parameters
    ----------
    queries : two of array (d,) or None
        The query as a vector of each space. If one of the two is None, it is replaced by the mean of the rows
        that are nearest to the query in the other space (relevance feedback: Rocchio 1971).
    n_each : int
        Number of nearest rows of each space. The result has `n_each` to 2 · `n_each` rows.
    words : array (n,), optional
        Similarities between the texts of the rows and the query. They are used if both queries are None: then
        the mean of the rows with the most similar texts replaces the query, and these similarities count in
        the ranking.

    Raises
    ------
    SpaceError
        A vector whose width differs from that of the space, with a number that is not finite, or equal to the
        space's mean; no vector, and no text with a word of the query.

    Examples
    --------
    >>> from relcore import load_words, match
    >>> pair = match(*(load_words(name, limit=2000) for name in ("word2vec-novels", "fasttext-novels")))
    >>> rows = rank_rows(pair, (words_row(pair.source, "the king"), words_row(pair.target, "the king"))).rows
    >>> bool("king" in pair.ids[rows])
    True
    """
    spaces = (pair.source, pair.target)
    descriptions = list(how)
    for space, query in zip(spaces, queries, strict=True):
        if query is not None:
            _check_query(space, query)
    known = [side for side in (0, 1) if queries[side] is not None]
    by_space = [None, None]
    lists = []
    if not known:
        if words is None or not np.any(words > 0):
            raise SpaceError(
                "No text has a word of this query, and no model here can encode the query. Try other words."
            )
        best = np.argsort(-words, kind="stable")[:_FEEDBACK]
        best = best[words[best] > 0]
        lists = [words]
        stand_in = f"the mean of the {counted(len(best), 'row')} whose texts fit best"
        by_space = [_similarities(space, _mean_direction(space, best)) for space in spaces]
        descriptions = [stand_in, stand_in]
    for side in known:
        by_space[side] = _similarities(spaces[side], queries[side])
    for side in {0, 1} - set(known) if known else ():
        best = np.argsort(-by_space[1 - side], kind="stable")[:_FEEDBACK]
        by_space[side] = _similarities(spaces[side], _mean_direction(spaces[side], best))
        descriptions[side] = f"the mean of the {len(best)} rows nearest in {spaces[1 - side].name}"
    ranks = []
    for similarities in (*by_space, *lists):
        rank = np.empty(len(similarities), dtype=np.int64)
        rank[np.argsort(-similarities, kind="stable")] = np.arange(len(similarities))
        ranks.append(rank)
    nearest = np.stack(ranks[:2], axis=1) < n_each
    rows = np.flatnonzero(nearest.any(axis=1))
    gain = sum(1 / (_FUSION + 1 + rank[rows]) for rank in ranks)
    rows = rows[np.argsort(-gain, kind="stable")]
    return Ranking(
        rows,
        np.stack([found[rows] for found in by_space], axis=1),
        nearest[rows],
        (descriptions[0], descriptions[1]),
    )


def _check_query(space: LatentSpace, query: np.ndarray) -> None:
    """Raise a SpaceError unless the query is a vector of the space that has a direction from its mean."""
    if query.shape != (space.dimension,):
        raise SpaceError(f"{space.name}: expected a vector of {space.dimension} numbers, got {len(query)}")
    wrong = np.flatnonzero(~np.isfinite(query))
    if len(wrong):
        raise SpaceError(
            f"query: expected finite numbers, got {query[wrong[0]]} as number {wrong[0] + 1}; mend the"
            " vector, or put the query in quotes to search for words"
        )
    if not _direction(query, mean_of(space)).any():
        raise SpaceError(
            f"query: expected a vector other than the mean of {space.name}, got the mean, to which no row is"
            " nearer than another; give another vector"
        )


def _direction(query: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The query (d,) minus the mean, as a unit row (1, d)."""
    direction = query.astype(np.float64) - mean
    # The square of a very large or small number would leave the range of float32.
    largest = np.abs(direction).max()
    return unit_rows((direction / (largest or 1))[None])


def _similarities(space: LatentSpace, query: np.ndarray) -> np.ndarray:
    mean = mean_of(space)
    direction = _direction(query, mean)
    return Engine().map_rows(space.vectors, direction.T, mean=mean, unit=True)[:, 0]


def _mean_direction(space: LatentSpace, rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    mean = mean_of(space)
    return np.average(unit_rows(space.vectors[rows], mean), axis=0, weights=weights).astype(np.float32) + mean
