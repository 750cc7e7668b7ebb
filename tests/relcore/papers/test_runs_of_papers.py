"""Runs beside the papers' numbers: what they give, what ships, what the command line writes."""

import json
import re
import subprocess
from dataclasses import replace
from importlib import import_module

import pytest

from relcore.base.errors import SpaceError
from relcore.papers import ours, runs
from relcore.papers.__main__ import main
from relcore.papers.ours import Number, Ours, averaged, grouped, read_ours, write_ours
from relcore.papers.rows import load_rows
from relcore.papers.runs import RUNS, Measured, commit_of, is_current, measure, paper_job, result_of, run_key
from relcore.papers.tables import as_csv, as_json, as_latex, long_table
from relcore.runs.progress import Context
from relcore.runs.store import Store


@pytest.fixture
def resized(monkeypatch):
    """``resized("languages", n_anchors=20)``: the run with other sizes."""

    def resize(name, **settings):
        run = RUNS[name]
        monkeypatch.setitem(RUNS, name, replace(run, settings={**run.settings, **settings}))

    return resize


def by_label(found):
    return {(number.label, number.metric): number for number in found.numbers}


def test_every_run_has_its_function():
    for name, run in RUNS.items():
        module, _, function = run.function.partition(":")
        assert callable(getattr(import_module(f"relcore.papers.{module}"), function)), name


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


def test_translations_are_found_through_anchors_and_not_without(tmp_path, resized):
    resized("languages", n_components=48, random_states=[0])
    found = by_label(measure("languages", Store(tmp_path)))
    absolute, relative = (found["mean of the 12 pairs", f"{way}: MRR"] for way in ("absolute", "relative"))
    assert relative.value > 5 * relative.baseline
    assert absolute.value < 3 * absolute.baseline
    assert (relative.n, relative.k) == (138, 10)


def test_codes_of_runs_are_told_by_their_distribution(tmp_path, resized):
    resized("codes", n_states=3, epochs=1, widths=[2, 8], n_train=200)
    found = by_label(measure("codes", Store(tmp_path)))
    told = [
        found["2 numbers", f"disparity after the best turn: {name}"]
        for name in ("smallest", "median", "largest")
    ]
    assert 0 <= told[0].value <= told[1].value <= told[2].value <= 1
    assert told[1].low <= told[1].value <= told[1].high
    # Permuted rows: 1 − 2 / 359 on average, and not below 1 − 16 / 359, as in the test of `disparities`.
    assert told[1].baseline > 1 - 16 / 359
    assert ("all 8 numbers", "disparity after the best turn: median") in found


def test_bootstrapped_words_are_told_both_ways_on_held_out_rows_and_as_published(tmp_path, resized):
    resized("bootstrap-words", rows=400, n_anchors=60, n_seeds=40, random_states=[0], steps=2)
    found = measure("bootstrap-words", Store(tmp_path))
    into = by_label(replace(found, numbers=found.of_groups(["to FastText"])))
    there = "Word2Vec → FastText, held-out rows"
    assert into[f"GT, {there}", "Jaccard"].value > into[f"Seed, {there}", "Jaccard"].value - 0.1
    forms = ("GT", "Seed", "AO (as published)", "AO (as published), continuous", "self-learning (ours)")
    names = {
        f"{form}, {way}" for form in forms for way in (there, "FastText → Word2Vec, all rows, as published")
    }
    assert {label for label, _ in into} >= {"AO (as published)", "self-learning (ours)", *names}


@pytest.fixture
def made_up(monkeypatch):
    """The run "words" gives one number at once."""
    number = Number("relative", "MRR", 0.5, 0.1, n=7, k=10, repeats=3, baseline=0.01)
    module = import_module("relcore.papers.measured")
    monkeypatch.setattr(module, "neighbours", lambda *given: Measured((number,), 40.0))
    monkeypatch.setattr(ours, "SHIPPED", ours.SHIPPED.with_name("absent"))
    monkeypatch.setattr(runs, "shipped", dict)
    return number


def test_a_job_keeps_its_result_in_the_store(tmp_path, made_up):
    store = Store(tmp_path)
    assert result_of("words", store) is None
    paper_job(Context(run_key("words"), store), name="words")
    found = result_of("words", store)
    assert found.numbers == (made_up,)
    assert found.seconds >= 40
    assert found.settings == RUNS["words"].settings


