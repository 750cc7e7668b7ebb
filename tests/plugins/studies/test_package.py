"""The studies of the package by their names, the runs that come with it, and which anchors on a rotated copy."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from relscope_studies import anchors

from relcore.base.names import PLUGIN_STUDIES, STUDIES
from relcore.runs.store import Store
from relcore.spaces.matching import match
from relcore.studies.study import StudyRuns, StudySpec, study_of
from tests.relcore.studies.test_papers_studies import (
    answers,
    copies,  # noqa: F401
    options_of,
    table_of,
)
from tests.relcore.studies.test_papers_studies import (
    test_every_study_lists_distinct_runs as lists_distinct_runs,
)


def test_the_names_that_files_may_have_are_those_of_the_package(installed):
    assert {*PLUGIN_STUDIES} == {*STUDIES.added}


@pytest.mark.parametrize("kind", PLUGIN_STUDIES)
def test_a_study_lists_distinct_runs_and_opens_on_those_that_come_with_it(kind, tmp_path):
    lists_distinct_runs(kind)
    study, store = study_of(kind), Store(tmp_path, finished=True)
    spec = StudySpec.of(study)
    runs = StudyRuns(study, spec)
    assert runs.missing(store) == []
    assert store.bundled_group(runs.keys[0]).name == kind
    assert study.charts(spec.settings, runs.table(store))
    assert study.conclusion(spec.settings, runs.table(store))
    assert study.question.endswith("?")


def test_the_documentation_has_the_findings_of_the_finished_runs():
    script = runpy.run_path(str(Path(__file__).parents[3] / "assets/finished/make_finished.py"))
    text = script["PLACES"].read_text(encoding="utf-8")
    assert text == script["with_findings"](text), "run make_finished.py --only-texts"


@pytest.mark.parametrize("data", ["digits", "words"])
def test_anchor_choice_on_a_rotated_copy_is_perfect_whichever(data, copies, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(anchors, "word_pair", lambda spaces, store: match(*copies))
    monkeypatch.setattr(anchors, "labelled_spaces", lambda data, store, report: copies)
    monkeypatch.setattr(anchors, "test_ids_of", lambda data, space: ())
    store = Store(tmp_path / "store")
    study, chosen = study_of("anchor-choice"), {"data": data, "n_anchors": 30}
    settings = options_of("anchor-choice", anchors=["r1", "r99", "r200"], **chosen)
    table = table_of(study, settings, store, lambda one: one["random_state"] == 0)
    if data == "words":
        assert set(table.choice) == {*anchors._OF_WORDS, "picked"}
        assert table.mrr.tolist() == pytest.approx([1] * len(table))
        assert table.cosine.tolist() == pytest.approx([1] * len(table), abs=1e-5)
    else:
        np.testing.assert_allclose(table["relative, stitched"], table["relative, same space"])
    charts, _ = answers(study, settings, table)
    assert "one class only" in next(iter(charts.values())).x_names
