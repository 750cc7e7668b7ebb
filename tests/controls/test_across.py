"""A head of one space on another: labels at random are answered as chance would, whichever rows the two
have in common.
"""

from __future__ import annotations

import numpy as np
import pytest

from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec
from relcore.studies.across import head_across

METHODS = ("relative", "whitened", "procrustes", "least-squares")
STATES = range(8)


def spaces(rows, d, state, labels):
    """The same things through two encoders that are turns of one another, each with its own part of the
    rows.
    """
    rng = np.random.default_rng(state)
    n = len(labels)
    everything = rng.normal(size=(n, d))
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    ids, named = np.array([f"r{row}" for row in range(n)]), np.array(labels, dtype=object)
    found = []
    for name, part, basis in zip(("home", "away"), rows, (np.eye(d), turn), strict=True):
        found.append(LatentSpace(everything[part] @ basis, ids[part], name=name, labels=named[part]))
    anchors = rng.normal(size=(2 * d, d))
    return *found, anchors, anchors @ turn


def overlaps(labels):
    """All rows, one row of each class more in one space, and half of each space in common."""
    n, third = len(labels), len(labels) // 3
    firsts = np.unique(labels, return_index=True)[1]
    return {
        "all": (np.arange(n), np.arange(n)),
        "one more": (np.arange(n), np.delete(np.arange(n), firsts)),
        "half": (np.arange(2 * third), np.arange(third, n)),
    }


@pytest.mark.parametrize("shared", ["all", "one more", "half"])
def test_random_labels_are_answered_as_often_as_chance(shared):
    # d near n: a head learns its training rows by heart, so a test row that it was trained on would be
    # answered rightly. Answers that know nothing of the labels are right with p = 1/2 each; over 8 states of
    # about n/5 test rows the share has a standard error of sqrt(.25 / asked). Splits that depend on how many
    # rows a space has leak up to four fifths of the test rows: .71 and .64.
    n, right, asked = 240, dict.fromkeys(METHODS, 0.0), 0
    for state in STATES:
        labels = np.random.default_rng([state, 1]).permutation(np.arange(n) % 2).astype(str)
        result = head_across(
            *spaces(overlaps(labels)[shared], 200, state, labels), StitchSpec(METHODS, random_states=(state,))
        )
        asked += result.n
        for method in METHODS:
            right[method] += result.accuracy[method] * result.n
    error = np.sqrt(0.25 / asked)
    for method in METHODS:
        assert right[method] / asked == pytest.approx(0.5, abs=3.5 * error), method


@pytest.mark.parametrize("shared", ["all", "one more", "half"])
def test_a_rare_class_gains_nothing(shared):
    # One class of 5 %: answers that know nothing of the labels can at best be as good as always the other
    # class.
    n = 240
    for state in STATES:
        labels = np.where(np.random.default_rng([state, 2]).permutation(n) < 12, "rare", "usual")
        result = head_across(
            *spaces(overlaps(labels)[shared], 60, state, labels), StitchSpec(METHODS, random_states=(state,))
        )
        error = np.sqrt(0.05 * 0.95 / result.n)
        assert max(result.accuracy.values()) <= result.chance + 3.5 * error
        assert result.ceiling <= result.chance + 3.5 * error


def test_anchors_that_are_rows_of_both_spaces_give_nothing_away():
    # A third of the rows are anchors, paired, of unrelated spaces with the same random labels: least squares
    # reproduces its anchors, so heads would answer those rightly if they were asked.
    n, d, right, asked = 210, 40, dict.fromkeys(METHODS, 0.0), 0
    for state in STATES:
        rng = np.random.default_rng([state, 3])
        labels = rng.permutation(np.arange(n) % 2).astype(str)
        ids = [f"r{row}" for row in range(n)]
        home, away = (
            LatentSpace(rng.normal(size=(n, d)), ids, name=name, labels=labels) for name in ("home", "away")
        )
        spec = StitchSpec(METHODS, random_states=(state,))
        result = head_across(home, away, home.vectors[: n // 3], away.vectors[: n // 3], spec)
        asked += result.n
        for method in METHODS:
            right[method] += result.accuracy[method] * result.n
    for method in METHODS:
        assert right[method] / asked == pytest.approx(0.5, abs=3.5 * np.sqrt(0.25 / asked)), method
