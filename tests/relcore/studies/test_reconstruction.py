"""Reconstruction stitching: disparities are scipy's, errors are known by hand, and runs become pictures."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import procrustes

from relcore.base.errors import SpaceError
from relcore.runs.store import Store
from relcore.studies import reconstruction
from relcore.studies.figures import chart_exportable
from relcore.studies.material import digit_pictures
from relcore.studies.reconstruction import balanced_anchors, disparity, mean_squared_errors
from relcore.studies.study import StudySpec, study_of


@pytest.fixture
def few_digits(monkeypatch, tmp_path):
    dataset, pictures = digit_pictures(Store(tmp_path))

    class Few:
        labels = dataset.labels[:400]

    monkeypatch.setattr(reconstruction, "digit_pictures", lambda store: (Few, pictures[:400]))


def test_disparities_are_scipys_in_any_width(rng):
    for width in (2, 7):
        first, second = rng.normal(size=(50, width)), 5 * rng.normal(size=(50, width)) + 3
        assert disparity(first, second) == pytest.approx(procrustes(first, second)[2])


def test_runs_that_differ_by_a_turn_have_no_disparity_and_unrelated_ones_nearly_one(rng):
    first, (c, s) = rng.normal(size=(400, 2)) * [3, 1], (np.cos(0.9), np.sin(0.9))
    assert disparity(first, -2 * first @ [[c, s], [-s, c]] + [7, 1]) == pytest.approx(0, abs=1e-12)
    # The overlap of unrelated planes of n points is of the order √(2 d / n) = .1; its square is lost.
    assert disparity(first, rng.normal(size=(400, 2))) > 1 - 4 * 0.01
    with pytest.raises(SpaceError, match="got all of them in one place"):
        disparity(first, np.ones((400, 2)))


def test_errors_and_anchors_by_hand(rng):
    pictures = rng.uniform(size=(40, 3, 2))
    errors = mean_squared_errors(pictures.mean(axis=0), pictures)
    assert errors == pytest.approx(1000 * pictures.var(axis=0).mean())
    labels = np.array([str(i % 4) for i in range(40)])
    rows = balanced_anchors(pictures.astype(np.float32), labels, 12)
    assert np.unique(labels[rows], return_counts=True)[1].tolist() == [3] * 4


def test_runs_become_pictures_errors_planes_and_a_sentence(few_digits):
    study, models = study_of("reconstruction"), ["AE, absolute", "AE, relative", "AE, two numbers"]
    options = StudySpec.of(study, {"models": models, "epochs": 15, "n_anchors": 50}).settings
    runs = [one for one in study.runs(options) if one["random_state"] == 0]
    table = pd.DataFrame([one | study.measure(one, None, lambda *told: None).values for one in runs])
    own, stitched = (table.groupby("model")[name].mean() for name in ("own", "stitched"))
    # Unrelated codes cannot be read by another run's decoder; relative ones to the same anchors can.
    assert stitched["AE, absolute"] > 1.3 * own["AE, absolute"]
    assert stitched["AE, relative"] < min(2 * own["AE, relative"], 0.5 * stitched["AE, absolute"])
    table = pd.concat([table, table.assign(random_state=1, own=table.own + 1)], ignore_index=True)
    charts = study.charts(options, table)
    assert list(charts) == ["pictures", "errors", "planes as they are", "planes turned"]
    assert [row.label for row in charts["pictures"].rows] == [
        "absolute",
        "absolute, stitched",
        "relative",
        "relative, stitched",
    ]
    assert charts["pictures"].originals.shape == (10, 8, 8)
    for chart in charts.values():
        assert chart_exportable(chart).bytes("png").startswith(b"\x89PNG")
    assert len(study.findings(options, table)) == 7
    assert "with AE, relative codes" in study.conclusion(options, table)
