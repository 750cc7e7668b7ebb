"""Maps by UMAP and t-SNE."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore.base.environment import torch_name
from relcore.base.errors import extra
from relcore.base.rows import DerivedRows, centred, mean_row, unit_rows
from relcore.engine.nearest import nearest
from relcore.engine.training import reproducible
from relcore.maps.principal_axes import (
    FITTED_ROWS,
    ReductionSpec,
    n_fitted,
    principal_map,
    random_rows,
    sampled_rows,
)
from relcore.runs.work import Stages

if TYPE_CHECKING:
    from openTSNE import TSNE, TSNEEmbedding

NEIGHBOURS = "nearest neighbours"
GRAPH = "neighbour graph"
EPOCHS = "layout"
COMPILING = "preparing UMAP, only the first time"
OTHERS = "placing the other rows"


def stage_of_placing(number: int) -> str:
    return f"placing space {number}"


class NeighbourIndex:
    """An exact search for nearest neighbours, with that part of the interface of pynndescent's index which
    umap-learn calls."""

    _angular_trees = False

    def __init__(self, X: np.ndarray, metric: str) -> None:
        if metric == "cosine":
            self._mean = None
        else:
            self._mean = mean_row(X)
        self._base = self._prepared(X)
        if self._mean is not None:
            # ‖x − y‖² = ‖x‖² − 2 (x·y − ‖y‖² / 2). So with one more column, −‖y‖² / 2, the nearest row has
            # the largest product.
            self._base = np.column_stack([self._base, np.vecdot(self._base, self._base) / -2])

    def query(self, X: np.ndarray, k: int, epsilon: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Return the row numbers (n, k) and distances (n, k) of the k nearest rows, nearest first. An exact
        search ignores `epsilon`."""
        queries = self._prepared(X)
        ones = np.ones((len(queries), self._base.shape[1] - queries.shape[1]), np.float32)
        products, rows = nearest(np.hstack([queries, ones]), self._base, k, unit=False)
        distances = 1 - products
        if self._mean is not None:
            distances = np.sqrt(np.maximum(np.vecdot(queries, queries)[:, None] - 2 * products, 0))
        return rows.astype(np.int32), np.maximum(distances, 0).astype(np.float32)

    def _prepared(self, X: np.ndarray) -> np.ndarray:
        X = np.ascontiguousarray(X, dtype=np.float32)
        if self._mean is None:
            return unit_rows(X)
        return centred(X, self._mean)


# UMAP with exact neighbours, because umap-learn's own search takes long to compile. Of many rows, a sample is
# fitted.

EXACT_ROWS = 100_000
PLACED_AT_ONCE = 20_000


def umap_maps(
    fit: Callable[[np.ndarray | DerivedRows, ReductionSpec, Stages], Any],
    matrices: Sequence[np.ndarray | DerivedRows],
    spec: ReductionSpec,
    stages: Stages,
) -> list[np.ndarray]:
    """The UMAP map of the first matrix, and the rows of the others placed on it, each (n, 2) or (n, 3). `fit`
    fits the map on at most `FITTED_ROWS` rows."""
    first, *others = matrices
    fitted = random_rows(len(first), FITTED_ROWS, spec.random_state)
    is_whole = len(fitted) == len(first)
    model = fit(first if is_whole else first[fitted], spec, stages)
    pictures = [np.ascontiguousarray(model.embedding_, dtype=np.float32)]
    if not is_whole:
        picture = np.empty((len(first), spec.n_components), dtype=np.float32)
        rest = np.setdiff1d(np.arange(len(first)), fitted)
        stages.begin(OTHERS)
        picture[fitted] = pictures[0]
        picture[rest] = _place_rows(model, first, rest, PLACED_AT_ONCE, stages)
        pictures = [picture]
    for number, X in enumerate(others, 2):
        stages.begin(stage_of_placing(number))
        size = PLACED_AT_ONCE
        if n_fitted(len(X), spec) == len(X):
            size = len(X)
        pictures.append(_place_rows(model, X, np.arange(len(X)), size, stages))
    return pictures


