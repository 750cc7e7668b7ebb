"""Three measures of the form of a cloud of rows, an encoder and a file format for Relscope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.settings import setting
from relcore.encoders.encoder import Encoder
from relcore.engine.nearest import need_k
from relcore.files.formats import Description, Format, float32, in_blocks
from relcore.scores.matrix_measures import squared_distances
from relcore.scores.sampled import MATRIX_ROWS, SampledMetric, by_permutation, paired_rows, public_measure
from relcore.scores.score import Score
from relcore.spaces.space import MatrixLike

TREE_ROWS = 500  # of RTD-Lite
COUPLED_ROWS = 200  # of Gromov–Wasserstein, whose every step takes n³
_TIMES = np.logspace(-1, 1, 256)  # of heat, as in the authors' code


@public_measure
def rtd_lite(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = TREE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """RTD-Lite as a similarity, 0 … 1: how similarly clusters merge as the distance grows. 1 means the same
    minimum spanning tree of distances.

    2 T(min(A, B)) / (T(A) + T(B)), with T the length of the minimum spanning tree of the rows' distances A
    and B, each over its 90 % quantile. The divergence of Tulchinskii et al. 2025, (T(A) + T(B)) / 2 −
    T(min(A, B)), over its largest value and from 1. It is the part of dimension 0 of representation topology
    divergence (RTD, Barannikov et al. 2022); RTD itself looks at loops and needs a library for barcodes.
    Chance level: rows of one space permuted. Cost per row: n (d + 50), on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, or equal rows.
    """
    X, Y = paired_rows(source, target, most_rows, ids)
    A = np.sqrt(squared_distances(X))
    B = np.sqrt(squared_distances(Y))
    A = A / (np.quantile(A, 0.9) or A.max())
    B = B / (np.quantile(B, 0.9) or B.max())
    own = (_tree_length(A) + _tree_length(B)) / 2

    def value(order: np.ndarray) -> float:
        return _tree_length(np.minimum(A, B[order[:, None], order])) / own

    n = len(A)
    return Score(value(np.arange(n)), metric="rtd lite", n=n, null=by_permutation(value, n, 200 * A.size))


def _tree_length(distances: np.ndarray) -> float:
    """The sum of the edges of the minimum spanning tree of all pairs (n, n), by Prim's algorithm."""
    nearest = distances[0].copy()
    outside = np.ones(len(distances), dtype=bool)
    length = 0.0
    outside[0] = False
    for _ in range(len(distances) - 1):
        row = np.where(outside, nearest, np.inf).argmin()
        length += nearest[row]
        outside[row] = False
        np.minimum(nearest, distances[row], out=nearest)
    return float(length)


@public_measure
def imd(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 5,
    most_rows: int | None = MATRIX_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """IMD as a similarity, 0 … 1: how similarly heat spreads over the k-NN graphs of two spaces. 1 means the
    same heat trace at all times.

    1 − e⁴ max_t e^(−2(t + 1/t)) |hₓ(t) − hᵧ(t)|, where the maximum is the multi-scale intrinsic distance of
    Tsitsulin et al. 2020 (1 over e⁴ is the most it can be), with h(t) = Σ e^(−t λ) / n over all eigenvalues λ
    of the graph's normalised Laplacian; their code estimates the sum. Chance level: none, because the measure
    does not use the pairing of rows. Cost per row: n², on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, equal rows, k above n − 1.
    """
    traces = []
    for side in paired_rows(source, target, most_rows, ids):
        n = len(side)
        need_k(k, n, n - 1)
        squares = squared_distances(side)
        np.fill_diagonal(squares, np.inf)
        joined = np.zeros((n, n), dtype=bool)
        joined[np.arange(n)[:, None], np.argpartition(squares, k - 1, axis=1)[:, :k]] = True
        joined |= joined.T
        roots = 1 / np.sqrt(joined.sum(axis=1))
        heats = np.linalg.eigvalsh(np.eye(n) - joined * roots[:, None] * roots)
        traces.append(np.exp(-np.outer(_TIMES, heats)).mean(axis=1))
    distance = np.max(np.exp(4 - 2 * (_TIMES + 1 / _TIMES)) * np.abs(traces[0] - traces[1]))
    return Score(1 - float(distance), metric="imd", n=n, null=None)


@public_measure
def gromov_wasserstein(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = COUPLED_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Gromov–Wasserstein as a similarity, 0 … 1: how well the best pairing of the rows keeps their distances.
    1 means that all distances are kept.

    1 − GW / GW₀ with GW = min over couplings T of Σ (Aᵢⱼ − Bₖₗ)² Tᵢₖ Tⱼₗ (Mémoli 2011; Peyré et al. 2016), A
    and B the rows' Euclidean distances, each with a mean square of 1, and GW₀ the sum for the uniform
    coupling. POT finds a local minimum. The better one of two starts is taken: the rows as they are paired,
    and the uniform coupling. Chance level: none, because the measure finds a pairing itself. Cost per row: n²
    for each step, on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, or equal rows.
    """
    import ot

    X, Y = paired_rows(source, target, most_rows, ids)
    A = squared_distances(X)
    B = squared_distances(Y)
    A = np.sqrt(A / A.mean())
    B = np.sqrt(B / B.mean())
    n = len(A)
    even = np.full(n, 1 / n)
    nothing = 2 - 2 * A.mean() * B.mean()
    starts = np.eye(n) / n, np.full((n, n), 1 / n**2)
    least = min(float(ot.gromov_wasserstein2(A, B, even, even, G0=start, symmetric=True)) for start in starts)
    return Score(1 - max(least, 0.0) / nothing, metric="gromov-wasserstein", n=n, null=None)


class RTDLite(SampledMetric):
    function = staticmethod(rtd_lite)
    unchanged_by = ("rotation", "scale", "shift")


class IMD(SampledMetric):
    function = staticmethod(imd)
    unchanged_by = ("rotation", "scale", "shift")
    paired = False


class GromovWasserstein(SampledMetric):
    function = staticmethod(gromov_wasserstein)
    unchanged_by = ("rotation", "scale", "shift")
    paired = False


@dataclass(frozen=True)
class Letters(Encoder):
    """Encode a text by how often each of the first `n_letters` letters occurs."""

    n_letters: int = setting(26, low=1, high=26, help="Dimension of the space.")
    kind = "texts"

    @property
    def title(self):
        return f"Letters {self.n_letters}"

    def seconds(self, n, pixels=64):
        return n / 1e5

    def prepare(self, dataset, report):
        letters = "abcdefghijklmnopqrstuvwxyz"[: self.n_letters]
        return lambda texts: {
            "": np.array([[t.lower().count(x) for x in letters] for t in texts], np.float32)
        }


class Floats(Format):
    """A file with the width as a 32-bit number, then rows of 32-bit floats."""

    def describe(self, path):
        width = int(np.fromfile(path, "<u4", 1)[0])
        return Description({"": ((path.stat().st_size - 4) // (4 * width), width)}, "")

    def blocks(self, path, request):
        n, width = self.describe(path).shape
        rows = np.memmap(path, "<f4", "r", 4).reshape(-1, width)
        for some in in_blocks(request.rows(path, n, width), 4 * width):
            yield float32(rows[some], path.name)
        return {}
