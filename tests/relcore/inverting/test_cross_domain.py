"""Across domains: a rotated twin is understood whole, a stranger is not, and what domains must share is
checked.
"""

import json

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.small_vision import SmallVision, held_out_rows
from relcore.invert.cross_domain import (
    CrossDomainResult,
    CrossDomainSpec,
    DomainsSpec,
    Part,
    TrainedDomains,
    cross_domain_matrix,
    session_parts,
    trained_parts,
)
from relcore.represent.similarity import mean_row
from relcore.runs.progress import Context
from relcore.runs.store import Store
from relcore.tasks.task import task_job


@pytest.fixture
def make_part(rng, make_space):
    """``make_part(domain, encoder, turn)``: 200 rows of four classes, other ones each time, and the same
    40 anchors.
    """
    centers, anchors = 3 * rng.normal(size=(4, 10)), 2 * rng.normal(size=(40, 10))

    def make(domain, encoder="net", turn=None, labels=None, test=range(0, 200, 4)):
        classes = rng.integers(4, size=200)
        X = centers[classes] + rng.normal(size=(200, 10))
        turn = np.eye(10) if turn is None else turn
        labels = [f"class {number}" for number in classes] if labels is None else labels
        space = make_space(
            X @ turn,
            ids=[f"{domain}{row}" for row in range(200)],
            name=f"{encoder} · {domain}",
            labels=labels,
        )
        return Part(domain, encoder, space, np.array(test), (anchors @ turn).astype(np.float32))

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
    found = cross_domain_matrix(
        parts, CrossDomainSpec(("procrustes", "relative", "absolute"), 40, random_states=(0, 1))
    )
    for way in ("procrustes", "relative"):
        assert found.matrix(way).min() > 0.9
    absolute = found.matrix("absolute")
    assert absolute.diagonal().min() > 0.9
    assert absolute[0, 1] < 0.8
    rows, columns = found.margins("absolute")
    assert rows[0] == pytest.approx((absolute[0, 1] + absolute[0, 2]) / 2)
    assert columns[0] == pytest.approx((absolute[1, 0] + absolute[2, 0]) / 2)
    summary = found.summary().set_index("method").loc["absolute"]
    assert summary["same domain"] == pytest.approx((absolute[0, 2] + absolute[2, 0]) / 2)
    assert summary["pairs across"] == summary["of"] == 4
    assert found.n_test == (50, 50, 50)
    assert found.n_anchors == 40
    assert records.from_json(CrossDomainResult, json.loads(json.dumps(records.to_json(found)))) == found


def test_other_widths_have_no_copy(make_part, turn):
    narrow = make_part("narrow", turn=turn[:, :6])
    found = cross_domain_matrix([make_part("plain"), narrow], CrossDomainSpec(("absolute", "procrustes")))
    assert np.isnan(found.matrix("absolute")).tolist() == [[False, True], [True, False]]
    assert found.summary()["pairs across"].tolist() == [0, 2]
    assert np.isnan(found.margins("absolute")[0]).all()


