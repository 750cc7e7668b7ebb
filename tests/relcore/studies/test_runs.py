"""Runs of a study: each kept when it is done, none lost and none repeated, whatever is killed."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from relcore.base.errors import SpaceError
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from relcore.studies.runs import StudyRuns
from relcore.studies.study import StudySpec
from tests.relcore.studies.toy_study import Toy, study_with_toy
from tests.waiting import until

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def queue(two_workers, tmp_path_factory):
    two_workers.store = Store(tmp_path_factory.mktemp("store"))
    return two_workers


@pytest.fixture
def make_runs(tmp_path):
    def make(**options):
        study = Toy("toy")
        return StudyRuns(study, StudySpec.of(study, {"log": [str(tmp_path / "log")], **options}))

    return make


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log"
    path.touch()
    return lambda: [tuple(map(int, line.split())) for line in path.read_text().splitlines()]


def test_every_run_is_row_with_its_settings_and_what_it_found(queue, make_runs, log):
    runs = make_runs()
    assert not len(runs.table(queue.store))
    runs.start(queue)
    assert runs.wait(queue).complete
    table = runs.table(queue.store)
    assert table.x.tolist() == [0, 1, 2, 3, 4, 5]
    assert table.y.tolist() == [0, 2, 4, 6, 8, 10]
    assert table.key.tolist() == runs.keys
    assert (table.seconds >= 0).all()
    assert runs.study.findings({}, table).value[0] == pytest.approx(1)
    runs.start(queue)
    assert Counter(x for x, _ in log()) == Counter(range(6)), "a second start computes nothing"


@pytest.mark.slow
def test_killed_process_is_resumed_without_repeating_finished_run(make_runs, log, tmp_path):
    """Everything dies at once: the program, its scheduler and its workers. Another one resumes."""
    runs = make_runs(n_runs=12, pause=0.3)
    root = tmp_path / "store"
    script = (
        "import json, sys\n"
        "from tests.relcore.studies.toy_study import Toy, study_with_toy\n"
        "from relcore.runs.jobs import JobQueue\nfrom relcore.runs.store import Store\n"
        "from relcore.studies.runs import StudyRuns\nfrom relcore.studies.study import StudySpec\n"
        "spec = StudySpec.from_json(json.loads(sys.argv[1]), study_with_toy)\n"
        "queue = JobQueue(n_workers=2, store=Store(sys.argv[2]))\n"
        "runs = StudyRuns(Toy('toy'), spec)\nruns.start(queue)\nruns.wait(queue)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-c", script, json.dumps(runs.spec.to_json()), str(root)]
    with subprocess.Popen(arguments, env=environment) as process:
        store = Store(root)
        until(lambda: len(runs.table(store)) >= 4)
        process.kill()
    until(lambda: not any(_alive(pid) for _, pid in log()))
    finished = set(runs.table(store).x)
    assert 4 <= len(finished) < 12
    begun = log()
    queue = JobQueue(n_workers=2, store=store)
    try:
        again = StudyRuns(Toy("toy"), StudySpec.from_json(runs.spec.to_json(), study_with_toy))
        assert again.progress(queue).done == len(finished)
        again.start(queue)
        assert again.wait(queue).complete
    finally:
        queue.close()
    repeated = {x for x, _ in log()[len(begun) :]}
    assert repeated == set(range(12)) - finished


def test_stop_stops_what_runs_and_what_waits_and_start_goes_on(queue, make_runs, log, tmp_path):
    runs = make_runs(n_runs=12, held_from=3)
    runs.start(queue)
    until(lambda: runs.progress(queue).done == 3 and len(log()) >= 5)
    runs.stop(queue)
    standing = runs.progress(queue)
    assert not standing.under_way
    assert standing.done == 3
    # A run that a worker had already received may still begin before the worker is killed.
    until(lambda: not any(queue._client.processing().values()))
    begun = len(log())
    later = make_runs(n_runs=3, log=[str(tmp_path / "later")])
    later.start(queue)
    assert later.wait(queue).complete, "both workers are free for what is asked for after the stop"
    assert len(log()) == begun, "nothing began after the stop"
    (tmp_path / "log.go").touch()
    runs.start(queue)
    assert runs.wait(queue).complete
    assert {x for x, _ in log()[begun:]} == set(range(3, 12))


def test_run_that_fails_is_named_and_others_go_on(queue, make_runs, tmp_path):
    Path(tmp_path / "log.fail").touch()
    runs = make_runs(n_runs=3)
    runs.start(queue)
    standing = runs.wait(queue)
    assert (standing.done, standing.complete) == (2, False)
    assert standing.failed == ("Toy: run 2 of 3: one is not wanted",)
    Path(tmp_path / "log.fail").unlink()
    runs.start(queue)
    assert runs.wait(queue).complete


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, r"expected version 3 of 'toy', got 2; .*choose its options again"),
        ({"options": {"seeds": 3}}, "toy: expected options among .*n_runs.*, got .*seeds"),
    ],
)
def test_a_study_file_that_does_not_fit_says_so(change, message):
    record = {"study": "toy", "version": 3, "options": {}, **change}
    with pytest.raises(SpaceError, match=message):
        StudySpec.from_json(record, study_with_toy)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
