"""Stitching of encoders that are turns of one another, its scores against scikit-learn, and what it
refuses.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, f1_score, precision_recall_fscore_support

from relcore.base.errors import SpaceError
from relcore.base.names import METHODS
from relcore.represent.representations import MethodSettings
from relcore.spaces.space import LatentSpace
from relcore.stitch.charts import panel_order, stitch_matrices
from relcore.stitch.classifiers import Stitching, StitchRun, split_rows
from relcore.stitch.shared_rows import share_rows
from relcore.stitch.stitching import (
    StitchResult,
    StitchSpec,
    by_score,
    headline,
    stitch_matrix,
    summary_table,
)

SPEC = StitchSpec(methods=tuple(METHODS), n_anchors=40, settings=MethodSettings(delta=0.3))
OFF = ~np.eye(3, dtype=bool)


@pytest.fixture
def result(make_encoders):
    return stitch_matrix(make_encoders(), replace(SPEC, random_states=(0, 1)))


def made_up(rng, order=("a", "b", "c"), n_states=2, methods=("relative",)):
    runs = []
    for state in range(n_states):
        answers = {name: rng.integers(0, 3, size=(2, 2, 50)).astype(np.int16) for name in methods}
        ids = np.array([f"r{row}" for row in range(50)], dtype=object)
        runs.append(StitchRun(state, ids, rng.integers(0, 3, size=50), 1, answers))
    return StitchResult(StitchSpec(methods, order=order), ("one", "two"), ("a", "b", "c"), tuple(runs))


def test_the_headline_names_the_fewest_steps_of_error_and_all_methods_of_a_tie(rng):
    """The method with most steps was named the best by MAE, and one of several equal ones by accuracy."""
    result = made_up(rng, methods=("relative", "whitened"))
    steps = summary_table(result, "mae").set_index("method").stitched
    assert f"(2 pairs): “{steps.idxmin()}”." in headline(result, "mae")
    for run in result.runs:
        run.answers["whitened"] = run.answers["relative"]
    assert "(2 pairs, a tie): “relative” and “relative, whitened”." in headline(result)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "absolute"])
def test_turned_encoders_are_as_good_as_heads_own(result, method):
    mean, _ = result.matrix(method)
    assert np.diag(mean).min() > 0.95
    assert mean[OFF].min() > 0.95


def test_the_plain_copy_stands_beside_the_best_method(result):
    """The plain copy comes second, so that the gain by stitching is seen at once."""
    order = panel_order(result, "accuracy")
    assert (order[0], order[1]) == (by_score(result)[0], "absolute")
    assert set(order) == set(result.spec.methods)
    assert [panel.title.partition(" · ")[0] for panel in stitch_matrices(result).panels] == [
        METHODS[method].title for method in order
    ]


def test_absolute_rows_do_not_fit_and_other_widths_cannot(result):
    mean, _ = result.matrix("absolute")
    assert np.isnan(mean[[0, 1, 2, 2], [2, 2, 0, 1]]).all()
    assert mean[0, 1] < 0.8
    assert mean[1, 0] < 0.8
    assert result.summary().query("method == 'absolute' and metric == 'accuracy'")[
        ["pairs", "of"]
    ].values.tolist() == [[2, 6]]


def test_probabilities_answer_new_rows_as_run_did(make_encoders):
    spaces = make_encoders()
    stitching = Stitching(share_rows(spaces), SPEC)
    run = stitching.run()
    new = [space.vectors[stitching.split.test][:5] for space in stitching.shared.spaces]
    for method in METHODS:
        found = stitching.probabilities(method, new)
        assert found.shape == (3, 3, 5, 3)
        able = ~np.isnan(found[..., 0])
        np.testing.assert_allclose(found.sum(axis=-1)[able], 1, atol=1e-5)
        np.testing.assert_array_equal(found.argmax(axis=-1)[able], run.answers[method][:, :, :5][able])


def test_test_rows_are_a_share_and_train_nothing(make_encoders):
    shared = share_rows(make_encoders())
    split = split_rows(shared, SPEC, 0)
    assert sorted([*split.known, *split.test]) == list(range(240))
    assert len(split.test) == pytest.approx(48, abs=4 * np.sqrt(240 * 0.2 * 0.8))
    assert not np.array_equal(split.test, split_rows(shared, SPEC, 1).test)
    assert len(split.anchors) == 40
    np.testing.assert_array_equal(Stitching(shared, SPEC).split.anchors, split.anchors)


def test_anchors_of_session_are_taken_out_of_test_rows(make_encoders):
    shared = share_rows(make_encoders())
    usual = split_rows(shared, SPEC, 0)
    anchors = [*usual.test[:10], *usual.train[:10]]
    split = split_rows(shared, replace(SPEC, anchors=tuple(shared.ids[anchors])), 0)
    np.testing.assert_array_equal(split.test, usual.test[10:])
    np.testing.assert_array_equal(split.anchors, anchors)
    assert set(anchors) <= set(split.known)


def test_only_rows_that_all_have_and_that_have_label_are_used(make_encoders):
    first, second, _ = make_encoders()
    labels = ["" if row < 10 else label for row, label in enumerate(first.labels)]
    first = LatentSpace(first.vectors, first.ids, name="first", labels=labels)
    unlabelled = LatentSpace(second.vectors, second.ids, name="second").take(np.arange(239, 4, -1))
    shared = share_rows([first, unlabelled])
    assert shared.ids.tolist() == [f"r{row}" for row in range(10, 240)]
    assert shared.spaces[1].ids.tolist() == shared.ids.tolist()
    assert shared.classes == ("high", "low", "middle")


def test_scores_are_scikit_learns(rng):
    result = made_up(rng)
    for number, run in enumerate(result.runs):
        for cell in np.ndindex(2, 2):
            answers = run.answers["relative"][cell]
            assert result.by_state("relative")[number][cell] == pytest.approx(np.mean(answers == run.truth))
            f1 = f1_score(run.truth, answers, average="weighted")
            assert result.by_state("relative", "f1")[number][cell] == pytest.approx(f1)
            mae = np.abs(answers - run.truth).mean()
            assert result.by_state("relative", "mae")[number][cell] == pytest.approx(mae)
    truth = np.concatenate([run.truth for run in result.runs])
    answers = np.concatenate([run.answers["relative"][0, 1] for run in result.runs])
    np.testing.assert_array_equal(result.confusion("relative", 0, 1), confusion_matrix(truth, answers))
    table = result.class_scores("relative", 0, 1)
    expected = np.transpose(precision_recall_fscore_support(truth, answers))
    np.testing.assert_allclose(table[["precision", "recall", "f1", "rows"]], expected)


def test_mean_deviation_and_chance_by_hand(rng):
    result = made_up(rng)
    by_state = result.by_state("relative")
    mean, deviation = result.matrix("relative")
    np.testing.assert_allclose(mean, by_state.mean(axis=0))
    np.testing.assert_allclose(deviation, np.abs(by_state[0] - by_state[1]) / np.sqrt(2))
    assert result.chance() == pytest.approx(np.mean([run.truth == 1 for run in result.runs]))
    row = result.summary().iloc[0]
    assert row["stitched"] == pytest.approx(by_state[:, [0, 1], [1, 0]].mean())
    assert row["own"] == pytest.approx(by_state[:, [0, 1], [0, 1]].mean())
    assert not made_up(rng, n_states=1).matrix("relative")[1].any()


def test_rows_that_cannot_be_stitched_are_refused(make_encoders):
    first, second, _ = make_encoders()
    strangers = LatentSpace(
        second.vectors, [f"s{row}" for row in range(240)], name="strangers", labels=second.labels
    )
    with pytest.raises(
        SpaceError, match="'encoder 0', 'strangers' have none; encode the same dataset with each"
    ):
        share_rows([first, strangers])
    with pytest.raises(
        SpaceError,
        match="have different labels for 240 shared rows, first 'r0': a head knows only the labels",
    ):
        share_rows([first, LatentSpace(second.vectors, second.ids, labels=["other"] * 240)])


def test_scale_spans_the_methods_and_not_the_plain_copy(result):
    """The scale from 0 to 1 showed .98 and .99 in one colour."""
    (low, high) = stitch_matrices(result).scale
    others = [result.matrix(name)[0] for name in result.spec.methods if name != "absolute"]
    assert low <= np.nanmin(others) < low + 0.05 + 1e-9
    assert np.nanmax(others) <= high
    assert low > np.nanmin(result.matrix("absolute")[0])  # rotated coordinates are near chance
