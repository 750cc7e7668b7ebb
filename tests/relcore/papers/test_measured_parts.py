"""Parts of the paper runs whose answer is known."""

import numpy as np
import pytest

from relcore.invert.rescale import LayerRescaleResult, LayerRescaleSpec
from relcore.papers.measured import _different_pairs, _lost, completed


def test_different_sentences_are_as_alike_as_their_common_mean(rng):
    # Rows m + e with |m|² = 4 and e of 400 entries of variance .01, |e|² ≈ 4: the cosine of two is 4 / (4 +
    # 4) = .5.
    mean = np.zeros(400)
    mean[0] = 2.0
    found = _different_pairs((mean + rng.normal(scale=0.1, size=(200, 400))).astype(np.float32))
    assert found.value == pytest.approx(0.5, abs=0.01)
    centred = _different_pairs(rng.normal(size=(200, 400)).astype(np.float32))
    # The cosine of two random directions deviates by 1/√400 = .05; the mean of 19,900 of them by .0004.
    assert centred.value == pytest.approx(0, abs=0.002)
    assert centred.deviation == pytest.approx(0.05, rel=0.05)


def test_what_a_layer_loses_has_the_interval_of_paired_answers():
    def lost(accuracy, changed, n=100):
        spec = LayerRescaleSpec()
        facts = {"own": 0.9, "chance": 0.1, "n_train": 400, "n_test": n, "changed": ((changed,),)}
        return _lost(
            LayerRescaleResult(spec, "a", ("layer 1",), (5.0,), (5.0,), ((accuracy,),), **facts), "layer 1"
        )

    same, one_way, both_ways = lost(0.9, 0.0), lost(0.86, 0.04), lost(0.9, 0.2)
    assert same.value == 0
    assert same.high == pytest.approx(1.96 * np.sqrt(1) / 100, rel=1e-3)
    assert one_way.value == pytest.approx(0.04)
    assert one_way.high - one_way.value == pytest.approx(1.96 * np.sqrt(5 - 0.16) / 100, rel=1e-3)
    assert both_ways.high > one_way.high - one_way.value, "answers that change both ways widen it"


def test_completion_leaves_a_rotation_and_amplifies_what_was_damped(rng):
    rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    assert completed(rotation) == pytest.approx(rotation, abs=1e-5)
    # Two axes of the source go to nearly the same direction: W has singular values √(1 ± cos), and completion
    # inverts them.
    nearly = np.array([[1.0, 0.0], [0.9, np.sqrt(1 - 0.81)]])
    singular = np.linalg.svd(nearly, compute_uv=False)
    assert np.linalg.svd(completed(nearly), compute_uv=False) == pytest.approx(1 / singular[::-1], rel=1e-4)
