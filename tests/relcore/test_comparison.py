"""Representations and scores of a pair whose answer is known: the second space is the first one, turned,
scaled and shifted.
"""

from dataclasses import astuple

import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore.base.errors import SpaceError
from relcore.base.names import SIMILARITIES
from relcore.catalog.catalog import put_space
from relcore.compare.exact import ExactScores
from relcore.compare.neighbours import centred_neighbours, neighbour_agreement, neighbours_of
from relcore.represent.projection import RelativeProjection
from relcore.runs.progress import Context
from relcore.runs.store import Store
from relcore.scores.cka import linear_cka, mean_cosine
from relcore.scores.comparison import (
    REPRESENTATIONS,
    ProjectionSpec,
    held_out,
    represent,
    sample_pair,
    score_differences,
    score_pair,
    score_table,
)
from relcore.scores.neighbours import jaccard, mrr
from relcore.spaces.space import match
from relcore.spaces.split import Split
from relcore.tasks.task import task_job

D = 6
TURN = ortho_group.rvs(D, random_state=2)
SPEC = ProjectionSpec()
KEYS = ("a" * 16, "b" * 16)


@pytest.fixture
def turned(rng, make_space):
    vectors = rng.normal(size=(150, D)) + 1
    counts = np.arange(150, 0, -1)
    return match(make_space(vectors, name="s", counts=counts), make_space(4 * vectors @ TURN - 3, name="t"))


@pytest.fixture
def anchors(turned):
    return tuple(turned.ids[:12])


@pytest.mark.parametrize("form", ["relative", "whitened"])
def test_relative_forms_of_a_turned_space_are_equal(turned, anchors, form):
    source, target = represent(turned, form, anchors, SPEC)
    assert source.shape == target.shape == (150, 12)
    np.testing.assert_allclose(source, target, atol=1e-5)


def test_procrustes_brings_a_turned_space_back(turned, anchors):
    source, target = represent(turned, "procrustes", anchors, SPEC)
    np.testing.assert_allclose(source, target, atol=1e-4)
    np.testing.assert_allclose(target.mean(axis=0), 0, atol=1e-4)


def test_absolute_is_what_there_was(turned):
    source, target = represent(turned, "absolute", (), SPEC)
    assert source is turned.source.vectors
    assert target is turned.target.vectors


@pytest.mark.parametrize("form", REPRESENTATIONS)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_nobody_can_write_into_what_caches_share(turned, anchors, form, similarity):
    for matrix in represent(turned, form, anchors, ProjectionSpec(similarity)):
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 1


def test_the_spec_reaches_the_projection(turned, anchors):
    spec = ProjectionSpec("euclidean", center=False)
    expected = RelativeProjection("euclidean", False).fit(turned.source.vectors, anchors=np.arange(12))
    np.testing.assert_array_equal(
        represent(turned, "relative", anchors, spec)[0], expected.transform(turned.source.vectors)
    )
    whitened = represent(turned, "whitened", anchors, ProjectionSpec("euclidean", ridge=2.0))[0]
    by_cosine = RelativeProjection("cosine", whiten=True, ridge=2.0).fit(
        turned.source.vectors, anchors=np.arange(12)
    )
    np.testing.assert_array_equal(whitened, by_cosine.transform(turned.source.vectors))


def test_scores_of_a_turned_space(turned, anchors):
    split = held_out(turned, anchors)
    relative = score_pair(*represent(turned, "relative", anchors, SPEC), split)
    assert {name: pytest.approx(float(score), abs=1e-4) for name, score in relative.items()} == {
        "jaccard": 1,
        "mrr": 1,
        "cosine": 1,
        "cka": 1,
    }
    assert {score.n for score in relative.values()} == {138}
    absolute = score_pair(*represent(turned, "absolute", anchors, SPEC), split)
    assert absolute["cka"] == pytest.approx(1, abs=1e-4)
    assert absolute["jaccard"] < 0.2


def test_scores_are_those_of_the_metrics_on_the_test_rows(turned, rng):
    source = turned.source.vectors
    target = (source + rng.normal(size=source.shape)).astype(np.float32)
    split = Split.held_out(turned.ids, np.arange(20), random_state=3)
    scores = score_pair(source, target, split, k=5, convention="mutual", n_queries=50)
    settings = {"convention": "mutual", "queries": split.queries(50) - 20}
    source, target = source[20:], target[20:]
    assert scores["jaccard"] == jaccard(source, target, 5, **settings)
    assert scores["mrr"] == mrr(source, target, 5, **settings)
    assert scores["cosine"] == mean_cosine(source, target)
    assert scores["cka"] == linear_cka(source, target)
    assert [(score.n, score.n_queries) for score in scores.values()] == [
        (130, 50),
        (130, 50),
        (130, 130),
        (130, 130),
    ]


