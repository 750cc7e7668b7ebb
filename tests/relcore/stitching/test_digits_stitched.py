"""The digits, from training four encoders to the stitched matrix: what the methods are expected to reach."""

import numpy as np
import pytest

from benchmarks.stitching import digits
from relcore.runs.store import Store
from relcore.stitch import stitching as classification
from relcore.stitch.stitching import Stitching, share_rows, stitch_matrix


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return digits(Store(tmp_path_factory.mktemp("store")))


@pytest.mark.slow
def test_four_encoders_of_digits(task):
    table = stitch_matrix(*task).summary().query("metric == 'accuracy'").set_index("method")
    stitched = table["stitched"]
    assert table["own"].min() > 0.96
    assert stitched["relative"] >= 0.94
    assert stitched["relative, whitened"] >= stitched["relative"] - 0.01
    assert stitched["absolute"] <= 0.30
    assert stitched["Procrustes"] >= 0.95
    assert stitched["inverse, pruned"] >= 0.94


@pytest.mark.slow
def test_all_pairs_answer_a_new_picture_without_fitting_anything_again(task, monkeypatch):
    spaces, spec = task
    stitching = Stitching(share_rows(spaces), spec)
    rows = [space.vectors[:1] for space in spaces]
    for fitting in ("fit_head", "representation", "carrier"):
        monkeypatch.setattr(classification, fitting, lambda *_, **__: pytest.fail("fitted again"))
    for method in spec.methods:
        probabilities = stitching.probabilities(method, rows)
        assert probabilities.shape == (4, 4, 1, 10)
        assert np.isfinite(probabilities).all()
