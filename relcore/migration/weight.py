"""How much a bridged search counts beside the old model's, from pairs alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.evaluation import row_keys
from relcore.migration.choice import MOST_PAIRS, folds_of
from relcore.names import ADAPTERS
from relcore.similarity import unit_rows

# Of the new model, where the old one counts 1. Regression shrinks b where pairs are few, so 1 would be too little for "both".
# Chosen on Cranfield, where larger counts lose at 100 pairs and smaller ones at 1,000.
COUNTS = {"old": 0.0, "both": 1.5, "new": 3.0}


def fused_weight(
    adapter: str, new: np.ndarray, old: np.ndarray, ids: Sequence[str], truth: str, random_state: int = 0
) -> float:
    """The weight w of z_old + w · z_bridged that comes nearest to the search that the truth describes, 0 … 3.

    A bridged score is a noisy copy of the true new score. Over held-out rows (a query and a document of the same fold, by an
    adapter of the other folds) the true one is regressed on both scores that a search has: z_new ≈ a·z_old + b·z_bridged.
    The search wanted, z_old + c·z_new, is then best replaced by (1 + c·a)·z_old + c·b·z_bridged, so w = c·b / (1 + c·a). The
    new model alone (w = b / a) would leave out an old search that still helps where pairs are few, so c is at most 3; where the
    old one is the truth, it is 0.
    """
    count = COUNTS[truth]
    if not count:
        return 0.0
    kept = np.sort(np.argsort(row_keys(ids, "chosen on", random_state))[:MOST_PAIRS])
    new, old, ids = unit_rows(new[kept]), unit_rows(old[kept]), np.asarray(ids, dtype=object)[kept]
    folds = folds_of(ids, random_state)
    products, targets = np.zeros((2, 2)), np.zeros(2)
    for fold in np.unique(folds):
        held = folds == fold
        made = ADAPTERS[adapter].load()().fit(new[~held], old[~held])
        sides = [(old[held], old[held]), (made.transform(new[held]), made.corpus(old[held])), (new[held], new[held])]
        z_old, z_bridged, z_new = (_z_scores(queries, corpus) for queries, corpus in sides)
        seen = np.stack([z_old, z_bridged])
        products += seen @ seen.T
        targets += seen @ z_new
    a, b = np.linalg.lstsq(products, targets, rcond=None)[0]
    return float(np.clip(count * b / (1 + count * max(a, 0)), 0, count))


def _z_scores(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    """Scores of each query over all rows but its own one, standardised, in one array."""
    scores = queries @ corpus.T
    others = scores[~np.eye(len(scores), dtype=bool)].reshape(len(scores), -1).astype(np.float64)
    others -= others.mean(axis=1, keepdims=True)
    spread = others.std(axis=1, keepdims=True)
    return np.divide(others, spread, out=np.zeros_like(others), where=spread > 1e-9).ravel()
