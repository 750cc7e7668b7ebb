"""Anchors against dimension: when a curve is at its plateau, a rotated copy, and the sentence on made-up
numbers.
"""

import numpy as np
import pandas as pd
import pytest

from relcore.spaces.space import LatentSpace
from relcore.studies import anchor_dimension
from relcore.studies.anchor_dimension import COUNTS, needed, reduced
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
    """A space of 3 dimensions in 20, and its rotated copy."""
    X = rng.normal(size=(900, 3)) @ rng.normal(size=(3, 20))
    rotation, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    spaces = tuple(
        LatentSpace(Y, [f"r{i}" for i in range(900)], name=name)
        for name, Y in (("a", X), ("b", X @ rotation))
    )
    monkeypatch.setattr(anchor_dimension, "spaces_of_pair", lambda *arguments: spaces)
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
    assert len(study.findings(options, table)) == 2 + 2 * 4 + 5
    charts = study.charts(options, table)
    anchors = charts["intrinsic dimension"].lines[0].y
    assert 2 <= anchors[0] <= 16
    assert list(charts["curves"].lines[0].x) == list(COUNTS)
    assert study.conclusion(options, table) == "", "one pair of spaces says nothing of the others"


def test_the_sentence_tells_ratio_power_and_rank_and_what_has_no_plateau():
    study, rows = study_of("anchor-dimension"), []
    for pair, dimension in enumerate((2, 4, 8, 16, 32)):
        curve = {f"mrr, {count} anchors": 1.0 if count >= 2 * dimension else 0.0 for count in COUNTS}
        row = {
            "data": "words",
            "pair": pair,
            "random_state": 0,
            "spaces": "a and b",
            "intrinsic dimension": float(dimension),
        }
        rows.append(
            {
                **row,
                **curve,
                "chance, 97.5 %": 0.01,
                "participation ratio": 2.0,
                "condition number": 100.0 / dimension,
                "width": 9,
            }
        )
    rows.append({**rows[0], "pair": 9, **{f"mrr, {count} anchors": 0.01 for count in COUNTS}})
    told = study.conclusion({}, pd.DataFrame(rows))
    step = 2 ** (0.95 - 1)  # from half the number, where nothing is found, to where all is
    assert told.startswith(
        "Over 5 pairs of spaces (1 more have no plateau by 512 anchors), 95 % of the plateau of held-out MRR"
    )
    assert f"takes {2 * 8 * step:.0f} (95 %: " in told, "8 is the geometric mean of the dimensions"
    assert "grows with the intrinsic dimension (power 1.00 (95 %: 1.00 to 1.00))" in told
    assert told.endswith(
        "is not seen to grow with the condition number (power −1.00 (95 %: −1.00 to −1.00))."
    )
    words = [{**row, "data": "reduced"} for row in rows[:3]]
    assert study.conclusion({}, pd.DataFrame(rows + words)).endswith(
        "; for the same words on fewer axes the power of the intrinsic dimension is 1.00 (95 %: 1.00 to"
        " 1.00)."
    )


def test_reduced_spaces_keep_the_largest_variances_of_the_known_rows(rng):
    X = rng.normal(size=(200, 6)) * [1, 5, 1, 1, 3, 1]
    known = np.arange(100)
    cut = reduced(LatentSpace(X, [f"r{i}" for i in range(200)], name="a"), known, 2)
    assert cut.vectors.shape == (200, 2)
    centred = X - X[known].mean(axis=0)
    kept = cut.vectors[known].var(axis=0).sum() / centred[known].var(axis=0).sum()
    values = np.linalg.svd(centred[known])[1] ** 2
    assert kept == pytest.approx(values[:2].sum() / values.sum(), rel=1e-5)