def fit_umap(X: np.ndarray, spec: ReductionSpec, stages: Stages) -> Any:
    """Fit a model of umap-learn on the rows of X (n, d), with one thread."""
    if not compile_umap.cache_info().currsize:
        stages.begin(COMPILING)
        compile_umap()
    import umap

    stages.begin(NEIGHBOURS)
    n_neighbors = min(spec.n_neighbors, len(X) - 1)
    index = None
    if len(X) <= EXACT_ROWS:
        index = NeighbourIndex(X, spec.metric)
    if index is None:
        known = (None, None, None)
    else:
        known = index.query(X, n_neighbors)
    start = "spectral"
    if len(X) <= 4 * (spec.n_components + 1):  # too few eigenvectors for the spectral start
        start = "random"
    stages.begin(GRAPH)
    epochs = {"file": _EpochReader(stages), "bar_format": "{n_fmt}/{total_fmt}", "mininterval": 0.2}
    model = umap.UMAP(
        n_components=spec.n_components,
        n_neighbors=n_neighbors,
        min_dist=spec.min_dist,
        metric=spec.metric,
        init=start,
        random_state=spec.random_state,
        n_jobs=1,
        precomputed_knn=known,
        tqdm_kwds={"disable": False, **epochs},
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"precomputed_knn\[2\]")
        # No warning, because the picture shows that the graph has separate parts.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        model.fit(X)
    model.tqdm_kwds = {"disable": True}  # `_place_rows` shows the progress instead
    if index is not None:
        model._knn_search_index = index  # the constructor accepts only indexes of pynndescent
    return model


_GPU_EPOCHS = 500


class TorchUmap:
    """UMAP by TorchDR, with the interface of a fitted model of umap-learn."""

    def __init__(self, X: np.ndarray | DerivedRows, spec: ReductionSpec, stages: Stages) -> None:
        self._cosine = spec.metric == "cosine"
        self._fitted = self._prepared(X[:])
        stages.begin(EPOCHS)
        with _random_as_before():
            self._model = _by_torch("UMAP", spec, stages, _GPU_EPOCHS)(
                n_neighbors=min(spec.n_neighbors, len(X) - 1),
                min_dist=spec.min_dist,
                # For unit rows, this is twice the cosine distance; the scale does not matter.
                metric="sqeuclidean" if self._cosine else "euclidean",
            )
            self.embedding_ = self._model.fit_transform(self._fitted)

    def transform(self, X: np.ndarray) -> np.ndarray:
        with _random_as_before():
            return self._model.transform(self._prepared(X), X_train=self._fitted)

    def _prepared(self, X: np.ndarray) -> np.ndarray:
        X = np.ascontiguousarray(X, dtype=np.float32)
        return unit_rows(X) if self._cosine else X


def _by_torch(name: str, spec: ReductionSpec, stages: Stages, epochs: int) -> Callable[..., Any]:
    with extra():
        import torchdr

    class Counted(getattr(torchdr, name)):  # type: ignore[misc]
        def on_training_step_end(self) -> None:
            super().on_training_step_end()
            if not (done := int(self.n_iter_) + 1) % 25:
                stages.count(done, epochs, "epoch")

    return partial(
        Counted,
        n_components=spec.n_components,
        random_state=spec.random_state,
        max_iter=epochs,
        device=torch_name(),
    )


@contextmanager
def _random_as_before() -> Iterator[None]:
    """After the block, restore the states of the global random generators, which TorchDR seeds."""
    import torch

    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