def test_what_domains_must_share(make_part, make_space):
    plain = make_part("plain")
    with pytest.raises(SpaceError, match="at least two encoders or domains, got 1"):
        cross_domain_matrix([plain])
    with pytest.raises(SpaceError, match="each encoder once per domain, got 'net · plain' twice"):
        cross_domain_matrix([plain, make_part("plain")])
    with pytest.raises(
        SpaceError, match=r"have different classes .* a head can only predict labels that it was trained on"
    ):
        cross_domain_matrix([plain, make_part("other", labels=["a", "b"] * 100)])
    with pytest.raises(SpaceError, match="'net · other': expected a label for every row"):
        cross_domain_matrix([plain, make_part("other", labels=["a", ""] * 100)])
    fewer = make_part("fewer")
    fewer = Part(fewer.domain, fewer.encoder, fewer.space, fewer.test, fewer.anchors[:9])
    with pytest.raises(
        SpaceError, match="anchors: expected the same things encoded by every encoder, got 40, 9"
    ):
        cross_domain_matrix([plain, fewer])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": []}, "methods: expected at least one"),
        ({"methods": ["magic"]}, "methods: expected one of absolute"),
        ({"n_anchors": 1}, "n_anchors: expected a whole number from 2, got 1"),
        ({"colour": 1}, "settings: expected settings among .* got 'colour'"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(SpaceError, match=message):
        records.from_json(CrossDomainSpec, settings)


def test_spaces_of_a_session_are_parts_by_their_shared_ids(rng, make_space):
    X, labels = rng.normal(size=(60, 5)), ["a", "b", ""] * 20
    spaces = [make_space(X, name="first", labels=labels), make_space(X[:50], name="second")]
    anchors = [f"r{row}" for row in range(12) if row % 3 != 2]
    parts = session_parts(spaces, ["one", "two"], ["net", "net"], anchors)
    assert [len(part.space) for part in parts] == [34, 34]
    assert set(parts[0].space.ids[parts[0].test]).isdisjoint(anchors)
    np.testing.assert_array_equal(parts[0].space.labels, parts[1].space.labels)
    np.testing.assert_allclose(parts[1].anchors, X[[int(one[1:]) for one in anchors]].astype(np.float32))
    told = session_parts(
        spaces, ["one", "two"], ["net", "net"], anchors, test_ids=["r0", "r30", "r2", "r31", "r40"]
    )
    assert told[0].space.ids[told[0].test].tolist() == [
        "r30",
        "r31",
        "r40",
    ]  # r0 is an anchor, r2 has no label
    with pytest.raises(SpaceError, match="expected labels in 'second', 'second', got none"):
        session_parts([spaces[1]] * 2, ["one", "two"], ["net", "net"], anchors)
    with pytest.raises(SpaceError, match="five rows or more that are not anchors, got 4"):
        session_parts(spaces, ["one", "two"], ["a", "b"], parts[0].space.ids[:30])


LOOKS = tuple(DatasetSpec("digits", limit=150, options=(("look", look),)) for look in ("plain", "inverted"))
NETWORK = SmallVision("mlp", width=8, epochs=2)


def test_networks_are_trained_on_each_domain_from_weights_of_their_own(tmp_path):
    store = Store(tmp_path)
    own = trained_parts(DomainsSpec(LOOKS, (NETWORK,)), store)
    assert [part.name for part in own] == ["MLP 8 · digits", "MLP 8 · digits, inverted"]
    assert "state 1" in own[1].space.name
    for part in own:
        np.testing.assert_array_equal(part.test, held_out_rows(150))
        assert part.anchors.shape == (120, 8)
        np.testing.assert_array_equal(
            part.anchors, part.space.vectors[np.setdiff1d(np.arange(150), part.test)]
        )
    first = trained_parts(DomainsSpec(LOOKS, (NETWORK,), 0), store)
    for part, other in zip(first, own, strict=True):
        train = np.setdiff1d(np.arange(150), part.test)
        np.testing.assert_allclose(mean_row(part.anchors), mean_row(part.space.vectors[train]), atol=1e-3)
        np.testing.assert_array_equal(part.space.vectors, other.space.vectors)
    np.testing.assert_allclose(first[0].anchors, own[0].anchors, atol=1e-3)
    assert np.abs(first[1].anchors - own[1].anchors).max() > 0.1
    task = TrainedDomains(DomainsSpec(LOOKS, (NETWORK,)), CrossDomainSpec(("procrustes",), 60))
    task_job(Context("b" * 32, store), task=task)
    found = task.read(store.get("b" * 32))
    assert found.matrix("procrustes").min() > max(found.chance) + 0.1


def test_pictures_that_one_domain_trains_on_are_not_asked_about_in_another(tmp_path):
    shorter = DatasetSpec("digits", limit=100, options=(("look", "inverted"),))
    long, short = trained_parts(DomainsSpec((LOOKS[0], shorter), (NETWORK,), 0), Store(tmp_path))
    assert set(held_out_rows(100)) - set(held_out_rows(150))  # else there were nothing to leak
    for part, other, n in ((long, short, 100), (short, long, 150)):
        learnt = np.delete(other.space.ids, held_out_rows(n))
        assert len(part.test)
        assert not set(part.space.ids[part.test]) & set(learnt)


def test_domains_that_are_not_parallel_need_common_anchors(tmp_path):
    shorter = DatasetSpec("digits", limit=100)
    with pytest.raises(SpaceError, match=r"are not parallel: .* take the anchors from one domain for all"):
        trained_parts(DomainsSpec((LOOKS[1], shorter), (NETWORK,)), Store(tmp_path))
    with pytest.raises(
        SpaceError, match="expected two encoders or datasets or more, got 1 encoders of 1 datasets"
    ):
        DomainsSpec((shorter,), (NETWORK,))
    with pytest.raises(SpaceError, match="anchor_dataset: expected 0 to 1, or none, got 2"):
        DomainsSpec(LOOKS, (NETWORK,), 2)
