"""A network with relative representations inside learns, and its rows are read by the head of another one."""

import pytest

from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.digits import digits_dataset
from relcore.encoders.swept_vision import SweptVision
from relcore.studies.trained import absolute_and_relative_accuracy


def test_more_anchors_learn_more_and_stitch_far_above_chance():
    dataset = digits_dataset(DatasetSpec("digits", limit=500))
    specs = [SweptVision(epochs=6, learning_rate=1e-2, random_state=state) for state in (0, 1)]
    few, many = (absolute_and_relative_accuracy(specs, dataset, n, 0, lambda *told: None) for n in (1, 100))
    assert few["relative, same space"] < 0.6 < many["relative, same space"]
    assert many["absolute"] > 0.7
    assert many["relative, stitched"] > 3 * many["chance"]
    assert many["test rows"] == 100
    assert many["absolute"] == pytest.approx(few["absolute"]), "anchors change nothing of it"


def test_the_norm_before_the_head_lets_another_networks_rows_be_read():
    # Six epochs of all digits, 200 anchors: .81 with the LayerNorm; without it .29: it knows one spread of
    # cosines.
    specs = [SweptVision(epochs=6, random_state=state) for state in (0, 1)]
    found = absolute_and_relative_accuracy(
        specs, digits_dataset(DatasetSpec("digits")), 200, 0, lambda *told: None
    )
    assert found["relative, stitched"] > 0.7
    assert found["relative, same space"] > 0.92
