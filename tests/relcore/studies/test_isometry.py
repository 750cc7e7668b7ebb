"""Disparity: nothing for an exact rotation, 1 for noise; a training against another one; the sentence on
made-up numbers.
"""

import numpy as np
import pandas as pd
import pytest

from relcore.represent.translation import Affine
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.studies.isometry import compared, disparity, trained_space
from relcore.studies.study import StudySpec, study_of

N, D = 400, 6


@pytest.fixture
def parts(rng):
    order = rng.permutation(N)
    return np.sort(order[:300]), np.sort(order[300:])


def labelled(vectors, classes):
    return LatentSpace(vectors, [f"r{i}" for i in range(len(vectors))], labels=[f"c{one}" for one in classes])


def test_an_exact_isometry_has_no_disparity_and_a_stretch_only_an_affine_one(rng, parts):
    X = rng.normal(size=(N, D))
    rotation, _ = np.linalg.qr(rng.normal(size=(D, D)))
    assert disparity(X, 3 * X @ rotation + 7, *parts) == pytest.approx(0, abs=1e-9)
    stretched = X * np.geomspace(1, 30, D)
    assert disparity(X, stretched, *parts) > 0.1
    assert disparity(X, stretched, *parts, Affine()) == pytest.approx(0, abs=1e-9)


def test_the_squared_error_that_noise_adds_is_the_disparity(rng, parts):
    """y = x R + e: with variances 1 and s² the best map explains 1 / (1 + s²) of the spread."""
    X = rng.normal(size=(N, D))
    rotation, _ = np.linalg.qr(rng.normal(size=(D, D)))
    s = 0.5
    found = disparity(X, X @ rotation + s * rng.normal(size=(N, D)), *parts)
    # The mean of 600 squares has a relative standard error of √(2 / 600) = .06; the fit on 300 rows adds less
    # than .02.
    assert found == pytest.approx(s**2 / (1 + s**2), rel=4 * 0.06 + 0.02)


def test_comparing_a_rotated_copy_loses_nothing_and_shuffled_rows_are_at_chance(rng, parts):
    classes = np.repeat(np.arange(4), N // 4)
    X = rng.normal(size=(N, D)) + 4 * np.eye(D)[classes]
    rotation, _ = np.linalg.qr(rng.normal(size=(D, D)))
    found = compared(labelled(X, classes), labelled(2 * X @ rotation, classes), parts[1])
    assert found["disparity"] == pytest.approx(0, abs=1e-6)
    assert found["relative loss"] == pytest.approx(0, abs=0.011), "at most one of the 100 test rows"
    assert found["procrustes loss"] == pytest.approx(0, abs=0.011)
    assert found["accuracy"] > 0.95
    assert found["chance"] == pytest.approx(1, abs=0.1)
    assert found["chance of accuracy"] < 0.5


def test_a_training_is_repeated_to_the_last_bit_and_differs_from_the_next(tmp_path):
    store = Store(tmp_path)
    first, again, other = (
        trained_space("autoencoder", 8, state, store, lambda *told: None) for state in (0, 0, 1)
    )
    assert first.vectors.shape == (1797, 8)
    assert np.array_equal(first.vectors, again.vectors)
    assert first.ids.tolist() == other.ids.tolist()
    known, test = np.arange(1400), np.arange(1400, 1797)
    assert 0 < disparity(first.vectors, other.vectors, known, test) < 0.6


def made_up(n_states=4):
    rows = []
    for state in range(n_states):
        for width, gap in ((8, 0.4), (32, 0.2), (128, 0.05)):
            gap += state / 1000
            row = {
                "network": "mlp",
                "width": width,
                "random_state": state,
                "disparity": gap,
                "affine disparity": gap / 2,
            }
            losses = {"relative loss": 0.5 * gap, "procrustes loss": 0.3 * gap}
            rows.append({**row, **losses, "chance": 1.0, "test rows": 359, "key": "0" * 32})
    return pd.DataFrame(rows)


def test_the_sentence_counts_the_alike_and_tells_both_slopes():
    study = study_of("isometry")
    options = StudySpec.of(study).settings
    told = study.conclusion(options, made_up())
    assert (
        "nine tenths of the held-out spread in 4 of 12 pairs of trainings, a share of .33 (95 %: .14 to .61)"
        in told
    )
    assert (
        ".1 more of it costs .030 (95 %: .030 to .030) of accuracy with an absolute head after Procrustes"
        in told
    )
    assert told.endswith("and .050 (95 %: .050 to .050) of accuracy with a relative head.")
    assert study.conclusion(options, made_up()[:3]) == ""
    assert study.conclusion(options, pd.DataFrame()) == ""
    charts = study.charts(options, made_up())
    assert next(iter(charts)) == "disparity over width"
    assert list(charts["disparity over width"].lines[0].x) == [8, 32, 128]
    assert len(study.findings(options, made_up())) == 1 + 2 * 2 + 3 * 5
