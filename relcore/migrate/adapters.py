"""Adapter: what all maps from a new model's queries to an old model's vectors share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.libraries import extra
from relcore.base.magnitude import lengths
from relcore.base.torch_state import reproducible
from relcore.represent import translation
from relcore.represent.estimator import Estimator, matrix, need_finite
from relcore.represent.similarity import row_blocks, unit_rows
from relcore.represent.translation import Procrustes

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
        found = np.asarray(X, dtype=np.float32) @ self.matrix
        found += self.offset
        return found


@dataclass(frozen=True, eq=False)
class Residual:
    """x + relu(x·inner + inner_offset)·outer + outer_offset.

    Attributes
    ----------
    inner : array (d, h) float32
    inner_offset : array (h,) float32
    outer : array (h, d) float32
    outer_offset : array (d,) float32
    """

    inner: np.ndarray
    inner_offset: np.ndarray
    outer: np.ndarray
    outer_offset: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        hidden = X @ self.inner
        hidden += self.inner_offset
        np.maximum(hidden, 0, out=hidden)
        return X + hidden @ self.outer + self.outer_offset


Step = Unit | AffineStep | Residual


def apply_steps(steps: Iterable[Step], X: np.ndarray) -> np.ndarray:
    """Rows after all steps in their order, (n, d_in) → (n, d_out) float32."""
    for step in steps:
        X = step(X)
    return X


def apply_by_block(steps: tuple[Step, ...], X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """As `apply_steps`, with memory for one block of rows beside the result."""
    for block in row_blocks(len(X)):
        found = apply_steps(steps, X[block])
        if out is None:
            out = np.empty((len(X), found.shape[1]), dtype=np.float32)
        out[block] = found
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
    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
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
        found = apply_by_block(self.query_steps_, self._check_width(X))
        need_finite(found[:, 0])
        return found

    def corpus(self, X: np.ndarray) -> np.ndarray:
        """Old vectors in the space that is searched, (n, d_old) → (n, d) float32 of length 1."""
        found = apply_by_block(self.corpus_steps_, self._check_width(X, self.n_features_old_))
        need_finite(found[:, 0])
        return found


# Linear maps into the old model's space, for old vectors that are searched as they are.


def around_the_mean(matrix: np.ndarray, new: np.ndarray, old: np.ndarray) -> tuple[Step, ...]:
    """The steps x → ‖y‖ u + mean_y, with u the direction of (x − mean_x)·matrix and ‖y‖ the mean length of
    centred old rows.

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
    return (
        AffineStep.between(matrix, start),
        Unit(),
        AffineStep(length * np.eye(old.shape[1], dtype=np.float32), end.astype(np.float32)),
    )


# AffineAdapter: the linear map with an offset that has the smallest squared error.


@dataclass(eq=False)
class AffineAdapter(Adapter):
    """Least squares with an offset, of smallest norm where fewer pairs than dimensions leave a choice.

    Near as many pairs as dimensions it fits their noise; `RidgeAdapter` does not.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import AffineAdapter
    >>> new = np.random.default_rng(0).normal(size=(300, 4))
    >>> new /= np.linalg.norm(new, axis=1, keepdims=True)
    >>> old = new @ np.diag([1, 1, 2, 2]) + 1
    >>> old /= np.linalg.norm(old, axis=1, keepdims=True)
    >>> bool(np.mean(np.sum(AffineAdapter().fit(new, old).transform(new) * old, axis=1)) > 0.98)
    True
    """

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        return around_the_mean(translation.Affine().fit(new, old).matrix_, new, old), ()


# DiagonalAdapter: Procrustes, and then a factor for each coordinate of the old space.


