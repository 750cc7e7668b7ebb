"""All pairs: each number is that of the function for the pair; what cannot be compared says why."""

import numpy as np
import pytest

from relcore.base import names
from relcore.compare.all_pairs import AllPairs, metrics_among_spaces
from relcore.represent.representations import ProjectionSpec, represent
from relcore.scores.cka import linear_cka, mean_cosine
from relcore.scores.comparison import AlignedPair, held_out
from relcore.scores.neighbours import jaccard
from relcore.spaces.matching import match

ANCHORS = tuple(f"r{row}" for row in range(0, 150, 10))
N = 150
D = 12
# Those of the literature have tests of their own: tests/relcore/scores/test_measures.py.
METRICS = tuple(name for name in metrics_among_spaces() if "spaces" in names.METRICS[name].of)


def similarity_matrix(spaces, metric="cka", anchors=(), projection=None, **settings):
    return AllPairs(metric, tuple(anchors), projection or ProjectionSpec(), **settings).run(spaces)


@pytest.fixture
def vectors(rng):
    return rng.normal(size=(N, D))


@pytest.fixture
def rotation(rng):
    return np.linalg.qr(rng.normal(size=(D, D)))[0]


@pytest.fixture
def spaces(rng, make_space, vectors, rotation):
    """A space, one noisy and rotated, one of another width, one unrelated; the second with its rows in
    another order.
    """
    order = rng.permutation(N)
    noisy = (vectors @ rotation + 0.4 * rng.normal(size=(N, D)))[order]
    wide = np.c_[vectors, 0.5 * rng.normal(size=(N, 5))]
    return [
        make_space(vectors, name="first"),
        make_space(noisy, [f"r{row}" for row in order], name="noisy"),
        make_space(wide, name="wide"),
        make_space(rng.normal(size=(N, D)), name="unrelated"),
    ]


def one_pair(metric, source, target, **settings):
    pair = match(source, target)
    if metric == "relative cosine":
        made = represent(pair, "relative", ANCHORS, settings["projection"])
        rows = AlignedPair.of(*made, held_out(pair, ANCHORS))
        return mean_cosine(rows.source, rows.target)
    rows = pair.source.vectors, pair.target.vectors
    if metric == "mutual knn":
        return jaccard(*rows, 7, "mutual", queries=held_out(pair).queries(settings["n_queries"]))
    return linear_cka(*rows, debiased=metric == "debiased cka")


@pytest.mark.parametrize("metric", METRICS)
def test_a_space_is_itself_and_its_rotated_copy(make_space, vectors, rotation, metric):
    copy = make_space(vectors @ rotation * 3, name="copy")
    found = similarity_matrix([make_space(vectors), copy], metric, ANCHORS)
    np.testing.assert_allclose(found.values, 1, atol=1e-5)
    assert found.scores[0][1].n == (N - len(ANCHORS) if metric == "relative cosine" else N)


@pytest.mark.parametrize("metric", METRICS)
def test_unrelated_spaces_are_as_alike_as_chance_has_it(spaces, metric):
    score = similarity_matrix([spaces[0], spaces[3]], metric, ANCHORS).scores[0][1]
    assert score.null.low <= score <= score.null.high
    alike = similarity_matrix(spaces[:2], metric, ANCHORS).scores[0][1]
    assert alike > alike.null.high


@pytest.mark.parametrize("metric", METRICS)
def test_each_number_is_that_of_function_for_pair(spaces, metric):
    settings = {"projection": ProjectionSpec("angular", center=False), "n_queries": 40}
    part = spaces[2].take(np.arange(40, N), "part")  # the others have more rows, so nothing can be kept
    if metric != "relative cosine":
        spaces = [*spaces, part]
    found = similarity_matrix(spaces, metric, ANCHORS, k=7, **settings)
    for i in range(len(spaces)):
        for j in range(i, len(spaces)):
            # In the order of the first space, as there: the sampled rows depend on it.
            pair = match(spaces[0], spaces[i]).target, match(spaces[0], spaces[j]).target
            expected = one_pair(metric, *pair, **settings)
            score = found.scores[i][j]
            numbers = [(float(one), one.null.low, one.null.high) for one in (score, expected)]
            assert numbers[0] == pytest.approx(numbers[1], abs=1e-6)
            assert (score.k, score.n, score.n_queries) == (expected.k, expected.n, expected.n_queries)
            assert found.scores[j][i] is score


def test_pairs_without_anchors_say_so_and_others_are_scored(spaces):
    without = spaces[2].take(np.setdiff1d(np.arange(N), [20]), "without")
    found = similarity_matrix([spaces[0], without, spaces[3]], "relative cosine", ANCHORS)
    assert found.scores[0][1] is found.scores[1][2] is None
    assert "'r20'" in found.reasons[0][1]
    assert found.scores[0][2].n == N - len(ANCHORS)
    assert found.reasons[0][2] == ""


def test_pairs_without_shared_ids_say_so(make_space, vectors, spaces):
    stranger = make_space(vectors, [f"q{row}" for row in range(N)], name="stranger")
    found = similarity_matrix([spaces[0], stranger, spaces[1]], "cka")
    assert found.reasons[0][1] == found.reasons[1][0]
    assert found.reasons[0][1].startswith("'first' and 'stranger' share no ids")
    assert np.isnan(found.values).sum() == 4
    assert found.values[1, 1] == pytest.approx(1)


@pytest.mark.parametrize("metric", ["debiased cka", "relative cosine"])
def test_best_of_many_pairs_is_held_against_best_by_chance(make_space, metric):
    """The best of 15 unrelated pairs is often above its own band, but seldom above that of the maximum."""
    above_own = above_best = 0
    for draw in range(20):
        rng = np.random.default_rng(draw)
        spaces = [make_space(rng.normal(size=(60, 3)), name=f"s{i}") for i in range(6)]
        found = similarity_matrix(spaces, metric, ANCHORS[:4], k=5)
        score = found.best[2]
        above_own += score > score.null.high
        above_best += score > found.best_chance.high
    assert above_own >= 3
    assert above_best <= 3  # 2.5 % of 20 is .5: more than 3 come once in 700 times
