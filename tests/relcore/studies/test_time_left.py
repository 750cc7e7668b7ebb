"""The expected time of a study's missing runs."""

from types import SimpleNamespace

import pytest

from relcore.runs.jobs import JobStatus
from relcore.runs.store import Store
from relcore.studies.runs import StudyRuns


def runs_of(number):
    """The runs of a study that expects ten seconds for each."""
    study = SimpleNamespace(
        kind="a-study",
        version=1,
        runs=lambda settings: [{"n": n} for n in range(number)],
        seconds=lambda settings: 10.0,
    )
    return StudyRuns(study, SimpleNamespace(settings={}))


@pytest.mark.parametrize(
    ("lasted", "counted", "left"), [(0, 0, 30), (5, 0, 25), (10, 0, 21), (40, 0, 21), (2, 8, 22)]
)
def test_the_time_left_falls_with_the_clock_or_the_count_of_a_run(tmp_path, lasted, counted, left):
    runs = runs_of(4)
    queue = SimpleNamespace(store=Store(tmp_path), n_workers=1)
    assert runs._left(queue, True, []) == pytest.approx(40.0), "by the study's own estimate"
    queue.store.put(runs.keys[3], {}, {"settings": {"n": 3}, "seconds": 10.0})
    running = [(SimpleNamespace(key=runs.keys[0]), JobStatus("running", counted, 10, seconds=lasted))]
    assert runs._left(queue, True, running) == pytest.approx(left)


def test_few_slow_runs_renew_the_pace(tmp_path):
    runs = runs_of(10)
    store = Store(tmp_path)
    for number in range(3):
        store.put(runs.keys[number], {}, {"settings": {"n": number}, "seconds": 50.0})
    assert runs.pace(store) == pytest.approx(3.0), "half of the way from 1 to 5"