def test_as_published_every_row_is_scored(turned):
    assert len(held_out(turned).test) == 150


def test_absolute_spaces_are_scored_whole_whatever_the_anchors(turned, anchors):
    assert len(held_out(turned, anchors, "absolute").test) == 150
    assert len(held_out(turned, anchors, "whitened").test) == 138


def test_matrices_of_other_rows_are_refused(turned, anchors):
    with pytest.raises(
        SpaceError, match="expected 150 rows in both spaces, those of the split, got 149 and 150"
    ):
        score_pair(turned.source.vectors[1:], turned.target.vectors, held_out(turned, anchors))


@pytest.mark.parametrize("convention", ["paper", "mutual"])
def test_a_difference_is_that_of_the_scores_on_rows_that_are_anchors_in_neither(turned, rng, convention):
    noisy = match(turned.source, turned.target.take(np.arange(150)))
    fewer, more = tuple(noisy.ids[:10]), tuple(noisy.ids[5:25])
    before, now = (
        [X + rng.normal(size=X.shape) for X in represent(noisy, "relative", ids, SPEC)]
        for ids in (fewer, more)
    )
    wide = [np.pad(X, [(0, 0), (0, 10)]) for X in before]
    split = held_out(noisy, noisy.ids[:25])
    found = score_differences(tuple(wide), tuple(now), split, k=5, convention=convention)
    scores = [score_pair(*pair, split, k=5, convention=convention) for pair in (wide, now)]
    assert {name: one.value for name, one in found.items()} == {
        name: pytest.approx(float(scores[1][name]) - float(scores[0][name]), abs=1e-6) for name in found
    }
    assert set(found) == {"jaccard", "mrr", "cosine", "cka"}


def test_an_anchor_more_that_says_nothing_shows_no_difference_and_a_rotation_undone_does(turned, rng):
    split = held_out(turned, turned.ids[:12])
    noise = rng.normal(size=(150, 12))
    relative = represent(turned, "relative", turned.ids[:12], SPEC)
    worse, bad = (relative[0], relative[1] + 0.2 * noise), (relative[0], relative[1] + 2 * noise)
    assert all(
        one.value > 0 and one.is_clear for one in score_differences(bad, relative, split, k=5).values()
    )
    shuffled = score_differences(worse, (relative[0], relative[1] + 0.2 * noise[::-1]), split, k=5)
    assert sum(one.is_clear for one in shuffled.values()) == 0  # as noisy as before


@pytest.mark.parametrize(("convention", "expected"), [("paper", {"cka"}), ("mutual", {"jaccard", "cka"})])
def test_different_widths_have_only_the_scores_that_need_no_common_one(turned, convention, expected):
    narrow = turned.target.vectors[:, :4]
    assert set(score_pair(turned.source.vectors, narrow, held_out(turned), convention=convention)) == expected


def test_the_task_of_exact_scores_leaves_them_in_the_store(turned, tmp_path):
    store, spaces = Store(tmp_path), (turned.source, turned.target)
    task = ExactScores.of("relative", tuple(turned.ids[:2]), ProjectionSpec(), 5, "mutual")
    context = Context(KEYS[0], store)
    task_job(context, task=task, inputs=[put_space(store, space) for space in spaces])
    found = task.read(store.get(KEYS[0])).scores
    made, split = (
        represent(turned, "relative", turned.ids[:2], ProjectionSpec()),
        held_out(turned, turned.ids[:2]),
    )
    expected = score_pair(*made, split, k=5, convention="mutual")
    assert {name: float(score) for name, score in found.items()} == pytest.approx(expected, abs=1e-6)
    for name, score in expected.items():
        assert astuple(found[name].null) == pytest.approx(astuple(score.null), abs=1e-6)
    with pytest.raises(SpaceError, match=r"expected the encoding cccccccc… in .*, got none"):
        task_job(context, task=task, inputs=["c" * 32] * 2)


def test_the_table_has_a_row_a_score_with_its_circumstances(turned, anchors):
    split = held_out(turned, anchors)
    scores = {
        form: score_pair(*represent(turned, form, anchors, SPEC), split, k=4, n_queries=60)
        for form in ("absolute", "relative")
    }
    table = score_table(scores).set_index(["form", "metric"])
    assert table.index.tolist() == [
        (form, metric)
        for form in scores
        for metric in ("Jaccard, k = 4", "MRR, k = 4", "cosine", "linear CKA")
    ]
    row = table.loc["absolute", "Jaccard, k = 4"]
    score = scores["absolute"]["jaccard"]
    assert row[["score", "low", "high", "null_low", "chance", "null_high"]].tolist() == [
        float(score),
        *score.interval,
        score.null.low,
        score.null.mean,
        score.null.high,
    ]
    assert row[["convention", "k", "n", "queries"]].tolist() == ["paper", 4, 138, 60]
    assert np.isnan(table.loc["absolute", "linear CKA"].low)


