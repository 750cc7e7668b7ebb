"""TranslationResult: scores of every ordered pair of spaces by each method, as Tables 1 and 2 print them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.names import HEADS
from relcore.names import METHODS as ALL_METHODS
from relcore.spaces import SpaceError, need_one_of, need_strings
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
        Neighbours looked at, and the number of queries, drawn at random from the rows that are no anchors; None takes all.
    head : str
        Of `heads.HEADS`, trained on the target's rows where there are labels.
    test_fraction : float
        Share of the rows that the head is tested on, drawn by their ids, no anchors; it is trained on all others.
    test_ids : tuple of str
        Rows to ask about instead, such as those that no encoder was trained on; anchors among them are left out.
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
        for name in ("k", "n_queries"):
            value = getattr(self, name)
            if not (type(value) is int and value > 0) and not (name == "n_queries" and value is None):
                raise SpaceError(f"{name}: expected a whole number above 0, got {value!r}")

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> TranslationSpec:
        """Back from ``dataclasses.asdict``; unknown or misplaced settings are a SpaceError."""
        try:
            settings = MethodSettings(**record.get("settings", {}))
            plain = {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
            return cls(**{**plain, "settings": settings})
        except (TypeError, AttributeError) as error:
            raise SpaceError(f"translation: unknown or misplaced setting ({error})") from error


@dataclass(frozen=True)
class TranslationResult:
    """Scores of every ordered pair, each space with itself among them.

    Attributes
    ----------
    names : s distinct names
    n, n_anchors, n_test : int
        Rows that are no anchors, anchors, and rows that the heads were asked about (0 without labels).
    scores : (source, target, method, metric) → (score, chance)
        Numbers of the spaces; absent where the widths differ and the method needs them equal.
    own : s accuracies
        Of each head on its own space, not stitched; empty without labels.
    """

    spec: TranslationSpec
    names: tuple[str, ...]
    n: int
    n_anchors: int
    n_test: int
    scores: Mapping[tuple[int, int, str, str], tuple[float, float]]
    own: tuple[float, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(metric for metric in METRICS if metric != "accuracy" or self.n_test)

    def title(self, metric: str) -> str:
        """The metric as people write it: ``"MRR, k = 10"``."""
        return METRICS[metric] + (f", k = {self.spec.k}" if metric in ("jaccard", "mrr") else "")

    def matrix(self, method: str, metric: str) -> np.ndarray:
        """Scores (s, s), rows sources, columns targets; NaN where there is none."""
        every = range(len(self.names))
        absent = (np.nan, np.nan)
        return np.array([[self.scores.get((i, j, method, metric), absent)[0] for j in every] for i in every])

    def chance(self, method: str, metric: str) -> float:
        """Mean over the pairs of two spaces of what permuted rows give; of accuracy: of the most frequent class always."""
        return self._mean(method, metric, 1)

    def table(self) -> pd.DataFrame:
        """One row a pair, method and metric: source, target, method, metric, score, chance, n, anchors."""
        rows = []
        for (i, j, method, metric), (score, chance) in self.scores.items():
            counts = self.n_test if metric == "accuracy" else self.n
            names = self.names[i], self.names[j], METHODS[method], self.title(metric)
            rows.append((*names, score, chance, counts, self.n_anchors))
        return pd.DataFrame(rows, columns=["source", "target", "method", "metric", "score", "chance", "n", "anchors"])

    def wide(self, metric: str) -> pd.DataFrame:
        """As the paper prints it (Table 1): a row a pair, a column a method, chance last, its mean over the methods."""
        rows = []
        for i, source in enumerate(self.names):
            for j, target in enumerate(self.names):
                found = [self.scores.get((i, j, method, metric), (np.nan, np.nan)) for method in self.spec.methods]
                chances = [chance for _, chance in found if not np.isnan(chance)]
                scores = [score for score, _ in found]
                rows.append((source, target, *scores, float(np.mean(chances)) if chances else np.nan))
        return pd.DataFrame(rows, columns=["source", "target", *(METHODS[method] for method in self.spec.methods), "chance"])

    def summary(self) -> pd.DataFrame:
        """A row a method (Table 2): the mean of each metric over the pairs of two spaces, and how many it can translate.

        Columns: method, the metrics' titles, pairs, of. Of accuracy
        two more: not stitched (each head on its own space), and chance.
        """
        n = len(self.names)
        rows = []
        for method in self.spec.methods:
            row: dict[str, Any] = {"method": METHODS[method]}
            row |= {self.title(metric): self._mean(method, metric, 0) for metric in self.metrics}
            if self.n_test:
                row |= {"not stitched": float(np.mean(self.own)), "chance": self.chance(method, "accuracy")}
            pairs = sum((i, j, method, "cosine") in self.scores for i in range(n) for j in range(n) if i != j)
            rows.append(row | {"pairs": pairs, "of": n * (n - 1)})
        return pd.DataFrame(rows)

    def _mean(self, method: str, metric: str, part: int) -> float:
        n = len(self.names)
        found = [self.scores.get((i, j, method, metric)) for i in range(n) for j in range(n) if i != j]
        found = [pair[part] for pair in found if pair is not None]
        return float(np.mean(found)) if found else float("nan")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, as a store keeps it."""
        scores = [[*key, *pair] for key, pair in self.scores.items()]
        return {**asdict(self), "scores": scores}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> TranslationResult:
        """Back from `to_json`."""
        scores = {tuple(row[:4]): (row[4], row[5]) for row in record["scores"]}
        names, own = tuple(record["names"]), tuple(record["own"])
        return cls(
            **{**record, "spec": TranslationSpec.from_json(record["spec"]), "names": names, "scores": scores, "own": own}
        )
