"""Translate rows into another space through their similarities to parallel anchors, and measure what is
recovered."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import pandas as pd

from relcore.base.arguments import need_number, need_whole, random_generator
from relcore.base.errors import SpaceError, extra, need_one_of
from relcore.base.kinds import need_kinds
from relcore.base.names import DELTA, INVERSES
from relcore.base.rows import lengths, mean_row, unit_rows
from relcore.engine.engine import Engine
from relcore.represent.estimator import Estimator, column_names
from relcore.represent.projection import checked_row
from relcore.represent.strategies import farthest_order
from relcore.spaces.space import MatrixLike

if TYPE_CHECKING:
    from torch import nn

Inverse: TypeAlias = Literal["pruned", "ridge", "whitened"]

MOST_PRUNINGS = 1024


# Pruning selects anchors that are far enough from each other for a stable inverse (Maiorca et al. 2024).


def first_anchors(n_anchors: int, omega: int, random_state: int = 0) -> np.ndarray:
    """The index of the first anchor of each pruning, (ω,). The result for a smaller ω is a prefix of that for
    a larger ω."""
    rng = np.random.default_rng(random_state)
    rounds = [rng.permutation(n_anchors) for _ in range(-(-omega // n_anchors))]
    return np.concatenate(rounds)[:omega]


@dataclass(eq=False)
class InverseRelativeProjection(Estimator):
    """Translate source rows into a target space through their similarities to parallel anchors.

    Let A be the centred unit anchors of a space. Unit rows x are translated by a matrix W::

        pruned    W = 1/ω Σᵢ A_x[Sᵢ]ᵀ pinv(A_y[Sᵢ]ᵀ)           Maiorca et al. 2024, eqs. 2 and 5
        ridge     W = A_xᵀ (K_y + λI)⁻¹ A_y,  K = A Aᵀ           ours
        whitened  W = A_xᵀ (K_x + λI)^(−1/2) (K_y + λI)^(−1/2) A_y   ours

    The translated row is y = ‖a_y‖ xW + mean_y. ‖a_y‖ is the mean length of the centred anchors of the
    target; it is used because relative rows do not contain the length of a row. The left part of W is the
    relative projection of the source; the right part depends on the target.

    Parameters
    ----------
    method : {"pruned", "ridge", "whitened"}
    omega : int
        Number of prunings to average, 1 … 1,024; each starts at a different anchor. Only for "pruned".
    delta : float
        A pruning repeatedly adds the farthest anchor, by the distance ``1 − |cos|``. It stops if this
        distance is below `delta`, 0 … 1. With 0, all anchors are kept.
    ridge : float
        The number λ, above 0. The trace of K is k, so λ = 1 counts as much as one average anchor.
    lengths : {"paper", "mean"}
        "paper" is the formula above. It shortens rows whose direction is only partly in the span of the
        anchors. "mean" (ours) gives every row the mean length: y = ‖a_y‖ xW / ‖xW‖ + mean_y.

    Attributes
    ----------
    matrix_ : array (d_source, d_target) float32
        W.
    encoder_, decoder_ : array (d_source, k), (k, d_target) float32
        The two factors of W. The first maps centred rows to relative rows; the second maps relative rows to
        the target.
    scale_ : float
        ‖a_y‖.
    kept_ : tuple of arrays
        The indices of the anchors of each pruning, in the order in which they were added.
    condition_numbers_ : array (ω,)
        Condition number of each inverted matrix: A_y[Sᵢ] ("pruned"), K_y + λI ("ridge"), or the root of the
        latter ("whitened"). It is inf if the matrix lacks full rank.
    rank_ : int
        Number of directions of the target that translated rows span.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import InverseRelativeProjection
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> Y = X @ rotation
    >>> inverse = InverseRelativeProjection("ridge", ridge=0.01).fit(X[:50], Y[:50])
    >>> recovered = inverse.transform(X[50:])
    >>> bool((np.sum(recovered * Y[50:], axis=1) / np.linalg.norm(recovered, axis=1)).mean() > 0.99)
    True
    """

    method: Inverse = "pruned"
    omega: int = 8
    delta: float = DELTA
    ridge: float = 1.0
    random_state: int = 0
    lengths: Literal["paper", "mean"] = "paper"
    _needs_target: ClassVar[bool] = True

    def fit(
        self,
        source_anchors: MatrixLike,
        target_anchors: MatrixLike,
        *,
        source_mean: np.ndarray | None = None,
        target_mean: np.ndarray | None = None,
    ) -> Self:
        """Compute the matrix from paired anchors: source (k, d_source) and target (k, d_target).

        `source_mean` and `target_mean` centre the rows, for example the means of the whole spaces. By
        default, they are the means of the anchors.

        Raises
        ------
        SpaceError
            Unpaired anchors; fewer than two anchors; numbers that are not finite; an anchor at the mean;
            anchors that all lie on one line; a δ that keeps only one anchor; invalid settings.
        """
        need_one_of("method", self.method, INVERSES)
        need_whole("omega", self.omega, 1, MOST_PRUNINGS)
        need_number("delta", self.delta, low=0, high=1)
        need_number("ridge", self.ridge, above=0)
        random_generator(self.random_state)
        need_kinds(self)
        self.__dict__.pop("rank_", None)  # an earlier fit may have cached it
        sides = "source_anchors", "target_anchors"
        source, target = self._paired_matrices(sides, source_anchors, target_anchors)
        if len(source) < 2:
            raise SpaceError(
                f"anchors: expected two or more (the inverse of one spans a single line), got {len(source)}"
                " sample"
            )
        self.source_mean_: np.ndarray = _mean(source, source_mean, "source_mean")
        self.target_mean_: np.ndarray = _mean(target, target_mean, "target_mean")
        A = _directions(source, self.source_mean_, "source")
        B = _directions(target, self.target_mean_, "target")
        encoder = A.T
        decoder = self._pruned(B) if self.method == "pruned" else self._shrunk(B)
        if self.method == "whitened":
            encoder = Engine().shrunk(A, self.ridge, -0.5)[0].T
        self.encoder_: np.ndarray = encoder.astype(np.float32)
        self.decoder_: np.ndarray = decoder.astype(np.float32)
        self.scale_: float = float(lengths(target, self.target_mean_).mean(dtype=np.float64))
        self.matrix_: np.ndarray = Engine().product(encoder, decoder).astype(np.float32)
        width, width_out = self.matrix_.shape
        self._sees(source_anchors, width, width_out, column_names(target_anchors))
        return self

    @cached_property
    def rank_(self) -> int:
        return int(np.linalg.matrix_rank(self.decoder_))

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Translate source rows (n, d_source) into the target space, (n, d_target) float32. A row at the mean
        of the source is translated to the mean of the target.
        """
        unchecked = X
        X = self._check_width(X, by_block=True)
        map_directions = partial(Engine().map_rows, X, mean=self.source_mean_, unit=True)
        if self.lengths == "paper":
            rows = map_directions(self.matrix_ * np.float32(self.scale_), shift=self.target_mean_)
        else:
            rows = unit_rows(map_directions(self.matrix_))
            rows *= np.float32(self.scale_)
            rows += self.target_mean_.astype(np.float32)
        return self._as_output(rows, unchecked)

    def to_torch(self) -> nn.Sequential:
        """The fitted translation as a PyTorch module from rows (n, d_source) to (n, d_target). It needs the
        extra ``torch``."""
        with extra("torch"):
            from torch import nn

            from relcore.nn.modules import AffineMap, UnitRows

        self._need_fitted()
        if self.lengths == "paper":
            matrix = self.matrix_ * np.float32(self.scale_)
            return nn.Sequential(AffineMap(matrix, self.source_mean_, self.target_mean_, unit=True))
        towards = np.eye(self._n_features_out) * self.scale_
        turned = AffineMap(self.matrix_, self.source_mean_, unit=True)
        return nn.Sequential(turned, UnitRows(), AffineMap(towards, end=self.target_mean_))

    def relative(self, X: MatrixLike) -> np.ndarray:
        """The relative rows (n, k) float32 of source rows (n, d_source). With the method "whitened", they are
        whitened."""
        X = self._check_width(X, by_block=True)
        return Engine().map_rows(X, self.encoder_, mean=self.source_mean_, unit=True)

    def inverse_transform(self, relative: MatrixLike) -> np.ndarray:
        """Translate relative rows (n, k) into the target space, (n, d_target) float32."""
        self._need_fitted()
        rows = Engine().map_rows(self._check_width(relative, len(self.decoder_)), self.decoder_)
        if self.lengths == "mean":
            rows = unit_rows(rows)
        return rows * np.float32(self.scale_) + self.target_mean_.astype(np.float32)

    def _pruned(self, anchors: np.ndarray) -> np.ndarray:
        (pruned,) = pruned_decoders(anchors, (self.delta,), (self.omega,), self.random_state)
        self.kept_: tuple[np.ndarray, ...] = pruned.kept
        self.condition_numbers_: np.ndarray = np.array(pruned.condition_numbers)
        if min(map(len, self.kept_)) < 2:
            raise SpaceError(
                f"delta: expected a distance at which two or more anchors stay, got {self.delta:g}; lower it"
            )
        return pruned.matrix

    def _shrunk(self, anchors: np.ndarray) -> np.ndarray:
        power = -1 if self.method == "ridge" else -0.5
        decoder, values = Engine().shrunk(anchors, self.ridge, power)
        # With more anchors than dimensions, the remaining eigenvalues of K are 0.
        ends = np.maximum(values[[-1, 0]], 0) * (1, len(anchors) <= len(values)) + self.ridge
        self.kept_ = (np.arange(len(anchors)),)
        self.condition_numbers_ = (ends[:1] / ends[1:]) ** -power
        return decoder


