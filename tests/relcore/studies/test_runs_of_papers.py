"""Runs beside the papers' numbers: what they give, what ships, what the command line writes."""

import json
import re

import pytest

from relcore.base.errors import SpaceError
from relcore.base.records import to_json
from relcore.runs.store import Store
from relcore.studies import papers as rows
from relcore.studies import papers as runs
from relcore.studies.papers import (
    RUNS,
    Number,
    Ours,
    is_current,
    load_rows,
    ours_of,
    read_ours,
    result_of,
    study_runs,
)
from relcore.studies.study import RunResult, finished_run


def test_every_group_of_a_row_is_in_the_shipped_numbers():
    shipped = rows.shipped()
    for row in load_rows():
        for name in row.run_names():
            if name in shipped:
                assert shipped[name].of_groups(row.groups(name)), (row.id, name)


def test_shipped_numbers_come_from_known_runs_with_all_they_depend_on():
    shipped = rows.shipped()
    assert sum(any(name in shipped for name in row.run_names()) for row in load_rows()) >= 12
    for name, found in shipped.items():
        assert is_current(found), (
            f"{name}: other settings or version than now; run python assets/papers/measure_rows.py {name}"
        )
        assert re.fullmatch(r"[0-9a-f]{7,}", found.commit), (
            f"{name}: measured with code that is not committed"
        )
        assert found.data
        assert found.version
        assert found.seconds > 0
        assert len(found.date.split("-")) == 3
        assert found.numbers
        for number in found.numbers:
            assert all((number.label, number.metric, number.unit))
            assert number.value == number.value


STUDIED = [name for name, run in RUNS.items() if run.study]


@pytest.mark.parametrize("name", STUDIED)
def test_a_run_of_a_study_has_its_settings_as_options(name):
    runs_of = study_runs(name)
    assert {option: runs_of.spec.settings[option] for option in RUNS[name].settings} == RUNS[name].settings


@pytest.mark.parametrize("name", ["anchor-count", "training-digits", "trained-count"])
def test_a_studys_runs_give_the_numbers_that_ship(name):
    runs_of, store = study_runs(name), Store(finished=True)
    if runs_of.missing(store):
        pytest.skip("its runs do not come with Relscope")
    numbers = runs.NUMBERS[RUNS[name].study](runs_of, runs_of.table(store))
    assert numbers == rows.shipped()[name].numbers


def test_the_stores_own_runs_replace_what_ships(tmp_path, monkeypatch):
    store, studied = Store(tmp_path), study_runs("trained-count")
    assert result_of("trained-count", store) == rows.shipped()["trained-count"]
    values = dict.fromkeys(("relative, same space", "relative, stitched", "absolute"), 0.25)
    facts = values | {"chance": 0.1, "test rows": 9}
    monkeypatch.setattr(type(studied.study), "measure", lambda self, settings, *given: RunResult(facts))
    for settings in studied.settings:
        finished_run(studied.study, settings, store, lambda *progress: None)
    measured = ours_of("trained-count", studied, store)
    again = result_of("trained-count", store)
    assert again.numbers == measured.numbers
    assert {number.value for number in again.numbers} == {0.25}
    assert again.settings == RUNS["trained-count"].settings


def test_a_file_of_numbers_comes_back_whole_and_a_wrong_one_is_refused(tmp_path):
    number = Number("relative", "MRR", 0.5, 0.1, n=7, k=10, repeats=3, baseline=0.01)
    known = Ours("words", "data", {"k": 10}, "2026-01-01", "0", 1.0, (number,))
    (tmp_path / "words.json").write_text(json.dumps(to_json(known)))
    assert read_ours(tmp_path) == {"words": known}
    (tmp_path / "words.json").rename(tmp_path / "other.json")
    with pytest.raises(SpaceError, match="expected numbers of this run, got those of 'words'"):
        read_ours(tmp_path)
    for text, message in (
        ("[{", "expected measured numbers as JSON"),
        ('{"run": "other", "numbers": [{"colour": 1}]}', "the setting 'label' is missing"),
    ):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(SpaceError, match=message):
            read_ours(tmp_path)
