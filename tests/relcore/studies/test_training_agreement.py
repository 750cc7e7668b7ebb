"""Agreement in training: curves whose crossings are known, sentences in every direction, and a small run."""

import numpy as np
import pandas as pd
import pytest

from relcore.studies.study import StudySpec, study_of
from relcore.studies.training_agreement import _batches, _crossing, _curves, _ratio

STUDY = study_of("training-agreement")
SMALL = {"task": "digits", "width": 16, "epochs": 3, "random_state": 0}


def test_crossings_are_interpolated_and_the_last_one_counts():
    steps = np.array([0, 1, 3, 7, 15])  # log2(1 + step) is 0, 1, 2, 3, 4
    rising = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    assert _crossing(steps, rising, 0.5) == pytest.approx(3)
    assert _crossing(steps, rising, 0.375) == pytest.approx(2**1.5 - 1)
    falling_first = np.array([0.6, 0.7, 0.2, 0.6, 1.0])  # above a tenth of its rise, then below it
    assert _crossing(steps, falling_first, 0.1) == pytest.approx(2**3.1 - 1)
    assert np.isnan(_crossing(steps, np.array([0.0, 0.5, 1.0, 0.8, 0.3]), 0.5))  # it does not stay


def table_of(times, rise=0.5, n=6):
    """Runs in which agreement takes `times` as many batches as accuracy, give or take a tenth."""
    rows = []
    for state in range(n):
        for width in (16, 64):
            row = {"random_state": state, "width": width, "agreement rise": rise + 0.01 * state}
            for share in (0.1, 0.5):
                row[_batches("accuracy", share)] = 10.0 * width
                row[_batches("agreement", share)] = 10.0 * width * times * 1.1 ** (-1) ** state
            rows.append(row)
    return pd.DataFrame(rows)


def test_the_ratio_is_a_geometric_mean_over_states():
    ratio = _ratio(table_of(4), 0.5)
    assert ratio.value == pytest.approx(4)
    assert ratio.n == 6
    spread = np.log2(1.1) * np.sqrt(6 / 5)  # the deviation of ± log2(1.1) over six states
    half = 2.5706 * spread / np.sqrt(6)  # Student's t with 5 degrees of freedom
    assert ratio.high == pytest.approx(4 * 2**half, rel=1e-4)


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (
            4,
            "No, accuracy comes first: accuracy makes half of its rise in 320 batches, agreement in 1,280, 4.0",
        ),
        (0.25, "Yes, agreement comes first"),
        (1, "They learn both at about the same time"),
        (np.nan, "They do not come to agree. The MRR of their similarities to anchors changes by .53"),
    ],
)
def test_the_conclusion_follows_the_interval(times, told):
    assert STUDY.conclusion({}, table_of(times)).startswith(told)
    assert STUDY.conclusion({}, table_of(times, n=1)) == ""


@pytest.fixture(scope="module")
def run():
    return STUDY.measure(SMALL, None, lambda *_: None)


def test_a_run_learns_and_repeats(run):
    again = STUDY.measure(SMALL, None, lambda *_: None)
    pd.testing.assert_frame_equal(pd.DataFrame([again.values]), pd.DataFrame([run.values]))
    values = run.values
    assert values["steps"][0] == 0
    assert values["steps"][-1] == 3 * 19  # 1,197 digits in batches of 64
    assert values["rows"] == 480
    assert values["accuracy after"] == values["accuracy, curve"][-1] > 0.4
    assert values["accuracy, curve"][0] < 0.3
    assert 0 < values["accuracy, batches to 50%"] < 57
    other = STUDY.measure(SMALL | {"random_state": 1}, None, lambda *_: None)
    assert other.values["agreement, curve"] != values["agreement, curve"]


def test_charts_and_findings_have_each_width(run):
    rows = [{**SMALL, "random_state": state, **run.values} for state in (0, 1)]
    table = pd.DataFrame(rows)
    curves = _curves(table)
    assert curves.step.min() == 0.5
    assert len(curves) == 2 * len(run.values["steps"])
    charts = STUDY.charts(StudySpec.of(STUDY).settings, table)
    assert list(charts) == ["width 16"]
    assert [line.name for line in charts["width 16"].lines] == [
        "similarities to anchors",
        "own axes",
        "accuracy",
    ]
    findings = STUDY.findings({}, table)
    assert findings.what.str.startswith("width 16, ").all()
    assert findings.value.notna().any()