def test_agreement_is_one_where_the_neighbours_are_the_same_and_frequent_rows_come_first(turned):
    table = neighbour_agreement(turned, np.array([5, 20, 100]), k=10)
    assert table.overlap.tolist() == [1, 1, 1]
    assert table["id"].tolist() == ["r5", "r20", "r100"]
    assert table["count"].tolist() == [145, 130, 50]


def test_the_rows_that_moved_most_come_first(rng, make_space):
    vectors = rng.normal(size=(150, D))
    moved = vectors.copy()
    moved[[7, 70]] = rng.normal(size=(2, D))
    table = neighbour_agreement(match(make_space(vectors), make_space(moved)), np.arange(150), k=10)
    assert set(table["id"][:2]) == {"r7", "r70"}
    assert (np.diff(table.overlap) >= 0).all()
    assert "count" not in table


def test_agreement_does_not_depend_on_the_order_asked(turned, rng, make_space):
    noisy = make_space(turned.source.vectors + rng.normal(size=(150, D)))
    pair = match(turned.source, noisy)
    rows = np.arange(150)
    forth, back = (
        neighbour_agreement(pair, order, k=10).set_index("id").overlap for order in (rows, rows[::-1])
    )
    assert back.loc[forth.index].tolist() == forth.tolist()


def test_neighbours_stand_side_by_side_with_their_cosines(rng, make_space):
    vectors = rng.normal(size=(80, D)) + 2
    pair = match(make_space(vectors), make_space(vectors[:, ::-1] + 0.5 * rng.normal(size=(80, D))))
    table = neighbours_of(pair, "r3", k=7)
    for side, space in (("source", pair.source), ("target", pair.target)):
        centred = space.vectors - space.vectors.mean(axis=0)
        centred /= np.linalg.norm(centred, axis=1, keepdims=True)
        cosines = centred @ centred[3]
        cosines[3] = -2
        order = np.argsort(-cosines)[:7]
        assert table[side].tolist() == space.ids[order].tolist()
        np.testing.assert_allclose(table[f"{side} cosine"], cosines[order], atol=1e-5)
    assert table["source shared"].tolist() == table.source.isin(table.target).tolist()
    assert table["source shared"].sum() == table["target shared"].sum()


def test_k_is_cut_to_the_rows_there_are(make_space):
    pair = match(make_space(np.eye(4)), make_space(np.eye(4)))
    assert [lists.shape for lists in centred_neighbours(pair, np.array([0]), k=50)] == [(1, 3), (1, 3)]
    assert len(neighbours_of(pair, "r2", k=50)) == 3


@pytest.mark.parametrize(
    ("form", "ids", "message"),
    [
        ("relativ", ["r0"], f"representation: expected one of {', '.join(REPRESENTATIONS)}, got 'relativ'"),
        ("relative", [], "anchors: expected at least one id, got none"),
        ("whitened", ["r0", "r0"], "expected distinct ids, got 'r0' more than once"),
        ("procrustes", ["qzx"], "expected ids of 's', got 1 unknown: 'qzx'"),
    ],
)
def test_wrong_requests_are_refused(turned, form, ids, message):
    with pytest.raises(SpaceError, match=message):
        represent(turned, form, ids, SPEC)
    with pytest.raises(SpaceError, match="expected ids of 's', got 1 unknown"):
        neighbours_of(turned, "qzx")


def test_neighbours_in_another_representation_are_those_of_its_matrices(rng, make_space):
    pair = match(*(make_space(rng.normal(size=(40, 5)), name=name) for name in ("s", "t")))
    made = represent(pair, "relative", ["r0", "r1", "r2", "r9"], ProjectionSpec())
    table = neighbours_of(pair, "r7", 6, made)
    for side, X in zip(("source", "target"), made, strict=True):
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        cosines = unit @ unit[7]
        cosines[7] = -2
        assert table[side].tolist() == [f"r{row}" for row in np.argsort(-cosines)[:6]]
    assert table["source"].tolist() != neighbours_of(pair, "r7", 6)["source"].tolist()


def test_a_sample_of_a_pair_has_all_anchors_and_stays_paired(turned, anchors):
    sample = sample_pair(turned, anchors, 15)
    assert set(anchors) <= set(sample.ids)
    assert len(sample) == 15 + len(anchors)
    for side in ("source", "target"):
        space, whole = getattr(sample, side), getattr(turned, side)
        np.testing.assert_array_equal(space.vectors, whole.vectors[whole.rows(list(sample.ids))])
    assert sample_pair(turned, anchors, len(turned) - len(anchors)) is turned
