"""Negative controls of the drift gate: numeric noise and rotations raise no alarm that they should not, at
several sizes.

With thresholds of zero, each quantity raises an alarm with a probability of .5 %. A situation has two
quantities, and two more for its classes, together 2 %. With 20 draws of two situations .8 alarms are
expected; 6 or more have a probability below .001.
"""

from __future__ import annotations

import numpy as np
import pytest

from relcore import LatentSpace
from relcore.drift.check import DriftCheck
from relcore.drift.measures import EVERYTHING_NEW, JITTER, NEW_QUERIES, with_jitter
from relcore.drift.thresholds import EverythingNew, NewQueries, Thresholds

STRICT = Thresholds(EverythingNew(0.0, 0.0, 0.0, 0.0), NewQueries(0.0, 0.0, 0.0, 0.0))
SIZES = ((60, 50), (200, 12), (400, 30))  # rows, dimensions
DRAWS = 20


def drift_of(n, d, draw, change=lambda X, rng: X, repeated=False):
    rng = np.random.default_rng((n, d, draw))
    base = rng.normal(size=(n, d)).astype(np.float32) + rng.normal(size=(4, d))[np.arange(n) % 4]
    base = base[rng.choice(n, n, replace=repeated)].astype(np.float32)
    labels = rng.choice(list("abcd"), n)  # random labels, one of which may be rare
    labels[labels == "d"] = np.where(rng.random(np.count_nonzero(labels == "d")) < 0.3, "d", "a")
    pair = [
        LatentSpace(one, [str(row) for row in range(n)], labels=labels, name=name)
        for name, one in (
            ("old", with_jitter(base, JITTER, rng)),
            ("new", change(with_jitter(base, JITTER, rng), rng)),
        )
    ]
    return DriftCheck(random_state=draw).run(pair)


def alarms(drift, thresholds):
    verdict = drift.judged(thresholds)
    return np.array([verdict.alarmed([one]) for one in (EVERYTHING_NEW, NEW_QUERIES)])


def turned(X, rng):
    return X @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]


@pytest.mark.parametrize("repeated", [False, True], ids=["distinct rows", "rows drawn with repetition"])
def test_numeric_noise_raises_no_alarm(repeated):
    drifts = [drift_of(*SIZES[draw % 3], draw, repeated=repeated) for draw in range(DRAWS)]
    assert sum(alarms(drift, Thresholds()).sum() for drift in drifts) == 0
    assert sum(alarms(drift, STRICT).sum() for drift in drifts) < 6


def test_a_rotation_alarms_for_new_queries_alone():
    for draw in range(12):
        drift = drift_of(*SIZES[draw % 3], draw, turned)
        assert alarms(drift, Thresholds()).tolist() == [False, True]
        assert not alarms(drift, STRICT)[0]


def test_unrelated_versions_always_alarm_and_say_so():
    for draw in range(12):
        drift = drift_of(*SIZES[draw % 3], draw, lambda X, rng: rng.normal(size=X.shape))
        assert alarms(drift, Thresholds()).all()
        assert drift.unrelated


def noisier(X, rng):
    return X + 0.3 * rng.normal(size=X.shape)


def test_related_versions_are_not_called_unrelated():
    assert not any(drift_of(*SIZES[draw % 3], draw, noisier).unrelated for draw in range(12))


def int8(X, rng):
    step = np.abs(X).max(axis=0) / 127
    return (np.round(X / step) * step).astype(np.float32)


def test_what_is_planted_is_found():
    """Noise of a third of a row; int8, by thresholds of zero alone: every draw, at sizes that leave a
    margin.
    """
    for draw in range(1, 12, 3):
        assert alarms(drift_of(200, 12, draw, noisier), Thresholds())[0]
        coarse = drift_of(400, 30, draw, int8)
        assert alarms(coarse, STRICT)[0]
        assert not alarms(coarse, Thresholds()).any()
