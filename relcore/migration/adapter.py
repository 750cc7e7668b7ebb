"""Adapter: what all maps from a new model's queries to an old model's vectors share."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from relcore.estimator import Estimator, matrix, need_finite
from relcore.migration.steps import Step, Unit, apply_by_block
from relcore.similarity import unit_rows
from relcore.spaces import SpaceError


class Adapter(Estimator):
    """New queries and old vectors in one space that is searched by cosine, learned from m paired rows.

    Rows are brought to length 1 first: retrieval is by cosine, and a row's length contains no information about its meaning;
    pooled word vectors break every centred method otherwise.

    Attributes
    ----------
    query_steps_ : tuple of Step
        From a new model's row to the space that is searched, (d_new,) → (d,), of length 1 at the end.
    corpus_steps_ : tuple of Step
        From an old model's row to it, (d_old,) → (d,). Only `Unit()` where the old vectors are searched as they are.
    """

    _needs_target: ClassVar[bool] = True

    @abstractmethod
    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        """Steps after the first `Unit()` and before the last one, of queries and of the corpus; new (m, d_new) and old
        (m, d_old) are float32 rows of length 1."""

    def fit(self, new: np.ndarray, old: np.ndarray) -> Adapter:
        """Learn from paired rows, new (m, d_new) and old (m, d_old).

        Raises
        ------
        SpaceError
            Row counts that differ, fewer than two, or numbers that are not finite.
        """
        new, old = matrix(new, "new"), matrix(old, "old")
        if len(new) != len(old) or len(new) < 2:
            raise SpaceError(f"pairs: expected as many new rows as old ones, two or more, got {len(new):,} and {len(old):,}")
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
