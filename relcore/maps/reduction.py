"""Dimension reduction: maps of spaces in two or three dimensions by PCA, UMAP or t-SNE."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from relcore.base.environment import has_gpu, torch_name
from relcore.base.errors import SpaceError, extra
from relcore.base.names import REDUCTIONS
from relcore.base.rows import DerivedRows, centred, mean_row, unit_rows
from relcore.base.settings import check, setting
from relcore.engine.engine import Engine, nearest
from relcore.engine.training import reproducible
from relcore.represent.translation import align
from relcore.runs.store import Context, Progress, Stages, Store, silent

# The stages of a reduction, as the progress of a job names them.
AXES = "axes"
NEIGHBOURS = "nearest neighbours"
GRAPH = "neighbour graph"
EPOCHS = "layout"
COMPILING = "preparing UMAP, only the first time"
OTHERS = "placing the other rows"


@dataclass(frozen=True)
class ReductionSpec:
    """The settings of a dimension reduction. All fields are plain JSON values.

    Attributes
    ----------
    method : "pca", "umap", "umap-gpu", "tsne" or "tsne-gpu"
        Methods with "-gpu" use TorchDR, which is quick on a GPU. Its maps differ from those of umap-learn and
        openTSNE.
    n_components : 2 or 3
    fit : "apart" or "first"
        "apart" makes a separate map for each space. "first" puts all spaces on the map of the first one, so
        that distances *between* spaces have a meaning (Moschella et al. 2023, Fig. 5).
    align : bool
        Whether all other maps are rotated, mirrored and scaled onto the first one, for display only (see
        `relcore.represent.translation.align`).
    n_neighbors, min_dist : int, float
        Settings of UMAP. `n_neighbors` is reduced to n − 1.
    perplexity : float
        A setting of t-SNE. It is reduced to (n − 1) / 3.
    metric : "cosine" or "euclidean"
        The metric of UMAP and t-SNE; PCA is always Euclidean.
    max_points : int
        The largest number of rows that t-SNE draws. They are a random sample; all other rows are NaN.
    random_state : int
        If there are more than 50,000 rows, it also draws those on which UMAP is fitted.
    """

    method: str = setting("pca", choices=REDUCTIONS)
    n_components: int = setting(2, choices=(2, 3))
    fit: str = setting("apart", choices=("apart", "first"))
    align: bool = False
    n_neighbors: int = setting(15, low=2)
    min_dist: float = setting(0.1, low=0, high=1)
    perplexity: float = setting(30.0, above=0)
    metric: str = setting("cosine", choices=("cosine", "euclidean"))
    max_points: int = setting(5_000, low=3)
    random_state: int = setting(0, low=0, high=2**32 - 1)

    __post_init__ = check


@extra()
def reduce_spaces(
    matrices: Sequence[np.ndarray | DerivedRows], spec: ReductionSpec, report: Progress | None = None
) -> list[np.ndarray]:
    """The coordinates (n, c) of each matrix (n, d_i), in order, as float32. Equal values of `random_state`
    give equal coordinates.

    With umap-learn, a matrix may be `DerivedRows`, which are never held in memory as a whole.

    Raises a SpaceError if there are fewer than 3 rows, fewer columns than components (except with PCA), or,
    with ``fit="first"``, matrices of different widths.
    """
    matrices = [
        X if isinstance(X, DerivedRows) else np.ascontiguousarray(X, dtype=np.float32) for X in matrices
    ]
    shapes = [matrix.shape for matrix in matrices]
    need_drawable(shapes, spec)
    draw = {
        "pca": _pca,
        "umap": partial(_umap, fit_umap),
        "umap-gpu": partial(_umap, _TorchUmap),
        "tsne": _tsne,
        "tsne-gpu": _tsne,
    }[spec.method]
    stages = Stages(report or silent, _plan(shapes, spec))
    if spec.fit == "first":
        groups = [matrices]
    else:
        groups = [[matrix] for matrix in matrices]
    pictures = [picture for group in groups for picture in draw(group, spec, stages)]
    stages.end()
    return align_maps(pictures, spec)


def align_maps(pictures: Sequence[np.ndarray], spec: ReductionSpec) -> list[np.ndarray]:
    """The maps, all aligned to the first one if `spec` has `align`."""
    first, *others = pictures
    return [first, *(align(picture, first) if spec.align else picture for picture in others)]


def need_drawable(shapes: Sequence[tuple[int, ...]], spec: ReductionSpec) -> None:
    """Raise those errors of `reduce_spaces` that follow from the shapes alone."""
    if spec.method == "pca":
        n_columns = 1
    else:
        n_columns = spec.n_components
    for i, shape in enumerate(shapes, 1):
        if len(shape) != 2 or shape[0] < 3 or shape[1] < n_columns:
            raise SpaceError(
                f"space {i}: expected at least 3 rows, and {n_columns} or more columns for"
                f" {spec.n_components} components by {REDUCTIONS[spec.method].title}, got shape {shape}; take"
                " more rows or anchors" + (", or method 'pca'" if n_columns > 1 else "")
            )
    widths = [width for _, width in shapes]
    if spec.fit == "first" and len(set(widths)) > 1:
        raise SpaceError(
            f"fit='first': expected spaces of equal width, got {', '.join(map(str, widths))}; use"
            " fit='apart', or the relative spaces, whose width is the number of anchors"
        )


def reduction_seconds(shapes: Sequence[tuple[int, int]], spec: ReductionSpec) -> float:
    """The approximate seconds that `reduce_spaces` takes in a new process."""
    return sum(seconds for _, seconds in _plan(shapes, spec))


def _plan(shapes: Sequence[tuple[int, int]], spec: ReductionSpec) -> list[tuple[str, float]]:
    stages: list[tuple[str, float]] = []
    for number, (n, d) in enumerate(shapes, 1):
        if number == 1 or spec.fit == "apart":
            stages += _stages(n, d, spec, number == 1)
        else:
            stages.append((_placing(number), _placing_seconds(n, n_fitted(shapes[0][0], spec), d)))
    return stages


def _stages(n: int, d: int, spec: ReductionSpec, is_first: bool) -> list[tuple[str, float]]:
    if spec.method == "pca":
        return [(AXES, 0.1)]
    if is_tsne(spec):
        n = min(n, spec.max_points)
        return [(NEIGHBOURS, is_first + 2.5e-11 * n * n * d), (EPOCHS, 4e-3 * n)]
    fitted = n_fitted(n, spec)
    if spec.method == "umap-gpu":
        rest = []
        if fitted < n:
            rest = [(OTHERS, 1e-4 * (n - fitted))]
        return [(EPOCHS, 1 + 1e-4 * fitted), *rest]
    epochs = 500 if fitted <= 10_000 else 200  # as in umap-learn
    return [
        *([(COMPILING, 9.0)] if is_first and not _compile.cache_info().currsize else []),
        (NEIGHBOURS, 0.1 + 2.5e-11 * fitted * fitted * d),
        (GRAPH, 0.1 + 3e-5 * fitted),
        (EPOCHS, 1.3e-7 * fitted * spec.n_neighbors * epochs),
        *([(OTHERS, _placing_seconds(n - fitted, fitted, d))] if fitted < n else []),
    ]


def _placing(number: int) -> str:
    return f"placing space {number}"


def _placing_seconds(m: int, n: int, d: int) -> float:
    return 2.5e-11 * m * n * d + 3e-4 * m


# PCA in blocks of rows: one pass computes moments, and a second pass computes scores.

_RANK = 1e-5  # length of an axis as a share of the longest; shorter axes are rounding errors
SAMPLED_ROWS = 50_000
MOST_PRODUCTS = 2e10


def principal_axes(scatter: np.ndarray, n_components: int, basis: np.ndarray | None = None) -> np.ndarray:
    """The principal axes (d, c) of rows with this scatter matrix (d, d), by descending variance. Each has
    length 1; axes beyond the rank are zero. With a `basis` B (d, k), the axes (k, c) of the product of these
    rows and B."""
    if basis is not None and basis.shape[1] <= basis.shape[0]:
        scatter = Engine().product(basis.T, Engine().product(scatter, basis))
        basis = None
    if basis is None:
        leading = Engine().eigh(scatter)[1][:, : -n_components - 1 : -1]
        return np.pad(leading, ((0, 0), (0, n_components - leading.shape[1])))
    # For a wide basis B, a smaller matrix (d, d) has the same eigenvalues: Lᵀ B Bᵀ L, where L Lᵀ is the
    # scatter matrix.
    values, vectors = Engine().eigh(scatter)
    mixed = Engine().product(basis.T, vectors * np.sqrt(np.maximum(values, 0)))
    return _unit_axes(mixed @ principal_axes(Engine().product(mixed.T, mixed), n_components))


_MORE = 14  # number of additional axes, with which the iteration ends earlier
_DIRECT = 96  # up to this number of columns, a full decomposition is faster than the iteration
# maximum number of iterations; tolerance ÷ largest eigenvalue
_ITERATIONS = 40
_SETTLED = 1e-9


def leading_axes(scatter: np.ndarray, before: np.ndarray | None = None, n_components: int = 2) -> np.ndarray:
    """The first p ≥ `n_components` principal axes (k, p) of rows with this scatter matrix (k, k), by
    descending variance.

    If the matrix has changed little since the axes `before` were computed, subspace iteration from these axes
    needs only a few products and no decomposition. The signs of the axes are kept.
    """
    k = len(scatter)
    axes = None
    if before is not None and before.shape[0] == k > _DIRECT:
        axes = _iterate_subspace(scatter, before, n_components)
    if axes is None:
        axes = Engine("cpu").eigh(scatter)[1][:, : -n_components - _MORE - 1 : -1]
        axes = np.pad(axes, ((0, 0), (0, max(0, n_components - k))))
    if before is not None:
        shared = min(k, len(before)), min(axes.shape[1], before.shape[1])
        same = np.vecdot(axes[: shared[0], : shared[1]], before[: shared[0], : shared[1]], axis=0)
        axes[:, : shared[1]] *= np.where(same < 0, -1, 1)
    return axes


def _iterate_subspace(scatter: np.ndarray, axes: np.ndarray, n_components: int) -> np.ndarray | None:
    """The axes by subspace iteration with Rayleigh–Ritz steps (Golub and Van Loan, 8.2). None if the
    iteration does not converge.
    """
    for _ in range(_ITERATIONS):
        basis = np.linalg.qr(scatter @ (scatter @ axes))[0]
        moved = scatter @ basis
        values, turn = np.linalg.eigh(basis.T @ moved)
        axes = basis @ turn[:, ::-1]
        moved = moved @ turn[:, ::-1]
        values = values[::-1]
        rest = (moved - axes * values)[:, :n_components]
        if np.linalg.norm(rest) <= _SETTLED * values[0]:
            return axes
    return None


def _unit_axes(axes: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(axes, axis=0)
    return np.where(norms > _RANK * norms[0], axes, 0) / np.maximum(norms, np.finfo(float).tiny)


def axis_signs(scores: np.ndarray) -> np.ndarray:
    """For each column, the sign that makes its score farthest from zero positive, (c,). Thus equal maps get
    equal signs, although the signs of eigenvectors are arbitrary."""
    return np.where(-scores.min(axis=0) > scores.max(axis=0), -1, 1).astype(np.float32)


def fitted_rows(n: int, width: int, random_state: int = 0) -> np.ndarray:
    """The numbers of the rows on which axes are fitted, ascending: all n rows, or a random sample if that
    would take too long."""
    most = SAMPLED_ROWS
    if float(n) * width * width <= MOST_PRODUCTS:
        most = n
    return random_rows(n, most, random_state)


def random_rows(n: int, most: int, random_state: int) -> np.ndarray:
    """At most `most` of the row numbers 0 … n − 1, drawn at random, ascending."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, most, replace=False))