class PrunedDecoder(NamedTuple):
    """The mean of the inverses of ω prunings, (k, d) float64, and the anchors and the condition number of
    each pruning."""

    delta: float
    omega: int
    matrix: np.ndarray
    kept: tuple[np.ndarray, ...]
    condition_numbers: tuple[float, ...]


def pruned_decoders(
    anchors: np.ndarray, deltas: Sequence[float], omegas: Sequence[int], random_state: int = 0
) -> Iterator[PrunedDecoder]:
    """A decoder of unit anchors (k, d) for each δ and each ω. The values of ω must ascend."""
    orders = pruning_orders(anchors, max(omegas), min(deltas), random_state)
    for delta in deltas:
        total = np.zeros(anchors.shape)
        kept = []
        conditions = []
        inverses: dict[bytes, tuple[np.ndarray, float]] = {}  # with small δ, prunings keep the same anchors
        for done, (order, distances) in enumerate(orders, start=1):
            kept.append(order[distances >= delta])
            members = np.sort(kept[-1])
            if (key := members.tobytes()) not in inverses:
                inverses[key] = pseudo_inverse(anchors[members])
            inverse, condition = inverses[key]
            total[members] += inverse
            conditions.append(condition)
            if done in omegas:
                yield PrunedDecoder(float(delta), done, total / done, tuple(kept), tuple(conditions))


