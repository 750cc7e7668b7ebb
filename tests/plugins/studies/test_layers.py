"""Layer by layer: spaces that share a signal, and the chance level of the best of all cells."""

import numpy as np
import pandas as pd
import pytest
from relscope_studies.heads import similarity_values, stitched_values

from relcore.spaces.space import LatentSpace
from relcore.studies.study import StudySpec, study_of

N = 180
SETTINGS = {"metric": "cka", "method": "relative", "n_anchors": 40, "random_state": 0}
IDS = [f"r{row}" for row in range(N)]


def layers(signal, n):
    """Layers of 20 dimensions over the same rows; the signal of three classes is `signal` strong in all."""
    rng = np.random.default_rng(3)
    labels = rng.permutation(np.arange(N) % 3)
    centres = rng.normal(size=(3, 20))
    turns = [np.linalg.qr(rng.normal(size=(20, 20)))[0] for _ in range(n)]
    rows = [signal * centres[labels] @ turn + rng.normal(size=(N, 20)) for turn in turns]
    return [LatentSpace(X, IDS, name=f"layer {i}", labels=labels.astype(str)) for i, X in enumerate(rows)]


@pytest.mark.slow
def test_layers_with_a_common_signal_are_alike_and_read_by_each_others_heads():
    spaces = layers(4, 7)
    values = stitched_values(spaces, SETTINGS) | similarity_values(spaces, "cka")
    similarity = np.array(values["similarity"])
    accuracy = np.array(values["accuracy"])
    np.testing.assert_allclose(similarity, similarity.T)
    np.testing.assert_allclose(np.diag(similarity), 1)
    assert similarity.min() > 0.3 > values["similar, high"]
    assert accuracy.min() > 0.9 > values["stitched, high"]
    study = study_of("layers")
    other = {"accuracy": (accuracy - 0.01).tolist(), "random_state": 1}
    table = pd.DataFrame([values | {"random_state": 0}, values | other])
    settings = StudySpec.of(study).settings
    (chart,) = study.charts(settings, table).values()
    assert [panel.title for panel in chart.panels] == ["linear CKA", "accuracy"]
    apart = study.findings(settings, table).value
    assert apart[0] == pytest.approx(np.diag(accuracy).mean() - 0.005)
    assert study.conclusion(settings, table).startswith("Heads read the next layer with an accuracy of")


def test_the_best_of_unrelated_layers_lies_within_what_the_best_is_by_chance():
    # No signal, so labels are random: the best of 20 stitched cells and of 10 pairs lies in its own 95 % band,
    # or a little beside it: over 36 held-out rows, .08 is one standard error of an accuracy.
    values = stitched_values(layers(0, 5), SETTINGS) | similarity_values(layers(0, 5), "cka")
    assert values["stitched, low"] - 0.08 < values["best stitched"] < values["stitched, high"] + 0.08
    best = np.array(values["similarity"])[~np.eye(5, dtype=bool)].max()
    width = values["similar, high"] - values["similar, low"]
    assert values["similar, low"] - width < best < values["similar, high"] + width
