"""RelativeProjection: an absolute space described by its similarities to anchors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import SIMILARITIES
from relcore.represent.estimator import Estimator, matrix, need_finite
from relcore.represent.similarity import mean_row


@dataclass(eq=False)
class RelativeProjection(Estimator):
    """Describe each point by its similarities to the anchors: absolute (n, d) → relative (n, k).

    ``relative[i, j] = similarity(x_i, a_j)`` (Moschella et al. 2023, eq. 1). With the cosine it does not
    change when the space is rotated, reflected or scaled; with centring it does not change when the space is
    shifted either.

    Parameters
    ----------
    similarity : one of `names.SIMILARITIES`
        "cosine", "angular", "euclidean", "l1" or "quantised", the inner product of cluster centroids (Fig. 7
        of the paper).
    center : bool
        Subtract the mean of the fitted space first (Maiorca et al. 2024). False reproduces Moschella et al.
        2023.
    whiten : bool
        Multiply by (K + ridge · I)^(−1/2), K the anchors' own cosines (k, k), the root symmetric:
        near-duplicate anchors count only once. This is the Nyström feature map read as a shared coordinate
        system; ours, cosine only.
    ridge : float
        λ of the whitening, above 0; the trace of K is k, so λ = 1 counts as much as one average anchor.
    threshold : float
        Distance at which "quantised" cuts the clustering; the others do not use it.
    n_anchors : int
        Rows of X that are drawn as anchors where `fit` is given none; all, where X has fewer.
    random_state : int
        Draws them.

    Attributes
    ----------
    mean_ : array (d,) or None
    anchors_ : array (k, d)
        Centred if `center`; of length 1 where the similarity is one of directions.

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

    similarity: str = "cosine"
    center: bool = True
    whiten: bool = False
    ridge: float = 0.3
    threshold: float = 1.5
    n_anchors: int = 300
    random_state: int = 0

    def fit(
        self,
        X: np.ndarray,
        y: None = None,
        *,
        anchors: np.ndarray | None = None,
        mean: np.ndarray | None = None,
    ) -> RelativeProjection:
        """Learn the mean of X (n, d) and keep the anchors: row numbers of X (k,), or vectors (k, d) from
        elsewhere.

        Without anchors, rows are drawn: of two row-aligned spaces the same ones. `y` is ignored, a pipeline
        gives it. `mean` is the `mean_row` of X where it is known already: it takes a pass over X.

        Raises
        ------
        SpaceError
            No anchors, rows outside X, widths that differ, numbers that are not finite, an unknown
            similarity, whitening of anything but the cosine.
        """
        X = matrix(X, by_block=True)
        self._check_settings()
        mean = mean_row(X) if mean is None else mean
        need_finite(mean)
        return self.fit_from(mean, _anchor_vectors(X, self._drawn(len(X)) if anchors is None else anchors), X)

    def fit_from(self, mean: np.ndarray, anchors: np.ndarray, rows: np.ndarray) -> RelativeProjection:
        """`fit` for a space that is not in one place: its mean (d,), the anchors' vectors (k, d), and some of
        its rows (m, d).

        Only "quantised" learns from the rows: those that `similarity.clustered_rows` draws give what all rows
        would.
        """
        self._check_settings()
        self.mean_ = mean if self.center else None
        self.similarity_ = SIMILARITIES[self.similarity].load()().fit(rows, anchors, self.mean_, self)
        self.anchors_ = self.similarity_.anchors_
        self.n_features_in_ = anchors.shape[1]
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Similarities of the rows of X to the anchors, (n, d) → (n, k) float32.

        Cosine and quantised −1 … 1, angular 0 … 1, Euclidean and L1 at most 0, whitened without fixed range.
        A vector that is zero (after centring) has cosine 0 to everything.
        """
        X = self._check_width(X, by_block=True)
        relative = self.similarity_.relative(X, self.mean_)
        need_finite(relative[:, 0])
        return relative

    def _drawn(self, n: int) -> np.ndarray:
        """Row numbers of the anchors where none are given."""
        if self.n_anchors < 1:
            raise SpaceError(f"n_anchors: expected 1 or more, got {self.n_anchors}")
        return np.random.default_rng(self.random_state).choice(n, min(self.n_anchors, n), replace=False)

    def _check_settings(self) -> None:
        need_one_of("similarity", self.similarity, SIMILARITIES)
        if self.whiten and not SIMILARITIES[self.similarity].load().whitens:
            raise SpaceError(
                f"whiten: expected similarity 'cosine', got {self.similarity!r}; whitening needs inner"
                " products"
            )
        if self.whiten and not 0 < self.ridge < np.inf:
            raise SpaceError(f"ridge: expected a number above 0, got {self.ridge}")


def _anchor_vectors(X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    anchors = np.asarray(anchors)
    if anchors.size == 0:
        raise SpaceError("anchors: expected at least one, got none; pick some by hand or with select_anchors")
    if anchors.ndim == 2:
        if anchors.shape[1] != X.shape[1]:
            raise SpaceError(
                f"anchors: expected vectors of width {X.shape[1]} like the space, got {anchors.shape[1]}"
            )
        return np.asarray(anchors, dtype=np.float32)
    if anchors.ndim != 1 or not np.issubdtype(anchors.dtype, np.integer):
        raise SpaceError(
            f"anchors: expected row numbers (k,) or vectors (k, d), got {anchors.dtype} {anchors.shape}; ids:"
            " space.rows(ids)"
        )
    outside = anchors[(anchors < 0) | (anchors >= len(X))]
    if len(outside):
        raise SpaceError(f"anchors: expected rows 0 … {len(X) - 1}, got {outside[0]}")
    return X[anchors]
