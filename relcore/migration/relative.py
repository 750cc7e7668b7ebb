"""Relative coordinates as adapters: queries and corpus are projected, each by the pairs' vectors of its own model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from relcore.migration.adapter import Adapter
from relcore.migration.steps import Affine, Step
from relcore.similarity import unit_rows
from relcore.spaces import SpaceError


class Anchors(NamedTuple):
    """Unit anchors (k, d) as left · diag(values) · rightᵀ, and the mean that was subtracted."""

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray
    mean: np.ndarray


def decomposed(rows: np.ndarray, center: bool) -> Anchors:
    """The singular value decomposition of the pairs' rows of one model, in float64."""
    mean = rows.mean(axis=0, dtype=np.float64) if center else np.zeros(rows.shape[1])
    left, values, right = np.linalg.svd(unit_rows(rows, mean if center else None).astype(np.float64), full_matrices=False)
    return Anchors(left, values, right.T, mean)


@dataclass(eq=False)
class RelativeAdapter(Adapter):
    """Cosines to the anchors, not centred: relative representations as published (Moschella et al. 2023), the baseline.

    The anchors are the pairs: a query's coordinates are its similarities to their new vectors, a document's those to their
    old vectors. Nothing is embedded again; the corpus is projected once.

    With A = U S Vᵀ the anchors of the old model, X Aᵀ = X V S Uᵀ has the products of X V S, whose width is at most that of the
    old model, however many anchors there are. So the corpus is projected to X V S, and the queries to (Q A_newᵀ) U: every
    score of a query changes by the same factor, and the order of its results is that of the full coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migration.relative import RelativeAdapter
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
        return (Affine.between(queries, ours.mean),), (Affine.between(corpus, theirs.mean),)


@dataclass(eq=False)
class WhitenedRelativeAdapter(RelativeAdapter):
    """Whitened relative coordinates X Aᵀ (K + λI)^(−1/2), K = A Aᵀ, of centred rows: ours, the best where pairs are few.

    By the decomposition of the anchors, Aᵀ (K + λI)^(−1/2) = V S (S² + λ)^(−1/2) Uᵀ; the rest as in `RelativeAdapter`, and the
    order of results is that of `RelativeProjection(whiten=True)`.

    Parameters
    ----------
    ridge : float
        λ, above 0; λ = 1 counts as much as one average anchor.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migration.relative import WhitenedRelativeAdapter
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
