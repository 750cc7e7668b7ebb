"""The expected time of a study's missing runs."""

from types import SimpleNamespace

import pytest

from relcore.runs.jobs import JobStatus
from relcore.runs.store import Store
from relcore.studies.study import StudyRuns


@pytest.mark.parametrize(
    ("lasted", "left"), [(0.0, 30.0), (5.0, 25.0), (10.0, 20.0), (20.0, 30.0), (40.0, 50.0)]
)
def test_the_time_left_falls_and_grows_where_a_run_lasts_longer(tmp_path, lasted, left):
    study = SimpleNamespace(
        kind="a-study",
        version=1,
        runs=lambda settings: [{"n": n} for n in range(4)],
        seconds=lambda settings: 10.0,
    )
    runs = StudyRuns(study, SimpleNamespace(settings={}))
    queue = SimpleNamespace(store=Store(tmp_path), n_workers=1)
    assert runs._left(queue, True, []) == pytest.approx(40.0), "by the study's own estimate"
    queue.store.put(runs.keys[3], {}, {"settings": {"n": 3}, "seconds": 10.0})
    running = [(SimpleNamespace(key=runs.keys[0]), JobStatus("running", seconds=lasted))]
    assert runs._left(queue, True, running) == pytest.approx(left)
