"""Runs beside the papers' numbers: what they give, what ships, what the command line writes."""

import re
from dataclasses import replace
from math import sqrt

import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.papers import ours, runs
from relcore.papers.__main__ import main
from relcore.papers.ours import Number, Ours, read_ours, write_ours
from relcore.papers.rows import load_rows
from relcore.papers.runs import RUNS, is_current, measure, result_of, study_runs
from relcore.runs.store import Store
from relcore.studies.study import RunResult


def test_every_group_of_a_row_is_in_the_shipped_numbers():
    shipped = ours.shipped()
    for row in load_rows():
        for name in row.run_names():
            if name in shipped:
                assert shipped[name].of_groups(row.groups(name)), (row.id, name)


def test_shipped_numbers_come_from_known_runs_with_all_they_depend_on():
    shipped = ours.shipped()
    assert sum(any(name in shipped for name in row.run_names()) for row in load_rows()) >= 12
    for name, found in shipped.items():
        assert is_current(found), (
            f"{name}: other settings or version than now; run python -m relcore.papers {name}"
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


@pytest.fixture
def made_up(monkeypatch):
    return Number("relative", "MRR", 0.5, 0.1, n=7, k=10, repeats=3, baseline=0.01)


STUDIED = [name for name, run in RUNS.items() if run.study]


@pytest.mark.parametrize("name", STUDIED)
def test_a_run_of_a_study_has_its_settings_as_options(name):
    runs_of = study_runs(name)
    assert {option: runs_of.spec.settings[option] for option in RUNS[name].settings} == RUNS[name].settings


# Runs that come with Relscope give the project's numbers to the last digit, except quantised ones, whose
# clusters differ between processors: their means are within twice the standard error of a difference.
@pytest.mark.parametrize("name", ["anchor-count", "training-digits", "quantisation", "trained-count"])
def test_a_studys_runs_give_the_numbers_that_ship(name):
    runs_of, store = study_runs(name), Store(finished=True)
    if runs_of.missing(store):
        pytest.skip("its runs do not come with Relscope")
    numbers = runs.NUMBERS[RUNS[name].study](runs_of, runs_of.table(store))
    for number, shipped in zip(numbers, ours.shipped()[name].numbers, strict=True):
        quantised = number.label.startswith("quantised")
        reach = 2 * sqrt(2 / shipped.repeats) * shipped.deviation if quantised else 1e-9
        assert number.value == pytest.approx(shipped.value, abs=reach)
        fixed = {"value": 0.0, "deviation": 0.0}
        assert replace(number, **fixed) == replace(shipped, **fixed)


def test_the_stores_own_runs_replace_what_ships(tmp_path, monkeypatch):
    store = Store(tmp_path)
    assert result_of("quantisation", store) == ours.shipped()["quantisation"]
    values = {"cosine distance": 0.5, "distance": 1.0, "unit distance": 1.0, "mrr": 0.25, "mrr chance": 0.1}
    study = type(study_runs("quantisation").study)
    facts = {"rows": 9, "k": 10}
    monkeypatch.setattr(study, "measure", lambda self, settings, *given: RunResult(values | facts))
    measured = measure("quantisation", store)
    again = result_of("quantisation", store)
    assert again.numbers == measured.numbers
    assert {number.value for number in again.numbers if number.metric == "MRR"} == {0.25}
    assert again.settings == RUNS["quantisation"].settings


def test_the_command_line_writes_skips_and_repeats(tmp_path, monkeypatch, capsys, made_up):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(runs, "finished_run", lambda *given: None)
    monkeypatch.setattr(runs.StudyRuns, "table", lambda *given: pd.DataFrame({"seconds": [1.0]}))
    monkeypatch.setitem(runs.NUMBERS, "quasi-isometry", lambda *given: (made_up,))
    out = tmp_path / "ours"
    assert main(["relative-figure-7", "--out", str(out)]) == 0
    assert read_ours(out)["quantisation"].numbers == (made_up,)
    assert main(["quantisation", "--out", str(out)]) == 0
    assert "already" in capsys.readouterr().out
    assert main(["quantisation", "--again", "--out", str(out)]) == 0
    assert "1 numbers" in capsys.readouterr().out
    assert main(["--out", str(out)]) == 0
    assert "quantisation (measured" in capsys.readouterr().out
    assert main(["relative-table-77", "--out", str(out)]) == 2
    assert "row: expected one of" in capsys.readouterr().err


def test_a_file_of_numbers_comes_back_whole_and_a_wrong_one_is_refused(tmp_path, made_up):
    found = Ours("words", "data", {"k": 10}, "2026-01-01", "0", 1.0, (made_up,))
    assert read_ours(tmp_path / "ours") == {}
    write_ours(tmp_path / "ours", found)
    write_ours(tmp_path / "ours", replace(found, run="codes"))
    assert read_ours(tmp_path / "ours") == {"codes": replace(found, run="codes"), "words": found}
    (tmp_path / "ours" / "words.json").rename(tmp_path / "ours" / "other.json")
    with pytest.raises(SpaceError, match="expected numbers of the run 'other', got those of 'words'"):
        read_ours(tmp_path / "ours")
    wrong = tmp_path / "wrong" / "words.json"
    wrong.parent.mkdir()
    wrong.write_text("[{")
    with pytest.raises(SpaceError, match="expected a JSON object of measured numbers"):
        read_ours(wrong.parent)
    wrong.write_text('{"run": "words", "numbers": [{"colour": 1}]}')
    with pytest.raises(SpaceError, match="the setting 'label' is missing"):
        read_ours(wrong.parent)