@dataclass(eq=False)
class DiagonalAdapter(Adapter):
    """Centred Procrustes with diagonal scaling of the rotated coordinates, as in Drift-Adapter (EMNLP 2025).

    Each factor is the least-squares one and at least 0: a coordinate that the new model does not have adds
    noise only.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import DiagonalAdapter
    >>> new = np.random.default_rng(0).normal(size=(300, 4))
    >>> DiagonalAdapter().fit(new, new[:, ::-1]).factors_.round(3).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        found = Procrustes(scale=False).fit(new, old)
        rotated, wanted = (new - found.source_mean_) @ found.matrix_, old - found.target_mean_
        spread = np.vecdot(rotated.T, rotated.T)
        products = np.maximum(np.vecdot(rotated.T, wanted.T), 0)
        self.factors_ = np.divide(products, spread, out=np.zeros_like(spread), where=spread > 0)
        return around_the_mean(found.matrix_ * self.factors_, new, old), ()


# Procrustes adapters: the rotation that brings centred pairs closest, with the old vectors centred, or as
# they are.


@dataclass(eq=False)
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

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        found = Procrustes(scale=False).fit(new, old)
        queries = AffineStep.between(found.matrix_, found.source_mean_)
        return (queries,), (AffineStep.between(np.eye(old.shape[1]), found.target_mean_),)


@dataclass(eq=False)
class InPlaceProcrustesAdapter(Adapter):
    """The same rotation, for old vectors that are searched as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import InPlaceProcrustesAdapter
    >>> old = np.random.default_rng(0).normal(size=(60, 4))
    >>> adapter = InPlaceProcrustesAdapter().fit(old[:, ::-1], old)
    >>> bool(np.mean(np.sum(adapter.transform(old[:, ::-1]) * adapter.corpus(old), axis=1)) > 0.99)
    True
    """

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        return around_the_mean(Procrustes(scale=False).fit(new, old).matrix_, new, old), ()


# RidgeAdapter: a linear map with a penalty that leave-one-out errors choose.

PENALTIES = tuple(np.geomspace(1e-3, 1e2, 16).tolist())


@dataclass(eq=False)
class RidgeAdapter(Adapter):
    """Ridge regression with an offset, its penalty λ by the closed form of the leave-one-out error (Allen's
    PRESS).

    Attributes
    ----------
    penalty_ : float
        The λ of the smallest error, summed over all coordinates; rows have length 1, so λ = 1 counts as much
        as one pair.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import RidgeAdapter
    >>> new = np.random.default_rng(0).normal(size=(300, 4))
    >>> RidgeAdapter().fit(new, new @ np.diag([1, 1, 2, 2])).penalty_ < 1
    True
    """

    penalties: tuple[float, ...] = PENALTIES

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        found = LeaveOneOut(self.penalties).fit(new, old)
        self.penalty_ = found.penalty_
        return around_the_mean(found.matrix_, new, old), ()


@dataclass(eq=False)
class LeaveOneOut(Estimator):
    """Ridge between centred rows; the residual without row i is (y − ŷ)ᵢ / (1 − hᵢ), h the diagonal of the
    hat matrix.
    """

    penalties: tuple[float, ...] = PENALTIES

    def fit(self, X: np.ndarray, Y: np.ndarray) -> LeaveOneOut:
        """`matrix_` (d_x, d_y) float64 and `penalty_`, from rows X (m, d_x) and Y (m, d_y).

        Raises
        ------
        SpaceError
            No penalty, or one that is not above 0.
        """
        if not len(self.penalties) or not min(self.penalties) > 0:
            raise SpaceError(f"penalties: expected numbers above 0, got {self.penalties!r:.80}")
        X, Y = (Z - Z.mean(axis=0, dtype=np.float64) for Z in (X, Y))
        left, values, right = np.linalg.svd(X, full_matrices=False)
        onto = left.T @ Y
        errors = [_press(left, values**2 / (values**2 + one), onto, Y) for one in self.penalties]
        self.penalty_ = float(self.penalties[int(np.argmin(errors))])
        self.matrix_ = (right.T * (values / (values**2 + self.penalty_))) @ onto
        return self


def _press(left: np.ndarray, shrunk: np.ndarray, onto: np.ndarray, Y: np.ndarray) -> float:
    residual = Y - (left * shrunk) @ onto
    leverage = 1 / len(Y) + (left**2) @ shrunk
    return float(np.sum((residual / np.maximum(1 - leverage, 1e-12)[:, None]) ** 2))


# LowRankAdapter: ridge regression through few directions.


@dataclass(eq=False)
class LowRankAdapter(Adapter):
    """Reduced-rank regression (Izenman 1975): the ridge map, kept to the principal directions of the rows
    that it predicts.

    Parameters
    ----------
    rank : int
        Number of directions; fewer where the widths or the pairs allow fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import LowRankAdapter
    >>> new = np.random.default_rng(0).normal(size=(300, 8))
    >>> adapter = LowRankAdapter(rank=2).fit(new, new)
    >>> int(np.linalg.matrix_rank(adapter.query_steps_[1].matrix))
    2
    """

    rank: int = 64

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        if self.rank < 1:
            raise SpaceError(f"rank: expected 1 or more, got {self.rank}")
        matrix = LeaveOneOut().fit(new, old).matrix_
        predicted = (new - new.mean(axis=0, dtype=np.float64)) @ matrix
        directions = np.linalg.eigh(predicted.T @ predicted)[1][:, -self.rank :]
        return around_the_mean(matrix @ directions @ directions.T, new, old), ()


# Relative coordinates as adapters: queries and corpus are projected, each by the pairs' vectors of its own
# model.


class Anchors(NamedTuple):
    """Unit anchors (k, d) as left · diag(values) · rightᵀ, and the mean that was subtracted."""

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray
    mean: np.ndarray


def decomposed(rows: np.ndarray, center: bool) -> Anchors:
    """The singular value decomposition of the pairs' rows of one model, in float64."""
    mean = rows.mean(axis=0, dtype=np.float64) if center else np.zeros(rows.shape[1])
    left, values, right = np.linalg.svd(
        unit_rows(rows, mean if center else None).astype(np.float64), full_matrices=False
    )
    return Anchors(left, values, right.T, mean)


