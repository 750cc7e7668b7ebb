"""A head of one space on the rows of another that shares no row with it."""

from __future__ import annotations

import numpy as np
import pytest

from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.stitching import StitchSpec
from relcore.studies.across import _parts, head_across

SPEC = StitchSpec(methods=("absolute", "relative", "whitened", "procrustes"))


@pytest.fixture
def worlds(rng):
    """Three classes of which each space has rows of its own, in turned coordinates, and 60 parallel
    anchors from outside.
    """
    centres, (turned, _) = 3 * rng.normal(size=(3, 10)), np.linalg.qr(rng.normal(size=(10, 10)))

    def space(prefix, basis, labels):
        vectors = (centres[labels] + rng.normal(size=(len(labels), 10))) @ basis
        return LatentSpace(
            vectors, [f"{prefix}{row}" for row in range(len(labels))], name=prefix, labels=[*map(str, labels)]
        )

    labels = [np.repeat([0, 1, 2], size) for size in (60, 40)]
    anchors = 2 * rng.normal(size=(60, 10))
    return space("home", np.eye(10), labels[0]), space("away", turned, labels[1]), anchors, anchors @ turned


def test_what_was_turned_is_understood_and_absolute_is_not(worlds):
    result = head_across(*worlds, SPEC)
    away = Split.draw(worlds[1].ids, labels=worlds[1].labels)
    assert result.n == len(away.test)
    assert result.chance == np.mean(away.test < 40)  # all are as frequent, and the first is predicted
    for method in ("relative", "whitened", "procrustes"):
        assert result.accuracy[method] > 0.9
        assert result.home[method] > 0.9
    assert result.accuracy["absolute"] < 0.7
    assert result.ceiling > 0.9


def test_of_rows_that_overlap_partly_none_is_trained_on_and_tested(worlds):
    home, _, anchors, _ = worlds
    part = home.take(np.arange(1, len(home)), name="part")
    for state in range(5):
        spec = StitchSpec(random_states=(state,))
        parts = _parts((home, part), (anchors, anchors), ("0", "1", "2"), spec)
        assert not set(home.ids[parts[0].train]) & set(part.ids[parts[1].test])
        assert len(parts[1].test) > 15


def test_anchors_that_are_rows_are_not_tested(worlds):
    home, away, _, _ = worlds
    rows = np.arange(0, 120, 2)
    head, other = _parts((home, away), (home.vectors[rows], away.vectors[rows]), ("0", "1", "2"), SPEC)
    assert not set(rows) & set(head.test)
    assert not set(rows) & set(other.test)
    assert set(rows) <= set(head.train)
