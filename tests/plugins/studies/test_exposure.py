"""Exposure: a rotation hides nothing, vectors of an unrelated model stay unnamed, and the sentence ends with its
limit."""

import numpy as np
import pytest
from relscope_studies import exposure
from relscope_studies.exposure import DEFENCES, ROTATED, exposed

TESTED = 100


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(exposure, "ROWS", 300)
    monkeypatch.setattr(exposure, "TESTED", TESTED)
    return np.random.default_rng(0).normal(size=(2, 1000, 24)).astype(np.float32)


def test_a_secret_rotation_hides_nothing_and_an_unrelated_model_is_named_by_chance(rows):
    found = exposed(rows[0], rows[0], ROTATED, 60, 0)
    assert found["top1"] > 0.95
    assert found["recall"] > 0.999
    # 1 of 100 by chance: 8 or more once in 100,000
    assert exposed(rows[0], rows[1], ROTATED, 60, 0)["top1"] < 8 / TESTED


@pytest.mark.parametrize("defence", DEFENCES)
def test_a_defence_keeps_the_rows_and_noise_costs_recall(defence, rows):
    defended = DEFENCES[defence](rows[0], np.random.default_rng(1))
    assert len(defended) == 1000
    kept = exposure._kept(exposure.unit_rows(rows[0]), exposure.unit_rows(defended))
    harmless = defence in ("none", "secret rotation", "secret permutation", "rounded to int8")
    assert kept > 0.95 if harmless else kept < 0.8