@dataclass(eq=False)
class RelativeAdapter(Adapter):
    """Cosines to the anchors, not centred: relative representations as published (Moschella et al. 2023), the
    baseline.

    The anchors are the pairs: a query's coordinates are its similarities to their new vectors, a document's
    those to their old vectors. Nothing is embedded again; the corpus is projected once.

    With A = U S Vᵀ the anchors of the old model, X Aᵀ = X V S Uᵀ has the products of X V S, whose width is at
    most that of the old model, however many anchors there are. So the corpus is projected to X V S, and the
    queries to (Q A_newᵀ) U: every score of a query changes by the same factor, and the order of its results
    is that of the full coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import RelativeAdapter
    >>> old = np.random.default_rng(0).normal(size=(60, 4))
    >>> adapter = RelativeAdapter().fit(old[:, ::-1], old)
    >>> bool(np.allclose(adapter.transform(old[:, ::-1]), adapter.corpus(old), atol=1e-5))
    True
    """

    _center: ClassVar[bool] = False

    def _gain(self, values: np.ndarray) -> np.ndarray:
        return values

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        ours, theirs = (decomposed(rows, self._center) for rows in (new, old))
        queries = (ours.right * self._gain(ours.values)) @ (ours.left.T @ theirs.left)
        corpus = theirs.right * self._gain(theirs.values)
        return (AffineStep.between(queries, ours.mean),), (AffineStep.between(corpus, theirs.mean),)


@dataclass(eq=False)
class WhitenedRelativeAdapter(RelativeAdapter):
    """Whitened relative coordinates X Aᵀ (K + λI)^(−1/2), K = A Aᵀ, of centred rows: ours, the best where
    pairs are few.

    By the decomposition of the anchors, Aᵀ (K + λI)^(−1/2) = V S (S² + λ)^(−1/2) Uᵀ; the rest as in
    `RelativeAdapter`, and the order of results is that of `RelativeProjection(whiten=True)`.

    Parameters
    ----------
    ridge : float
        λ, above 0; λ = 1 counts as much as one average anchor.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import WhitenedRelativeAdapter
    >>> old = np.random.default_rng(0).normal(size=(60, 4))
    >>> adapter = WhitenedRelativeAdapter().fit(old[:, ::-1], old)
    >>> bool(np.allclose(adapter.transform(old[:, ::-1]), adapter.corpus(old), atol=1e-5))
    True
    """

    _center: ClassVar[bool] = True
    ridge: float = 0.3

    def _gain(self, values: np.ndarray) -> np.ndarray:
        if not 0 < self.ridge < np.inf:
            raise SpaceError(f"ridge: expected a number above 0, got {self.ridge}")
        return values / np.sqrt(values**2 + self.ridge)


# WhitenedInverseAdapter: from the new model through whitened relative coordinates into the old model's space.


