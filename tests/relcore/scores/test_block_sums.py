"""Sums of blocks do not depend on how the rows are cut, on their order, or on the process that added them."""

import numpy as np
import pytest

from relcore.engine.device import device_of
from relcore.engine.top_rows import TopRows
from relcore.represent.representations import REPRESENTATIONS
from relcore.scores.passes import AlignedPair, RowPair
from relcore.scores.roles import RowRoles, ScoreRequest
from relcore.scores.sums import PairBlock, Sums

N = 500
ANCHORS = np.arange(20, 60)
rng = np.random.default_rng(0)
HIDDEN = rng.normal(size=(N, 5))
SPACES = tuple(
    (HIDDEN @ rng.normal(size=(5, 16)) + 0.3 * rng.normal(size=(N, 16))).astype(np.float32) for _ in range(2)
)
RELATIVE = tuple(name for name in REPRESENTATIONS if name != "absolute")


@pytest.fixture(scope="module", params=["absolute", "held out"])
def plan(request):
    if request.param == "absolute":
        representations = ("absolute",)
        roles = RowRoles(N, queries=np.arange(0, N, 7))
    else:
        representations = RELATIVE
        roles = RowRoles(N, ANCHORS, np.arange(60, N, 7), ANCHORS)
    return RowPair(*SPACES).plan(ScoreRequest(representations, convention="mutual"), roles)


def summed(plan, blocks, device="cpu"):
    found = Sums(plan, device_of(device))
    for rows in blocks:
        found.add(PairBlock(tuple(X[rows] for X in SPACES), numbers=rows))
    return found


def scores(seen):
    found = {}
    for name in seen.plan.representations:
        pair = AlignedPair.passed(RowPair(*SPACES), name, seen)
        lists = pair.neighbours
        found[name] = [pair.linear_cka(), pair.mean_cosine(), lists.jaccard(), lists.mrr()]
    return found


def facts(found):
    every = [score for each in found.values() for score in each]
    return np.array([[score, score.null.mean, score.null.low, score.null.high] for score in every])


def test_cuts_order_and_type_of_rows_change_nothing(plan):
    whole = summed(plan, [np.arange(N)])
    turned = summed(plan, np.array_split(np.random.default_rng(1).permutation(N), 7))
    np.testing.assert_allclose(facts(scores(turned)), facts(scores(whole)), atol=1e-6)
    for name, top in whole.tops.items():
        np.testing.assert_array_equal(turned.tops[name].rows, top.rows)


def test_parts_of_several_processes_are_one_whole(plan):
    blocks = np.array_split(np.arange(N), 6)
    whole = summed(plan, blocks)
    carried = [
        Sums.from_arrays(plan, summed(plan, part).to_arrays())
        for part in (blocks[:2], blocks[2:5], blocks[5:])
    ]
    for part in (carried[0], carried[2]):
        carried[1].merge(part)
    np.testing.assert_allclose(facts(scores(carried[1])), facts(scores(whole)), atol=1e-7)


def test_what_is_carried_does_not_grow_with_rows(plan):
    few, many = (summed(plan, [np.arange(n)]).to_arrays() for n in (200, N))
    assert sum(map(np.size, few.values())) == sum(map(np.size, many.values()))


def top_of(scores, k, seed=None, size=64):
    top = TopRows(len(scores), k, seed)
    for start in range(0, scores.shape[1], size):
        block = scores[:, start : start + size]
        top.add(block, np.arange(start, start + block.shape[1]))
    return top


# ascending is the worst order: every row is nearer than all before it
@pytest.mark.parametrize("ascending", [False, True])
def test_nearest_rows_are_those_of_a_full_sort(ascending):
    given = np.random.default_rng(2).normal(size=(9, 3000)).astype(np.float32)
    if ascending:
        given = np.sort(given, axis=1)
    found = top_of(given, 10)
    np.testing.assert_array_equal(found.rows, np.argsort(-given, axis=1, kind="stable")[:, :10])
    np.testing.assert_array_equal(found.values, -np.sort(-given, axis=1)[:, :10])


def test_equal_scores_are_taken_in_row_order_or_at_random_by_seed():
    equal = np.zeros((2, 5000), dtype=np.float32)
    np.testing.assert_array_equal(top_of(equal, 4).rows, [[0, 1, 2, 3]] * 2)
    drawn = [top_of(equal, 10, seed, 1000).rows[0] for seed in range(100)]
    assert not np.intersect1d(drawn[0], drawn[1]).size
    # The mean of 1,000 uniform row numbers of 5,000 has the standard error 5,000 / √12 / √1,000 = 46.
    assert abs(np.mean(drawn) - 2499.5) < 4 * 46
