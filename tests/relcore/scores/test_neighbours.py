"""Neighbour lists, Jaccard and MRR against brute force; chance levels against spaces really permuted."""

import numpy as np
import pytest

from relcore.base.rows import derived_unit_rows, mean_row, unit_rows
from relcore.engine.nearest import nearest_within
from relcore.scores import neighbours
from relcore.scores.comparison import score_differences
from relcore.scores.neighbours import CONVENTIONS, effects_of_rows, find_neighbours, jaccard, mrr
from relcore.spaces.split import Split


@pytest.fixture
def make_pair(rng):

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


def overlaps(first, second):
    return np.array([len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in zip(first, second, strict=True)])


def jaccard_by_hand(source, target, k, convention):
    return overlaps(*lists_by_hand(source, target, k, convention))


def mrr_by_hand(source, target, k, convention):
    def one_way(queries, base):
        ranks = 1 + np.argmax(ranked(queries, base) == np.arange(len(base))[:, None], axis=1)
        return np.where(ranks <= k, 1 / ranks, 0)

    there = one_way(source, target)
    if convention == "paper":
        return there
    return (there + one_way(target, source)) / 2


BY_HAND = {jaccard: jaccard_by_hand, mrr: mrr_by_hand}


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("k", [5, 199])
@pytest.mark.parametrize("metric", BY_HAND)
def test_scores_are_those_of_brute_force(make_pair, metric, k, convention):
    source, target = make_pair()
    score = metric(source, target, k, convention)
    assert score == pytest.approx(BY_HAND[metric](source, target, k, convention).mean(), abs=1e-9)
    facts = metric.__name__, convention, k, 200, 200, None
    assert (score.metric, score.convention, score.k, score.n, score.n_queries, score.interval) == facts


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_each_query_has_its_own_overlap_and_rank(make_pair, convention):
    source, target = make_pair(n=80)
    found = find_neighbours(source, target, 7, convention, queries=np.array([3, 11, 60]))
    np.testing.assert_allclose(found.overlap, jaccard_by_hand(source, target, 7, convention)[[3, 11, 60]])
    np.testing.assert_allclose(found.reciprocal_rank, mrr_by_hand(source, target, 7, convention)[[3, 11, 60]])
    first = None
    if convention == "paper":
        first = np.mean(found.reciprocal_rank == 1)
    assert found.mrr().top1 == first


def test_what_script_tries_first_is_right_for_rotated_space_or_says_why_not(make_pair):
    source, target = make_pair()
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(6, 6)))[0]
    within = jaccard(source, source @ rotation, convention="mutual")
    assert (within, within.note) == (pytest.approx(1), "")
    for score in (
        jaccard(source, source @ rotation),
        mrr(source, source @ rotation),
        mrr(source, target @ rotation, convention="mutual", n_queries=50),
    ):
        assert score < 0.1
        assert "have different axes or centres" in score.note
        assert "convention='mutual'" in score.note


@pytest.mark.parametrize("noise", [0, 0.6, 5, 1000])  # the last: unrelated
@pytest.mark.parametrize("width", [2, 60])
def test_no_note_about_axes_where_noise_alone_lowers_score(make_pair, width, noise):
    source, target = make_pair(d=width, noise=noise)
    assert jaccard(source, target, convention="paper").note == mrr(source, target).note == ""
    assert mrr(source, target, 5, "mutual").note == mrr(source[:2], target[:2], 2).note == ""