@dataclass(eq=False)
class WhitenedInverseAdapter(Adapter):
    """The whitened inverse relative projection: y = ‖a_y‖ xW / ‖xW‖ + mean_y, the old vectors searched as
    they are.

    W = A_xᵀ (K_x + λI)^(−1/2) (K_y + λI)^(−1/2) A_y, as in `InverseRelativeProjection("whitened",
    lengths="mean")`, by the decompositions of both models' anchors: work grows with the number of pairs, not
    with its cube.

    Parameters
    ----------
    ridge : float
        λ, above 0; λ = 1 counts as much as one average anchor.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import WhitenedInverseAdapter
    >>> old = np.random.default_rng(0).normal(size=(60, 4))
    >>> adapter = WhitenedInverseAdapter().fit(old[:, ::-1], old)
    >>> bool(np.mean(np.sum(adapter.transform(old[:, ::-1]) * adapter.corpus(old), axis=1)) > 0.98)
    True
    """

    ridge: float = 1.0

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        if not 0 < self.ridge < np.inf:
            raise SpaceError(f"ridge: expected a number above 0, got {self.ridge}")
        ours, theirs = (decomposed(rows, center=True) for rows in (new, old))
        encoder, decoder = (
            one.right * (one.values / np.sqrt(one.values**2 + self.ridge)) for one in (ours, theirs)
        )
        return around_the_mean(encoder @ (ours.left.T @ theirs.left) @ decoder.T, new, old), ()


# ResidualAdapter: Procrustes, and a small network that learns what is left.

_CHECKED = 5  # every fifth pair stops the training, and is not trained on
_PATIENCE = 30


@dataclass(eq=False)
class ResidualAdapter(Adapter):
    """A residual MLP with one hidden layer on top of centred Procrustes, trained on 1 − cos (as in
    Drift-Adapter, EMNLP 2025).

    It starts as Procrustes exactly, and every fifth pair decides which epoch is kept: where the network
    learns nothing that holds for these, Procrustes is what is left. Equal settings and pairs give an equal
    network.

    Parameters
    ----------
    hidden : int
        Width of the hidden layer.
    epochs : int
        At most this number of passes over the pairs.
    rate : float
        Learning rate of Adam.

    Attributes
    ----------
    epoch_ : int
        The epoch that was kept; 0 is Procrustes.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.adapters import ResidualAdapter
    >>> new = np.random.default_rng(0).normal(size=(200, 4))
    >>> ResidualAdapter().fit(new, np.maximum(new, 0)).epoch_ > 0
    True
    """

    hidden: int = 256
    epochs: int = 200
    rate: float = 3e-3
    random_state: int = 0

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        checked = np.arange(len(new)) % _CHECKED == _CHECKED - 1
        if not checked.any():
            checked[-1] = len(new) > 2
        (start,), (centre,) = ProcrustesAdapter()._solve(new[~checked], old[~checked])
        correction = self._trained(unit_rows(start(new)), centre(old), checked)
        (start,), corpus = ProcrustesAdapter()._solve(new, old)
        return (start, Unit(), correction) if correction else (start,), corpus

    def _trained(self, rows: np.ndarray, old: np.ndarray, checked: np.ndarray) -> Residual | None:
        """The network of the best epoch; None where that is the start."""
        with extra("torch"):
            import torch
        from torch.nn.functional import cosine_similarity

        self.epoch_, width = 0, rows.shape[1]
        if not checked.any():
            return None
        known, wanted, unseen, its = (
            torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32))
            for part in (rows[~checked], old[~checked], rows[checked], old[checked])
        )
        with reproducible(self.random_state):
            inner = torch.nn.Linear(width, self.hidden)
            outer = torch.nn.Linear(self.hidden, width)
            torch.nn.init.zeros_(outer.weight)
            torch.nn.init.zeros_(outer.bias)
            weights = [*inner.parameters(), *outer.parameters()]
            optimiser = torch.optim.AdamW(weights, lr=self.rate, weight_decay=0.01)
            error = lambda X, Y: 1 - cosine_similarity(X + outer(torch.relu(inner(X))), Y).mean()  # noqa: E731
            with torch.no_grad():
                best, kept = float(error(unseen, its)), None
            for epoch in range(1, self.epochs + 1):
                for block in torch.randperm(len(known)).split(256):
                    optimiser.zero_grad()
                    error(known[block], wanted[block]).backward()
                    optimiser.step()
                with torch.no_grad():
                    reached = float(error(unseen, its))
                if reached < best:
                    best, self.epoch_ = reached, epoch
                    kept = [one.detach().numpy().copy() for one in weights]
                elif epoch - self.epoch_ > _PATIENCE:
                    break
        if kept is None:
            return None
        into, into_offset, out, out_offset = kept
        return Residual(np.ascontiguousarray(into.T), into_offset, np.ascontiguousarray(out.T), out_offset)
