"""Tables: the numbers behind the charts, by hand or by NumPy."""

import numpy as np
import pytest

from relcore.figures.charts import histogram_table


def test_histogram_counts_are_numpys_and_percents_are_of_each_array():
    values = {"a": np.arange(10.0), "b": np.array([0.0, 9.0])}
    table = histogram_table(values)
    assert table[table.name == "a"]["count"].tolist() == np.histogram(values["a"], 20)[0].tolist()
    assert table.groupby("name").percent.sum().tolist() == pytest.approx([100, 100])
    assert table.left.iloc[0] == 0
    assert table.right.iloc[-1] == 9