def _pca(matrices: Sequence[np.ndarray], spec: ReductionSpec, stages: Stages) -> list[np.ndarray]:
    stages.begin(AXES)
    picture, to_map = principal_map(matrices[0], spec)
    return [picture, *map(to_map, matrices[1:])]


class PrincipalAxes(NamedTuple):
    """A mean (d,) and axes (d, c). Call it with rows (n, d) to compute their coordinates (n, c)."""

    mean: np.ndarray
    axes: np.ndarray

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return Engine().map_rows(rows, self.axes, mean=self.mean)


def principal_map(first: np.ndarray, spec: ReductionSpec) -> tuple[np.ndarray, PrincipalAxes]:
    """Return the scores (n, c) of the rows on the leading eigenvectors of their covariance, and the
    `PrincipalAxes`, which give the scores of other rows. `axis_signs` decides the signs."""
    n, d = first.shape
    need_drawable([first.shape], spec)
    mean = mean_row(first)
    engine = Engine()
    if d <= n:
        fitted = fitted_rows(n, d, spec.random_state)
        if len(fitted) == n:
            rows = first
        else:
            rows = DerivedRows(first, np.asarray, fitted)
        axes = principal_axes(engine.moments(rows).products, spec.n_components)
    else:
        # If there are fewer rows than columns, the axes are computed from the inner products of the rows, (n,
        # n).
        moved = centred(first, mean)
        leading = principal_axes(engine.product(moved, moved.T, np.float32), spec.n_components)
        axes = _unit_axes(moved.T.astype(np.float64) @ leading)
    picture = engine.map_rows(first, axes, mean=mean)
    signs = axis_signs(picture)
    return picture * signs, PrincipalAxes(mean, axes * signs)


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
FITTED_ROWS = 50_000
PLACED_AT_ONCE = 20_000


