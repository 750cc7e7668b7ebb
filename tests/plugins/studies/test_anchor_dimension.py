"""Anchors against dimension: when a curve is at its plateau, growth, and a rotated copy."""

import numpy as np
import pandas as pd
import pytest
from relscope_studies import isometry
from relscope_studies.isometry import COUNTS, needed

from relcore.spaces.space import LatentSpace
from relcore.studies.study import StudySpec, study_of


def test_needed_interpolates_the_logarithm_and_knows_when_there_is_no_plateau():
    assert needed((2, 8, 32), (0.0, 0.95, 1.0), 0.1) == pytest.approx(8)
    assert needed((2, 8, 32), (0.9, 1.0, 1.0), 0.1) == pytest.approx(4), (
        "half way from .9 to 1, half way from log 2 to log 8"
    )
    assert needed((2, 8, 32), (0.97, 1.0, 1.0), 0.1) == 2
    assert needed((2, 8, 32), (0.2, 0.5, 1.0), 0.1) is None, "still growing"
    assert needed((2, 8, 32), (0.02, 0.03, 0.03), 0.1) is None, "nothing is found"


@pytest.fixture
def study(monkeypatch, rng):
    X = rng.normal(size=(900, 3)) @ rng.normal(size=(3, 20))
    rotation, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    spaces = tuple(LatentSpace(Y, [f"r{i}" for i in range(900)]) for Y in (X, X @ rotation))
    monkeypatch.setattr(isometry, "spaces_of_pair", lambda *arguments: spaces)
    return study_of("anchor-dimension")


def test_a_rotated_copy_of_three_dimensions_is_seen_as_such_and_needs_few_anchors(study):
    options = StudySpec.of(study, {"data": ["words"], "n_states": 3}).settings
    runs = study.runs(options)[:2]
    table = pd.DataFrame([{**one, **study.measure(one, None, lambda *told: None).values} for one in runs])
    assert table["intrinsic dimension"].tolist() == pytest.approx([3, 3], rel=0.15)
    assert table["participation ratio"].max() <= 3 + 1e-3
    assert table.width.tolist() == pytest.approx([20, 20])
    assert table["mrr, 512 anchors"].min() > 0.99
    assert table["chance, 97.5 %"].max() < 0.05
    assert len(study.findings(options, table)) == 2 + 4
    charts = study.charts(options, table)
    anchors = charts["intrinsic dimension"].lines[0].y
    assert 2 <= anchors[0] <= 16
    assert list(charts["curves"].lines[0].x) == list(COUNTS)
    assert study.conclusion(options, table) == "", "one pair of spaces does not show what others do"
