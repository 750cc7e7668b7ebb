"""`RelativeProjection`, which describes rows by their similarities to anchors."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from relcore.base.arguments import need_number, need_whole, random_generator
from relcore.base.errors import SpaceError, brief, extra, need_one_of
from relcore.base.kinds import need_kinds
from relcore.base.names import SIMILARITIES
from relcore.base.rows import mean_row
from relcore.represent.estimator import Estimator
from relcore.represent.similarity import Similarity
from relcore.spaces.matching import as_space
from relcore.spaces.space import MatrixLike, ids_of, matrix

if TYPE_CHECKING:
    from relcore.nn.modules import RelativeLayer


@dataclass(eq=False)
class RelativeProjection(Estimator):
    """Describe each row by its similarities to the anchors: absolute rows (n, d) become relative rows (n, k).

    ``relative[i, j] = similarity(x_i, a_j)`` (Moschella et al. 2023, eq. 1). With the cosine, relative rows
    do not change if the space is rotated, reflected or scaled. With centring, they also do not change if it
    is shifted.

    Parameters
    ----------
    similarity : one of `names.SIMILARITIES`, or a `Similarity`
        "quantised" is the inner product of cluster centroids (Fig. 7 of the paper).
    center : bool
        Whether to subtract the mean of the fitted space first (Maiorca et al. 2024). False reproduces
        Moschella et al. 2023.
    whiten : bool
        Whether to multiply by the symmetric root (K + ridge · I)^(−1/2), where K are the cosines (k, k)
        between anchors. Then near-duplicate anchors count only once. This is the Nyström feature map, used as
        a shared coordinate system. It needs the cosine.
    ridge : float
        The number λ of the whitening, above 0. The trace of K is k, so λ = 1 counts as much as one average
        anchor.
    threshold : float
        Distance at which the clustering is cut. Only "quantised" uses it.
    n_anchors : int
        Number of rows of X that are drawn as anchors if `fit` gets no anchors. If X has fewer rows, all are
        anchors.
    random_state : int
        Seed of this draw.

    Attributes
    ----------
    mean_ : array (d,) or None
    anchors_ : array (k, d)
        The anchors. They are centred if `center`, and of length 1 if the similarity depends only on
        directions.
    feature_names_in_ : array (d,)
        The columns of X if it is a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import RelativeProjection
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> rows = [0, 1, 2]  # the anchors
    >>> first = RelativeProjection().fit(X, anchors=rows).transform(X)
    >>> second = RelativeProjection().fit(X @ rotation + 4, anchors=rows).transform(X @ rotation + 4)
    >>> first.shape, bool(np.allclose(first, second, atol=1e-5))
    ((100, 3), True)
    """

    similarity: str | Similarity = "cosine"
    center: bool = True
    whiten: bool = False
    ridge: float = 0.3
    threshold: float = 1.5
    n_anchors: int = 300
    random_state: int = 0

    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        *,
        anchors: MatrixLike | Sequence[int] | Sequence[str] | None = None,
        mean: np.ndarray | None = None,
    ) -> Self:
        """Compute the mean of X (n, d) and store the anchors. `anchors` are row numbers of X (k,), ids of X
        (k,), for example from `select_anchors`, or vectors (k, d).

        If no anchors are given, rows are drawn; spaces with the same number of rows get the same row numbers.
        `y` is ignored; it exists because pipelines pass it. `mean` is the `mean_row` of X, if it is known; it
        saves a pass over X.

        Raises
        ------
        SpaceError
            No anchors; row numbers outside X; widths that differ; numbers that are not finite; an unknown
            similarity; whitening with a similarity other than the cosine.
        """
        need_kinds(self)
        unchecked = X
        X = matrix(X, by_block=True)
        n, width = X.shape
        if mean is None:
            mean = mean_row(X)
        else:
            mean = checked_row(mean, width, "mean")
        if anchors is None:
            need_whole("n_anchors", self.n_anchors)
            drawn = random_generator(self.random_state)
            anchors = drawn.choice(n, min(self.n_anchors, n), replace=False)
        chosen = _listed_or_matrix(anchors)
        if chosen.ndim == 1 and chosen.size and all(isinstance(one, str) for one in chosen):
            chosen = as_space(unchecked, "X").rows(chosen.tolist())
        _need_anchors(chosen, n, width)
        if chosen.ndim == 2:
            self._fit(mean, np.asarray(chosen, dtype=np.float32), X)
            self._sees(unchecked, width, len(chosen))
        else:
            self._fit(mean, X[chosen], X)
            self._sees(unchecked, width, len(chosen), _ids_at(unchecked, chosen))
        return self

    def fit_from(self, mean: np.ndarray, anchors: MatrixLike, rows: MatrixLike) -> Self:
        """Fit to a space of which only the mean (d,), the anchor vectors (k, d) and some rows (m, d) are
        available.

        The rows should be those of `clustered_rows`. Similarities that learn from rows use only these, so the
        result is the same as with all rows.
        """
        need_kinds(self)
        starred = matrix(anchors, "anchors")
        width = starred.shape[1]
        known = np.empty((0, width), np.float32)
        if getattr(rows, "shape", None) != known.shape:  # most similarities need no rows
            known = matrix(rows, "rows", by_block=True)
        if known.shape[1] != width:
            raise SpaceError(f"rows: expected width {width} like the anchors, got {known.shape[1]}")
        return self._fit(checked_row(mean, width, "mean"), starred, known)

    def _fit(self, mean: np.ndarray, anchors: np.ndarray, rows: np.ndarray) -> Self:
        if isinstance(self.similarity, Similarity):  # fit a copy of the given instance
            similarity = copy(self.similarity)
        else:
            need_one_of("similarity", self.similarity, SIMILARITIES)
            similarity = SIMILARITIES[self.similarity].load()()
        if self.whiten and not similarity.linear:
            raise SpaceError(
                f"whiten: expected similarity 'cosine', got {self.similarity!r}; whitening needs inner"
                " products"
            )
        if self.whiten:
            need_number("ridge", self.ridge, above=0)
        self.mean_: np.ndarray | None = mean if self.center else None
        self._uncentred = anchors
        self.similarity_: Similarity = similarity.fit(rows, anchors, self.mean_, self)
        self.anchors_: np.ndarray = self.similarity_.anchors_
        self._sees(None, anchors.shape[1], len(anchors))
        return self

    def transform(self, X: MatrixLike) -> np.ndarray:
        """The similarities (n, k) float32 of the rows X (n, d) to the anchors.

        Ranges: cosine and quantised −1 … 1; angular 0 … 1; Euclidean and L1 at most 0. Other similarities
        have no fixed range. A vector that is zero after centring has cosine 0 to all anchors.
        """
        rows = self._check_width(X, by_block=True)
        return self._as_output(self.similarity_.relative(rows, self.mean_), X)

    def to_torch(self) -> RelativeLayer:
        """The fitted projection as a PyTorch module from rows (n, d) to relative rows (n, k). It needs the
        extra ``torch``. Raises a SpaceError if the similarity is none of Relscope's.
        """
        with extra("torch"):
            from relcore.nn.modules import RelativeLayer

        self._need_fitted()
        kind = type(self.similarity_)
        return RelativeLayer(
            self._uncentred,
            similarity=next(
                (name for name, one in SIMILARITIES.items() if one.load() is kind), kind.__name__
            ),
            center=self.center,
            mean=self.mean_,
            whiten=self.whiten,
            ridge=self.ridge,
            centroids=getattr(self.similarity_, "centroids_", None),
        )


def _ids_at(X: Any, rows: np.ndarray) -> np.ndarray | None:
    """The ids of these rows; None if the rows of X have no ids."""
    if isinstance(X, pd.DataFrame):
        X = X.iloc[rows]
        rows = np.arange(len(rows))
    ids = ids_of(X)
    if ids is None:
        return None
    return np.array([ids[row] for row in rows], dtype=object)


def checked_row(row: Any, width: int, name: str) -> np.ndarray:
    """A row (d,) of finite numbers. Raises a SpaceError for another width, and for what is no row."""
    masked = np.ma.is_masked(row)
    try:
        row = np.asarray(row)
        fits = (
            not masked and row.dtype.kind in "fiu" and row.shape == (width,) and bool(np.isfinite(row).all())
        )
    except (TypeError, ValueError):
        fits = False
    if not fits:
        got = f"{brief(row, 60)}"
        if isinstance(row, np.ndarray):
            got = f"{row.dtype} {row.shape}"
        raise SpaceError(f"{name}: expected {width} finite numbers, one per column, got {got}")
    return row


def _need_anchors(chosen: np.ndarray, n: int, width: int) -> None:
    """Raise a SpaceError unless these are numbers (k,) of n rows, or vectors (k, width)."""
    reason = ""
    if chosen.size == 0:
        reason = "at least one, got none; pick some by hand or with select_anchors"
    elif chosen.ndim == 2:
        if chosen.shape[1] != width:
            reason = f"vectors of width {width} like the space, got {chosen.shape[1]}"
    elif chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
        got = f"{chosen.dtype} {chosen.shape}"
        reason = f"row numbers (k,), ids of X (k,) or vectors (k, d), got {got}"
    elif len(outside := chosen[(chosen < 0) | (chosen >= n)]):
        reason = f"rows 0 … {n - 1}, got {outside[0]}"
    if reason:
        raise SpaceError(f"anchors: expected {reason}")


def _listed_or_matrix(anchors: Any) -> np.ndarray:
    if isinstance(anchors, Sequence) and not isinstance(anchors, str):
        listed = all(np.isscalar(one) for one in anchors)
    else:
        listed = len(getattr(anchors, "shape", (0, 0))) == 1 or 0 in getattr(anchors, "shape", ())
    if listed:
        return np.asarray(anchors)
    return matrix(anchors, "anchors")