def is_tsne(spec: ReductionSpec) -> bool:
    return spec.method in ("tsne", "tsne-gpu")


def n_fitted(n: int, spec: ReductionSpec) -> int:
    """The number of n rows on which UMAP is fitted; n for other methods."""
    if spec.method in ("umap", "umap-gpu"):
        return min(n, FITTED_ROWS)
    return n


def _umap(
    fit: Callable[[np.ndarray | DerivedRows, ReductionSpec, Stages], Any],
    matrices: Sequence[np.ndarray | DerivedRows],
    spec: ReductionSpec,
    stages: Stages,
) -> list[np.ndarray]:
    first, *others = matrices
    fitted = random_rows(len(first), FITTED_ROWS, spec.random_state)
    is_whole = len(fitted) == len(first)
    model = fit(first if is_whole else first[fitted], spec, stages)
    pictures = [np.ascontiguousarray(model.embedding_, dtype=np.float32)]
    if not is_whole:
        picture = np.empty((len(first), spec.n_components), dtype=np.float32)
        rest = np.setdiff1d(np.arange(len(first)), fitted)
        stages.begin(OTHERS)
        picture[fitted], picture[rest] = pictures[0], _place_rows(model, first, rest, PLACED_AT_ONCE, stages)
        pictures = [picture]
    for number, X in enumerate(others, 2):
        stages.begin(_placing(number))
        size = PLACED_AT_ONCE
        if n_fitted(len(X), spec) == len(X):
            size = len(X)
        pictures.append(_place_rows(model, X, np.arange(len(X)), size, stages))
    return pictures


