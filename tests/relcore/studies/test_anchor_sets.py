"""Strategies by number of anchors, and the influence of each anchor by deletion, which equals computing
everything again without it.
"""

import numpy as np
import pandas as pd
import pytest

from relcore.scores.cka import linear_cka
from relcore.spaces.space import match
from relcore.studies import relative
from relcore.studies.relative import Products, cosine_without
from relcore.studies.study import StudySpec, study_of

N, M = 90, 12


def cka_again(R, S):
    R, S = R - R.mean(axis=0), S - S.mean(axis=0)
    return np.linalg.norm(R.T @ S) ** 2 / (np.linalg.norm(R.T @ R) * np.linalg.norm(S.T @ S))


@pytest.fixture
def pair(rng):
    R = rng.uniform(-1, 1, size=(N, M))
    return R, 0.6 * R + 0.4 * rng.uniform(-1, 1, size=(N, M)) + 3


@pytest.fixture
def table(make_space, rng, monkeypatch):
    """``table("anchor-curve", **options)``: the study on a space of 400 rows and its noisy mirror image."""
    X = rng.normal(size=(400, 8))
    spaces = make_space(X, name="a"), make_space(X[:, ::-1] + 0.3 * rng.normal(size=X.shape), name="b")
    monkeypatch.setattr(relative, "word_pair", lambda *given: match(*spaces))
    monkeypatch.setitem(relative.AnchorCurve.varied, "n_anchors", (2, 5, 40))

    def measured(kind, **options):
        study = study_of(kind)
        settings = StudySpec.of(study, options).settings
        runs = [
            {**run, **study.measure(run, None, lambda *told: None).values} for run in study.runs(settings)
        ]
        return study, settings, pd.DataFrame(runs)

    return measured


def test_more_anchors_help_and_all_sets_are_scored_on_the_same_rows(table):
    study, settings, runs = table("anchor-curve")
    assert runs.rows.nunique() == 1
    means = runs.groupby("n_anchors").mrr.mean()
    assert means[2] < means[5] < means[40]
    assert set(study.charts(settings, runs)) == {"Jaccard", "MRR", "cosine", "linear CKA"}
    assert len(study.findings(settings, runs)) == 2 * 3 * 4
    assert study.conclusion(settings, runs).startswith("With 2 anchors, Farthest-point changes the MRR")


def test_cka_without_and_with_each_anchor_is_that_of_a_new_computation(pair):
    R, S = pair
    products, columns = Products.of(R, S), np.arange(M) < 9
    assert products.cka(columns) == pytest.approx(float(linear_cka(R[:, columns], S[:, columns])), abs=1e-5)
    changed = products.cka_changed(columns)
    for j in range(M):
        other = columns.copy()
        other[j] = not other[j]
        assert changed[j] == pytest.approx(cka_again(R[:, other], S[:, other]), abs=1e-8)


def test_greedy_steps_are_the_best_ones_and_stop_where_nothing_helps(pair):
    R, S = pair
    products, columns = Products.of(R, S), np.arange(M) < 9
    steps, values = products.greedy(columns, ~columns, 3)
    first = [cka_again(R[:, [*range(9), j]], S[:, [*range(9), j]]) for j in range(9, M)]
    assert steps[0] == 9 + int(np.argmax(first))
    assert values == sorted(values)
    dropped, gains = products.greedy(columns, columns, M)
    kept = np.setdiff1d(np.arange(9), dropped)
    assert gains[-1] == pytest.approx(cka_again(R[:, kept], S[:, kept]), abs=1e-8)
    assert Products.of(R, R).greedy(columns, columns, 5) == ([], [])  # equal spaces: 1 already


def test_cosine_without_each_anchor_is_that_of_a_new_computation(pair):
    R, S = pair
    whole, without = cosine_without(R, S)

    def again(columns):
        A, B = R[:, columns], S[:, columns]
        return np.mean(np.sum(A * B, axis=1) / (np.linalg.norm(A, axis=1) * np.linalg.norm(B, axis=1)))

    assert whole == pytest.approx(again(np.arange(M)), abs=1e-12)
    for j in range(M):
        assert without[j] == pytest.approx(again(np.arange(M) != j), abs=1e-8)
