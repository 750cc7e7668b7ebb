"""Pace: an estimate follows what work of its kind took here, whatever is kept stays small, and damage
costs nothing.
"""

import json
from importlib import import_module
from types import SimpleNamespace

import pytest

from relcore.runs import pace
from relcore.runs.digest import digest_of
from relcore.runs.pace import expect, note
from relcore.runs.store import Store
from relcore.studies import runs as study_runs
from relcore.studies.runs import StudyRuns, finished_run
from relcore.studies.study import StudySpec
from tests.relcore.studies.toy_study import Toy


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def clock(monkeypatch):
    """A fake clock: each look at it is `step` seconds after the one before."""
    made = SimpleNamespace(now=0.0, step=0.0)

    def look():
        made.now += made.step
        return made.now

    monkeypatch.setattr(study_runs, "time", SimpleNamespace(perf_counter=look, time=lambda: 0.0))
    return made


def test_without_a_past_an_estimate_is_what_the_formula_says(store):
    found = expect(store, "stitch", 30.0)
    assert (found.likely, found.learned) == (30.0, False)


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


def test_what_is_over_at_once_says_nothing(store):
    note(store, "stitch", 0.1, 0.9)
    note(store, "stitch", 0.0, 50.0)
    assert not expect(store, "stitch", 1.0).learned


@pytest.mark.parametrize("text", ["{", "[1]", '{"stitch": 3}', '{"stitch": ["x"]}', '{"stitch": [-1]}'])
def test_a_damaged_file_counts_as_none(store, text):
    (store.root / pace.FILE).write_text(text)
    assert expect(store, "stitch", 5.0).likely == 5.0
    note(store, "stitch", 5.0, 10.0)
    assert expect(store, "stitch", 5.0).likely == 10.0


def test_clearing_the_store_of_entries_keeps_what_was_learned(store):
    note(store, "stitch", 5.0, 10.0)
    store.put(digest_of("x"), {})
    store.clear()
    assert expect(store, "stitch", 5.0).learned
    assert store.entries() == []


def test_a_study_of_other_settings_is_told_by_what_the_last_one_took(store, clock):
    study = Toy()
    spec = StudySpec.of(study, {"pause": 60})
    runs = StudyRuns(study, spec)
    before = runs.expected(store)
    assert not before.learned
    clock.step = 14 * study.seconds(runs.settings[0])
    finished_run(study, {**runs.settings[0], "pause": 60, "x": -1}, store, lambda *told: None)
    after = StudyRuns(study, spec).expected(store)
    assert after.learned
    assert after.likely == pytest.approx(14 * before.likely, rel=1e-3)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """The toy study burns no processor time here."""
    monkeypatch.setattr(Toy, "measure", lambda self, settings, store, report: study_runs_result(settings))


def study_runs_result(settings):
    return import_module("relcore.studies.study").RunResult({"y": 2 * settings["x"]})


def put(context):
    context.put({})


def test_the_engine_notes_what_a_job_took(one_worker, monkeypatch):
    store, noted = one_worker.store, []
    monkeypatch.setattr(pace, "note", lambda store, *told: noted.append(told))
    assert (
        one_worker.submit(digest_of("a"), put, title="a", expected=expect(store, "put", 5.0)).wait(60).state
        == "done"
    )
    assert one_worker.submit(digest_of("b"), put, title="b").wait(60).state == "done"
    ((kind, seconds, measured),) = noted
    assert (kind, seconds) == ("put", 5.0)
    assert measured > 0