def _place_rows(
    model: Any, X: np.ndarray | DerivedRows, rows: np.ndarray, most: int, stages: Stages
) -> np.ndarray:
    """Place these rows of X on the map, (m, c). Blocks have equal sizes, because umap-learn chooses the
    number of epochs by the size."""
    parts = []
    done = 0
    for block in np.array_split(rows, -(-len(rows) // most)):
        parts.append(np.ascontiguousarray(model.transform(X[block]), dtype=np.float32))
        done += len(block)
        stages.count(done, len(rows), "row")
    return np.concatenate(parts)


@cache
def compile_umap() -> None:
    import umap

    rows = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    index = NeighbourIndex(rows, "euclidean")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = index.query(rows, 15)
        small = umap.UMAP(n_neighbors=15, random_state=0, n_jobs=1, precomputed_knn=known).fit(rows)
        small._knn_search_index = index
        small.transform(rows[:5] + 1)


class _EpochReader:
    """A file object that reads the number of epochs from UMAP's progress bar, which tqdm writes to it."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._begun = False

    def write(self, text: str) -> None:
        if numbers := re.fullmatch(r"(\d+)/(\d+)", text.strip()):
            if not self._begun:
                self._stages.begin(EPOCHS)
                self._begun = True
            self._stages.count(int(numbers[1]), int(numbers[2]), "epoch")

    def flush(self) -> None:
        pass


# t-SNE by the Barnes-Hut descent of openTSNE, with exact neighbours and the settings of scikit-learn's TSNE.
# The place of a new row does not depend on other new rows (Poličar, Stražar and Zupan, Machine Learning
# 2021).

# Numbers of iterations: with exaggeration, without it, and for placed rows.
_EARLY = 250
_REST = 750
_PLACING = 250
_REPORTED = 50  # number of iterations between two reports


class _Neighbours(NeighbourIndex):
    """Exact neighbours with the interface of openTSNE's indices."""

    def __init__(self, X: np.ndarray, metric: str, k: int) -> None:
        super().__init__(X, metric)
        self._X = X
        self.n_samples = len(X)
        self.k = k

    def build(self) -> tuple[np.ndarray, np.ndarray]:
        rows, distances = self.query(self._X, self.k + 1)
        return rows[:, 1:], distances[:, 1:]

    def query(self, X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        rows, distances = super().query(X, k)
        return rows.astype(np.int64), distances.astype(np.float64)


class _IterationCount:
    """A callback of openTSNE that reports the number of iterations, of both phases of a fit together;
    openTSNE itself counts each phase from 0."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._n = 0
        self._total = 0

    def begin(self, total: int) -> None:
        self._n = 0
        self._total = total

    def __call__(self, iteration: int, error: float, embedding: np.ndarray) -> None:
        self._n += _REPORTED
        self._stages.count(self._n, self._total, "iteration")


def tsne_maps(matrices: Sequence[np.ndarray], spec: ReductionSpec, stages: Stages) -> list[np.ndarray]:
    """The map of a sample of the first matrix, and the samples of the others placed on it. Rows outside the
    samples are NaN."""
    stages.begin(NEIGHBOURS)
    drawn = [sampled_rows(len(matrix), spec) for matrix in matrices]
    samples = [matrix[rows] for matrix, rows in zip(matrices, drawn, strict=True)]
    count = _IterationCount(stages)
    embedding = _fit_tsne(samples[0], spec, stages, count)
    coordinates = [embedding]
    for number, sample in enumerate(samples[1:], 2):
        stages.begin(stage_of_placing(number))
        count.begin(_PLACING)
        coordinates.append(embedding.transform(sample, n_iter=_PLACING))
    pictures = [np.full((len(matrix), spec.n_components), np.nan, dtype=np.float32) for matrix in matrices]
    for picture, rows, places in zip(pictures, drawn, coordinates, strict=True):
        picture[rows] = places
    return pictures


def _fit_tsne(X: np.ndarray, spec: ReductionSpec, stages: Stages, count: _IterationCount) -> TSNEEmbedding:
    """The map (n, n_components) of the rows X (n, d), begun at their PCA and centred as by `transform`."""
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PerplexityBasedNN

    perplexity = min(spec.perplexity, (len(X) - 1) / 3)
    index = _Neighbours(X, spec.metric, max(1, int(3 * perplexity)))
    affinities = PerplexityBasedNN(perplexity=perplexity, knn_index=index)
    start, _ = principal_map(X, spec)
    start = start / max(start[:, 0].std(), np.finfo(float).tiny)
    # Noise separates rows with equal coordinates, and fills columns of zeros.
    noise = np.random.default_rng(spec.random_state).normal(size=start.shape)
    stages.begin(EPOCHS)
    if spec.method == "tsne-gpu":
        rows = X
        if spec.metric == "cosine":
            rows = unit_rows(X)
        embedding = TSNEEmbedding(
            _torch_tsne(rows, start + 0.01 * noise, perplexity, spec, stages), affinities
        )
    else:
        count.begin(_EARLY + _REST)
        model = _open_tsne(spec, count)
        embedding = model.fit(affinities=affinities, initialization=1e-4 * start + 1e-6 * noise)
    embedding -= (embedding.max(axis=0) + embedding.min(axis=0)) / 2
    return embedding


def _open_tsne(spec: ReductionSpec, count: _IterationCount) -> TSNE:
    from faiss import omp_get_max_threads
    from openTSNE import TSNE

    return TSNE(
        spec.n_components,
        early_exaggeration_iter=_EARLY,
        n_iter=_REST,
        negative_gradient_method="bh",
        callbacks=count,
        callbacks_every_iters=_REPORTED,
        n_jobs=omp_get_max_threads(),  # the number of threads does not change the result
        random_state=spec.random_state,
    )


def _torch_tsne(
    X: np.ndarray, start: np.ndarray, perplexity: float, spec: ReductionSpec, stages: Stages
) -> np.ndarray:
    import torch

    # Only t-SNE needs this: on a GPU, each run sums the terms of its gradient in another order.
    with _random_as_before(), reproducible(spec.random_state, strict=False):
        begin = torch.from_numpy(np.ascontiguousarray(start, dtype=np.float32))
        make = _by_torch("TSNE", spec, stages, _EARLY + _REST)
        return make(perplexity=perplexity, init=begin, early_exaggeration_iter=_EARLY).fit_transform(X)
