import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from relcore.base.families import StudyName
from relcore.base.names import STUDIES
from relcore.commands import progress
from relcore.studies.study import StudySpec
from tests.relcore.studies.toy_study import Toy
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("own_store")

ROOT = Path(__file__).parents[3]
TOY = StudyName("Toy", "tests.relcore.studies.toy_study:Toy", "Is twice a number on a line?", "none")


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(STUDIES, "toy", TOY)


def test_runs_findings_and_recipe(run, one_queue, toy, tmp_path):
    command = "study toy --grid n_runs=3 --grid kinds=a,b -o runs.csv --recipe r.json --json"
    found = json.loads(run(command))
    spec = StudySpec.of(Toy("toy"), {"n_runs": 3, "kinds": ("a", "b")})
    assert found["study"] == spec.to_json()
    assert [row["y"] for row in found["rows"]] == [0, 2, 4]
    assert found["findings"][0]["value"] == pytest.approx(1)
    assert found["conclusion"] == "", "three runs give no interval"
    assert pd.read_csv(tmp_path / "runs.csv").y.tolist() == [0, 2, 4]
    lined = run("study toy --grid n_runs=3 --jsonl -o runs.jsonl").splitlines()
    assert [json.loads(line) for line in lined] == found["rows"]
    kept = list(map(json.loads, (tmp_path / "runs.jsonl").read_text().splitlines()))
    assert kept == [{"run": run} | row for run, row in enumerate(found["rows"])]
    told = run("study toy --grid n_runs=6 --table")
    assert told.startswith("No finding yet. So far: 3 of 6 runs.")
    assert "Pearson" in told
    assert "on a line" not in told
    conclusion = "Twice a number is on a line: r = 1.00 (95 %: 1.00 to 1.00)."
    assert run("study toy --grid n_runs=6").splitlines()[0] == conclusion
    run("figure r.json -o again.csv")
    assert pd.read_csv(tmp_path / "again.csv").y.tolist() == [0, 2, 4]
    (tmp_path / "spec.json").write_text(json.dumps(spec.to_json()))
    assert run("study --spec spec.json --csv") == run("study toy --grid n_runs=3 --csv")


def test_runs_in_this_process_without_dask(run, toy, monkeypatch):
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    rows = json.loads(run("study toy --grid n_runs=3 --json"))["rows"]
    assert [row["y"] for row in rows] == [0, 2, 4]


@pytest.mark.slow
def test_ctrl_c_stops_runs_and_keeps_what_is_done(run, one_queue, toy, own_store, tmp_path):
    log = tmp_path / "log"
    command = f"study toy --grid n_runs=12 --grid pause=0.3 --grid log={log} --csv".split()
    script = (
        # Commands that a shell runs in the background ignore Ctrl-C, and so would all processes that these
        # tests start there.
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"import sys\nfrom relcore.base.names import STUDIES, StudyName\nSTUDIES['toy'] = {TOY!r}\n"
        "from relcore.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    arguments = [sys.executable, "-c", script, *command]
    started = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "start_new_session": True}
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, **started) as process:
        until(lambda: process.poll() is not None or (log.exists() and len(log.read_text().splitlines()) >= 4))
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.startswith("relscope: Stopped.")
    begun = [int(line.split()[0]) for line in log.read_text().splitlines()]
    done = len(own_store.entries())
    assert 2 <= done < 12
    assert len(run(*command).splitlines()) == 1 + 12
    repeated = [int(line.split()[0]) for line in log.read_text().splitlines()[len(begun) :]]
    assert len(repeated) == 12 - done, "what was done is not done again"
