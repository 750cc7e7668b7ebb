"""t-SNE with what this project needs of it: exact neighbours from faiss, progress by iterations, and maps
for other spaces.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relcore.maps.umap_map import NeighbourIndex

_EARLY, _REST, _PLACING = (
    250,
    750,
    250,
)  # iterations: exaggerated twelvefold, as they are, and for rows placed on a finished map
_REPORTED = 50  # iterations between two reports


class TsneMap:
    """t-SNE fitted on the rows of one space; `transform` places other rows, of the same width, on the same
    map.

    openTSNE's Barnes-Hut descent with the settings of scikit-learn's TSNE: 1,000 iterations, 250 of them with
    an early exaggeration of 12, the learning rate n / 12 and then n, and neighbours by exact search.

    Placing a row looks at its neighbours among the rows of the fit alone (perplexity 5), so it depends on no
    other new row: Poličar, Stražar and Zupan, "Embedding to reference t-SNE space addresses batch effects in
    single-cell classification" (Machine Learning, 2021).

    Parameters
    ----------
    n_components : 2 or 3
    perplexity : float
        Cut to (n - 1) / 3.
    metric : "cosine" or "euclidean"
    random_state : int
    on_iteration : callable (done, total), optional
        Called every 50 iterations.
    on_descent : callable, optional
        Called when the neighbours are known, before the first iteration.
    """

    def __init__(
        self,
        n_components: int = 2,
        perplexity: float = 30.0,
        metric: str = "cosine",
        random_state: int = 0,
        on_iteration: Callable[[int, int], None] | None = None,
        on_descent: Callable[[], None] | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.metric = metric
        self.random_state = random_state
        self.on_iteration = on_iteration
        self.on_descent = on_descent

    def fit(self, X: np.ndarray, start: np.ndarray) -> TsneMap:
        """`start` (n, c) is where the rows begin, up to scale: two PCA components, say."""
        from faiss import omp_get_max_threads
        from openTSNE import TSNE
        from openTSNE.affinity import PerplexityBasedNN

        perplexity = min(self.perplexity, (len(X) - 1) / 3)
        index = _Neighbours(X, max(1, int(3 * perplexity)), self.metric)
        self._done, self._total = 0, _EARLY + _REST
        model = TSNE(
            self.n_components,
            early_exaggeration_iter=_EARLY,
            n_iter=_REST,
            negative_gradient_method="bh",
            callbacks=self._count,
            callbacks_every_iters=_REPORTED,
            n_jobs=omp_get_max_threads(),  # the result is the same for any number of threads
            random_state=self.random_state,
        )
        start = start / max(start[:, 0].std(), np.finfo(float).tiny)
        noise = np.random.default_rng(self.random_state).normal(
            size=start.shape
        )  # equal rows, and zero columns, must part
        affinities = PerplexityBasedNN(perplexity=perplexity, knn_index=index)
        if self.on_descent:
            self.on_descent()
        self.map_ = model.fit(affinities=affinities, initialization=1e-4 * start + 1e-6 * noise)
        self.map_ -= (self.map_.max(axis=0) + self.map_.min(axis=0)) / 2  # as `transform` would
        self.embedding_ = np.array(self.map_, dtype=np.float32)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        self._done, self._total = 0, _PLACING
        return np.array(self.map_.transform(X, n_iter=_PLACING), dtype=np.float32)

    def _count(self, iteration: int, error: float, embedding: np.ndarray) -> None:
        self._done += _REPORTED  # openTSNE counts each phase from one
        if self.on_iteration:
            self.on_iteration(self._done, self._total)


class _Neighbours:
    """Exact nearest neighbours with the members that openTSNE uses of its own indices."""

    def __init__(self, X: np.ndarray, k: int, metric: str) -> None:
        self.n_samples, self.k = len(X), k
        self._X, self._index = X, NeighbourIndex(X, metric)

    def build(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices and distances (n, k) of the other rows, nearest first."""
        rows, distances = self._index.query(self._X, self.k + 1)
        return rows[:, 1:].astype(np.int64), distances[:, 1:].astype(np.float64)

    def query(self, X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        rows, distances = self._index.query(X, k)
        return rows.astype(np.int64), distances.astype(np.float64)
