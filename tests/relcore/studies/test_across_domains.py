"""Across domains: heads read a rotated twin, not a plain copy."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.studies.heads import Part, cross_domain_matrices


@pytest.fixture
def make_part(rng, make_space):
    centers, anchors = 3 * rng.normal(size=(4, 10)), 2 * rng.normal(size=(40, 10))

    def make(domain, encoder="net", turn=None, labels=None):
        classes = rng.integers(4, size=200)
        X = centers[classes] + rng.normal(size=(200, 10))
        turn = np.eye(10) if turn is None else turn
        labels = [f"class {number}" for number in classes] if labels is None else labels
        space = make_space(X @ turn, name=f"{encoder} · {domain}", labels=labels)
        return Part(domain, encoder, space, np.arange(0, 200, 4), (anchors @ turn).astype(np.float32))

    return make


@pytest.fixture
def turn(rng):
    return np.linalg.qr(rng.normal(size=(10, 10)))[0]


def test_a_rotated_domain_is_understood_and_a_plain_copy_is_not(make_part, turn):
    parts = [
        make_part("plain"),
        make_part("turned", turn=turn),
        make_part("plain", "other", turn=turn @ turn),
    ]
    matrices = cross_domain_matrices(parts, ("procrustes", "relative", "absolute"), 40)
    for method in ("procrustes", "relative"):
        assert matrices[method].min() > 0.9
    absolute = matrices["absolute"]
    assert absolute.diagonal().min() > 0.9
    assert absolute[0, 1] < 0.8


def test_other_classes_are_refused(make_part):
    with pytest.raises(SpaceError, match=r"different classes .* can only predict labels that it was trained"):
        cross_domain_matrices(
            [make_part("plain"), make_part("other", labels=["a", "b"] * 100)], ("relative",)
        )
