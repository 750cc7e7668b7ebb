"""The time left of known sequences of (done, total, time), and estimates that follow what took how long here."""

import json

import pytest

from relcore.runs import progress
from relcore.runs.progress import TimeLeft, expect, note_pace
from relcore.runs.store import Store


def told(reports, expected=None, every=0.5, until=None):
    """The estimates at all times of a grid: a page looks twice a second. `reports` are (time, done,
    total), ascending.
    """
    left, reports, found = TimeLeft(expected), list(reports), {}
    for step in range(int((until or reports[-1][0]) / every) + 1):
        while reports and reports[0][0] <= step * every:
            now, done, total = reports.pop(0)
            left.hear(done, total, now)
        found[step * every] = left.left(step * every)
    return found


EVEN = [(second, second, 40) for second in range(1, 40)]


def test_even_progress_alone_gives_the_time_that_is_left():
    found = told(EVEN)
    assert found[0.0] is None
    assert all(left == pytest.approx(40 - now) for now, left in found.items() if now >= 1)


@pytest.mark.parametrize("expected", [20, 40, 80])
def test_an_expected_time_is_told_first_and_progress_corrects_it_without_jumps(expected):
    found = told(EVEN, expected)
    assert found[0.0] == expected
    assert found[20.0] == pytest.approx(20, rel=0.25)
    assert found[35.0] == pytest.approx(5, rel=0.15)
    rises = [found[now + 0.5] - found[now] for now in list(found)[:-1]]
    assert max(rises) <= (1.5 if expected < 40 else 1e-9), "an estimate that was long enough only falls"


def test_no_job_is_at_zero_seconds_for_long():
    stalled = told([(1, 1, 40), (2, 2, 40)], until=300)
    assert stalled[2.0] == pytest.approx(38)
    assert stalled[300.0] is None
    at_zero = [now for now, left in stalled.items() if left is not None and left < 1]
    assert len(at_zero) <= 1
    assert told([(1, 40, 40)], until=60)[30.0] is None, "all is counted, yet the job has not ended"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_an_estimate_follows_the_last_run_of_its_kind_and_no_other(store):
    note_pace(store, "stitch", 30.0, 420.0)
    found = expect(store, "stitch", 10.0)
    assert (found.likely, found.n) == (pytest.approx(140.0), 1)
    assert expect(store, "all-pairs", 10.0).likely == 10.0


def test_the_median_passes_over_one_odd_run_and_follows_five(store):
    for measured in (10.0, 11.0, 900.0):
        note_pace(store, "stitch", 10.0, measured)
    assert expect(store, "stitch", 10.0).likely == pytest.approx(11.0)
    for _ in range(progress.LAST // 2 + 1):
        note_pace(store, "stitch", 10.0, 40.0)
    assert expect(store, "stitch", 10.0).likely == pytest.approx(40.0)


def test_the_file_is_bounded_and_holds_ratios_alone(store):
    for number in range(260):
        note_pace(store, f"kind/{number}", 10.0, 20.0)
    for _ in range(30):
        note_pace(store, "kind/259", 10.0, 20.0)
    known = json.loads((store.root / progress.PACES).read_text())
    assert len(known) == 200
    assert "kind/59" not in known, "the kinds unused for the longest time go first"
    assert known["kind/259"] == [2.0] * progress.LAST
    note_pace(store, "kind/60", 10.0, 1e9)
    assert expect(store, "kind/60", 1.0).pace == pytest.approx((2.0 + 100.0) / 2), (
        "one ratio counts a hundred times at most"
    )


@pytest.mark.parametrize("text", ["{", '{"stitch": ["x"]}'])
def test_a_damaged_file_counts_as_none(store, text):
    (store.root / progress.PACES).write_text(text)
    assert expect(store, "stitch", 5.0).likely == 5.0
    note_pace(store, "stitch", 5.0, 10.0)
    assert expect(store, "stitch", 5.0).likely == 10.0
