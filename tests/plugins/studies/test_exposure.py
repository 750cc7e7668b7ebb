"""Exposure: a rotation hides nothing, vectors of an unrelated model stay unnamed, and the sentence ends with its
limit."""

import numpy as np
import pandas as pd
import pytest
from relscope_studies import exposure
from relscope_studies.exposure import DEFENCES, ROTATED, Exposure, exposed

TESTED = 100


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(exposure, "ROWS", 300)
    monkeypatch.setattr(exposure, "TESTED", TESTED)
    return np.random.default_rng(0).normal(size=(2, 1000, 24)).astype(np.float32)


def test_a_secret_rotation_hides_nothing_and_costs_nothing(rows):
    found = exposed(rows[0], rows[0], ROTATED, 60, 0)
    assert found["top1"] > 0.95
    assert found["recall"] > 0.999


def test_vectors_of_an_unrelated_model_are_named_by_chance(rows):
    """1 of 100 by chance: 8 or more once in 100,000."""
    assert exposed(rows[0], rows[1], ROTATED, 60, 0)["top1"] < 8 / TESTED


@pytest.mark.parametrize("defence", DEFENCES)
def test_a_defence_keeps_the_rows_and_noise_costs_recall(defence, rows):
    defended = DEFENCES[defence](rows[0], np.random.default_rng(1))
    assert len(defended) == 1000
    kept = exposure._kept(exposure.unit_rows(rows[0]), exposure.unit_rows(defended))
    if defence in ("none", "secret rotation", "secret permutation", "rounded to int8"):
        assert kept > 0.95
    else:
        assert kept < 0.8


def test_the_finding_says_what_a_failed_attack_means():
    cells = [(ROTATED, 15), (ROTATED, 5), ("noise of the length", 30)]
    table = pd.DataFrame(
        [
            {"defence": name, "pairs": n, "top1": 0.5 + state / 100, "recall": 0.9, "random_state": state}
            for name, n in cells
            for state in range(3)
        ]
    )
    told = Exposure("exposure").conclusion({}, table)
    assert told.endswith("Not linked means that this attack failed, not that the vectors are safe.")
    assert "with 15 leaked pairs" in told
