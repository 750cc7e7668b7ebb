"""Adapters: maps from a new model's queries to an old model's vectors, each a few steps that NumPy, ONNX and
faiss can repeat.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.magnitude import lengths
from relcore.represent.similarity import Estimator, matrix, need_finite, row_blocks, unit_rows
from relcore.represent.translation import Affine, Procrustes

# What an adapter does to a row, as the few kinds of step that every program can repeat: NumPy, ONNX, faiss.


@dataclass(frozen=True, eq=False)
class Unit:
    """Rows to length 1; a zero row stays zero."""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return unit_rows(X)


@dataclass(frozen=True, eq=False)
class AffineStep:
    """x·matrix + offset.

    Attributes
    ----------
    matrix : array (d_in, d_out) float32
    offset : array (d_out,) float32
    """

    matrix: np.ndarray
    offset: np.ndarray

    @classmethod
    def between(cls, matrix: np.ndarray, start: np.ndarray, end: np.ndarray | float = 0.0) -> AffineStep:
        """(x − start)·matrix + end, computed in float64 and kept in float32."""
        return cls(
            np.ascontiguousarray(matrix, dtype=np.float32), np.asarray(end - start @ matrix, dtype=np.float32)
        )

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X, dtype=np.float32) @ self.matrix + self.offset


Step = Unit | AffineStep
Steps = tuple[Step, ...]


def apply_steps(steps: Steps, X: np.ndarray) -> np.ndarray:
    """Rows after all steps, (n, d_in) → (n, d_out) float32, with memory for one block beside the result."""
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
    """New queries and old vectors in one space that is searched by cosine, learned from m paired rows.

    Rows are brought to length 1 first: retrieval is by cosine, and a row's length contains no information
    about its meaning; pooled word vectors break every centred method otherwise.

    Attributes
    ----------
    query_steps_ : tuple of Step
        From a new model's row to the space that is searched, (d_new,) → (d,), of length 1 at the end.
    corpus_steps_ : tuple of Step
        From an old model's row to it, (d_old,) → (d,). Only `Unit()` where the old vectors are searched as
        they are.
    """

    _needs_target: ClassVar[bool] = True

    @abstractmethod
    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        """Steps after the first `Unit()` and before the last one, of queries and of the corpus; new (m,
        d_new) and old (m, d_old) are float32 rows of length 1."""

    def fit(self, new: np.ndarray, old: np.ndarray) -> Adapter:
        """Learn from paired rows, new (m, d_new) and old (m, d_old).

        Raises
        ------
        SpaceError
            Row counts that differ, fewer than two, or numbers that are not finite.
        """
        new, old = matrix(new, "new"), matrix(old, "old")
        if len(new) != len(old) or len(new) < 2:
            raise SpaceError(
                f"pairs: expected as many new rows as old ones, two or more, got {len(new):,} and"
                f" {len(old):,}"
            )
        need_finite(new.sum(axis=0), "new")
        need_finite(old.sum(axis=0), "old")
        queries, corpus = self._solve(unit_rows(new), unit_rows(old))
        self.query_steps_ = (Unit(), *queries, Unit())
        self.corpus_steps_ = (Unit(), *corpus, Unit()) if corpus else (Unit(),)
        self.n_features_in_ = new.shape[1]
        self.n_features_old_ = old.shape[1]
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """New queries in the space that is searched, (n, d_new) → (n, d) float32 of length 1."""
        return self._mapped(self.query_steps_, self._check_width(X))

    def corpus(self, X: np.ndarray) -> np.ndarray:
        """Old vectors in the space that is searched, (n, d_old) → (n, d) float32 of length 1."""
        return self._mapped(self.corpus_steps_, self._check_width(X, self.n_features_old_))

    def _mapped(self, steps: Steps, X: np.ndarray) -> np.ndarray:
        rows = apply_steps(steps, X)
        need_finite(rows[:, 0])
        return rows


def around_the_mean(matrix: np.ndarray, new: np.ndarray, old: np.ndarray) -> Steps:
    """The steps x → ‖y‖ u + mean_y, with u the direction of (x − mean_x)·matrix and ‖y‖ the mean length of
    centred old rows; for old vectors that are searched as they are.

    A fitted map shrinks: it predicts rows nearer to the mean than true ones are. Added to so short a row, the
    mean would count for more than in a true old vector, and the same documents, those near the mean, would
    answer every query. Measured on Cranfield, TF-IDF → MiniLM, three draws, nDCG@10: ridge .276 → .305 at 300
    pairs, .354 → .369 at 1,000.

    Parameters
    ----------
    matrix : array (d_new, d_old)
    new, old : arrays (m, d_new), (m, d_old)
        The pairs.
    """
    start, end = new.mean(axis=0, dtype=np.float64), old.mean(axis=0, dtype=np.float64)
    length = float(lengths(old, end).mean(dtype=np.float64))
    towards = AffineStep(length * np.eye(old.shape[1], dtype=np.float32), end.astype(np.float32))
    return AffineStep.between(matrix, start), Unit(), towards


class ProcrustesAdapter(Adapter):
    """Centred orthogonal Procrustes (Schönemann 1966) between unit rows of any two widths; the corpus is
    centred, too.

    Where the old vectors have a large common mean, searching them centred is worth more than the rest of the
    method: on Cranfield, TF-IDF → MiniLM, 1,000 pairs, three draws, nDCG@10 is .395, and .375 with the old
    vectors as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import ProcrustesAdapter
    >>> old = np.random.default_rng(0).normal(size=(60, 4))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))
    >>> adapter = ProcrustesAdapter().fit(old @ rotation, old)
    >>> bool(np.allclose(adapter.transform(old @ rotation), adapter.corpus(old), atol=1e-4))
    True
    """

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        fitted = Procrustes(scale=False).fit(new, old)
        queries = AffineStep.between(fitted.matrix_, fitted.source_mean_)
        return (queries,), (AffineStep.between(np.eye(old.shape[1]), fitted.target_mean_),)


class InPlaceAdapter(Adapter):
    """A linear map between centred rows, for old vectors that are searched as they are."""

    @abstractmethod
    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        """(d_new, d_old), from unit rows."""

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        return around_the_mean(self._matrix(new, old), new, old), ()


class InPlaceProcrustesAdapter(InPlaceAdapter):
    """Centred orthogonal Procrustes, for old vectors that are searched as they are."""

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        return Procrustes(scale=False).fit(new, old).matrix_


class DiagonalAdapter(InPlaceAdapter):
    """Centred Procrustes with diagonal scaling of the rotated coordinates, as in Drift-Adapter (EMNLP 2025).

    Each factor is the least-squares one and at least 0: a coordinate that the new model does not have adds
    noise only.
    """

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        fitted = Procrustes(scale=False).fit(new, old)
        rotated, wanted = (new - fitted.source_mean_) @ fitted.matrix_, old - fitted.target_mean_
        spread = np.vecdot(rotated.T, rotated.T)
        products = np.maximum(np.vecdot(rotated.T, wanted.T), 0)
        self.factors_ = np.divide(products, spread, out=np.zeros_like(spread), where=spread > 0)
        return fitted.matrix_ * self.factors_


class AffineAdapter(InPlaceAdapter):
    """Least squares with an offset, of smallest norm where fewer pairs than dimensions leave a choice.

    Near as many pairs as dimensions it fits their noise; `RidgeAdapter` does not.
    """

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        return Affine().fit(new, old).matrix_


PENALTIES = tuple(np.geomspace(1e-3, 1e2, 16).tolist())


def ridge_by_press(
    new: np.ndarray, old: np.ndarray, penalties: Sequence[float] = PENALTIES
) -> tuple[np.ndarray, float]:
    """The ridge map (d_new, d_old) between centred rows, float64, and its penalty λ, of the smallest
    leave-one-out error (Allen's PRESS) over all coordinates.

    The residual without row i is (y − ŷ)ᵢ / (1 − hᵢ), with h the diagonal of the hat matrix. Rows have length
    1, so λ = 1 counts as much as one pair.
    """
    if not len(penalties) or not min(penalties) > 0:
        raise SpaceError(f"penalties: expected numbers above 0, got {penalties!r:.80}")
    X, Y = (Z - Z.mean(axis=0, dtype=np.float64) for Z in (new, old))
    left, values, right = np.linalg.svd(X, full_matrices=False)
    onto = left.T @ Y

    def press(penalty: float) -> float:
        shrunk = values**2 / (values**2 + penalty)
        leverage = 1 / len(Y) + (left**2) @ shrunk
        residual = Y - (left * shrunk) @ onto
        return float(np.sum((residual / np.maximum(1 - leverage, 1e-12)[:, None]) ** 2))

    penalty = float(min(penalties, key=press))
    return (right.T * (values / (values**2 + penalty))) @ onto, penalty


@dataclass(eq=False)
class RidgeAdapter(InPlaceAdapter):
    """Ridge regression with an offset; see `ridge_by_press`.

    Attributes
    ----------
    penalty_ : float
    """

    penalties: tuple[float, ...] = PENALTIES

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        matrix, self.penalty_ = ridge_by_press(new, old, self.penalties)
        return matrix


@dataclass(eq=False)
class LowRankAdapter(InPlaceAdapter):
    """Reduced-rank regression (Izenman 1975): the ridge map, kept to the `rank` principal directions of the
    rows that it predicts; fewer where the widths or the pairs allow fewer.
    """

    rank: int = 64

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        if self.rank < 1:
            raise SpaceError(f"rank: expected 1 or more, got {self.rank}")
        matrix, _ = ridge_by_press(new, old)
        predicted = (new - new.mean(axis=0, dtype=np.float64)) @ matrix
        directions = np.linalg.eigh(predicted.T @ predicted)[1][:, -self.rank :]
        return matrix @ directions @ directions.T


# Relative coordinates: queries and corpus are projected, each by the pairs' vectors of its own model. With
# A = U S Vᵀ the anchors of the old model, X Aᵀ = X V S Uᵀ has the products of X V S, whose width is at most
# that of the old model, however many anchors there are. So the corpus is projected to X V S, and the queries
# to (Q A_newᵀ) U: every score of a query changes by the same factor, and the order of its results is that of
# the full coordinates.


class AnchorBasis(NamedTuple):
    """Unit anchors (k, d) as left · diag(values) · rightᵀ, and the mean that was subtracted."""

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray
    mean: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, center: bool) -> AnchorBasis:
        mean = rows.mean(axis=0, dtype=np.float64) if center else None
        left, values, right = np.linalg.svd(unit_rows(rows, mean).astype(np.float64), full_matrices=False)
        return cls(left, values, right.T, np.zeros(rows.shape[1]) if mean is None else mean)

    def whitened(self, ridge: float) -> np.ndarray:
        if not 0 < ridge < np.inf:
            raise SpaceError(f"ridge: expected a number above 0, got {ridge}")
        return self.right * (self.values / np.sqrt(self.values**2 + ridge))


class RelativeAdapter(Adapter):
    """Cosines to the anchors, not centred: relative representations as published (Moschella et al. 2023), the
    baseline.

    The anchors are the pairs: a query's coordinates are its similarities to their new vectors, a document's
    those to their old vectors. Nothing is embedded again; the corpus is projected once.
    """

    _center: ClassVar[bool] = False

    def _directions(self, anchors: AnchorBasis) -> np.ndarray:
        return anchors.right * anchors.values

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[Steps, Steps]:
        by_new, by_old = (AnchorBasis.of(rows, self._center) for rows in (new, old))
        queries = self._directions(by_new) @ (by_new.left.T @ by_old.left)
        corpus = AffineStep.between(self._directions(by_old), by_old.mean)
        return (AffineStep.between(queries, by_new.mean),), (corpus,)


@dataclass(eq=False)
class WhitenedRelativeAdapter(RelativeAdapter):
    """Whitened relative coordinates X Aᵀ (K + λI)^(−1/2), K = A Aᵀ, of centred rows: ours, the best where
    pairs are few.

    By the decomposition of the anchors, Aᵀ (K + λI)^(−1/2) = V S (S² + λ)^(−1/2) Uᵀ; the order of results is
    that of `RelativeProjection(whiten=True)`.

    Parameters
    ----------
    ridge : float
        λ, above 0; λ = 1 counts as much as one average anchor.
    """

    _center: ClassVar[bool] = True
    ridge: float = 0.3

    def _directions(self, anchors: AnchorBasis) -> np.ndarray:
        return anchors.whitened(self.ridge)


@dataclass(eq=False)
class WhitenedInverseAdapter(InPlaceAdapter):
    """The whitened inverse relative projection: y = ‖a_y‖ xW / ‖xW‖ + mean_y.

    W = A_xᵀ (K_x + λI)^(−1/2) (K_y + λI)^(−1/2) A_y, as in `InverseRelativeProjection("whitened",
    lengths="mean")`, by the decompositions of both models' anchors: work grows with the number of pairs, not
    with its cube.

    Parameters
    ----------
    ridge : float
        λ, above 0; λ = 1 counts as much as one average anchor.
    """

    ridge: float = 1.0

    def _matrix(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        by_new, by_old = (AnchorBasis.of(rows, center=True) for rows in (new, old))
        return by_new.whitened(self.ridge) @ (by_new.left.T @ by_old.left) @ by_old.whitened(self.ridge).T