def fit_umap(X: np.ndarray, spec: ReductionSpec, stages: Stages) -> Any:
    """Fit a model of umap-learn on the rows of X (n, d), with one thread."""
    if not _compile.cache_info().currsize:
        stages.begin(COMPILING)
        _compile()
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
    stages.begin(GRAPH)
    epochs = {"file": _EpochReader(stages), "bar_format": "{n_fmt}/{total_fmt}", "mininterval": 0.2}
    model = umap.UMAP(
        n_components=spec.n_components,
        n_neighbors=n_neighbors,
        min_dist=spec.min_dist,
        metric=spec.metric,
        # Start at random if there are few rows, which do not have enough eigenvectors for the spectral start.
        init="spectral" if len(X) > 4 * (spec.n_components + 1) else "random",
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


class _TorchUmap:
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

    look = {"n_components": spec.n_components, "random_state": spec.random_state}
    return partial(Counted, **look, max_iter=epochs, device=torch_name())


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
def _compile() -> None:
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


def sampled_rows(n: int, spec: ReductionSpec) -> np.ndarray:
    """The numbers of the drawn rows, ascending: all n rows, or for t-SNE a random sample of at most
    `max_points`."""
    return random_rows(n, spec.max_points if is_tsne(spec) else n, spec.random_state)


def _tsne(matrices: Sequence[np.ndarray], spec: ReductionSpec, stages: Stages) -> list[np.ndarray]:
    from faiss import omp_get_max_threads
    from openTSNE import TSNE, TSNEEmbedding
    from openTSNE.affinity import PerplexityBasedNN

    stages.begin(NEIGHBOURS)
    drawn = [sampled_rows(len(matrix), spec) for matrix in matrices]
    first, *others = (matrix[rows] for matrix, rows in zip(matrices, drawn, strict=True))
    start, _ = principal_map(first, spec)
    perplexity = min(spec.perplexity, (len(first) - 1) / 3)
    index = _Neighbours(first, spec.metric, max(1, int(3 * perplexity)))
    progress = [0, _EARLY + _REST]

    def count(iteration: int, error: float, embedding: np.ndarray) -> None:
        progress[0] += _REPORTED  # openTSNE restarts its count in each phase
        stages.count(*progress, "iteration")

    model = TSNE(
        spec.n_components,
        early_exaggeration_iter=_EARLY,
        n_iter=_REST,
        negative_gradient_method="bh",
        callbacks=count,
        callbacks_every_iters=_REPORTED,
        n_jobs=omp_get_max_threads(),  # the number of threads does not change the result
        random_state=spec.random_state,
    )
    start = start / max(start[:, 0].std(), np.finfo(float).tiny)
    # Noise separates rows with equal coordinates, and fills columns of zeros.
    noise = np.random.default_rng(spec.random_state).normal(size=start.shape)
    affinities = PerplexityBasedNN(perplexity=perplexity, knn_index=index)
    stages.begin(EPOCHS)
    if spec.method == "tsne-gpu":
        rows = first
        if spec.metric == "cosine":
            rows = unit_rows(first)
        drawing = _torch_tsne(rows, start + 0.01 * noise, perplexity, spec, stages)
        embedding = TSNEEmbedding(drawing, affinities)
    else:
        embedding = model.fit(affinities=affinities, initialization=1e-4 * start + 1e-6 * noise)
    embedding -= (embedding.max(axis=0) + embedding.min(axis=0)) / 2  # centred, as by `transform`
    coordinates = [embedding]
    for number, other in enumerate(others, 2):
        stages.begin(_placing(number))
        progress[:] = 0, _PLACING
        coordinates.append(embedding.transform(other, n_iter=_PLACING))
    pictures = [np.full((len(matrix), spec.n_components), np.nan, dtype=np.float32) for matrix in matrices]
    for picture, rows, places in zip(pictures, drawn, coordinates, strict=True):
        picture[rows] = places
    return pictures


def _torch_tsne(
    X: np.ndarray, start: np.ndarray, perplexity: float, spec: ReductionSpec, stages: Stages
) -> np.ndarray:
    import torch

    # Only t-SNE needs this: on a GPU, each run sums the terms of its gradient in another order.
    with _random_as_before(), reproducible(spec.random_state, strict=False):
        begin = torch.from_numpy(np.ascontiguousarray(start, dtype=np.float32))
        make = _by_torch("TSNE", spec, stages, _EARLY + _REST)
        return make(perplexity=perplexity, init=begin, early_exaggeration_iter=_EARLY).fit_transform(X)


# The job of a reduction. It reads its matrices from the store.


def put_blocks(store: Store, key: str, blocks: Iterable[np.ndarray], shape: tuple[int, int]) -> None:
    """Store a matrix (n, d) for workers, block by block."""
    if not store.has(key):
        store.put(key, {}, matrix=(blocks, shape))


def reduce_job(context: Context, *, spec: ReductionSpec, inputs: Sequence[str]) -> None:
    """Run `reduce_spaces` as a job. It stores ``coordinates_0``, …, and the number of drawn rows."""
    entries = list(filter(None, map(context.store.mapped, inputs)))
    if gone := len(inputs) - len(entries):
        raise SpaceError(
            f"{gone} of {len(inputs)} matrices are no longer in {context.store.root}; submit the reduction"
            " again"
        )
    matrices = [np.asarray(entry.arrays["vectors"]) for entry in entries]
    pictures = reduce_spaces(matrices, spec, context.report)
    metadata = {
        "spec": asdict(spec),
        "n_rows": [len(matrix) for matrix in matrices],
        "n_drawn": [len(sampled_rows(len(matrix), spec)) for matrix in matrices],
    }
    context.put({f"coordinates_{i}": picture for i, picture in enumerate(pictures)}, metadata)


def reduce_on_gpu_job(context: Context, *, spec: ReductionSpec, inputs: Sequence[str]) -> None:
    """Run `reduce_job` for "umap-gpu" and "tsne-gpu"."""
    reduce_job(context, spec=spec, inputs=inputs)


reduce_job.on_cpu = True  # no need to wait for a GPU


def offered_methods() -> list[str]:
    """The methods that this machine offers. Those by TorchDR are offered if the machine has a GPU and
    TorchDR."""
    quick = has_gpu() and find_spec("torchdr") is not None
    return [name for name in REDUCTIONS if quick or not name.endswith("-gpu")]
