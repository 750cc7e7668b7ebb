"""A network with relative representations inside learns, and its rows are read by the head of another one."""

from relcore.encoders.datasets import digits_dataset
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.vision import SweptVision
from relcore.studies.networks import absolute_and_relative_accuracy


def test_the_norm_before_the_head_lets_another_networks_rows_be_read():
    # Six epochs of all digits, 200 anchors: .81 with the LayerNorm; without it .29: it knows one spread of
    # cosines.
    specs = [SweptVision(epochs=6, random_state=state) for state in (0, 1)]
    found = absolute_and_relative_accuracy(
        specs, digits_dataset(DatasetSpec("digits")), 200, 0, lambda *told: None
    )
    assert found["relative, stitched"] > 0.7
    assert found["relative, same space"] > 0.92
