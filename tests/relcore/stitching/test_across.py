"""A head of one space on the rows of another that shares no row with it."""

from __future__ import annotations

import numpy as np
import pytest

from relcore.spaces import LatentSpace, SpaceError
from relcore.stitching.across import head_across
from relcore.stitching.spec import StitchSpec

SPEC = StitchSpec(methods=("absolute", "relative", "whitened", "procrustes"))


@pytest.fixture
def worlds(rng):
    """Three classes of which each space has rows of its own, in turned coordinates, and 60 parallel anchors from outside."""
    centres, (turned, _) = 3 * rng.normal(size=(3, 10)), np.linalg.qr(rng.normal(size=(10, 10)))

    def space(prefix, basis, labels):
        vectors = (centres[labels] + rng.normal(size=(len(labels), 10))) @ basis
        return LatentSpace(vectors, [f"{prefix}{row}" for row in range(len(labels))], name=prefix, labels=[*map(str, labels)])

    labels = [np.repeat([0, 1, 2], size) for size in (60, 40)]
    anchors = 2 * rng.normal(size=(60, 10))
    return space("home", np.eye(10), labels[0]), space("away", turned, labels[1]), anchors, anchors @ turned


def test_what_was_turned_is_understood_and_absolute_is_not(worlds):
    result = head_across(*worlds, SPEC)
    assert result.n == 24
    assert (result.n_train, result.n_anchors) == (144, 60)
    assert result.chance == pytest.approx(1 / 3)
    for method in ("relative", "whitened", "procrustes"):
        assert result.accuracy[method] > 0.9
        assert result.home[method] > 0.9
    assert result.accuracy["absolute"] < 0.7
    assert result.ceiling > 0.9
    assert result.table()["method"].tolist() == ["absolute", "relative", "relative, whitened", "Procrustes"]


def test_rows_that_both_have_are_held_out_of_both(worlds):
    home = worlds[0]
    shuffled = home.take(np.random.default_rng(1).permutation(len(home)), name="again")
    result = head_across(home, shuffled, worlds[2], worlds[2], StitchSpec(methods=("absolute",)))
    assert result.accuracy["absolute"] == result.home["absolute"] == result.ceiling


def test_labels_anchors_and_classes_that_do_not_fit(worlds, make_space):
    home, away, first, second = worlds
    with pytest.raises(SpaceError, match="'made': expected labels, got none"):
        head_across(home, make_space(away.vectors), first, second)
    with pytest.raises(SpaceError, match="expected as many for both spaces, of 'away' 10 wide, got"):
        head_across(home, away, first, second[:5])
    strange = LatentSpace(away.vectors, away.ids, name="away", labels=["x", *away.labels[1:].tolist()[:-1], "y"])
    assert head_across(home, strange, first, second, SPEC).n < 24 + 1
    other = LatentSpace(away.vectors, away.ids, name="away", labels=["x"] * len(away))
    with pytest.raises(SpaceError, match=r"expected two classes or more that both spaces have.* 'home' has '0', '1', '2'"):
        head_across(home, other, first, second)
