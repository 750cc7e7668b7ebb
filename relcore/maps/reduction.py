"""Reduction: pictures of spaces in two or three dimensions, by PCA, UMAP or t-SNE, each fitted alone or
all on the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle

import numpy as np

from relcore.base.errors import SpaceError, need_whole
from relcore.base.libraries import extra
from relcore.base.magnitude import brought, centred, scaled
from relcore.base.names import REDUCTIONS
from relcore.maps.pca import Moments, blocks_of, facing, fitted_rows, leading_axes, unit_axes
from relcore.maps.tsne_map import TsneMap
from relcore.maps.umap_map import (
    COMPILING,
    COMPILING_SECONDS,
    EPOCHS,
    NEIGHBOURS,
    OTHERS,
    PLACING,
    UmapMap,
    is_compiled,
    most_fitted,
    placing_seconds,
    stage_seconds,
)
from relcore.represent.similarity import mean_row, row_blocks
from relcore.represent.translation import align
from relcore.runs.digest import digest_of
from relcore.runs.progress import Context, Report, Stages, silent
from relcore.runs.store import Store
from relcore.spaces.space import MadeRows

_MOST_DRAWN = 60  # exponent of numbers that figures can draw
_AXES = "axes"
_FIRST = 4096  # made rows that tell the magnitude of all


@dataclass(frozen=True)
class ReductionSpec:
    """How to draw spaces: every field is plain, so ``ReductionSpec(**json.loads(json.dumps(asdict(spec))))``
    is the same.

    Attributes
    ----------
    method : "pca", "umap" or "tsne"
    n_components : 2 or 3
    fit : "apart" or "first"
        Each space its own map, or all on the map of the first: only then is distance *between* pictures
        meaningful (Fig. 5 of "Relative representations enable zero-shot latent space communication", ICLR
        2023).
    align : bool
        Rotate, mirror and scale the other pictures onto the first, for display only
        (`relcore.represent.translation.align`).
    n_neighbors, min_dist : UMAP's; `n_neighbors` is cut to n - 1.
    perplexity : t-SNE's; cut to (n - 1) / 3.
    metric : "cosine" or "euclidean", for UMAP and t-SNE; PCA is always Euclidean.
    max_points : The largest number of rows that t-SNE draws, at random; the others are NaN.
    random_state : int
        Also draws the 50,000 rows that UMAP is fitted on where there are more: `maps.umap_map.FITTED_ROWS`.
    """

    method: str = "pca"
    n_components: int = 2
    fit: str = "apart"
    align: bool = False
    n_neighbors: int = 15
    min_dist: float = 0.1
    perplexity: float = 30.0
    metric: str = "cosine"
    max_points: int = 5_000
    random_state: int = 0

    def __post_init__(self) -> None:
        allowed = {
            "method": REDUCTIONS,
            "n_components": (2, 3),
            "fit": ("apart", "first"),
            "metric": ("cosine", "euclidean"),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise SpaceError(
                    f"{name}: expected one of {', '.join(map(repr, values))}, got {getattr(self, name)!r:.80}"
                )
        need_whole(self, random_state=0)
        if self.random_state >= 2**32:
            raise SpaceError(f"random_state: expected at most {2**32 - 1:,}, got {self.random_state:,}")
        if (
            self.n_neighbors < 2
            or not 0 < self.perplexity < np.inf
            or not 0 <= self.min_dist <= 1
            or self.max_points < 3
        ):
            raise SpaceError(
                "expected n_neighbors of 2 or more, perplexity above 0, min_dist from 0 to 1 and max_points"
                f" of 3 or more, got {self.n_neighbors}, {self.perplexity}, {self.min_dist} and"
                f" {self.max_points}"
            )


@extra()
def reduce_spaces(
    matrices: Sequence[np.ndarray | MadeRows], spec: ReductionSpec, report: Report | None = None
) -> list[np.ndarray]:
    """Coordinates (n, c) as float32 of each matrix (n, d_i), in the same order; deterministic for a
    `random_state`.

    UMAP takes `MadeRows` of more rows than it is fitted on (`n_fitted`), too, and never has them all.

    PCA keeps the unit of the numbers between 2⁻⁶⁰ and 2⁶⁰; beyond, it is another power of two.

    `report` is called as ``report(done, total, message)`` by `Stages`, whose last counts UMAP's epochs or
    t-SNE's iterations.

    Raises
    ------
    SpaceError
        Fewer than 3 rows; fewer columns than components, but for PCA, whose missing components are zero;
        widths that differ with fit="first"; rows that differ with align.
    """
    matrices = [
        one if isinstance(one, MadeRows) else np.ascontiguousarray(one, dtype=np.float32) for one in matrices
    ]
    need_drawable([matrix.shape for matrix in matrices], spec)
    fitted = matrices[:1] if spec.fit == "first" else matrices
    exponents = [brought(rows[:_FIRST] if isinstance(rows, MadeRows) else rows)[1] for rows in fitted]
    matrices = [_scaled(rows, exponent) for rows, exponent in zip(matrices, cycle(exponents), strict=False)]
    reduce = {"pca": _pca, "umap": _umap, "tsne": _tsne}[spec.method]
    stages = Stages(report or silent, _plan([matrix.shape for matrix in matrices], spec))
    if spec.fit == "first":
        pictures = reduce(matrices, spec, _Run(stages))
    else:
        pictures = [
            reduce([matrix], spec, _Run(stages, part))[0]
            for matrix, part in zip(matrices, _parts(matrices), strict=True)
        ]
    if spec.method == "pca":
        units = (exponent if abs(exponent) <= _MOST_DRAWN else 0 for exponent in cycle(exponents))
        pictures = [scaled(picture, -unit) for picture, unit in zip(pictures, units, strict=False)]
    pictures = aligned(pictures, spec)
    stages.end()
    return pictures


def _scaled(rows: np.ndarray | MadeRows, exponent: int) -> np.ndarray | MadeRows:
    if not exponent or not isinstance(rows, MadeRows):
        return scaled(rows, exponent)
    return MadeRows(rows.vectors, lambda X: scaled(rows.made(X), exponent), rows.numbers)


def reduction_seconds(shapes: Sequence[tuple[int, int]], spec: ReductionSpec) -> float:
    """Roughly how long `reduce_spaces` takes in a new process, for spaces of these shapes."""
    return sum(seconds for _, seconds in _plan(shapes, spec))


def _plan(shapes: Sequence[tuple[int, int]], spec: ReductionSpec) -> list[tuple[str, float]]:
    """The stages of all maps, with their expected seconds."""
    stages_of = {"pca": _pca_stages, "umap": _umap_stages, "tsne": _tsne_stages}[spec.method]
    if spec.fit == "first":
        (n, d), *others = shapes
        stages = stages_of(n, d, spec, first=True)
        seconds = [_placing_seconds(m, n, d, spec, stages[-1][1]) for m, _ in others]
        return [*stages, *((_placing(i), one) for i, one in enumerate(seconds, 2))]
    return [
        (f"{part}{name}", seconds)
        for number, ((n, d), part) in enumerate(zip(shapes, _parts(shapes), strict=True))
        for name, seconds in stages_of(n, d, spec, first=number == 0)
    ]


def _parts(shapes: Sequence) -> list[str]:
    n = len(shapes)
    return [f"space {i} of {n}, " if n > 1 else "" for i in range(1, n + 1)]


def _placing(number: int) -> str:
    return f"placing space {number}"


def _placing_seconds(m: int, n: int, d: int, spec: ReductionSpec, of_layout: float) -> float:
    if (fitted := n_fitted(n, spec)) < n or n_fitted(m, spec) < m:
        return placing_seconds(m, fitted, d)
    return PLACING * of_layout * m / n


def _pca_stages(n: int, d: int, spec: ReductionSpec, first: bool) -> list[tuple[str, float]]:
    return [(_AXES, 0.1)]


def _umap_stages(n: int, d: int, spec: ReductionSpec, first: bool) -> list[tuple[str, float]]:
    compiling = [(COMPILING, COMPILING_SECONDS)] if first and not is_compiled() else []
    fitted = n_fitted(n, spec)
    others = [(OTHERS, placing_seconds(n - fitted, fitted, d))] if fitted < n else []
    return [*compiling, *stage_seconds(fitted, d, spec.n_neighbors).items(), *others]


def _tsne_stages(n: int, d: int, spec: ReductionSpec, first: bool) -> list[tuple[str, float]]:
    n = min(n, spec.max_points)
    return [(NEIGHBOURS, 1.0 * first + 2.5e-11 * n * n * d), (EPOCHS, 4e-6 * n * 1000)]


class _Run:
    """The stages of one map; `part` precedes their names."""

    def __init__(self, stages: Stages, part: str = "") -> None:
        self._stages, self._part = stages, part

    def begin(self, name: str) -> None:
        self._stages.begin(f"{self._part}{name}")

    def count(self, unit: str) -> Callable[[int, int], None]:
        return lambda done, total: self._stages.count(done, total, unit)


def aligned(pictures: Sequence[np.ndarray], spec: ReductionSpec) -> list[np.ndarray]:
    """The pictures, the others moved onto the first where `spec` says so: a display step that computes no
    map again.
    """
    first, *others = pictures
    return [first, *(align(picture, first) if spec.align else picture for picture in others)]


def sampled_rows(n: int, spec: ReductionSpec) -> np.ndarray:
    """The rows of n that are drawn, ascending: all, but for t-SNE above `max_points`. The same for all
    spaces of n rows.
    """
    if spec.method != "tsne" or n <= spec.max_points:
        return np.arange(n)
    return np.sort(np.random.default_rng(spec.random_state).choice(n, spec.max_points, replace=False))


def n_fitted(n: int, spec: ReductionSpec) -> int:
    """On how many of n rows UMAP is fitted, the others being placed on its map; n for other methods."""
    return most_fitted(n) if spec.method == "umap" else n


def put_matrices(store: Store, matrices: Sequence[np.ndarray]) -> list[str]:
    """Put matrices where workers find them, once each: the keys that `reduce_job` takes, the digests of
    their content.
    """
    keys = [digest_of("matrix", np.asarray(matrix)) for matrix in matrices]
    for key, matrix in zip(keys, matrices, strict=True):
        if not store.has(key):
            store.put(key, {"matrix": matrix})
    return keys


def put_blocks(store: Store, key: str, blocks: Iterable[np.ndarray], shape: tuple[int, int]) -> None:
    """Put a matrix (n, d) of blocks (m, d) where workers find it, unless it is there, with the memory of
    one block.
    """
    if not store.has(key):
        store.put(key, {}, matrix=(blocks, shape))


def reduce_job(context: Context, *, spec: ReductionSpec, inputs: Sequence[str]) -> None:
    """`reduce_spaces` as a job of the Engine; puts ``coordinates_0`` …, and metadata that say how many
    rows were drawn.
    """
    found = [_matrix(context.store, key) for key in inputs]
    matrices = [matrix for matrix in found if matrix is not None]
    if gone := len(found) - len(matrices):
        raise SpaceError(
            f"{gone} of {len(inputs)} matrices are no longer in {context.store.root}; submit the reduction"
            " again"
        )
    pictures = reduce_spaces(matrices, spec, context.report)
    metadata = {
        "spec": asdict(spec),
        "n_rows": [len(matrix) for matrix in matrices],
        "n_drawn": [len(sampled_rows(len(matrix), spec)) for matrix in matrices],
    }
    context.put({f"coordinates_{i}": picture for i, picture in enumerate(pictures)}, metadata)


def _matrix(store: Store, key: str) -> np.ndarray | None:
    """What `put_matrices` put, or a map of what `put_blocks` put."""
    summary = store.summary(key)
    if summary is not None and "vectors" in summary.shapes and (entry := store.mapped(key)):
        return entry.arrays["vectors"]
    entry = store.get(key)
    return None if entry is None else entry.arrays["matrix"]


def need_drawable(shapes: Sequence[tuple[int, ...]], spec: ReductionSpec) -> None:
    """Raise the errors of `reduce_spaces` that the shapes of the matrices give."""
    if not shapes:
        raise SpaceError("expected at least one space to draw, got none")
    n_columns = 1 if spec.method == "pca" else spec.n_components
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


def _pca(matrices: Sequence[np.ndarray], spec: ReductionSpec, run: _Run | None = None) -> list[np.ndarray]:
    """Scores on the leading eigenvectors of the first matrix's covariance, with signs that a turn of the
    space cannot flip.
    """
    if run:
        run.begin(_AXES)
    first, mean = matrices[0], mean_row(matrices[0])
    n, d = first.shape
    if d <= n:
        fitted = fitted_rows(n, d, spec.random_state)
        axes = Moments.of(blocks_of(first, fitted), mean).axes(spec.n_components)
    else:
        moved = centred(first, mean)
        leading = leading_axes((moved @ moved.T).astype(np.float64), spec.n_components)
        axes = unit_axes(moved.T.astype(np.float64) @ leading)
    pictures = [_scores(matrix, mean, axes.astype(np.float32)) for matrix in matrices]
    signs = facing(pictures[0])
    return [picture * signs for picture in pictures]


def _scores(matrix: np.ndarray, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    scores = np.empty((len(matrix), axes.shape[1]), dtype=np.float32)
    for block in row_blocks(len(matrix)):
        np.matmul(centred(matrix[block], mean), axes, out=scores[block])
    return scores


def _umap(matrices: Sequence[np.ndarray], spec: ReductionSpec, run: _Run) -> list[np.ndarray]:
    settings = spec.n_components, spec.n_neighbors, spec.min_dist, spec.metric, spec.random_state
    umap_map = UmapMap(*settings, run.count("epoch"), run.begin)
    pictures = [umap_map.draw(matrices[0], run.count("row"))]
    for number, matrix in enumerate(matrices[1:], 2):
        run.begin(_placing(number))
        pictures.append(umap_map.draw_on(matrix, run.count("row")))
    return pictures


def _tsne(matrices: Sequence[np.ndarray], spec: ReductionSpec, run: _Run) -> list[np.ndarray]:
    run.begin(NEIGHBOURS)
    drawn = [sampled_rows(len(matrix), spec) for matrix in matrices]
    first, *others = (matrix[rows] for matrix, rows in zip(matrices, drawn, strict=True))
    [start] = _pca([first], spec)
    begin = partial(run.begin, EPOCHS)
    tsne_map = TsneMap(
        spec.n_components, spec.perplexity, spec.metric, spec.random_state, run.count("iteration"), begin
    )
    found = [tsne_map.fit(first, start).embedding_]
    for number, other in enumerate(others, 2):
        run.begin(_placing(number))
        found.append(tsne_map.transform(other))
    pictures = [np.full((len(matrix), spec.n_components), np.nan, dtype=np.float32) for matrix in matrices]
    for picture, rows, coordinates in zip(pictures, drawn, found, strict=True):
        picture[rows] = coordinates
    return pictures
