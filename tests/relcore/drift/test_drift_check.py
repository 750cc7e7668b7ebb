"""The task: what it measures, to the store and back, bad input, and that nothing alarms or everything, as
planted.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore import LatentSpace
from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.drift.check import Drift, DriftCheck, Thresholds
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES

N, D = 400, 12


def version(vectors, name, labels=None, ids=None):
    return LatentSpace(
        vectors, ids or [f"row {number}" for number in range(len(vectors))], name=name, labels=labels
    )


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    return 2 * rng.normal(size=(8, D))[np.arange(N) % 8] + rng.normal(size=(N, D)) + 1


@pytest.fixture(scope="module")
def labels():
    return [f"class {number % 8}" for number in range(N)]


@pytest.fixture(scope="module")
def old(vectors, labels):
    return version(vectors, "v1", labels)


def alarmed(drift):
    verdict = drift.judged(Thresholds())
    return {situation: verdict.alarmed([situation]) for situation in (EVERYTHING_NEW, NEW_QUERIES)}


def test_a_rotation_matters_only_for_new_queries(old, vectors):
    turned = vectors @ ortho_group.rvs(D, random_state=1)
    drift = DriftCheck().run((old, version(turned, "v2")))
    assert alarmed(drift) == {EVERYTHING_NEW: False, NEW_QUERIES: True}
    assert drift.of(NEW_QUERIES, "lost").value > 0.9


def test_a_class_that_moved_is_named(old, vectors, labels):
    moved = vectors + 2 * (np.array(labels) == "class 3")[:, None] * np.random.default_rng(2).normal(size=D)
    drift = DriftCheck().run((old, version(moved, "v2")))
    verdict = drift.judged(Thresholds())
    for situation in (EVERYTHING_NEW, NEW_QUERIES):
        by_class = {
            one.group: one.value for one in drift.measures if one.group and one.situation == situation
        }
        assert max(by_class, key=by_class.get) == "class 3"
        assert any(check.measure.group == "class 3" for check in verdict.alarms(situation))


def test_unrelated_rows_are_at_chance_level(old):
    rng = np.random.default_rng(3)
    first, second = (version(rng.normal(size=(N, D)), name) for name in ("a", "b"))
    drift = DriftCheck().run((first, second))
    churn = drift.of(EVERYTHING_NEW, "churn")
    # 4,000 neighbours, 2.5 % of them kept: a standard error of .0025, doubled as some rows are neighbours of
    # many; four of it.
    assert churn.value == pytest.approx(drift.chance_churn, abs=0.02)
    assert drift.rho == pytest.approx(drift.chance_rho, abs=0.02)
    assert drift.unrelated
    assert all(alarmed(drift).values())


def test_a_result_comes_back_from_the_store_as_it_was(old, vectors, tmp_path):
    from relcore.runs.store import Store

    for new in (version(vectors + 0.1, "v2"), version(vectors[:, :5], "v2")):
        task = DriftCheck()
        found = task.run((old, new))
        back = task.compute(Store(tmp_path), (old, new), print)
        assert json.dumps(records.to_json(back)) == json.dumps(records.to_json(found))
        assert isinstance(back, Drift)
        assert back.judged(Thresholds()).table().equals(found.judged(Thresholds()).table())


def test_duplicated_rows_are_no_drift(vectors):
    """Equal rows are in no order: a search may name any of them."""
    thrice = np.repeat(vectors[:100], 3, axis=0)
    old, new = version(thrice, "v1"), version(thrice.astype(np.float16).astype(np.float32), "v2")
    drift = DriftCheck(k=1).run((old, new))
    assert drift.of(EVERYTHING_NEW, "churn").value < 0.01
    assert not any(alarmed(drift).values())


def test_rows_of_one_version_only(old, vectors):
    fewer = version(vectors[:300], "v2")
    with pytest.raises(
        SpaceError, match=r"got 100 only in the old version \('row 300', 'row 301', 'row 302'\).*--shared"
    ):
        DriftCheck().run((old, fewer))
    with pytest.raises(SpaceError, match="100 only in the new version"):
        DriftCheck().run((fewer, old))
    drift = DriftCheck(shared=True).run((old, fewer))
    assert (drift.n, drift.only_old, drift.only_new) == (300, 100, 0)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (np.eye(20), version(np.eye(20), "b", ids=[f"x{number}" for number in range(20)]), "share no ids"),
        (
            np.eye(1, 3),
            version(np.eye(1, 3), "b"),
            "expected 10 rows or more that both versions have, got 1 in 'a' and 'b'",
        ),
        (np.eye(20), version(np.ones((20, 20)), "b"), "the same vector in every row of the new version"),
    ],
    ids=["no shared id", "one row", "one point"],
)
def test_bad_input_is_refused_with_the_remedy(first, second, told):
    with pytest.raises(SpaceError, match=told):
        DriftCheck().run((version(first, "a"), second))


@pytest.mark.parametrize(
    "settings",
    [{"k": 0}, {"jitter": 1}],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(SpaceError, match=next(iter(settings))):
        DriftCheck(**settings)
