"""Pace: an estimate follows what work of its kind took here, whatever is kept stays small, and damage
costs nothing.
"""

import json

import pytest

from relcore.runs import pace
from relcore.runs.pace import expect, note
from relcore.runs.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_an_estimate_follows_the_last_run_of_its_kind_and_no_other(store):
    note(store, "stitch", 30.0, 420.0)
    found = expect(store, "stitch", 10.0)
    assert (found.likely, found.learned, found.n) == (pytest.approx(140.0), True, 1)
    assert expect(store, "all-pairs", 10.0).likely == 10.0


def test_the_median_passes_over_one_odd_run_and_follows_five(store):
    for measured in (10.0, 11.0, 900.0):
        note(store, "stitch", 10.0, measured)
    assert expect(store, "stitch", 10.0).likely == pytest.approx(11.0)
    for _ in range(pace.LAST // 2 + 1):
        note(store, "stitch", 10.0, 40.0)
    assert expect(store, "stitch", 10.0).likely == pytest.approx(40.0)


def test_the_file_is_bounded_and_holds_ratios_alone(store):
    for number in range(260):
        note(store, f"kind/{number}", 10.0, 20.0)
    for _ in range(30):
        note(store, "kind/259", 10.0, 20.0)
    known = json.loads((store.root / pace.FILE).read_text())
    assert len(known) == 200
    assert "kind/59" not in known, "the kinds unused for the longest time go first"
    assert known["kind/259"] == [2.0] * pace.LAST
    note(store, "kind/60", 10.0, 1e9)
    assert expect(store, "kind/60", 1.0).pace == pytest.approx((2.0 + 100.0) / 2), (
        "one ratio counts a hundred times at most"
    )


@pytest.mark.parametrize("text", ["{", '{"stitch": ["x"]}'])
def test_a_damaged_file_counts_as_none(store, text):
    (store.root / pace.FILE).write_text(text)
    assert expect(store, "stitch", 5.0).likely == 5.0
    note(store, "stitch", 5.0, 10.0)
    assert expect(store, "stitch", 5.0).likely == 10.0