def test_other_settings_are_another_result(made_up, resized):
    before = run_key("words")
    resized("words", n_anchors=7)
    assert run_key("words") != before


def test_shipped_numbers_of_other_settings_do_not_count(tmp_path, made_up, monkeypatch, resized):
    found = Ours(
        "words",
        "data",
        dict(RUNS["words"].settings),
        "2026-01-01",
        "0",
        1.0,
        (made_up,),
        run_version=RUNS["words"].version,
    )
    monkeypatch.setattr(runs, "shipped", lambda: {"words": found})
    assert result_of("words", Store(tmp_path)) == found
    with monkeypatch.context() as later:
        later.setitem(RUNS, "words", replace(RUNS["words"], version=RUNS["words"].version + 1))
        assert (
            result_of("words", Store(tmp_path)) is None
        )  # the same settings, but the code gives other numbers
    assert result_of("words", Store(tmp_path)) == found
    resized("words", n_anchors=7)
    assert result_of("words", Store(tmp_path)) is None


def test_the_command_line_writes_skips_and_repeats(tmp_path, monkeypatch, capsys, made_up):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    out = tmp_path / "ours"
    assert main(["relative-table-1", "--out", str(out)]) == 0
    assert read_ours(out)["words"].numbers == (made_up,)
    assert main(["words", "--out", str(out)]) == 0
    assert "already" in capsys.readouterr().out
    assert main(["words", "--again", "--out", str(out)]) == 0
    assert "1 numbers" in capsys.readouterr().out
    assert main(["--out", str(out)]) == 0
    assert "words (measured" in capsys.readouterr().out
    assert main(["relative-table-77", "--out", str(out)]) == 2
    assert "row: expected one of" in capsys.readouterr().err


def test_data_that_are_not_here_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    with pytest.raises(
        SpaceError, match="expected trec in the data folder, which RELSCOPE_DATA names, got none"
    ):
        measure("stitch-trec", Store(tmp_path / "store"))
    (tmp_path / "trec").mkdir()
    assert runs.what_is_missing("stitch-trec") == ""


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


def test_means_and_deviations_are_over_repeats():
    number = averaged("a", "F1", [0.1, 0.2, 0.3])
    assert (number.value, number.deviation, number.repeats) == (pytest.approx(0.2), pytest.approx(0.1), 3)
    assert averaged("a", "F1", [0.1]).deviation is None
    rows = [
        {"label": "a", "metric": "F1", "value": value, "n": 5, "baseline": value / 2} for value in (0.2, 0.4)
    ]
    found, other = grouped([*rows, {**rows[0], "group": "other"}])
    assert (found.value, found.n, found.baseline, found.group) == (0.3, 5, 0.15, "")
    assert (other.value, other.group) == (0.2, "other")


def test_exports_hold_every_number_of_both_sources(made_up):
    rows = [
        row for row in load_rows() if row.id in ("relative-table-1", "relative-table-8", "relative-figure-1")
    ]
    found = {"words": Ours("words", "data", {"k": 10}, "2026-01-01", "0", 1.0, (made_up,))}
    table = long_table(rows, found)
    assert (table.source == "here").sum() == 1
    assert (table.source == "published").sum() == 8 * 2 + 9 * 2
    assert b"here,relative,MRR,0.5,0.1" in as_csv(rows, found)
    assert rb"0.500 $\pm$ 0.100" in as_latex(rows, found)
    assert json.loads(as_json(rows, found))[0]["here"][0]["numbers"][0]["value"] == 0.5


def test_a_number_carries_the_commit_and_whether_its_code_was_changed(tmp_path):
    def git(*asked):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *who, *asked], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    assert commit_of(tmp_path) == ""
    git("init", "-q")
    assert commit_of(tmp_path) == ""  # nothing is committed yet
    (tmp_path / "relcore").mkdir()
    code, text = tmp_path / "relcore" / "code.py", tmp_path / "README.md"
    code.write_text("1")
    text.write_text("1")
    git("add", ".")
    git("commit", "-qm", "first")
    head = git("rev-parse", "--short=7", "HEAD")
    assert commit_of(tmp_path) == head
    text.write_text("2")
    assert commit_of(tmp_path) == head
    code.write_text("2")
    assert commit_of(tmp_path) == f"{head}+"
    assert commit_of(tmp_path / "relcore") == ""  # a folder inside of another checkout
