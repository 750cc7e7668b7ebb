"""Similarity to a reference: the mean cosine between relative rows of held-out pictures."""

import numpy as np
import pytest

from relcore.encoders.encoder import Trained
from relcore.studies.similarity_performance import SIMILARITIES, _measure, _rows_and_anchors


class Epochs:
    """An encoder that gives these vectors after each epoch."""

    def __init__(self, *vectors):
        self.vectors = vectors

    def train(self, dataset, report, watch):
        for vectors in self.vectors:
            watch(vectors)
        accuracies = [0.5 + 0.1 * number for number in range(len(self.vectors))]
        facts = {"epoch": len(self.vectors), "accuracies": accuracies, "test_accuracies": accuracies}
        return Trained({}, facts)


def test_relative_rows_of_the_test_rows_are_compared_after_every_epoch(rng):
    first = rng.normal(size=(400, 8)).astype(np.float32)
    noise = rng.normal(size=(400, 8)).astype(np.float32)
    rows, anchors = _rows_and_anchors(400)
    assert not set(anchors) & set(rows)
    moved = first + noise
    reference = _measure(Epochs(first), range(400), lambda *_: None, None).arrays
    values = _measure(Epochs(first, moved), range(400), lambda *_: None, reference).values
    for name in SIMILARITIES:
        spaces = [X - X.mean(axis=0) if name != "similarity" else X for X in (first, moved)]
        units = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in spaces]
        relative = [X[rows] @ X[anchors].T for X in units]
        cosines = np.vecdot(*relative) / np.prod([np.linalg.norm(one, axis=1) for one in relative], axis=0)
        assert values[f"{name} by epoch"] == pytest.approx([1, cosines.mean()], abs=1e-4)
        assert values[name] == pytest.approx(cosines.mean(), abs=1e-5)
