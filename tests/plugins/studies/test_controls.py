"""The studies of the package, of unrelated spaces: every number lies where chance puts it."""

from __future__ import annotations

import numpy as np
import pytest
from relscope_studies import anchors, heads, inversion, isometry, measures
from relscope_studies.isometry import compared, disparity

from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from tests.controls.test_studies import D, H, N, Q, measured, near_chance_of_accuracy, unrelated


@pytest.fixture(params=[0, pytest.param(1, marks=pytest.mark.slow)])
def spaces(request, monkeypatch):
    spaces = unrelated(request.param)
    monkeypatch.setattr(anchors, "word_pair", lambda *arguments: match(*spaces))
    monkeypatch.setattr(anchors, "labelled_spaces", lambda *arguments: spaces)
    monkeypatch.setattr(anchors, "test_ids_of", lambda data, space: ())
    monkeypatch.setattr(isometry, "spaces_of_pair", lambda *arguments: spaces)
    monkeypatch.setattr(isometry, "COUNTS", (2, 8, 32, 110))
    return spaces


def test_common_mean_of_unrelated_spaces_is_all_that_a_raw_cosine_has(monkeypatch):
    monkeypatch.setattr(inversion, "studied_spaces", lambda *arguments: unrelated(offset=1.5))
    study, settings, table = measured("common-mean", data=["words"], n_anchors=100)
    # The cosine of two random directions has the variance 1 / d; over m rows and two directions, 1 / (2 m d).
    error = 1 / np.sqrt(2 * table["test rows"].min() * D)
    assert table.centred.abs().max() < 4 * error
    assert table.constant.min() > 0.7, "the mean alone gives that much"
    assert (table.translated - table.permuted).abs().max() < 4 * error
    assert study.conclusion(settings, table).startswith("Mostly the common mean on words: ")


@pytest.mark.parametrize("random_state", range(3))
def test_trainings_that_share_nothing_are_no_isometry(random_state):
    source, target = unrelated(random_state)
    order = np.random.default_rng(random_state).permutation(N)
    known = np.sort(order[:220])
    test = np.sort(order[220:])
    # A rotation fitted to noise with d = 90 on 220 rows still scales by s ≈ .85 √(d / n) = .54 and so errs by
    # 1 + s²; the mean alone gives 1. The spread over 110 × 90 squares is √(2 / 9900) = .014.
    found = disparity(source.vectors, target.vectors, known, test)
    assert 1 - 4 * 0.014 < found < 1 + 0.54**2 + 4 * 0.02
    values = compared(source, target, test, random_state)
    assert values["disparity"] > 1 - 4 * 0.014
    accuracies = np.array([values["accuracy"] - values["procrustes loss"], values["accuracy"]])
    assert near_chance_of_accuracy(accuracies, len(test))


def test_unrelated_spaces_have_no_plateau(spaces):
    study, settings, table = measured("anchor-dimension", data=["words"])
    m = table["test rows"].min()
    curve = table[[f"mrr, {count} anchors" for count in isometry.COUNTS]].to_numpy()
    assert np.abs(curve - H / m).max() < 4.5 * np.sqrt(Q / m / m), "4.5 for the largest of 12"
    assert study.findings(settings, table).empty
    assert study.charts(settings, table) == {}
    assert study.conclusion(settings, table) == ""


def test_no_choice_of_anchors_finds_rows_of_an_unrelated_space(spaces):
    settings = {"n_anchors": 100, "data": "words"}
    _, _, table = measured("anchor-choice", lambda one: one["choice"] != "picked", 2, **settings)
    m = table["rows"].min()
    scores = table[["mrr", "whitened mrr"]].to_numpy()
    assert np.abs(scores - H / N).max() < 4 * np.sqrt(Q / N / m) + H / m - H / N


def test_no_change_of_anchors_finds_rows_of_an_unrelated_space(spaces):
    study, settings, table = measured("anchor-influence", n_anchors=100)
    # The other half of 230 rows less the candidates: two reciprocal ranks of the same query that are independent
    # of each other differ by √(2 Q / m) each, their mean over m by √(2 Q / m / m).
    m = table["rows"].min()
    changes = table[["drop: mrr", "add: mrr"]].to_numpy(dtype=float)
    assert np.nanmax(np.abs(changes)) < 4 * np.sqrt(2 * Q / m / m)
    findings = study.findings(settings, table).set_index("what")
    low, high = findings.loc["MRR, change by 10 dropped anchors, other rows", ["low", "high"]]
    assert low < 4 * np.sqrt(2 * Q / m / m / 3)
    assert high > -4 * np.sqrt(2 * Q / m / m / 3)


# Measures: networks whose rows are permuted, each in its own order.


@pytest.mark.parametrize("name", ["debiased cka", "svcca", "procrustes", "knn recall", "relative cosine"])
def test_measures_of_permuted_rows_score_at_chance_and_calibrated_about_zero(name):
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(260, 6))
    n = 15
    anchors = 60
    ids = [f"n{i}" for i in range(260)]
    groups = np.repeat([0, 1, 2], 5)
    stack = np.stack([(latent @ rng.normal(size=(6, 12)))[rng.permutation(260)] for _ in range(n)])
    pairs = [(i, j) for i in range(n) for j in range(i)]
    raw, calibrated = measures.pair_scores(name, stack.astype(np.float32), ids, ids[-anchors:], pairs).T
    # No score is further from the mean of its chance level than 6 of the scores' spread, and their mean, of 105
    # pairs of 15 networks, than 1 (a standard error is at most √(2 / 15) of it).
    assert np.abs(calibrated).max() < 6 * calibrated.std()
    assert abs(calibrated.mean()) < calibrated.std()
    matrix = measures._square(np.array(pairs), raw, n)
    auprc, conformity = measures.separation(matrix, groups, np.ones(n, int))
    # 200 draws of random scores spread by .04 and .06; the pairs share networks, so twice that, and 3 of it.
    assert auprc == pytest.approx(measures.chance_precision(10, 60), abs=0.24)
    assert conformity == pytest.approx(0.5, abs=0.36)


@pytest.mark.slow
def test_random_labels_are_not_learned_by_heads(spaces):
    choices = ("random", "class-balanced")
    settings = {"n_anchors": 30, "data": "digits"}
    _, _, table = measured("anchor-choice", lambda one: one["choice"] in choices, 2, **settings)
    stitched = table[[name for name in table if name.endswith(("stitched", "same space"))]].dropna(axis=1)
    assert near_chance_of_accuracy(stitched.to_numpy(dtype=float), N * 0.2)


def test_captions_that_mean_nothing_name_as_many_as_chance():
    # The pictures are noise, so nothing tells their classes: p = 1/4. The spread over 60 draws gives the
    # standard error.
    accuracies = []
    for state in range(60):
        rng = np.random.default_rng([state, 21])
        numbers = rng.permutation(np.arange(120) % 4)
        names = np.array(["ant", "bee", "cat", "dog"])[numbers]
        pictures = LatentSpace(rng.normal(size=(120, 10)), [f"p{row}" for row in range(120)], labels=names)
        texts = rng.normal(size=(4, 1, 8)) + 0.3 * rng.normal(size=(4, 3, 8))
        test = Split.draw(pictures.ids, labels=numbers, random_state=state).test
        values = heads.zero_shot(pictures, texts, test, n_pairs=40, keep=20, random_state=state)
        accuracies.append(values["accuracy"])
    error = np.std(accuracies, ddof=1) / np.sqrt(len(accuracies))
    assert np.mean(accuracies) == pytest.approx(0.25, abs=3.5 * error)
    assert error < 0.03
