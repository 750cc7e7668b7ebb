"""What the page and the reports say: the headline by the alarms, and what numbers do not show by
themselves.
"""

from __future__ import annotations

import numpy as np
import pytest

from relcore import LatentSpace
from relcore.drift.check import DriftCheck, EverythingNew, Thresholds

N, D = 300, 8


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(0).normal(size=(N, D))


def compared(old, new, labels=None):
    ids = [f"r{row}" for row in range(max(len(old), len(new)))]
    pair = [
        LatentSpace(one, ids[: len(one)], name=name, labels=labels)
        for name, one in (("v1", old), ("v2", new))
    ]
    drift = DriftCheck(shared=True).run(pair)
    return drift, drift.judged(Thresholds())


def headline_of(old, new):
    drift, verdict = compared(old, new)
    return drift.headline(verdict)


def test_each_combination_of_alarms_has_its_headline(vectors):
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(D, D)))
    noise = np.random.default_rng(2).normal(size=(N, D))
    told_of = {
        name: headline_of(vectors, new) for name, new in (("same", vectors), ("turned", vectors @ turn))
    }
    assert told_of["same"].startswith("No drift beyond the thresholds")
    assert told_of["turned"].startswith("'v2' can replace 'v1' once all rows are embedded again")
    assert headline_of(vectors, vectors + noise).startswith(
        "Drift: 'v2' has other neighbourhoods than 'v1', and"
    )
    assert "paired at random" in headline_of(vectors, 9 * noise)
    drift, verdict = compared(vectors, vectors + 0.02 * noise)
    assert not verdict.alarmed()
    strict = drift.judged(Thresholds(everything_new=EverythingNew(churn=0.0)))
    assert drift.headline(strict).endswith("although its queries still rank the old vectors alike.")
