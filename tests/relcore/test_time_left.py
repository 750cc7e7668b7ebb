"""The time left for known sequences of (done, total, time): even work, stages, stalls, and an estimate
that is wrong.
"""

import pytest

from relcore.runs.jobs import JobStatus, in_words
from relcore.runs.pace import TimeLeft
from relcore.runs.progress import Stages


def told(reports, expected=None, every=0.5, until=None):
    """The estimates at all times of a grid: a page looks twice a second. `reports` are (time, done,
    total), ascending.
    """
    left, reports, found = TimeLeft(expected), list(reports), {}
    left.begin(0.0)
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


def test_stages_that_count_their_expected_seconds_are_no_jumps():
    """UMAP: ten seconds of compiling without a report, then 500 epochs in twenty seconds; all twice as
    slow as expected.
    """
    reports = [(0, 0, 3000), *((20 + epoch * 0.08, 1000 + epoch * 4, 3000) for epoch in range(501))]
    found = told(reports, expected=30, until=59)
    assert found[10.0] == pytest.approx(20), "nothing is known yet but what was expected"
    assert found[40.0] == pytest.approx(20, rel=0.15)
    assert found[50.0] == pytest.approx(10, rel=0.15)
    assert found[58.0] == pytest.approx(2, abs=0.5)


def test_no_job_is_at_zero_seconds_for_long():
    stalled = told([(1, 1, 40), (2, 2, 40)], until=300)
    assert stalled[2.0] == pytest.approx(38)
    assert stalled[300.0] is None
    at_zero = [now for now, left in stalled.items() if left is not None and left < 1]
    assert len(at_zero) <= 1
    assert told([(1, 40, 40)], until=60)[30.0] is None, "all is counted, yet the job has not ended"


def test_another_total_begins_again_with_its_own_pace():
    found = told([(1, 18, 40), (2, 40, 40), (4, 0, 10), (6, 4, 10)], until=6)
    assert found[1.0] == pytest.approx(22 / 18)
    assert found[5.0] is None
    assert found[6.0] == pytest.approx(3)


def test_progress_that_was_there_before_the_work_began_tells_no_pace():
    """Three of four models come from the store: the last one takes as long as one."""
    found = told([(0, 0, 1), (0.5, 30, 40), (1.5, 31, 40), (2.5, 32, 40)], until=3)
    assert found[2.5] == pytest.approx(8)


def test_stages_report_their_names_and_count_only_what_they_know():
    reports = []
    stages = Stages(
        lambda *report: reports.append(report), [("compiling", 10), ("neighbours", 1), ("layout", 9)]
    )
    stages.begin("neighbours")  # compiled before
    stages.begin("layout")
    stages.count(250, 500, "epoch")
    stages.end()
    assert reports == [
        (1000, 2000, "neighbours · stage 2 of 3"),
        (1100, 2000, "layout · stage 3 of 3"),
        (1550, 2000, "layout: epoch 250 of 500 · stage 3 of 3"),
        (2000, 2000, "done"),
    ]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"seconds_left": 0.2}, "about 1 s left"),
        ({"seconds_left": 42.4}, "about 42 s left"),
        ({"seconds_left": 200.0}, "about 3 min left"),
        ({"done": 40, "total": 40}, "almost done"),
        ({"exceeded": True}, "takes longer than estimated"),
        ({}, ""),
    ],
)
def test_the_time_left_in_words(status, text):
    assert JobStatus("running", **status).time_left == text
    assert JobStatus("done", **status).time_left == ""


def test_durations_in_words():
    assert [in_words(seconds) for seconds in (0.0, 99.4, 150, 9000)] == ["1 s", "99 s", "2 min", "2.5 h"]
