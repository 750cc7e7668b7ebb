"""Adapters: maps from the queries of a new model to the vectors of an old model. They consist of steps that
NumPy, ONNX and faiss can run, and are exported as files that work without Relscope.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from relcore.base.errors import SpaceError, extra
from relcore.base.kinds import need_kinds
from relcore.base.rows import lengths, row_blocks, unit_rows
from relcore.represent.estimator import Estimator, need_finite
from relcore.represent.similarity import AnchorAxes
from relcore.represent.translation import Procrustes
from relcore.spaces.space import MatrixLike

if TYPE_CHECKING:
    from torch import nn

# Adapters map queries of a new model to vectors of an old model, in steps that NumPy, ONNX and faiss can run.


@dataclass(frozen=True, eq=False)
class Unit:
    """The step that scales each row to length 1. A zero row stays zero."""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return unit_rows(X)


@dataclass(frozen=True, eq=False)
class AffineStep:
    """The step x·matrix + offset in float32, with matrix (d_in, d_out) and offset (d_out,)."""

    matrix: np.ndarray
    offset: np.ndarray

    @classmethod
    def between(cls, matrix: np.ndarray, start: np.ndarray, end: np.ndarray | float = 0.0) -> AffineStep:
        """The step (x − start)·matrix + end. Its offset is computed in float64."""
        return cls(
            np.ascontiguousarray(matrix, dtype=np.float32), np.asarray(end - start @ matrix, dtype=np.float32)
        )

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X, dtype=np.float32) @ self.matrix + self.offset


Step = Unit | AffineStep
Steps = tuple[Step, ...]


def apply_steps(steps: Steps, X: np.ndarray) -> np.ndarray:
    """Apply all steps to the rows X (n, d_in), block by block. Returns rows (n, d_out) float32."""
    out = None
    for block in row_blocks(len(X)):
        rows = X[block]
        for step in steps:
            rows = step(rows)
        if out is None:
            out = np.empty((len(X), rows.shape[1]), dtype=np.float32)
        out[block] = rows
    return out


class Adapter(Estimator):
    """The base class of adapters. An adapter lets queries of a new model search the vectors of an old model:
    it maps both into a common space, which is searched by cosine. It is fitted on m rows that both models
    have embedded.

    Rows are first scaled to length 1, because retrieval uses the cosine, and varying lengths harm every
    method that centres. `query_steps_` map rows of the new model to the common space. `corpus_steps_` map
    rows of the old model; if these are searched unchanged, the only step is `Unit()`. To rewrite the corpus
    is to store the mapped old rows.
    """

    _needs_target: ClassVar[bool] = True

    @abstractmethod
    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        """Fit to paired unit rows, and return the steps for queries and the steps for the corpus. `fit` adds
        a `Unit()` before and after them.
        """

    def fit(self, new: MatrixLike, old: MatrixLike) -> Self:
        """Fit to paired rows (m, d_new) and (m, d_old). Raises a SpaceError for fewer than two pairs, and for
        numbers that are not finite.
        """
        need_kinds(self)
        unchecked = new
        new, old = self._paired_matrices(("new", "old"), new, old)
        if len(new) < 2:
            raise SpaceError(f"pairs: expected two rows or more, got {len(new):,}")
        queries, corpus = self._solve(unit_rows(new), unit_rows(old))
        self.query_steps_ = (Unit(), *queries, Unit())
        if corpus:
            self.corpus_steps_ = (Unit(), *corpus, Unit())
        else:
            self.corpus_steps_ = (Unit(),)
        self._sees(unchecked, new.shape[1], apply_steps(self.query_steps_, new[:1]).shape[1])
        self.n_features_old_ = old.shape[1]
        return self

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Map new queries (n, d_new) into the common space: rows (n, d) float32 of length 1."""
        rows = self._check_width(X)
        return self._as_output(self._mapped(self.query_steps_, rows), X)

    def corpus(self, X: MatrixLike) -> np.ndarray:
        """Map old vectors (n, d_old) into the common space: rows (n, d) float32 of length 1."""
        self._need_fitted()
        return self._mapped(self.corpus_steps_, self._check_width(X, self.n_features_old_))

    def to_torch(self) -> nn.Sequential:
        """`transform` as a PyTorch module from rows (n, d_new) to (n, d). It needs the extra ``torch``."""
        with extra("torch"):
            from torch import nn

            from relcore.nn.modules import AffineMap, UnitRows

        self._need_fitted()
        modules: list[nn.Module] = []
        for step in self.query_steps_:
            if isinstance(step, AffineStep):
                modules.append(AffineMap(step.matrix, end=step.offset))
            else:
                modules.append(UnitRows())
        return nn.Sequential(*modules)

    @property
    def rewrites_corpus(self) -> bool:
        """Whether the old vectors must be mapped, and stored again, before they can be searched."""
        self._need_fitted()
        return len(self.corpus_steps_) > 1

    def _mapped(self, steps: Steps, X: np.ndarray) -> np.ndarray:
        rows = apply_steps(steps, X)
        need_finite(rows[:, 0])
        return rows


