"""Similarity to a reference: as published over all rows, and over held-out rows beside."""

import numpy as np
import pytest

from relcore.encoders.encoder import Trained
from relcore.studies.networks import HELD_OUT, SIMILARITIES, _measured, _rows_and_anchors


class Epochs:
    """An encoder that gives these vectors after each epoch."""

    def __init__(self, *vectors):
        self.vectors = vectors

    def train(self, dataset, report, watch):
        for vectors in self.vectors:
            watch(vectors)
        accuracies = [0.5 + 0.1 * number for number in range(len(self.vectors))]
        return Trained({}, {"epoch": len(self.vectors), "accuracies": accuracies})


def told(*progress):
    pass


NODES = range(400)


def test_rows_that_are_no_anchors_are_compared_by_themselves(rng):
    first, noise = rng.normal(size=(400, 8)).astype(np.float32), rng.normal(size=(400, 8)).astype(np.float32)
    rows, anchors = _rows_and_anchors(NODES, "Cora")
    assert set(anchors) < set(rows)
    moved = first.copy()
    moved[anchors] += (
        3 * noise[anchors]
    )  # the anchors alone differ, so that every relative row does, the anchors' own most
    reference = _measured(Epochs(first), NODES, "Cora", told, None).arrays
    values = _measured(Epochs(first, moved), NODES, "Cora", told, reference).values
    for name in SIMILARITIES:
        assert values[f"{name}{HELD_OUT} by epoch"][0] == pytest.approx(1, abs=1e-5)
        relative = [X @ X[anchors].T / np.linalg.norm(X[anchors], axis=1) for X in (first, moved)]
        assert values[f"{name}{HELD_OUT}"] != pytest.approx(values[name], abs=1e-3)
        if name == "similarity":
            cosines = np.einsum("ij,ij->i", *relative) / np.prod(
                [np.linalg.norm(one, axis=1) for one in relative], axis=0
            )
            assert values[name] == pytest.approx(cosines.mean(), abs=1e-4)
            assert values[f"{name}{HELD_OUT}"] == pytest.approx(np.delete(cosines, anchors).mean(), abs=1e-4)