_STEPS = 10


def pruning_orders(
    anchors: np.ndarray, omega: int, delta: float = 0.0, random_state: int = 0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each of ω random first anchors, the order in which farthest-point sampling adds the unit anchors
    (k, d), and the distance of each from those added before it. The order ends at a distance of δ or below.
    """
    starts = first_anchors(len(anchors), omega, random_state)
    # Orders in the cache end at a multiple of a step of δ, so that they serve for nearby positions of a
    # slider, too.
    least = math.floor(_STEPS * delta) / _STEPS
    anchors = np.ascontiguousarray(anchors, dtype=np.float32)
    return _orders(anchors.tobytes(), anchors.shape, starts.tobytes(), least)


@lru_cache(maxsize=4)
def _orders(
    anchors: bytes, shape: tuple[int, int], starts: bytes, least: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    rows = np.frombuffer(anchors, np.float32).reshape(shape)
    similarity = np.abs(rows @ rows.T)
    return [
        farthest_order(similarity.__getitem__, len(rows), start, least)
        for start in np.frombuffer(starts, np.int64)
    ]


def pseudo_inverse(anchors: np.ndarray) -> tuple[np.ndarray, float]:
    """The pseudo-inverse pinv(Aᵀ) of unit anchors A (m, d), an array (m, d) float64, and the condition number
    of A. Both come from the eigenvalues of the smaller Gram matrix, which takes a tenth of the time of an
    SVD.
    """
    engine = Engine()
    A = anchors.astype(np.float64)
    wide = A.shape[0] < A.shape[1]
    if wide:
        gram = engine.product(A, A.T)
    else:
        gram = engine.product(A.T, A)
    squares, vectors = engine.eigh(gram)
    # The eigenvalues are squared singular values, so the tolerance is also squared.
    real = squares > squares[-1] * (max(A.shape) * np.finfo(np.float32).eps) ** 2
    inverse = (vectors[:, real] / squares[real]) @ vectors[:, real].T
    if real.all():
        condition = float(np.sqrt(squares[-1] / squares[0]))
    else:
        condition = float("inf")
    if wide:
        return engine.product(inverse, A), condition
    return engine.product(A, inverse), condition


def recovery_errors(rows: np.ndarray, true: np.ndarray, mean: np.ndarray) -> pd.DataFrame:
    """A table of the errors of recovered rows (n, d), one line per row. `cosine` is that between the
    recovered and the true row, after the mean (d,) is subtracted from both; it is 0 if one of them lies at
    the mean. `error` is their distance, divided by the length of the true row."""
    if rows.shape != true.shape:
        raise SpaceError(f"expected recovered and true rows of one shape, got {rows.shape} and {true.shape}")
    cosine = np.vecdot(unit_rows(rows, mean), unit_rows(true, mean))
    length = lengths(true, mean)
    distance = np.linalg.norm(np.subtract(rows, true, dtype=np.float32), axis=1)
    error = np.divide(distance, length, out=np.zeros_like(length), where=length > 0)
    return pd.DataFrame({"cosine": cosine, "error": error})


def _mean(anchors: np.ndarray, mean: np.ndarray | None, which: str) -> np.ndarray:
    if mean is None:
        mean = mean_row(anchors)
    else:
        mean = checked_row(mean, anchors.shape[1], which)
    if mean.dtype == np.float64:
        return mean
    return mean.astype(np.float32)


def _directions(anchors: np.ndarray, mean: np.ndarray, side: str) -> np.ndarray:
    units = unit_rows(anchors, mean)
    k = len(anchors)
    still = np.flatnonzero(~units.any(axis=1))
    if len(still) == k:
        reason = f"expected points that differ in the {side} space, got {k} equal ones"
    elif len(still):
        reason = f"anchor {still[0]} lies at the mean of the {side} space and has no direction; remove it"
    elif np.abs(units @ units[0]).min() > 1 - 1e-6:
        line = f"{k} anchors on one line of n_features = {anchors.shape[1]}"
        reason = f"expected several directions in the {side} space, got {line}"
    else:
        return units
    raise SpaceError(f"anchors: {reason}")