class InPlaceAdapter(Adapter):
    """The base class of adapters that map queries linearly, and search the old vectors unchanged.

    A query x is mapped to ‖y‖ u + mean_y, where u is the direction of (x − mean_x)·matrix, scaled to length
    1, and ‖y‖ is the mean length of the centred old rows y.
    """

    @abstractmethod
    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        """Fit the linear map (d_new, d_old) from centred new rows to centred old rows. `new` and `old` are
        paired unit rows."""

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        matrix = self._matrix(new, old)
        start = new.mean(axis=0, dtype=np.float64)
        end = old.mean(axis=0, dtype=np.float64)
        # A fitted map shrinks rows towards the mean. Unless their length is restored, every query finds
        # documents near the mean. (Cranfield, ridge, 300 pairs: restoring it raises nDCG@10 from .276 to
        # .305.)
        length = float(lengths(old, end).mean(dtype=np.float64))
        towards = AffineStep(length * np.eye(old.shape[1], dtype=np.float32), end.astype(np.float32))
        return (AffineStep.between(matrix, start), Unit(), towards), ()


class ProcrustesAdapter(InPlaceAdapter):
    """Adapter that rotates centred rows by orthogonal Procrustes (Schönemann 1966). The widths may differ.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import ProcrustesAdapter
    >>> old = np.random.default_rng(0).normal(size=(60, 4))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))
    >>> adapter = ProcrustesAdapter().fit(old @ rotation, old)
    >>> nearest = (adapter.transform(old @ rotation) @ adapter.corpus(old).T).argmax(axis=1)
    >>> bool((nearest == np.arange(60)).all())
    True
    """

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        return Procrustes(scale=False).fit(new, old).matrix_


PENALTIES = tuple(np.geomspace(1e-3, 1e2, 16).tolist())


class RidgeAdapter(InPlaceAdapter):
    """Adapter that predicts old vectors by ridge regression with an offset. The penalty λ (`penalty_`) is the
    value in `PENALTIES` with the smallest leave-one-out error.

    The leave-one-out error is Allen's PRESS: the sum of squares of the residuals (y − ŷ)ᵢ / (1 − hᵢ), where h
    is the diagonal of the hat matrix. Rows have length 1, so λ = 1 counts as much as one pair.
    """

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        X = new - new.mean(axis=0, dtype=np.float64)
        Y = old - old.mean(axis=0, dtype=np.float64)
        left, values, right = np.linalg.svd(X, full_matrices=False)
        onto = left.T @ Y

        def press(penalty: float) -> float:
            shrunk = values**2 / (values**2 + penalty)
            leverage = 1 / len(Y) + (left**2) @ shrunk  # 1 / len(Y) comes from the offset
            residual = Y - (left * shrunk) @ onto
            return float(np.sum((residual / np.maximum(1 - leverage, 1e-12)[:, None]) ** 2))

        self.penalty_ = float(min(PENALTIES, key=press))
        return (right.T * (values / (values**2 + self.penalty_))) @ onto


def _whitened(rows: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean (d,) of unit rows (k, d), and two matrices from the singular value decomposition P S Qᵀ of the
    rows after centring and scaling to length 1: P (k, w), and Q S (S² + λ)^(−1/2) (d, w), where λ is `ridge`.
    Centred rows times the second matrix are whitened relative coordinates, up to a rotation.
    """
    if not 0 < ridge < np.inf:
        raise SpaceError(f"ridge: expected a number above 0, got {ridge}")
    mean = rows.mean(axis=0, dtype=np.float64)
    axes = AnchorAxes.of(unit_rows(rows, mean))
    return mean, axes.basis, axes.turn * (axes.stretch / np.sqrt(axes.stretch**2 + ridge))


@dataclass(eq=False)
class WhitenedRelativeAdapter(Adapter):
    """Adapter that maps the rows of both models to whitened relative coordinates, the decorrelated
    similarities to anchors: centred rows X to X Aᵀ (K + λI)^(−1/2). The anchors A are the paired rows,
    centred and scaled to length 1, and K = A Aᵀ.

    A search finds rows in the same order as with `RelativeProjection(whiten=True)`. `ridge` is λ, above 0; λ
    = 1 counts as much as one average anchor.
    """

    ridge: float = 0.3

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        start, P, of_new = _whitened(new, self.ridge)
        end, R, of_old = _whitened(old, self.ridge)
        # With the SVD A = U S Vᵀ, Aᵀ (K + λI)^(−1/2) = V S (S² + λ)^(−1/2) Uᵀ. If queries and rows are
        # multiplied by U of the old model, inner products stay the same and mapped rows are at most as wide
        # as old ones.
        return (AffineStep.between(of_new @ (P.T @ R), start),), (AffineStep.between(of_old, end),)


@dataclass(eq=False)
class WhitenedInverseAdapter(InPlaceAdapter):
    """Adapter that maps new rows to whitened relative coordinates, and decodes these as old vectors: a
    centred row x is mapped to ‖a_y‖ xW / ‖xW‖ + mean_y, where ‖a_y‖ is the mean length of the centred old
    rows.

    Here W = A_xᵀ (K_x + λI)^(−1/2) (K_y + λI)^(−1/2) A_y, as in `InverseRelativeProjection("whitened",
    lengths="mean")`. A_x and A_y are the paired new and old rows, centred and scaled to length 1; K_x = A_x
    A_xᵀ and K_y = A_y A_yᵀ. The computation time is linear in the number of pairs. `ridge` is λ, above 0.
    """

    ridge: float = 1.0

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        _, P, of_new = _whitened(new, self.ridge)
        _, R, of_old = _whitened(old, self.ridge)
        return of_new @ (P.T @ R) @ of_old.T
