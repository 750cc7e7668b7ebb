"""Training curves: the numbers as measured, on screen, on paper and from the recipe."""

import pytest

from relcore.base.errors import SpaceError
from relcore.figures.charts import training_table

CURVES = {
    "CNN $64": {"loss": [2.0, 1.0, 0.5], "accuracy": [0.2, 0.6, 0.9]},
    "<MLP>": {"loss": [1.5], "accuracy": [0.4]},
}


def test_the_table_holds_each_epoch_once():
    table = training_table(CURVES)
    assert table.epoch.tolist() == [1, 2, 3, 1]
    assert table.name.tolist() == ["CNN $64"] * 3 + ["<MLP>"]
    assert table.loss.tolist() == [2.0, 1.0, 0.5, 1.5]
    assert table.accuracy.tolist() == [0.2, 0.6, 0.9, 0.4]
    only_loss = training_table({"a": {"loss": [1, 2]}})
    assert only_loss.accuracy.isna().all()


@pytest.mark.parametrize("curves", [{}, {"a": {}}, {"a": {"loss": []}}])
def test_nothing_trained_is_no_figure(curves):
    with pytest.raises(SpaceError, match="expected the loss of one epoch or more, got none"):
        training_table(curves)