@pytest.mark.parametrize("n_copies", [3, 5], ids=["fewer than k + 1 others", "enough to crowd the row out"])
def test_duplicates_do_not_put_row_among_its_own_neighbours(n_copies):
    copies = np.repeat(np.eye(3, dtype=np.float32), n_copies, axis=0)
    found = find_neighbours(copies, copies, 2, "mutual")
    assert found.first_lists.shape == (3 * n_copies, 2)
    assert (found.first_lists != np.arange(3 * n_copies)[:, None]).all()
    assert (found.first_lists // n_copies == np.arange(3 * n_copies)[:, None] // n_copies).all()


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("metric", BY_HAND)
def test_the_null_is_that_of_spaces_really_permuted(make_pair, metric, convention, monkeypatch):
    monkeypatch.setattr(neighbours, "QUANTILE_DRAWS", 1500)
    source, target = make_pair(n=40)
    rng = np.random.default_rng(8)
    real = np.array(
        [BY_HAND[metric](source[rng.permutation(40)], target, 4, convention).mean() for _ in range(400)]
    )
    null = getattr(find_neighbours(source, target, 4, convention), metric.__name__)().null
    assert null.mean == pytest.approx(real.mean(), abs=4 * real.std() * np.sqrt(1 / 400 + 1 / 1500))
    # The 97.5 % point of 400 draws has a standard error of about .15 standard deviations. That of "mutual" ranks
    # may be 1.4 times as far from the mean.
    assert null.high - np.quantile(real, 0.975) < (0.45 if convention == "paper" else 1) * real.std()
    assert np.quantile(real, 0.975) - null.high < 0.45 * real.std()


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_chance_level_of_mrr_is_harmonic_number_over_rows_however_few_are_asked(make_pair, convention):
    # If only the queries were permuted, 1 of 100 would keep its place, and the chance level would be three
    # times as high.
    source, target = make_pair(n=4000, noise=0.1)
    found = find_neighbours(source, target, 10, convention, n_queries=100)
    assert found.mrr() > 0.7
    assert found.mrr().null.mean == pytest.approx(np.sum(1 / np.arange(1, 11)) / 4000)
    assert found.jaccard().null.mean < 0.006


def test_rows_that_are_equally_near_do_not_agree_for_their_order(rng):
    """Two unrelated spaces of 10 places each: with ties broken by the row's number the overlap was .2
    instead of .03.
    """
    inside = []
    for _ in range(20):
        source, target = (np.eye(10)[rng.integers(10, size=300)] for _ in range(2))
        score = jaccard(source, target, 5, "mutual")
        inside.append(score.null.low <= score <= score.null.high)
    assert sum(inside) >= 16  # of 95 %, less is seen once in 400 times
    assert jaccard(source, source, 5, "mutual") == 1


@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize("offset", [0, 300])
@pytest.mark.parametrize("centre", [True, False])
def test_they_are_those_of_a_search_in_a_copy(rng, device, offset, centre):
    X = (rng.normal(size=(9000, 6)) + offset).astype(np.float32)
    mean = mean_row(X) if centre else None
    queries = np.array([8999, 0, 4096, 17])
    expected = nearest_within(unit_rows(X, mean), queries, 7, "cpu")
    np.testing.assert_array_equal(nearest_within(derived_unit_rows(X, mean), queries, 7, device), expected)


D = 8
N_ANCHORS = 24


@pytest.mark.parametrize("convention", ["paper", "mutual"])
def test_effects_are_those_of_search_without_row(rng, convention):
    X = rng.normal(size=(40, 4)).astype(np.float32)
    Y = (X + 0.5 * rng.normal(size=X.shape)).astype(np.float32)
    queries = np.array([0, 7, 20, 39])
    found = find_neighbours(X, Y, 6, convention, queries=queries)
    effects = effects_of_rows(found).toarray()
    for row in range(40):
        others = np.delete(np.arange(40), row)
        kept = queries[queries != row]
        again = find_neighbours(X[others], Y[others], 6, convention, queries=np.searchsorted(others, kept))
        expected = again.overlap - found.overlap[queries != row]
        np.testing.assert_allclose(effects[queries != row, row], expected, atol=1e-12)
    assert (effects[np.arange(4), queries] == 0).all()


def population():
    """Rows of four classes in two spaces, and anchors that no draw of rows changes."""
    rng = np.random.default_rng(5)
    centres = 1.5 * rng.normal(size=(4, D))
    turn = np.linalg.qr(rng.normal(size=(D, D)))[0]

    def rows(rng, n):
        X = centres[rng.integers(0, 4, n)] + rng.normal(size=(n, D))
        return X, X @ turn + 0.6 * rng.normal(size=(n, D))

    return rows, rows(np.random.default_rng(6), N_ANCHORS)


def relative(vectors, anchors, which):
    return tuple(
        (unit(Z) @ unit(A[which]).T).astype(np.float32) for Z, A in zip(vectors, anchors, strict=True)
    )


@pytest.mark.parametrize("convention", ["paper", pytest.param("mutual", marks=pytest.mark.slow)])
def test_intervals_of_two_anchor_sets_contain_true_difference(convention):
    """60 draws of 200 rows; the truth is the mean over the draws. 57 are expected, standard error 1.7: 51 or fewer
    come once in 300 times. Intervals half as wide would contain it in 40."""
    (draw, anchors) = population()
    split = Split.held_out([f"r{row}" for row in range(200)])
    found = []
    for state in range(60):
        vectors = draw(np.random.default_rng([7, state]), 200)
        sets = (relative(vectors, anchors, which) for which in (np.arange(8), np.arange(8, N_ANCHORS)))
        found.append(score_differences(*sets, split, k=10, convention=convention))
    for metric in found[0]:
        changes = [one[metric] for one in found]
        truth = np.mean([one.value for one in changes])
        assert sum(one.low <= truth <= one.high for one in changes) > 51, metric
