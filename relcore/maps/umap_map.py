"""UMAP with exact neighbours from faiss, named stages with progress by epochs, and maps for other spaces."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from relcore.base.magnitude import lengths

EXACT_ROWS = 100_000  # up to here exact search takes less time than UMAP's layout, and no compiling
FITTED_ROWS = (
    50_000  # above, a sample is fitted and the other rows are placed: to fit 250,000 would take minutes
)
PLACED_AT_ONCE = 20_000

COMPILING, NEIGHBOURS, GRAPH, EPOCHS = (
    "compiling UMAP, once in a process",
    "nearest neighbours",
    "neighbour graph",
    "layout",
)
OTHERS = "placing the other rows"
_MANY_EPOCHS, _FEW_EPOCHS, _MANY_ROWS = 500, 200, 10_000  # umap-learn's: fewer for more than that many rows


class UmapMap:
    """UMAP fitted on the rows of one space; `transform` places other rows, of the same width, on the same
    map.

    The neighbours are exact (faiss) up to 100,000 rows: at 20,000 × 100 they take about a second, where
    umap-learn's own search spends most of a minute, chiefly compiling. Reproducible: a `random_state` runs
    the layout on one thread.

    Parameters
    ----------
    n_components, n_neighbors, min_dist, metric, random_state
        As in umap-learn; `n_neighbors` counts the row itself, and is cut to n - 1.
    on_epoch : callable (done, total), optional
        Called a few times per second during the optimisation.
    on_stage : callable (name), optional
        Called with `COMPILING`, `NEIGHBOURS`, `GRAPH` and `EPOCHS` when these begin; compiled is once in a
        process.
    """

    def __init__(
        self,
        n_components: int = 2,
        n_neighbors: int = 15,
        min_dist: float = 0.1,
        metric: str = "cosine",
        random_state: int = 0,
        on_epoch: Callable[[int, int], None] | None = None,
        on_stage: Callable[[str], None] | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.metric = metric
        self.random_state = random_state
        self.on_epoch = on_epoch
        self.on_stage = on_stage

    def fit(self, X: np.ndarray) -> UmapMap:
        begin = self.on_stage or (lambda name: None)
        if not is_compiled():
            begin(COMPILING)
            _compile()
        import umap

        begin(NEIGHBOURS)
        n_neighbors = min(self.n_neighbors, len(X) - 1)
        index = NeighbourIndex(X, self.metric) if len(X) <= EXACT_ROWS else None
        # The spectral start asks for more eigenvectors than a handful of rows has.
        start = "spectral" if len(X) > 4 * (self.n_components + 1) else "random"
        progress = (
            {"disable": True}
            if self.on_epoch is None
            else _tqdm_settings(self.on_epoch, partial(begin, EPOCHS))
        )
        known = (None, None, None) if index is None else index.query(X, n_neighbors)
        begin(GRAPH)
        self.model_ = umap.UMAP(
            n_components=self.n_components,
            n_neighbors=n_neighbors,
            min_dist=self.min_dist,
            metric=self.metric,
            init=start,
            random_state=self.random_state,
            n_jobs=1,
            precomputed_knn=known,
            tqdm_kwds=progress,
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"precomputed_knn\[2\]")
            warnings.filterwarnings(
                "ignore", message="Graph is not fully connected"
            )  # told from the picture itself
            self.model_.fit(X)
        if index is not None:
            self.model_._knn_search_index = index  # umap-learn accepts only its own index as an argument
        self.embedding_ = np.ascontiguousarray(self.model_.embedding_, dtype=np.float32)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self.model_.transform(X), dtype=np.float32)

    def draw(self, X: np.ndarray, on_row: Callable[[int, int], None]) -> np.ndarray:
        """Fit on the rows of X (n, d), or on a sample of many, see `rows_fitted`, and place the others: (n,
        c).

        `on_row` is called with the number of the others that are placed, and their number.
        """
        fitted = rows_fitted(len(X), self.random_state)
        if len(fitted) == len(X):
            return self.fit(X).embedding_
        picture = np.empty((len(X), self.n_components), dtype=np.float32)
        picture[fitted] = self.fit(X[fitted]).embedding_
        others = np.setdiff1d(np.arange(len(X)), fitted)
        if self.on_stage:
            self.on_stage(OTHERS)
        picture[others] = self._placed(X, others, on_row)
        return picture

    def draw_on(self, X: np.ndarray, on_row: Callable[[int, int], None]) -> np.ndarray:
        """`transform` of X, with the memory of one block where its rows are many; `on_row` as in `draw`."""
        return (
            self.transform(X) if most_fitted(len(X)) == len(X) else self._placed(X, np.arange(len(X)), on_row)
        )

    def _placed(self, X: np.ndarray, rows: np.ndarray, on_row: Callable[[int, int], None]) -> np.ndarray:
        """These rows of X on the map, (m, c), in blocks of equal size: umap-learn chooses the epochs by
        it.
        """
        told, self.model_.tqdm_kwds = (
            self.model_.tqdm_kwds,
            {"disable": True},
        )  # the rows placed are counted, not epochs
        placed, done = np.empty((len(rows), self.n_components), dtype=np.float32), 0
        for block in np.array_split(rows, -(-len(rows) // PLACED_AT_ONCE)):
            placed[done : done + len(block)] = self.transform(X[block])
            done += len(block)
            on_row(done, len(rows))
        self.model_.tqdm_kwds = told
        return placed


class NeighbourIndex:
    """Exact nearest neighbours with the two members that umap-learn uses of pynndescent's index."""

    _angular_trees = False

    def __init__(self, X: np.ndarray, metric: str) -> None:
        import faiss

        self._cosine = metric == "cosine"
        self._index = faiss.IndexFlatIP(X.shape[1]) if self._cosine else faiss.IndexFlatL2(X.shape[1])
        self._index.add(self._prepared(X))

    def query(self, X: np.ndarray, k: int, epsilon: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Indices (n, k) and distances (n, k), nearest first; `epsilon` is of no use to an exact search."""
        found, rows = self._index.search(self._prepared(X), k)
        distances = 1 - found if self._cosine else np.sqrt(np.maximum(found, 0))
        return rows.astype(np.int32), np.maximum(distances, 0).astype(np.float32)

    def _prepared(self, X: np.ndarray) -> np.ndarray:
        X = np.ascontiguousarray(X, dtype=np.float32)
        if not self._cosine:
            return X
        norms = lengths(X)[:, None]
        return (X / np.where(norms > 0, norms, 1)).astype(np.float32, copy=False)


def is_compiled() -> bool:
    """Whether this process has compiled UMAP's loops, which takes longer than to draw 5,000 rows."""
    return _compile.cache_info().currsize > 0


@cache
def _compile() -> None:
    """Fit and place a few rows, so that the epochs of the first map are not preceded by compiling that
    nobody sees.
    """
    import umap

    rows = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    known = NeighbourIndex(rows, "euclidean").query(rows, 15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = umap.UMAP(n_neighbors=15, random_state=0, n_jobs=1, precomputed_knn=known).fit(rows)
        small._knn_search_index = NeighbourIndex(rows, "euclidean")
        small.transform(rows[:5] + 1)


def stage_seconds(n: int, d: int, n_neighbors: int) -> dict[str, float]:
    """What the stages of n rows of d numbers take on a core of a server's processor of 2026; compiling not
    included.
    """
    epochs = _MANY_EPOCHS if n <= _MANY_ROWS else _FEW_EPOCHS
    return {
        NEIGHBOURS: 0.1 + 2.5e-11 * n * n * d,
        GRAPH: 0.1 + 3e-5 * n,
        EPOCHS: 1.3e-7 * n * n_neighbors * epochs,
    }


def placing_seconds(m: int, n: int, d: int) -> float:
    """What it takes to place m rows of d numbers on a map of n, on the same core."""
    return 2.5e-11 * m * n * d + 3e-4 * m


def most_fitted(n: int) -> int:
    """On how many of n rows a map is fitted."""
    return min(n, FITTED_ROWS)


def rows_fitted(n: int, random_state: int) -> np.ndarray:
    """The rows of n that a map is fitted on, ascending: all, or a random sample. The same for all spaces
    of n rows.
    """
    if most_fitted(n) == n:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, most_fitted(n), replace=False))


COMPILING_SECONDS = 9.0
PLACING = 0.3  # of a layout: the epochs that placing other rows takes


def _tqdm_settings(on_epoch: Callable[[int, int], None], on_first: Callable[[], None]) -> dict[str, Any]:
    return {
        "disable": False,
        "file": _EpochReader(on_epoch, on_first),
        "bar_format": "{n_fmt}/{total_fmt}",
        "mininterval": 0.2,
    }


class _EpochReader:
    """The file that UMAP's tqdm bar writes to: UMAP reports epochs only there."""

    def __init__(self, on_epoch: Callable[[int, int], None], on_first: Callable[[], None]) -> None:
        self._on_epoch, self._on_first = on_epoch, on_first

    def write(self, text: str) -> None:
        done, slash, total = text.strip().partition("/")
        if slash and done.isdecimal() and total.isdecimal():
            if self._on_first:
                self._on_first()
                self._on_first = None
            self._on_epoch(int(done), int(total))

    def flush(self) -> None:
        pass
