"""Representations and scores of a pair whose answer is known: the second space is the first one, turned, scaled and shifted."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore.comparison import (
    REPRESENTATIONS,
    ProjectionSpec,
    centred_neighbours,
    neighbour_agreement,
    neighbours_of,
    represent,
    score_job,
    score_pair,
    score_table,
)
from relcore.metrics.calibration import Score
from relcore.metrics.cka import linear_cka, mean_cosine
from relcore.metrics.neighbours import jaccard, mrr
from relcore.projection import RelativeProjection
from relcore.similarity import SIMILARITIES
from relcore.spaces import SpaceError, match
from relcore.store import Store

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
    np.testing.assert_allclose(target[:12].mean(axis=0), 0, atol=1e-4)


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
    np.testing.assert_array_equal(represent(turned, "relative", anchors, spec)[0], expected.transform(turned.source.vectors))
    whitened = represent(turned, "whitened", anchors, ProjectionSpec("euclidean", ridge=2.0))[0]
    by_cosine = RelativeProjection("cosine", whiten=True, ridge=2.0).fit(turned.source.vectors, anchors=np.arange(12))
    np.testing.assert_array_equal(whitened, by_cosine.transform(turned.source.vectors))


def test_scores_of_a_turned_space(turned, anchors):
    relative = score_pair(*represent(turned, "relative", anchors, SPEC))
    assert {name: pytest.approx(float(score), abs=1e-4) for name, score in relative.items()} == {
        "jaccard": 1,
        "mrr": 1,
        "cosine": 1,
        "cka": 1,
    }
    absolute = score_pair(*represent(turned, "absolute", anchors, SPEC))
    assert absolute["cka"] == pytest.approx(1, abs=1e-4)
    assert absolute["jaccard"] < 0.2


def test_scores_are_those_of_the_metrics(turned, rng):
    source = turned.source.vectors
    target = (source + rng.normal(size=source.shape)).astype(np.float32)
    scores = score_pair(source, target, k=5, convention="mutual", n_queries=50, random_state=3)
    settings = {"convention": "mutual", "n_queries": 50, "random_state": 3}
    assert scores["jaccard"] == jaccard(source, target, 5, **settings)
    assert scores["mrr"] == mrr(source, target, 5, **settings)
    assert scores["cosine"] == mean_cosine(source, target)
    assert scores["cka"] == linear_cka(source, target)


@pytest.mark.parametrize(("convention", "expected"), [("paper", {"cka"}), ("mutual", {"jaccard", "cka"})])
def test_different_widths_have_only_the_scores_that_need_no_common_one(turned, convention, expected):
    assert set(score_pair(turned.source.vectors, turned.target.vectors[:, :4], convention=convention)) == expected


def test_the_score_job_reads_matrices_and_leaves_scores(turned, tmp_path):
    class Context:
        """What the engine hands to a job, as far as this one needs it."""

        store = Store(tmp_path)
        reports, results = [], {}

        def report(self, *progress):
            self.reports.append(progress)

        def put(self, arrays, metadata):
            self.results.update(metadata)

    for key, vectors in zip(KEYS, (turned.source.vectors, turned.target.vectors), strict=True):
        Context.store.put(key, {"matrix": vectors}, {})
    score_job(Context(), inputs=KEYS, k=5, convention="mutual")
    back = {name: Score.from_json(record) for name, record in json.loads(json.dumps(Context.results))["scores"].items()}
    assert back == score_pair(turned.source.vectors, turned.target.vectors, k=5, convention="mutual")
    with pytest.raises(SpaceError, match=f"no longer in .*{Path(tmp_path).name}; ask for the scores again"):
        score_job(Context(), inputs=[KEYS[0], "c" * 16], k=5, convention="mutual")


def test_the_table_has_a_row_a_score_with_its_circumstances(turned, anchors):
    scores = {form: score_pair(*represent(turned, form, anchors, SPEC), k=4, n_queries=60) for form in ("absolute", "relative")}
    table = score_table(scores).set_index(["form", "metric"])
    assert table.index.tolist() == [
        (form, metric) for form in scores for metric in ("Jaccard, k = 4", "MRR, k = 4", "cosine", "linear CKA")
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
    assert row[["convention", "k", "n", "queries"]].tolist() == ["paper", 4, 150, 60]
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
    forth, back = (neighbour_agreement(pair, order, k=10).set_index("id").overlap for order in (rows, rows[::-1]))
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
    assert centred_neighbours(pair, np.array([0]), k=50).k == 3
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
