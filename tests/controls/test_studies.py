"""Studies of unrelated spaces and of random labels: every number lies where chance puts it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.vision import SweptVision, held_out_rows
from relcore.runs.store import Store
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.studies import (
    inversion,
    isometry,
    measures,
    networks,
    relative,
)
from relcore.studies.isometry import compared, disparity
from relcore.studies.study import StudySpec, study_of

# Few rows, anchors a third of them or more, dimensions near the number of anchors, one class rare.
N, D = 330, 90
CLASSES = np.repeat(np.arange(4), [120, 110, 90, 10])
# The mean reciprocal rank of a random order of n rows, cut at k = 10, is H / n a query, its second moment Q /
# n.
H, Q = (float(np.sum(1 / np.arange(1, 11) ** power)) for power in (1, 2))


def unrelated(random_state=0, offset=0.0, names="ab"):
    rng = np.random.default_rng(random_state)
    labels = [f"c{one}" for one in rng.permutation(CLASSES)]
    ids = [f"r{i}" for i in range(N)]
    return [LatentSpace(rng.normal(size=(N, D)) + offset, ids, name=name, labels=labels) for name in names]


def measured(kind, keep=lambda one: True, n_states=3, **options):
    study = study_of(kind)
    settings = StudySpec.of(study, options).settings
    runs = [one for one in study.runs(settings) if keep(one) and one["random_state"] < n_states]
    rows = [
        {**one, **study.measure(one, None, lambda *told: None).values, "seconds": 1.0, "key": "0" * 32}
        for one in runs
    ]
    return study, settings, pd.DataFrame(rows)


def near_chance_of_accuracy(scores, m):
    # With random labels the answers are right with the probability p of the class that they name, at most 120
    # / 330 and on average near Σ p² = .33 or below: a share of m has a standard error of at most √(.25 / m),
    # and a mean of such is no wider.
    return (scores < 0.37 + 4 * np.sqrt(0.25 / m)).all()


@pytest.fixture
def spaces(monkeypatch):
    spaces = unrelated()
    for module in (inversion, relative):
        monkeypatch.setattr(module, "studied_spaces", lambda *arguments: spaces)
    for module in (inversion, relative):
        monkeypatch.setattr(module, "word_pair", lambda *arguments: match(*spaces))
    for module in (relative, networks):
        monkeypatch.setattr(module, "labelled_spaces", lambda *arguments: spaces)
        monkeypatch.setattr(module, "test_ids_of", lambda data, space: ())
    monkeypatch.setattr("relcore.studies.study.test_ids_of", lambda data, space: ())
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


def test_quantising_unrelated_spaces_brings_no_row_nearer_to_its_own_than_to_others(spaces):
    study, settings, table = measured(
        "quantisation", lambda one: one["t"] in (0, 1, 1.5), data=["digits"], n_anchors=100
    )
    m = table["test rows"].min()
    # Relative rows of 90 dimensions share few of them: the cosines of pairs vary by at most .2, so the mean
    # distance of m pairs by .2 / √m, against a distance of about 1.
    assert (table.ratio - 1).abs().max() < 4 * 0.2 / np.sqrt(m)
    # Two directions of m queries that are not independent: as wide as one.
    assert (table.mrr - H / m).abs().max() < 4 * np.sqrt(Q / m / m)
    assert near_chance_of_accuracy(table.accuracy, m)
    told = study.conclusion(settings, table)
    assert told == "" or "to 1.0" in told or "to 0.9" in told or " is seen to make it smaller" in told


@pytest.mark.parametrize("random_state", range(3))
def test_trainings_that_share_nothing_are_no_isometry(random_state):
    source, target = unrelated(random_state)
    order = np.random.default_rng(random_state).permutation(N)
    known, test = np.sort(order[:220]), np.sort(order[220:])
    # A rotation fitted to noise with d = 90 on 220 rows still scales by s ≈ .85 √(d / n) = .54 and so errs by
    # 1 + s²; the mean alone gives 1. The spread over 110 × 90 squares is √(2 / 9900) = .014.
    found = disparity(source.vectors, target.vectors, known, test)
    assert 1 - 4 * 0.014 < found < 1 + 0.54**2 + 4 * 0.02
    values = compared(source, target, test, random_state)
    assert values["disparity"] > 1 - 4 * 0.014
    assert near_chance_of_accuracy(
        np.array([values["accuracy"] - values["procrustes loss"], values["accuracy"]]), len(test)
    )


def test_unrelated_spaces_have_no_plateau(spaces):
    study, settings, table = measured("anchor-dimension", data=["words"])
    m = table["test rows"].min()
    curve = table[[f"mrr, {count} anchors" for count in isometry.COUNTS]].to_numpy()
    assert np.abs(curve - H / m).max() < 4.5 * np.sqrt(Q / m / m), "4.5 for the largest of 12"
    assert study.findings(settings, table).empty
    assert study.charts(settings, table) == {}
    assert study.conclusion(settings, table) == ""


def test_no_choice_of_anchors_finds_rows_of_an_unrelated_space(spaces):
    _, _, table = measured(
        "anchor-choice", lambda one: one["choice"] != "picked", 2, data="words", n_anchors=100
    )
    m, scores = table["rows"].min(), table[["mrr", "whitened mrr"]].to_numpy()
    assert np.abs(scores - H / N).max() < 4 * np.sqrt(Q / N / m) + H / m - H / N


def test_no_change_of_anchors_finds_rows_of_an_unrelated_space(spaces):
    study, settings, table = measured("anchor-influence", n_anchors=100)
    # The other half of 230 rows less the candidates: two reciprocal ranks of the same query that know nothing
    # of each other differ by √(2 Q / m) each, their mean over m by √(2 Q / m / m).
    m = table["rows"].min()
    changes = table[["drop: mrr", "add: mrr"]].to_numpy(dtype=float)
    assert np.nanmax(np.abs(changes)) < 4 * np.sqrt(2 * Q / m / m)
    low, high = (
        study.findings(settings, table)
        .set_index("what")
        .loc["MRR, change by 10 dropped anchors, other rows", ["low", "high"]]
    )
    assert low < 4 * np.sqrt(2 * Q / m / m / 3)
    assert high > -4 * np.sqrt(2 * Q / m / m / 3)


@pytest.mark.slow
def test_random_labels_are_not_learned_by_heads(spaces):
    _, _, counted = measured("anchor-count", lambda one: one["n_anchors"] in (10, 100), 3)
    _, _, choices = measured(
        "anchor-choice",
        lambda one: one["choice"] in ("random", "class-balanced"),
        2,
        n_anchors=30,
        data="digits",
    )
    _, _, trained = measured("training", n_states=3, n_anchors=100)
    for table in (counted, choices):
        stitched = table[[name for name in table if name.endswith(("stitched", "same space"))]].dropna(axis=1)
        assert near_chance_of_accuracy(stitched.to_numpy(dtype=float), N * 0.2)
    assert near_chance_of_accuracy(trained.accuracy.to_numpy(), N * 0.2)


@pytest.fixture
def shuffled_digits(tmp_path):
    digits = load_dataset(DatasetSpec("digits"), Store(tmp_path))
    labels = np.random.default_rng(0).permutation(digits.labels)
    return Dataset(digits.items, digits.ids, name="shuffled", kind="images", labels=labels)


def test_random_labels_are_not_learned_by_networks(shuffled_digits, monkeypatch):
    monkeypatch.setattr(networks, "load_dataset", lambda *arguments: shuffled_digits)
    _, _, table = measured("trained-count", lambda one: one["n_anchors"] == 50, 1, epochs=5)
    spec = SweptVision(epochs=4, width=16)
    best = networks._measured(spec, shuffled_digits, "digits", lambda *told: None, None).values["accuracy"]
    found = [best, *table[["absolute", "relative, same space", "relative, stitched"]].iloc[0]]
    # Ten classes of a tenth each: a share of m = 359 has a standard error of √(.09 / m) = .016.
    m = len(held_out_rows(len(shuffled_digits)))
    assert max(found) < 0.1 + 4 * np.sqrt(0.09 / m)


@pytest.mark.parametrize("network", ["relu", "layernorm"])
def test_random_labels_are_read_as_chance_would_at_every_length(network):
    curve = networks.rescaled_rows(unrelated()[0], network)["accuracy by length"]
    assert near_chance_of_accuracy(np.array(curve), 66)


# Measures: networks whose rows are permuted, each in its own order.


@pytest.mark.parametrize("name", ["debiased cka", "svcca", "procrustes", "knn recall", "relative cosine"])
def test_measures_of_permuted_rows_score_at_chance_and_calibrated_about_zero(name):
    rng = np.random.default_rng(0)
    latent, n, anchors = rng.normal(size=(260, 6)), 15, 60
    ids, groups = [f"n{i}" for i in range(260)], np.repeat([0, 1, 2], 5)
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
