"""Search an index of which some rows have vectors of another model. This needs NumPy, and mixed.npz beside
this file, which names these rows.

    hits = ranked(query, other_query, search)

The query is given by its vectors from both models, each (d,). search(vector, n) returns the n nearest rows of
the index by cosine as (id, cosine), best first:

    faiss    lambda vector, n: [
                 (ids[row], score) for score, row in zip(*(one[0] for one in index.search(vector[None], n)))
                 if row >= 0]
    LanceDB  lambda vector, n: [
                 (row["id"], 1 - row["_distance"])
                 for row in table.search(vector).distance_type("cosine").limit(n).to_list()]
    a list   ScoredList(ids, vectors)
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FILE = "mixed.npz"
_QUANTILE = 0.9
Search = Callable[[np.ndarray, int], Sequence[tuple[Any, float]]]


def ranked(
    query: Any, other_query: Any, search: Search, k: int = 10, n: int = 200, folder: Any = None
) -> list[tuple[Any, float]]:
    """The k best rows as (id, score). Rows of each model are found by that model's query, among its n nearest
    rows, and their cosines are put on one scale by `tail`. The folder of mixed.npz is that of this file."""
    need(min(k, n) >= 1, "k and n", "whole numbers from 1", f"{k} and {n}")
    rows = known(str(folder or Path(__file__).parent))
    found = []
    for vector, sample, is_other in ((query, rows["own"], False), (other_query, rows["other"], True)):
        x = unit(vector)
        need(x.shape == sample.shape[1:], "query", f"{sample.shape[1]} numbers", f"shape {x.shape}")
        hits = [hit for hit in search(x, n) if (str(hit[0]) in rows["ids"]) == is_other]
        scores = tail(np.array([score for _, score in hits], np.float32), sample @ x)
        found += [(one, float(score)) for (one, _), score in zip(hits, scores, strict=True)]
    return sorted(found, key=lambda hit: -hit[1])[:k]


def tail(cosines: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """Cosines (n,) of one query on the scale of its own highest ones: 0 at the 90 % quantile of its cosines
    (m,) to a sample of rows of that model, 1 where those above it are on average (Davison and Smith 1990)."""
    start = np.quantile(sample, _QUANTILE)
    above = sample[sample > start]
    excess = np.float32(1e-9)
    if len(above):
        excess = max(excess, (above - start).mean())
    return (cosines - start) / excess


@cache
def known(folder: str) -> dict[str, Any]:
    """The ids of the other model's rows, as texts, and a sample of unit rows (m, d) of each model."""
    with np.load(Path(folder) / FILE, allow_pickle=False) as file:
        return {"ids": set(file["ids"].tolist()), "own": file["own"], "other": file["other"]}


def need(is_right: Any, name: str, expected: str, got: str) -> None:
    if not is_right:
        raise ValueError(f"{name}: expected {expected}, got {got}")


def unit(x: Any) -> np.ndarray:
    """The vectors (…, d), scaled to length 1. A vector without a direction is refused."""
    x = np.asarray(x, np.float32)
    sizes = np.linalg.norm(x, axis=-1, keepdims=True)
    need(np.isfinite(sizes).all() and sizes.all(), "vectors", "finite numbers and a direction", "others")
    return x / sizes


class ScoredList:
    def __init__(self, ids: Sequence[Any], vectors: Any) -> None:
        self.ids = list(ids)
        self.vectors = unit(vectors)
        need(len(self.ids) == len(self.vectors), "ids", f"{len(self.vectors)}", f"{len(self.ids)}")

    def __call__(self, vector: np.ndarray, n: int) -> list[tuple[Any, float]]:
        scores = self.vectors @ vector
        order = np.argsort(-scores, kind="stable")[:n]
        return [(self.ids[row], float(scores[row])) for row in order]
