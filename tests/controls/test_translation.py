"""Translation between unrelated spaces: nothing beats its chance level."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from relcore.invert.inversion import TranslationSpec, translate_all
from relcore.spaces.space import LatentSpace

METHODS = ("irp-pruned", "irp-ridge", "irp-whitened", "procrustes", "least-squares")
STATES = range(8)
N, D, K = 240, 60, 80


def unrelated(state, labels):
    rng = np.random.default_rng([state, 11])
    ids = [f"r{row}" for row in range(N)]
    return [LatentSpace(rng.normal(size=(N, D)), ids, name=name, labels=labels) for name in "ab"], ids[:K]


def random_labels(state, n_classes=2):
    return np.random.default_rng([state, 12]).permutation(np.arange(N) % n_classes).astype(str)


def test_translated_rows_are_as_near_as_chance():
    # The deviation from the chance level has mean 0 over draws; its own spread over 8 draws gives the
    # standard error. Student's t with 7 degrees of freedom exceeds 5.4 with probability .001.
    found = {}
    for state in STATES:
        spaces, anchors = unrelated(state, random_labels(state))
        result = translate_all(
            spaces, anchors, TranslationSpec(METHODS, k=5, n_queries=None, random_state=state)
        )
        assert (result.n, result.n_anchors) == (N - K, K)
        for method, metric in product(METHODS, ("cosine", "jaccard", "mrr")):
            others = result.scores[method][metric][~np.eye(len(result.names), dtype=bool)]
            found.setdefault((method, metric), {}).setdefault(state, []).extend(others[:, 0] - others[:, 1])
    for name, by_state in found.items():
        values = np.array([np.mean(one) for one in by_state.values()])
        assert abs(values.mean()) < 5.4 * values.std(ddof=1) / np.sqrt(len(values)), (name, values)


def test_heads_read_translated_rows_of_random_labels_as_chance_would():
    # p = 1/2; the two directions share their rows' labels, so one of them counts.
    right, asked = dict.fromkeys(METHODS, 0.0), 0
    for state in STATES:
        spaces, anchors = unrelated(state, random_labels(state))
        result = translate_all(spaces, anchors, TranslationSpec(METHODS, random_state=state))
        asked += result.n_test
        for method in METHODS:
            right[method] += result.matrix(method, "accuracy")[[0, 1], [1, 0]].mean() * result.n_test
    for method in METHODS:
        assert right[method] / asked == pytest.approx(0.5, abs=3.5 * np.sqrt(0.25 / asked)), method
