"""Quantised rows of unrelated spaces are no nearer than chance."""

import numpy as np
import pytest

from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, match
from relcore.studies import relative
from relcore.studies.study import StudySpec, study_of


@pytest.fixture
def unrelated(monkeypatch):
    rng = np.random.default_rng(0)
    ids = [f"r{i}" for i in range(300)]
    pair = match(*(LatentSpace(rng.normal(size=(300, 50)), ids, name=name) for name in ("a", "b")))
    monkeypatch.setattr(relative, "word_pair", lambda spaces, store: pair)


@pytest.mark.parametrize("form", relative.FORMS)
def test_unrelated_rows_are_as_far_apart_as_chance_and_find_themselves_by_chance_alone(
    form, unrelated, tmp_path
):
    study = study_of("quasi-isometry")
    settings = StudySpec.of(study, {"n_anchors": 100}).settings
    runs = [one for one in study.runs(settings) if one["form"] == form]
    found = [study.measure(one, Store(tmp_path), lambda *told: None).values for one in runs]
    # 5 draws of 100 anchors leave 200 of 300 rows. The reciprocal rank of a random order that ends at 10 has
    # the mean 2.93 / 200 = .0146 and the variance 1.55 / 200 − .0146² = .0075. The draws share rows, so count
    # 300 queries, not 1,000: standard error √(.0075 / 300) = .005, tolerance 4 of them. Scored with the
    # anchors among the rows it was .29.
    assert np.mean([one["mrr"] for one in found]) == pytest.approx(found[0]["mrr chance"], abs=0.02)
    assert found[0]["mrr chance"] == pytest.approx(2.929 / 200, rel=1e-3)
    # Rows relative to 100 anchors in 50 dimensions have about 50 free directions: a cosine of two of them
    # deviates by .14, the mean of 200 by .01. Quantising leaves only a few dozen different rows: allow .1.
    assert np.mean([one["cosine distance"] for one in found]) == pytest.approx(1, abs=0.1)
