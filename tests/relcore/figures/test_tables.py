"""Tables: the numbers behind the charts, by hand or by NumPy."""

import numpy as np
import pytest

from relcore.figures.charts import histogram_table, spectrum_lines, spectrum_table


def test_histogram_counts_are_numpys_and_percents_are_of_each_array():
    values = {"a": np.arange(10.0), "b": np.array([0.0, 9.0])}
    table = histogram_table(values)
    assert table[table.name == "a"]["count"].tolist() == np.histogram(values["a"], 20)[0].tolist()
    assert table.groupby("name").percent.sum().tolist() == pytest.approx([100, 100])
    assert table.left.iloc[0] == 0
    assert table.right.iloc[-1] == 9


@pytest.mark.parametrize(
    ("values", "message"),
    [({}, "finite values"), ({"a": [1, np.nan]}, r"\['a'\]"), ({"a": []}, r"\['a'\]")],
)
def test_histogram_refuses(values, message):
    with pytest.raises(ValueError, match=message):
        histogram_table(values)


def test_spectrum_is_sorted_and_its_condition_known():
    table = spectrum_table({"a": [1.0, 4.0, 2.0], "flat": [3.0, 3.0]})
    assert table[table.name == "a"].relative.tolist() == [1, 0.5, 0.25]
    names = [line.name for line in spectrum_lines({"a": [1.0, 4.0], "flawed": [1.0, 0.0]}).lines]
    assert names == ["a · condition 4", "flawed · singular"]
