"""What the page and the reports say: the headline by the alarms, and what numbers do not show by
themselves.
"""

from __future__ import annotations

import numpy as np
import pytest

from relcore import LatentSpace
from relcore.drift.check import DriftCheck, cautions, headline, told
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES
from relcore.drift.verdict import EverythingNew, Thresholds

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


def test_each_combination_of_alarms_has_its_headline(vectors):
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(D, D)))
    noise = np.random.default_rng(2).normal(size=(N, D))
    told_of = {
        name: headline(*compared(vectors, new))
        for name, new in (("same", vectors), ("turned", vectors @ turn))
    }
    assert told_of["same"].startswith("No drift beyond the thresholds")
    assert told_of["turned"].startswith("'v2' can replace 'v1' once all rows are embedded again")
    assert headline(*compared(vectors, vectors + noise)).startswith(
        "Drift: 'v2' has other neighbourhoods than 'v1', and"
    )
    assert "paired at random" in headline(*compared(vectors, 9 * noise))
    drift, verdict = compared(vectors, vectors + 0.02 * noise)
    assert not verdict.alarmed()
    strict = drift.judged(Thresholds(everything_new=EverythingNew(churn=0.0)))
    assert headline(drift, strict).endswith("although its queries still rank the old vectors alike.")


def test_a_situation_is_told_by_its_numbers_or_its_largest_excess(vectors):
    drift, verdict = compared(vectors, vectors)
    assert told(drift, verdict, EVERYTHING_NEW).startswith(
        "Everything is new: no alarm, churn .000 (noise level"
    )
    drift, verdict = compared(vectors, np.roll(vectors, 1, axis=0))
    assert told(drift, verdict, NEW_QUERIES).startswith("New queries, old vectors: alarm, lost queries")
    drift, verdict = compared(vectors, vectors[:, :5])
    assert "alarm. New queries have 5 dimensions and old vectors 8" in told(drift, verdict, NEW_QUERIES)


def test_a_shift_that_an_index_would_see_is_mentioned(vectors):
    drift, verdict = compared(vectors, vectors + 5)
    assert not verdict.alarmed([EVERYTHING_NEW])
    (caution,) = cautions(drift, verdict)
    assert "An index that does not centre would see a churn of" in caution
    assert cautions(*compared(vectors, vectors)) == []


def test_few_rows_rows_in_another_order_and_rows_left_out_are_mentioned(vectors):
    rng = np.random.default_rng(3)
    few = "\n".join(cautions(*compared(rng.normal(size=(30, 40)), rng.normal(size=(30, 40)))))
    assert "30 rows of 40 dimensions are few" in few
    shuffled = cautions(*compared(vectors, rng.permutation(vectors)))
    assert shuffled[0].startswith("Check that both files have the same rows under the same ids")
    fewer = vectors[:250].copy()
    fewer[3] = 0
    found = cautions(*compared(vectors, fewer))
    assert "Left out: 50 rows only in the old version, 0 only in the new one." in found
    assert "Left out: 1 rows that are zero in either version." in found
