"""The chosen adapter, the weight of its search and the truth, where the answer is known."""

import numpy as np
import pytest

from relcore.migrate.evaluate import (
    AUTOMATIC,
    Pairs,
    choose,
    richer,
)
from relcore.represent.similarity import unit_rows
from tests.relcore.migrate.planted import model

M = 300


def paired(new, old):
    ids = np.array([f"r{row}" for row in range(len(new))], dtype=object)
    return Pairs(unit_rows(new), unit_rows(old), ids)


@pytest.fixture
def topics(rng):
    return rng.normal(size=(M, 12))


def test_a_rotation_is_found_and_all_adapters_are_compared(rng):
    new = rng.normal(size=(M, 10))
    rotation, _ = np.linalg.qr(rng.normal(size=(10, 10)))
    rotated = choose(paired(new, new @ rotation), unit_rows(new @ rotation))
    assert {one.adapter for one in rotated} == set(AUTOMATIC)
    assert rotated[0].partner == pytest.approx(1, abs=0.01)
    assert rotated[0].neighbours > 0.95
    scores = [one.score for one in rotated]
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx([np.sqrt(one.partner * one.neighbours) for one in rotated])


def test_an_adapter_that_fits_noise_is_not_chosen(rng, topics):
    """With 50 pairs and 40 dimensions least squares without a penalty learns mostly noise."""
    old, new = (unit_rows(model(topics, 0.5, 40, seed)) for seed in (1, 2))
    found = choose(paired(new[:50], old[:50]), old, adapters=("affine", "whitened"))
    assert found[0].adapter == "whitened"
    assert found[0].score > found[1].score + 0.05


def test_unrelated_pairs_score_what_chance_scores(rng):
    new, old = rng.normal(size=(M, 10)), rng.normal(size=(M, 8))
    # Mean of 1 / rank over 300 rows by chance: H(300) / 300 = .021; of the best of seven adapters a little
    # more. Ten of 299 rows are relevant: nDCG is .033 on average.
    for one in choose(paired(new, old), unit_rows(old)):
        assert one.partner < 0.06
        assert one.neighbours < 0.07


def test_folds_go_by_ids_and_are_of_one_size():
    pairs = paired(np.ones((M, 2)), np.ones((M, 2)))
    folds = [set(pairs.ids[held]) for held, _ in pairs.folds(0)]
    assert [len(fold) for fold in folds] == [60] * 5
    shuffled = pairs.take(np.random.default_rng(0).permutation(M))
    assert [set(shuffled.ids[held]) for held, _ in shuffled.folds(0)] == folds
    assert all(not fold & set(known.ids) for fold, (_, known) in zip(folds, pairs.folds(0), strict=True))


def test_the_model_that_sees_more_topics_is_the_richer_one(rng):
    topics = rng.normal(size=(800, 12))
    all_topics, few = unit_rows(model(topics, 0.1, 24, 1)), unit_rows(model(topics[:, :4], 0.1, 24, 2))
    again = unit_rows(model(topics, 0.1, 24, 3))
    assert richer(few, all_topics)[0] == "new"
    assert richer(all_topics, few)[0] == "old"
    assert richer(all_topics, again)[0] == "both"


def test_unrelated_models_are_alike(rng):
    """Negative control: of 20 unrelated pairs of models at most two are told apart."""
    told = [richer(*(unit_rows(rng.normal(size=(200, width))) for width in (8, 40)))[0] for _ in range(20)]
    assert told.count("both") >= 18
