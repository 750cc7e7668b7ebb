"""Splits: disjoint parts, drawn by the ids alone."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.spaces.split import Split, row_keys

IDS = np.array([f"row {number}" for number in range(2000)], dtype=object)


def parts(split):
    return [set(split.ids[rows]) for rows in (split.anchors, split.train, split.test)]


def test_the_parts_are_disjoint_and_together_all_rows():
    anchors, train, test = parts(Split.draw(IDS, anchors=np.arange(300)))
    assert not anchors & train
    assert not anchors & test
    assert not train & test
    assert anchors | train | test == set(IDS)


def test_what_is_known_is_all_but_the_test_rows():
    split = Split.draw(IDS, anchors=np.arange(300))
    assert set(split.ids[split.known]) == set(IDS) - parts(split)[2]


def test_a_row_more_moves_no_other_row():
    shuffled = np.random.default_rng(0).permutation(np.r_[IDS, np.array(["one more"], dtype=object)])
    before, after = Split.draw(IDS), Split.draw(shuffled)
    assert parts(after)[2] - {"one more"} == parts(before)[2]


def test_partly_shared_ids_are_tested_on_in_both():
    first, second = parts(Split.draw(IDS[:1500])), parts(Split.draw(IDS[700:]))
    assert not first[1] & second[2]
    assert not first[2] & second[1]


def test_the_share_is_met_on_average():
    sizes = [len(Split.draw(IDS, test_fraction=0.3, random_state=state).test) for state in range(20)]
    # Binomial: standard error of the mean of 20 draws is sqrt(2000 × .3 × .7 / 20) = 4.6
    assert abs(np.mean(sizes) - 600) < 4 * 4.6


def test_streams_and_random_states_are_unrelated():
    # The correlation of unrelated uniform numbers has the standard error 1 / sqrt(2000) = .022.
    keys = [row_keys(IDS, "test"), row_keys(IDS, "queries"), row_keys(IDS, "test", 1)]
    assert np.abs(np.corrcoef(keys) - np.eye(3)).max() < 5 * 0.022


def test_keys_are_uniform():
    from scipy.stats import kstest

    assert kstest(row_keys(IDS, "test"), "uniform").pvalue > 1e-3


def test_queries_are_test_rows_and_one_anchor_more_replaces_one():
    before = Split.held_out(IDS, np.arange(300)).queries(100)
    after = Split.held_out(IDS, np.r_[np.arange(300), before[0]]).queries(100)
    assert before[0] not in after
    assert len(set(before) & set(after)) == 99
    assert before.min() >= 300


def test_queries_are_all_test_rows_where_none_are_left_out():
    split = Split.held_out(IDS, np.arange(300))
    np.testing.assert_array_equal(split.queries(), np.arange(300, 2000))
    np.testing.assert_array_equal(split.queries(5000), np.arange(300, 2000))


def test_given_test_ids_less_the_anchors():
    split = Split.draw(IDS, anchors=np.array([0, 1]), test_ids=[*IDS[:10], "unknown"])
    np.testing.assert_array_equal(split.test, np.arange(2, 10))


def test_a_class_keeps_a_training_row():
    labels = np.where(np.arange(2000) < 1995, "many", "few")
    for state in range(50):
        split = Split.draw(IDS, test_fraction=0.9, labels=labels, random_state=state)
        assert set(labels[split.train]) == {"many", "few"}


def test_few_rows_leave_one_to_test_on():
    for state in range(50):
        assert len(Split.draw(IDS[:3], random_state=state).test)


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_a_share_must_be_one(share):
    with pytest.raises(SpaceError, match="test_fraction: expected a share between 0 and 1"):
        Split.draw(IDS, test_fraction=share)


def test_no_row_left_is_an_error():
    with pytest.raises(SpaceError, match="all 5 rows are anchors"):
        Split.held_out(IDS[:5], np.arange(5))


def test_overlapping_parts_are_an_error():
    with pytest.raises(SpaceError, match="expected each row in one part, got 1 in two, first 'row 1'"):
        Split(IDS, np.array([0, 1]), np.array([1, 2]), np.array([3]))
    with pytest.raises(SpaceError, match="expected each row in one part"):
        Split.held_out(IDS, np.array([4, 4]))


def test_unknown_test_ids_are_an_error():
    with pytest.raises(SpaceError, match="none of the 2 test ids"):
        Split.draw(IDS, test_ids=["a", "b"])


@pytest.mark.parametrize("writeable", [True, False])
def test_queries_follow_the_ids_and_the_random_state_whatever_was_asked_before(writeable):
    given = IDS[:400].copy()
    given.flags.writeable = writeable
    for random_state in (0, 1, 0):
        for anchors in (np.arange(5), np.arange(300)):
            split = Split.held_out(given, anchors, random_state)
            keys = row_keys(given[split.test], "queries", random_state)
            assert split.queries(20).tolist() == np.sort(split.test[np.argsort(keys)[:20]]).tolist()
    if writeable:
        before = split.queries(20)
        given[:] = given[::-1].copy()
        keys = row_keys(given[split.test], "queries", 0)
        assert split.queries(20).tolist() == np.sort(split.test[np.argsort(keys)[:20]]).tolist()
        assert split.queries(20).tolist() != before.tolist()
