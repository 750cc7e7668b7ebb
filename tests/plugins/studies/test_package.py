"""The studies of the package by their names, the runs that come with it, and which anchors on a rotated copy."""

import runpy
from pathlib import Path

import pytest

from relcore.base.names import PLUGIN_STUDIES, STUDIES
from relcore.runs.store import Store
from relcore.studies.runs import StudyRuns
from relcore.studies.study import StudySpec, study_of
from tests.relcore.studies.test_studies import test_every_study_lists_distinct_runs as lists_distinct_runs


def test_the_names_that_files_may_have_are_those_of_the_package(installed):
    assert {*PLUGIN_STUDIES} == {*STUDIES.added}


@pytest.mark.parametrize("kind", PLUGIN_STUDIES)
def test_a_study_lists_distinct_runs_and_opens_on_those_that_come_with_it(kind, tmp_path):
    lists_distinct_runs(kind)
    study = study_of(kind)
    store = Store(tmp_path, finished=True)
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
