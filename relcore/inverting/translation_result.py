"""TranslationResult: scores of every ordered pair of spaces by each method, as Tables 1 and 2 print them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from relcore.names import HEADS
from relcore.names import METHODS as ALL_METHODS
from relcore.spaces import SpaceError, need_one_of, need_strings, need_whole
from relcore.stitching.methods import MethodSettings

METHODS = {name: method.title for name, method in ALL_METHODS.items() if method.heads == "absolute"}
METRICS = {
    "cosine": "cosine",
    "raw cosine": "cosine, not centred",
    "jaccard": "Jaccard",
    "mrr": "MRR",
    "accuracy": "accuracy",
}


@dataclass(frozen=True)
class TranslationSpec:
    """How rows are translated and scored.

    Attributes
    ----------
    methods : tuple of str
        Some of `METHODS`.
    k, n_queries : int
        Number of neighbours, and of queries, drawn at random from the rows that are not anchors; None takes all.
    head : str
        Of `heads.HEADS`, trained on the target's rows where there are labels.
    test_fraction : float
        Share of the rows that the head is tested on, drawn by their ids, never anchors; it is trained on all others.
    test_ids : tuple of str
        Test rows instead, such as those that no encoder was trained on; anchors among them are left out.
    settings : MethodSettings
    random_state : int
        Draws test rows, queries, prunings.
    """

    methods: tuple[str, ...] = ("absolute", "irp-pruned", "irp-ridge", "irp-whitened", "procrustes", "least-squares")
    k: int = 10
    n_queries: int | None = 300
    head: str = "logistic"
    test_fraction: float = 0.2
    test_ids: tuple[str, ...] = ()
    settings: MethodSettings = MethodSettings()
    random_state: int = 0

    def __post_init__(self) -> None:
        need_strings("test_ids", self.test_ids)
        if not isinstance(self.methods, tuple) or not self.methods or len(set(self.methods)) < len(self.methods):
            raise SpaceError(f"methods: expected at least one, none twice, got {self.methods!r}")
        for method in self.methods:
            need_one_of("methods", method, METHODS)
        need_one_of("head", self.head, HEADS)
        if not 0 < self.test_fraction < 1:
            raise SpaceError(f"test_fraction: expected a share between 0 and 1, got {self.test_fraction!r}")
        need_whole(self, random_state=0)
        for name in ("k", "n_queries"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpaceError(f"{name}: expected a whole number above 0, got {value!r}")


@dataclass(frozen=True, eq=False)
class TranslationResult:
    """Scores of every ordered pair, each space with itself among them.

    Attributes
    ----------
    names : s distinct names
    n, n_anchors, n_test : int
        Rows that are not anchors, anchors, and test rows of the heads (0 without labels).
    scores : method → metric → array (s, s, 2)
        Score and chance level by source and target; NaN if the widths differ and the method needs them equal.
    own : s accuracies
        Of each head on its own space, not stitched; empty without labels.
    """

    spec: TranslationSpec
    names: tuple[str, ...]
    n: int
    n_anchors: int
    n_test: int
    scores: Mapping[str, Mapping[str, np.ndarray]]
    own: tuple[float, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(metric for metric in METRICS if metric != "accuracy" or self.n_test)

    def title(self, metric: str) -> str:
        """The metric's title: ``"MRR, k = 10"``."""
        return METRICS[metric] + (f", k = {self.spec.k}" if metric in ("jaccard", "mrr") else "")

    def matrix(self, method: str, metric: str) -> np.ndarray:
        """Scores (s, s), rows sources, columns targets; NaN where there is none."""
        return self.scores[method][metric][..., 0]

    def chance(self, method: str, metric: str) -> float:
        """The mean chance level over the pairs of two spaces: of permuted rows; for accuracy, of the most frequent class."""
        return self._mean(method, metric, 1)

    def table(self) -> pd.DataFrame:
        """One row per pair, method and metric: source, target, method, metric, score, chance, n, anchors."""
        rows = []
        for (i, source), (j, target) in product(enumerate(self.names), repeat=2):
            for method, metric in product(self.spec.methods, self.metrics):
                score, chance = self.scores[method][metric][i, j]
                if not np.isnan(score):
                    n = self.n_test if metric == "accuracy" else self.n
                    rows.append((source, target, METHODS[method], self.title(metric), score, chance, n, self.n_anchors))
        return pd.DataFrame(rows, columns=["source", "target", "method", "metric", "score", "chance", "n", "anchors"])

    def wide(self, metric: str) -> pd.DataFrame:
        """As Table 1 of the paper: a row per pair, a column per method, and the mean chance level of the methods."""
        methods = self.spec.methods
        found = np.stack([self.scores[method][metric] for method in methods], axis=2).reshape(-1, len(methods), 2)
        names = pd.DataFrame(list(product(self.names, repeat=2)), columns=["source", "target"])
        scores = pd.DataFrame(found[..., 0], columns=[METHODS[method] for method in methods])
        chance = pd.DataFrame(found[..., 1]).mean(axis=1)
        return pd.concat([names, scores], axis=1).assign(chance=chance)

    def summary(self) -> pd.DataFrame:
        """A row per method (Table 2): the mean of each metric over the pairs of two spaces, and how many it can translate.

        Columns: method, the metrics' titles, pairs, of; with accuracy also not stitched (heads on their own spaces) and chance.
        """
        others = ~np.eye(len(self.names), dtype=bool)
        rows = []
        for method in self.spec.methods:
            row: dict[str, Any] = {"method": METHODS[method]}
            row |= {self.title(metric): self._mean(method, metric, 0) for metric in self.metrics}
            if self.n_test:
                row |= {"not stitched": float(np.mean(self.own)), "chance": self.chance(method, "accuracy")}
            able = ~np.isnan(self.matrix(method, "cosine")[others])
            rows.append(row | {"pairs": int(able.sum()), "of": able.size})
        return pd.DataFrame(rows)

    def _mean(self, method: str, metric: str, part: int) -> float:
        found = self.scores[method][metric][..., part][~np.eye(len(self.names), dtype=bool)]
        found = found[~np.isnan(found)]
        return float(found.mean()) if len(found) else float("nan")
