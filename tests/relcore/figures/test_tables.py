"""Tables: the numbers behind the charts, by hand or by NumPy."""

import numpy as np
import pandas as pd
import pytest

from relcore.figures.export import scores_exportable
from relcore.figures.tables import (
    condition,
    histogram_table,
    printed_scores,
    score_places,
    score_table,
    spectrum_table,
)


def test_histogram_counts_are_numpys_and_percents_are_of_each_array():
    values = {"a": np.arange(10.0), "b": np.array([0.0, 9.0])}
    table = histogram_table(values, bins=3)
    assert table[table.name == "a"]["count"].tolist() == np.histogram(values["a"], 3)[0].tolist()
    assert table.groupby("name").percent.sum().tolist() == pytest.approx([100, 100])
    assert table.left.iloc[0] == 0
    assert table.right.iloc[-1] == 9


def test_one_far_value_asks_for_no_more_than_80_bins():
    values = np.append(np.random.default_rng(0).normal(size=10_000), 1e12)
    assert len(histogram_table({"a": values})) == 80


def test_equal_values_make_a_histogram():
    assert histogram_table({"a": np.ones(5)})["count"].sum() == 5


@pytest.mark.parametrize(
    ("values", "message"),
    [({}, "at least one"), ({"a": [1, np.nan]}, "1 NaN or infinite"), ({"a": []}, "'a', got an empty array")],
)
def test_histogram_refuses(values, message):
    with pytest.raises(ValueError, match=message):
        histogram_table(values)


def test_spectrum_is_sorted_and_its_condition_known():
    table = spectrum_table({"a": [1.0, 4.0, 2.0], "flat": [3.0, 3.0], "flawed": [1.0, 0.0]})
    assert table[table.name == "a"].relative.tolist() == [1, 0.5, 0.25]
    assert [condition(part) for _, part in table.groupby("name", sort=False)] == [
        "condition 4",
        "condition 1",
        "singular",
    ]
    with pytest.raises(ValueError, match="negative one, −1"):
        spectrum_table({"a": [1.0, -1.0]})


def test_scores_are_checked(scores):
    with pytest.raises(ValueError, match="got no null_low, null_high"):
        score_table(scores.drop(columns=["null_low", "null_high"]))
    with pytest.raises(ValueError, match="'linear CKA', 'relative' twice"):
        score_table(scores.iloc[[0, 3, 3]])
    with pytest.raises(ValueError, match="at least one row"):
        score_table(scores.iloc[:0])


def test_bars_stand_beside_each_other_around_their_metric(scores):
    placed, width = score_places(scores)
    assert placed.x.tolist() == pytest.approx([-0.2, 0.2, 0.8, 1.2])
    assert width == pytest.approx(0.4)


def test_the_printed_scores_have_a_row_per_form_with_chance_and_n():
    table = pd.DataFrame(
        [
            {
                "metric": "MRR",
                "form": "absolute",
                "score": 0.25,
                "null_low": 0.0,
                "null_high": 0.01,
                "n": 20000,
            },
            {
                "metric": "MRR",
                "form": "relative",
                "score": 0.5,
                "null_low": 0.0,
                "null_high": 0.01,
                "n": 19700,
            },
            {
                "metric": "cosine",
                "form": "relative",
                "score": -0.125,
                "null_low": np.nan,
                "null_high": np.nan,
                "n": 19700,
            },
        ]
    )
    printed = printed_scores(table)
    assert printed.to_dict("list") == {
        "representation": ["absolute", "relative"],
        "MRR": ["0.250 [0.000, 0.010]", "0.500 [0.000, 0.010]"],
        "cosine": ["–", "-0.125"],
        "n": ["20000", "19700"],
    }
    latex = scores_exportable(table).bytes("tex").decode()
    assert r"\toprule" in latex
    assert "relative & 0.500 [0.000, 0.010] & -0.125 & 19700" in latex
