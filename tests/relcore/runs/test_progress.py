"""The time left of known sequences of (done, total, time)."""

import pytest

from relcore.runs.store import TimeLeft


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
