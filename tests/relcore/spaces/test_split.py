"""Splits: disjoint parts, drawn by the ids alone."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.spaces.split import Split, row_keys

IDS = np.array([f"row {number}" for number in range(2000)], dtype=object)


def parts(split):
    return [set(split.ids[rows]) for rows in (split.anchors, split.train, split.test)]


def test_a_row_more_moves_no_other_row():
    shuffled = np.random.default_rng(0).permutation(np.r_[IDS, np.array(["one more"], dtype=object)])
    before = Split.draw(IDS)
    after = Split.draw(shuffled)
    assert parts(after)[2] - {"one more"} == parts(before)[2]


def test_partly_shared_ids_are_tested_on_in_both():
    first = parts(Split.draw(IDS[:1500]))
    second = parts(Split.draw(IDS[700:]))
    assert not first[1] & second[2]
    assert not first[2] & second[1]


def test_streams_and_random_states_are_unrelated():
    # The correlation of unrelated uniform numbers has the standard error 1 / sqrt(2000) = .022.
    keys = [row_keys(IDS, "test"), row_keys(IDS, "queries"), row_keys(IDS, "test", 1)]
    assert np.abs(np.corrcoef(keys) - np.eye(3)).max() < 5 * 0.022


def test_queries_are_test_rows_and_one_anchor_more_replaces_one():
    before = Split.held_out(IDS, np.arange(300)).queries(100)
    after = Split.held_out(IDS, np.r_[np.arange(300), before[0]]).queries(100)
    assert before[0] not in after
    assert len(set(before) & set(after)) == 99
    assert before.min() >= 300


def test_a_class_keeps_a_training_row():
    labels = np.where(np.arange(2000) < 1995, "many", "few")
    for state in range(50):
        split = Split.draw(IDS, test_fraction=0.9, labels=labels, random_state=state)
        assert set(labels[split.train]) == {"many", "few"}


@pytest.mark.parametrize("share", [0, 1, float("nan")])
def test_a_share_must_be_one(share):
    with pytest.raises(SpaceError, match=r"test_fraction: expected a (share between 0 and 1|number), got"):
        Split.draw(IDS, test_fraction=share)


def test_overlapping_parts_are_an_error():
    with pytest.raises(SpaceError, match="expected each row in one part, got 1 in two, first 'row 1'"):
        Split(IDS, np.array([0, 1]), np.array([1, 2]), np.array([3]))
    with pytest.raises(SpaceError, match="anchors: expected each row once, got row 4 more than once"):
        Split.held_out(IDS, np.array([4, 4]))
