"""Dimension reduction: maps of spaces in two or three dimensions by PCA, UMAP or t-SNE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec

import numpy as np

from relcore.base.environment import has_gpu
from relcore.base.errors import SpaceError, extra
from relcore.base.names import REDUCTIONS
from relcore.base.rows import DerivedRows
from relcore.maps.neighbour_maps import (
    COMPILING,
    EPOCHS,
    GRAPH,
    NEIGHBOURS,
    OTHERS,
    TorchUmap,
    compile_umap,
    fit_umap,
    stage_of_placing,
    tsne_maps,
    umap_maps,
)
from relcore.maps.principal_axes import (
    ReductionSpec,
    is_tsne,
    n_fitted,
    need_drawable,
    principal_map,
    sampled_rows,
)
from relcore.represent.translation import align
from relcore.runs.store import Store
from relcore.runs.work import Context, Progress, Stages, silent

# The stages of a reduction, as the progress of a job names them.
AXES = "axes"


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
    matrices = list(map(_readable, matrices))
    shapes = [matrix.shape for matrix in matrices]
    need_drawable(shapes, spec)
    draw = {
        "pca": _pca,
        "umap": partial(umap_maps, fit_umap),
        "umap-gpu": partial(umap_maps, TorchUmap),
        "tsne": tsne_maps,
        "tsne-gpu": tsne_maps,
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


def reduction_seconds(shapes: Sequence[tuple[int, int]], spec: ReductionSpec) -> float:
    """The approximate seconds that `reduce_spaces` takes in a new process."""
    return sum(seconds for _, seconds in _plan(shapes, spec))


def _plan(shapes: Sequence[tuple[int, int]], spec: ReductionSpec) -> list[tuple[str, float]]:
    stages: list[tuple[str, float]] = []
    for number, (n, d) in enumerate(shapes, 1):
        if number == 1 or spec.fit == "apart":
            stages += _stages(n, d, spec, number == 1)
        else:
            stages.append((stage_of_placing(number), _placing_seconds(n, n_fitted(shapes[0][0], spec), d)))
    return stages


def _readable(X: np.ndarray | DerivedRows) -> np.ndarray | DerivedRows:
    """The matrix as contiguous float32, or as rows that are read in blocks."""
    if isinstance(X, DerivedRows):
        return X
    return np.ascontiguousarray(X, dtype=np.float32)


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
    stages = []
    if is_first and not compile_umap.cache_info().currsize:
        stages.append((COMPILING, 9.0))
    stages.append((NEIGHBOURS, 0.1 + 2.5e-11 * fitted * fitted * d))
    stages.append((GRAPH, 0.1 + 3e-5 * fitted))
    stages.append((EPOCHS, 1.3e-7 * fitted * spec.n_neighbors * epochs))
    if fitted < n:
        stages.append((OTHERS, _placing_seconds(n - fitted, fitted, d)))
    return stages


def _placing_seconds(m: int, n: int, d: int) -> float:
    return 2.5e-11 * m * n * d + 3e-4 * m


def _pca(matrices: Sequence[np.ndarray], spec: ReductionSpec, stages: Stages) -> list[np.ndarray]:
    stages.begin(AXES)
    picture, to_map = principal_map(matrices[0], spec)
    return [picture, *(to_map(matrix) for matrix in matrices[1:])]


# The job of a reduction. It reads its matrices from the store.


def put_blocks(store: Store, key: str, blocks: Iterable[np.ndarray], shape: tuple[int, int]) -> None:
    """Store a matrix (n, d) for workers, block by block."""
    if not store.has(key):
        store.put(key, {}, matrix=(blocks, shape))


def reduce_job(context: Context, *, spec: ReductionSpec, inputs: Sequence[str]) -> None:
    """Run `reduce_spaces` as a job. It stores ``coordinates_0``, …, and the number of drawn rows."""
    entries = [entry for key in inputs if (entry := context.store.mapped(key))]
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
