"""The common mean: known answers of the cosines, and a rotated copy with an offset."""

import numpy as np
import pandas as pd
import pytest
from relscope_studies import inversion
from relscope_studies.inversion import COSINES, cosines

from relcore.spaces.space import LatentSpace
from relcore.studies.study import StudySpec, study_of


def test_cosines_against_their_plain_formulas(rng):
    mean = rng.normal(size=12).astype(np.float32)
    found, true = (rng.normal(size=(50, 12)).astype(np.float32) + mean for _ in range(2))
    got = cosines(found, true, mean)

    def unit(X):
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    table, own = (unit(one) @ unit(true).T for one in (found, true))
    centred = unit(found - mean) @ unit(true - mean).T
    others = ~np.eye(50, dtype=bool)
    expected = {
        "translated": np.trace(table) / 50,
        "constant": (unit(true) @ mean / np.linalg.norm(mean)).mean(),
        "permuted": table[others].mean(),
        "unrelated": own[others].mean(),
        "centred": np.trace(centred) / 50,
        "centred permuted": centred[others].mean(),
    }
    assert list(got) == list(COSINES)
    for name, value in expected.items():
        assert got[name] == pytest.approx(value, abs=1e-5), name


@pytest.fixture
def study(monkeypatch, rng):
    X = rng.normal(size=(300, 10))
    rotation, _ = np.linalg.qr(rng.normal(size=(10, 10)))
    spaces = [LatentSpace(Y, [f"r{i}" for i in range(300)]) for Y in (X + 1, 3 * X @ rotation - 5)]
    monkeypatch.setattr(inversion, "studied_spaces", lambda *arguments: spaces)
    return study_of("common-mean")


def test_a_rotated_copy_is_found_with_and_without_the_mean(study):
    options = StudySpec.of(study, {"data": ["words"], "n_anchors": 100, "n_states": 3}).settings
    runs = [{**one, **study.measure(one, None, lambda *told: None).values} for one in study.runs(options)]
    table = pd.DataFrame(runs)
    # directions are found, lengths are not: they turn a row that contains the mean
    assert table.translated.min() > 0.95
    assert table.centred.min() > 0.95
    assert table["centred permuted"].abs().max() < 0.05, "no row points where another one does"
    chart = study.charts(options, table)["cosine"]
    assert [line.name for line in chart.lines] == list(COSINES.values())
    assert len(study.findings(options, table)) == len(COSINES)
    told = study.conclusion(options, table)
    assert told.startswith("Mostly the common mean on words: ")
    assert "(95 %:" in told
    assert study.conclusion(options, table[:1]) == "", "one state gives no interval"
