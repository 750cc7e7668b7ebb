"""Jaccard and MRR against neighbour lists found one by one, and their nulls against spaces that were
really permuted.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.represent.similarity import unit_rows
from relcore.scores.neighbours import CONVENTIONS, find_neighbours, jaccard, jaccard_rows, mrr
from relcore.scores.search import _nearest_torch, nearest


@pytest.fixture
def make_pair(rng):
    """Two noisy views of one space."""

    def make(n=200, d=6, noise=0.6):
        X = rng.normal(size=(n, d))
        return X.astype(np.float32), (X + noise * rng.normal(size=(n, d))).astype(np.float32)

    return make


def unit(X):
    X = X.astype(np.float64)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def ranked(queries, base):
    """All rows of the base, nearest to each query first, by brute force in float64."""
    return np.argsort(-unit(queries) @ unit(base).T, axis=1, kind="stable")


def lists_by_hand(source, target, k, convention):
    if convention == "paper":
        return ranked(target, target)[:, :k], ranked(source, target)[:, :k]
    return tuple(
        np.array([[row for row in ranks if row != itself][:k] for itself, ranks in enumerate(ranked(X, X))])
        for X in (source, target)
    )


def jaccard_by_hand(source, target, k, convention):
    own, other = lists_by_hand(source, target, k, convention)
    return np.array([len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in zip(own, other, strict=True)])


def mrr_by_hand(source, target, k, convention):
    def one_way(asking, base):
        ranks = 1 + np.array([list(row).index(itself) for itself, row in enumerate(ranked(asking, base))])
        return np.where(ranks <= k, 1 / ranks, 0)

    there = one_way(source, target)
    return there if convention == "paper" else (there + one_way(target, source)) / 2


BY_HAND = {jaccard: jaccard_by_hand, mrr: mrr_by_hand}


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("k", [1, 5, 199])
@pytest.mark.parametrize("metric", BY_HAND)
def test_scores_are_those_of_brute_force(make_pair, metric, k, convention):
    source, target = make_pair()
    score = metric(source, target, k, convention)
    assert score == pytest.approx(BY_HAND[metric](source, target, k, convention).mean(), abs=1e-9)
    assert (score.metric, score.convention, score.k, score.n, score.n_queries) == (
        metric.__name__,
        convention,
        k,
        200,
        200,
    )
    assert score.interval is None


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_each_query_has_its_own_overlap_and_rank(make_pair, convention):
    source, target = make_pair(n=80)
    found = find_neighbours(source, target, 7, convention, queries=np.array([3, 11, 60]))
    np.testing.assert_allclose(found.overlap, jaccard_by_hand(source, target, 7, convention)[[3, 11, 60]])
    np.testing.assert_allclose(found.reciprocal_rank, mrr_by_hand(source, target, 7, convention)[[3, 11, 60]])


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_order_of_the_queries_is_kept_even_where_all_are_asked(make_pair, convention):
    source, target = make_pair(n=40)
    order = np.random.default_rng(1).permutation(40)
    found = find_neighbours(source, target, 5, convention, queries=order)
    np.testing.assert_allclose(found.overlap, jaccard_by_hand(source, target, 5, convention)[order])


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("metric", BY_HAND)
def test_a_space_against_itself_is_one(make_pair, metric, convention):
    source, _ = make_pair()
    assert metric(source, source, 10, convention) == 1
    assert metric(source, 3 * source, 10, convention) == 1


def test_spaces_without_a_common_neighbour_score_zero():
    angles = np.deg2rad([0, 1, 90, 91])
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert jaccard(circle, circle[[0, 2, 1, 3]], 1, "mutual") == 0  # the pairs 01, 23 become 02, 13
    assert mrr(circle, -circle, 1, "paper") == 0


def test_one_known_case_by_hand():
    source = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32)
    target = np.array([[1, 0.1], [1, 1.2], [0, 1]], dtype=np.float32)
    # From source to target: row 0 finds itself first, row 1 finds 2 then itself, row 2 finds 1, 0, itself.
    assert mrr(source, target, 3) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert mrr(source, target, 2) == pytest.approx((1 + 1 / 2 + 0) / 3)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_rotating_one_space_changes_mutual_overlap_nowhere_and_the_papers_everywhere(make_pair, convention):
    source, target = make_pair()
    turned = (target @ np.linalg.qr(np.random.default_rng(3).normal(size=(6, 6)))[0]).astype(np.float32)
    same = jaccard(source, turned, 10, convention) == pytest.approx(
        jaccard(source, target, 10, convention), abs=1e-6
    )
    assert same is (convention == "mutual")


def test_mutual_overlap_may_compare_spaces_of_different_widths(make_pair):
    source, target = make_pair()
    wide = np.concatenate([target, np.zeros((200, 3), np.float32)], axis=1)
    assert jaccard(source, wide, 10, "mutual") == jaccard(source, target, 10, "mutual")


@pytest.mark.parametrize(
    "n_copies", [3, 5], ids=["fewer than k + 1 others", "so many that they crowd the row out"]
)
def test_duplicates_do_not_put_a_row_among_its_own_neighbours(n_copies):
    copies = np.repeat(np.eye(3, dtype=np.float32), n_copies, axis=0)
    found = find_neighbours(copies, copies, 2, "mutual")
    assert found.own.shape == (3 * n_copies, 2)
    assert (found.own != np.arange(3 * n_copies)[:, None]).all()
    assert (found.own // n_copies == np.arange(3 * n_copies)[:, None] // n_copies).all()


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("metric", ["jaccard", "mrr"])
def test_the_interval_of_a_sample_holds_the_score_of_all_rows(make_pair, metric, convention):
    source, target = make_pair(n=300)
    whole = getattr(find_neighbours(source, target, 10, convention), metric)(n_permutations=2)
    held, widths = 0, []
    for random_state in range(60):
        found = find_neighbours(source, target, 10, convention, n_queries=75, random_state=random_state)
        score = getattr(found, metric)(n_permutations=2)
        assert (score.n, score.n_queries) == (300, 75)
        held += score.interval[0] <= whole <= score.interval[1]
        widths.append(score.interval[1] - score.interval[0])
    assert held >= 50  # 57 expected, with a deviation of 1.7
    assert max(widths) < 0.21


def test_a_sample_is_repeatable_and_asking_for_all_rows_is_no_sample(make_pair):
    source, target = make_pair()
    first, again, other = (
        find_neighbours(source, target, n_queries=50, random_state=state).queries for state in (1, 1, 2)
    )
    assert first.tolist() == again.tolist() == sorted(set(first))
    assert first.tolist() != other.tolist()
    assert find_neighbours(source, target, n_queries=500).jaccard().interval is None


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("metric", BY_HAND)
def test_the_null_is_that_of_spaces_really_permuted(make_pair, metric, convention):
    source, target = make_pair(n=40)
    rng = np.random.default_rng(8)
    real = np.array(
        [BY_HAND[metric](source[rng.permutation(40)], target, 4, convention).mean() for _ in range(400)]
    )
    null = getattr(find_neighbours(source, target, 4, convention), metric.__name__)(n_permutations=1500).null
    assert null.mean == pytest.approx(real.mean(), abs=4 * real.std() * np.sqrt(1 / 400 + 1 / 1500))
    # 400 draws know their 97.5 % point to about .15 deviations; that of "mutual" ranks may lie 1.4 times as
    # far out.
    assert null.high - np.quantile(real, 0.975) < (0.45 if convention == "paper" else 1) * real.std()
    assert np.quantile(real, 0.975) - null.high < 0.45 * real.std()


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("metric", ["jaccard", "mrr"])
def test_the_null_of_a_sample_has_the_mean_of_the_whole(make_pair, metric, convention):
    source, target = make_pair(n=400)
    whole, sampled = (
        getattr(find_neighbours(source, target, 10, convention, n_queries=n_queries), metric)(
            n_permutations=200
        ).null
        for n_queries in (None, 120)
    )
    assert sampled.mean == pytest.approx(whole.mean, abs=0.002)
    assert sampled.high - sampled.low > whole.high - whole.low


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_chance_level_of_mrr_is_the_harmonic_number_over_the_rows_however_few_are_asked(
    make_pair, convention
):
    # Permuted among the queries alone, 1 of 100 would stay where it is, and the chance level would be three
    # times as high.
    source, target = make_pair(n=4000, noise=0.1)
    found = find_neighbours(source, target, 10, convention, n_queries=100)
    assert found.mrr() > 0.7
    assert found.mrr().null.mean == pytest.approx(np.sum(1 / np.arange(1, 11)) / 4000)
    assert found.jaccard().null.mean < 0.006


def test_without_permutations_there_is_no_null(make_pair):
    assert find_neighbours(*make_pair()).jaccard(n_permutations=0).null is None


def test_rows_that_are_equally_near_do_not_agree_for_their_order(rng):
    """Two unrelated spaces of 10 places each: with ties broken by the row's number the overlap was .2
    instead of .03.
    """
    source, target = (np.eye(10)[rng.integers(10, size=300)] for _ in range(2))
    score = jaccard(source, target, 5, "mutual")
    assert score.null.low <= score <= score.null.high
    assert jaccard(source, source, 5, "mutual") == 1


@pytest.mark.parametrize("n_queries", [7, 4500])
def test_torch_finds_what_faiss_finds(rng, n_queries):
    base, queries = unit_rows(rng.normal(size=(900, 12))), unit_rows(rng.normal(size=(n_queries, 12)))
    by_faiss = nearest(queries, base, 9, device="cpu")
    np.testing.assert_array_equal(_nearest_torch(queries, base, 9, "cpu"), by_faiss)
    np.testing.assert_array_equal(by_faiss[:50], ranked(queries[:50], base)[:, :9])
    assert by_faiss.dtype == np.int64


@pytest.mark.gpu
def test_the_gpu_finds_what_the_cpu_finds(make_pair):
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    source, target = make_pair(n=5000, d=32)
    scores = [find_neighbours(source, target, device=device).jaccard() for device in ("cuda", "cpu")]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def test_nearest_refuses_more_neighbours_than_rows():
    with pytest.raises(
        SpaceError, match="k: expected at most 3, the rows there are, got 4; choose fewer neighbours"
    ):
        nearest(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32), 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 6}, "k: expected 1 … 5 for 5 rows, got 6; choose fewer neighbours or more rows"),
        ({"k": 5, "convention": "mutual"}, "k: expected 1 … 4 for 5 rows, got 5"),
        ({"k": 0}, "k: expected 1 … 5 for 5 rows, got 0"),
        ({"convention": "papers"}, "convention: expected one of paper, mutual, got 'papers'"),
        ({"target": np.eye(4)}, r"row-aligned spaces, got 5 and 4 rows; pair them with match\(\)"),
        ({"target": np.ones((5, 2))}, "expected spaces of one width, got 5 and 2; .* convention='mutual'"),
    ],
)
def test_wrong_requests_are_refused(arguments, message):
    with pytest.raises(SpaceError, match=message):
        find_neighbours(**({"source": np.eye(5), "target": np.eye(5), "k": 2} | arguments))


def test_mrr_across_widths_is_refused_under_either_convention():
    for convention in CONVENTIONS:
        with pytest.raises(SpaceError, match="expected spaces of one width, got 5 and 2"):
            mrr(np.eye(5), np.ones((5, 2)), 2, convention)


def test_a_search_leaves_other_searches_of_the_process_as_they_were(rng):
    faiss = pytest.importorskip("faiss")
    names = ("distance_compute_blas_threshold", "distance_compute_blas_query_bs")
    before = [getattr(faiss.cvar, name) for name in names]
    nearest(
        rng.normal(size=(5, 3)).astype(np.float32),
        rng.normal(size=(9, 3)).astype(np.float32),
        2,
        device="cpu",
    )
    assert before[0] != 20  # else this test could not fail
    assert before[1] != 1024
    assert [getattr(faiss.cvar, name) for name in names] == before


def renamed_as_a_whole(found, rng):
    """The permuted overlap of "mutual" with a name for every row, as its definition says."""
    order = rng.permutation(len(found.queries))
    rest = np.setdiff1d(np.arange(found.n), found.queries)
    renamed = np.empty(found.n, dtype=np.int64)
    renamed[found.queries[order]] = found.queries
    renamed[rng.permutation(rest)] = rest
    return jaccard_rows(found.own, renamed[found.other[order]]).mean()


def test_only_the_rows_in_the_lists_are_renamed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    every = find_neighbours(X, X + rng.normal(size=X.shape), 10, "mutual")
    for state in range(3):
        both = (
            one(np.random.default_rng(state))
            for one in (every._permuted_overlap, partial(renamed_as_a_whole, every))
        )
        assert next(both) == next(both)
    some = replace(
        every, queries=every.queries[5::4][::-1], own=every.own[5::4][::-1], other=every.other[5::4][::-1]
    )
    ours, theirs = (
        np.array([draw(rng) for _ in range(2000)])
        for draw in (some._permuted_overlap, partial(renamed_as_a_whole, some))
    )
    error = np.hypot(ours.std(), theirs.std()) / np.sqrt(2000)
    assert abs(ours.mean() - theirs.mean()) < 4 * error
    assert ours.std() == pytest.approx(theirs.std(), rel=0.1)  # the standard error of either is 1.6 %
