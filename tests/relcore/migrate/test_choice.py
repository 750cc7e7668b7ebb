"""The chosen adapter and the weight of its search, where the answer is known."""

from dataclasses import replace

import numpy as np
import pytest

from relcore.base.names import ADAPTERS
from relcore.base.rows import unit_rows
from relcore.migrate.estimators import InPlaceAdapter
from relcore.migrate.evaluate import (
    SIZES,
    WEIGHTS,
    Pairs,
    RetrievalTask,
    cross_fitted,
    curve_of,
    jackknife_deviations,
    neighbours_as_truth,
    search,
)
from relcore.migrate.migration import Migration
from relcore.represent.translation import Affine
from relcore.spaces.space import LatentSpace
from tests.relcore.migrate.planted import model

M, Q = 300, 100


def paired(new, old):
    ids = np.array([f"r{row}" for row in range(len(new))], dtype=object)
    return Pairs(unit_rows(new), unit_rows(old), ids)


def on(old, new, truth):
    """A trial of the rows from M on: Q queries, and the ten nearest by `truth`."""
    queries = np.arange(Q)
    old, new, truth = (unit_rows(rows[M:]) for rows in (old, new, truth))
    relevance = neighbours_as_truth(search(truth[:Q], truth, 10, queries), len(old))
    return RetrievalTask(old[:Q], new[:Q], old, new, relevance, queries, np.arange(len(old)))


@pytest.fixture
def topics(rng):
    return rng.normal(size=(3 * M, 12))


def fits(pairs, names=ADAPTERS):
    return {name: pairs.fit(name) for name in names}


def test_a_rotation_is_found_and_all_adapters_are_compared(rng):
    old = rng.normal(size=(2 * M, 10))
    new = old @ np.linalg.qr(rng.normal(size=(10, 10)))[0]
    found = cross_fitted(on(old, new, old), fits(paired(new[:M], old[:M])))
    assert {one.adapter for one in found.candidates} == set(ADAPTERS)
    scores = [one.score for one in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.95


def test_an_adapter_for_queries_alone_is_chosen_unless_clearly_worse(topics):
    """Two adapters that are equal on a rotation; then one that fits noise, beside one that has the corpus rewritten."""
    old = topics
    new = old @ np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))[0]
    names = ("whitened", "in-place")
    found = cross_fitted(on(old, new, old), fits(paired(new[:M], old[:M]), names))
    assert found.adapter == "in-place"
    assert {one.adapter: one.rewrites_corpus for one in found.candidates} == {
        "whitened": True,
        "in-place": False,
    }
    old, new = (model(topics, 0.5, 40, seed) for seed in (1, 2))
    pairs = paired(new[:50], old[:50])
    poor = {"least squares": LeastSquaresAdapter().fit(pairs.new, pairs.old)}
    assert cross_fitted(on(old, new, topics), poor | fits(pairs, ("whitened",))).adapter == "whitened"


def test_the_curve_fits_as_much_whatever_the_number_of_pairs_and_the_estimate_counts_widths(
    topics, monkeypatch
):
    """Before, 8,000 rows took longer than 9 minutes, of which the estimate said nothing."""
    old = topics[:, :3]
    trial, fitted, known = on(old, old, old), [], paired(old[:50], old[:50]).fit("in-place")
    monkeypatch.setattr(Pairs, "fit", lambda pairs, adapter: fitted.append(len(pairs.ids)) or known)
    for m in (2600, 5000):
        rows = np.resize(old, (m, 3))
        curve_of(trial, paired(rows, rows), ("in-place", "ridge"), 1.0)
        assert sum(size for size in fitted if size < m) == 2 * 3 * sum(SIZES)
        fitted.clear()
    narrow, wide = (
        Migration().seconds(
            [LatentSpace(np.ones((8000, d), np.float32), [f"r{row}" for row in range(8000)])] * 2
        )
        for d in (192, 768)
    )
    assert wide > 8 * narrow


class LeastSquaresAdapter(InPlaceAdapter):
    def _matrix(self, new, old):
        return Affine().fit(new, old).matrix_


def test_an_adapter_that_fits_noise_is_not_chosen(topics):
    """With 50 pairs and 40 dimensions least squares without a penalty learns mostly noise."""
    old, new = (model(topics, 0.5, 40, seed) for seed in (1, 2))
    pairs = paired(new[:50], old[:50])
    noisy = {"least squares": LeastSquaresAdapter().fit(pairs.new, pairs.old)}
    found = cross_fitted(on(old, new, topics), noisy | fits(pairs, ("whitened",)))
    assert found.adapter == "whitened"
    assert found.candidates[0].score > found.candidates[1].score + 0.05


@pytest.mark.parametrize("heavier", [False, True])
def test_the_better_model_counts_for_more(topics, heavier):
    """Judged by all topics, of which one of the models knows three."""
    few, all_topics = model(topics[:, :3], 0.1, 24, 1), model(topics, 0.1, 24, 2)
    old, new = (few, all_topics) if heavier else (all_topics, few)
    found = cross_fitted(on(old, new, topics), fits(paired(new[:M], old[:M]), ("whitened",)))
    assert found.weight > 0.5 if heavier else found.weight < 0.5
    assert found.weight in WEIGHTS


def test_a_choice_on_random_judgements_is_not_optimistic(rng, topics):
    """Negative control: ten random rows are relevant, which no weight and no adapter finds."""
    old, new = (model(topics, 0.5, 24, seed) for seed in (1, 2))
    trial, adapters = on(old, new, topics), fits(paired(new[:100], old[:100]))
    gains = []
    for _ in range(12):
        lists = rng.permuted(np.tile(np.arange(Q, 2 * M), (Q, 1)), axis=1)[:, :10]
        drawn = replace(trial, relevance=neighbours_as_truth(lists, 2 * M))
        found = cross_fitted(drawn, adapters).found
        gains.append(drawn.score(found["twice"]).mean() - drawn.score(found["keep"]).mean())
    assert np.mean(gains) < 3 * np.std(gains) / np.sqrt(len(gains))


def test_fewer_pairs_move_the_score_more(topics):
    old, new = (model(topics, 0.5, 24, seed) for seed in (1, 2))
    trial = on(old, new, topics)
    few, many = (jackknife_deviations(trial, paired(new[:m], old[:m]), "whitened", 1.0) for m in (40, M))
    assert np.abs(few["bridge"]).mean() > 2 * np.abs(many["bridge"]).mean() > 0
    # Values of other draws of 40 pairs deviate by as much, within the error of ten deviations (a factor of 2).
    drawn = []
    for start in range(0, M - 40, 40):
        adapter = paired(new[start : start + 40], old[start : start + 40]).fit("whitened")
        drawn.append(trial.score(trial.search(adapter, options=("bridge",))["bridge"]).mean())
    assert 0.5 < np.sqrt(np.mean(few["bridge"] ** 2) / 2) / np.std(drawn) < 2
