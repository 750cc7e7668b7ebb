"""Across domains: a rotated twin is understood whole, a copy of another space is not; rows that are tested
were not trained on.
"""

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.small_vision import SmallVision, held_out_rows
from relcore.runs.store import Store
from relcore.studies import domains
from relcore.studies.domains import Part, by_group, cross_domain_matrices, trained_parts
from relcore.studies.study import StudySpec, study_of


@pytest.fixture
def make_part(rng, make_space):
    """``make_part(domain, encoder, turn)``: 200 rows of four classes, other ones each time, and the same
    40 anchors.
    """
    centers, anchors = 3 * rng.normal(size=(4, 10)), 2 * rng.normal(size=(40, 10))

    def make(domain, encoder="net", turn=None, labels=None):
        classes = rng.integers(4, size=200)
        X = centers[classes] + rng.normal(size=(200, 10))
        turn = np.eye(10) if turn is None else turn
        labels = [f"class {number}" for number in classes] if labels is None else labels
        space = make_space(X @ turn, name=f"{encoder} · {domain}", labels=labels)
        return Part(domain, encoder, space, np.arange(0, 200, 4), (anchors @ turn).astype(np.float32))

    return make


@pytest.fixture
def turn(rng):
    return np.linalg.qr(rng.normal(size=(10, 10)))[0]


def test_a_rotated_domain_is_understood_and_a_plain_copy_is_not(make_part, turn):
    parts = [
        make_part("plain"),
        make_part("turned", turn=turn),
        make_part("plain", "other", turn=turn @ turn),
    ]
    matrices = cross_domain_matrices(parts, ("procrustes", "relative", "absolute"), 40)
    for method in ("procrustes", "relative"):
        assert matrices[method].min() > 0.9
    absolute = matrices["absolute"]
    assert absolute.diagonal().min() > 0.9
    assert absolute[0, 1] < 0.8
    groups = by_group(absolute, [part.domain for part in parts])
    assert groups["not stitched"] == pytest.approx(absolute.diagonal().mean())
    assert groups["same domain"] == pytest.approx((absolute[0, 2] + absolute[2, 0]) / 2)
    assert groups["other domain"] == pytest.approx(absolute[[0, 1, 1, 2], [1, 0, 2, 1]].mean())


def test_other_widths_have_no_copy(make_part, turn):
    parts = [make_part("plain"), make_part("narrow", turn=turn[:, :6])]
    matrices = cross_domain_matrices(parts, ("absolute", "procrustes"))
    assert np.isnan(matrices["absolute"]).tolist() == [[False, True], [True, False]]
    assert by_group(matrices["absolute"], ["plain", "narrow"])["other domain"] is None
    assert not np.isnan(matrices["procrustes"]).any()


def test_other_classes_are_refused(make_part):
    with pytest.raises(SpaceError, match=r"different classes .* can only predict labels that it was trained"):
        cross_domain_matrices(
            [make_part("plain"), make_part("other", labels=["a", "b"] * 100)], ("relative",)
        )


def test_networks_are_trained_on_each_domain_from_weights_of_their_own(tmp_path, monkeypatch):
    looks = [DatasetSpec("digits", limit=150, options=(("look", look),)) for look in ("plain", "inverted")]
    network = SmallVision("mlp", width=8, epochs=2)
    parts = trained_parts(looks, [network], Store(tmp_path))
    assert [part.name for part in parts] == ["MLP 8 · digits", "MLP 8 · digits, inverted"]
    assert "state 1" in parts[1].space.name
    train = np.setdiff1d(np.arange(150), held_out_rows(150))
    for part in parts:
        np.testing.assert_array_equal(part.test, held_out_rows(150))
        np.testing.assert_array_equal(part.anchors, part.space.vectors[train])
    monkeypatch.setattr(domains, "trained_parts", lambda *given: parts)
    study = study_of("across-domains")
    options = StudySpec.of(
        study, {"looks": ["plain", "inverted"], "methods": ["procrustes", "relative"]}
    ).settings
    table = pd.DataFrame([one | study.measure(one, None, print).values for one in study.runs(options)])
    assert table["procrustes, other domain"].min() > table.chance.max() + 0.1
    charts = study.charts(options, table)
    assert list(charts) == ["Procrustes", "relative"]
    panel = charts["relative"].panels[0]
    assert panel.rows[0] == f"{parts[0].name} (mean {short(panel.values[0, 1], 2)})"
    assert panel.columns[0] == f"{parts[0].name} (mean {short(panel.values[1, 0], 2)})"
    assert "by Procrustes" in study.conclusion(options, table)
    assert len(study.findings(options, table)) == 4
