"""Lengths of rows: known for a line, and one curve and one finding per space and kind of length."""

import numpy as np
import pandas as pd
import pytest

from relcore.spaces.space import LatentSpace
from relcore.studies.networks import length_values
from relcore.studies.study import study_of


def test_the_variation_is_known_for_a_line():
    values = length_values(LatentSpace([[-3.0], [-1.0], [1.0], [3.0]], list("abcd")))
    # Lengths 3, 1, 1, 3: mean 2, sample deviation √(4/3), around the mean row 0 and around the origin alike.
    for kind in ("norm", "centred"):
        assert values[f"{kind} mean"] == 2
        assert values[f"{kind} varies by"] == pytest.approx(np.sqrt(4 / 3) / 2)
        assert sum(values[f"{kind} density"]) * 0.05 == pytest.approx(1)


def test_rows_of_one_length_do_not_vary(rng):
    X = rng.normal(size=(500, 6))
    values = length_values(
        LatentSpace(X / np.linalg.norm(X, axis=1, keepdims=True), [str(i) for i in range(500)])
    )
    assert values["norm varies by"] == pytest.approx(0, abs=1e-6)
    study, table = study_of("row-lengths"), pd.DataFrame([values, values | {"name": "other"}])
    assert [len(chart.lines) for chart in study.charts({}, table).values()] == [2, 2]
    assert len(study.findings({}, table)) == 4
    assert study.conclusion({}, table).startswith("Row lengths vary by")
