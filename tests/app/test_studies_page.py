import json
import re
from dataclasses import replace

import pytest
import streamlit as st

from app.jobs import whole_queue
from app.plain_text import plain
from app.studies import panel
from relcore.studies.papers import load_rows
from relcore.studies.runs import StudyProgress, StudyRuns
from relcore.studies.study import StudySpec, study_of


@pytest.fixture
def first_start(make_session):
    st.cache_resource.clear()  # the queue, and rows of runs that other tests put under the same keys
    yield make_session(place=("research", "Studies"))
    whole_queue().close()
    whole_queue.clear()


@pytest.fixture
def page(first_start):
    whole_queue().store.finished = None
    return first_start.open("research", "Studies")


def test_a_first_start_shows_a_finished_study(first_start):
    study = study_of(first_start.session_state["studies.kind"])
    assert study.kind == "similarity-performance"  # the first of its topic
    runs = StudyRuns(study, StudySpec.of(study))
    assert runs.table(whole_queue().store).shape[0] == len(runs)
    assert [element for element in first_start.main if element.type == "plotly_chart"]
    assert whole_queue().jobs() == []


def test_studies_are_listed_by_topic_and_searched(first_start):
    page = first_start.change("segmented_control", "studies.topic", "How many anchors?")
    assert page.radio(key="studies.kind").options[0] == "How many anchors does it take?"
    assert page.radio(key="studies.kind").value == "anchor-count"
    page.change("text_input", "studies.search", "pruned inverse")
    assert page.session_state["studies.kind"] == "pruning"
    page.change("text_input", "studies.search", "table 5")
    found = [button.label for button in page.button if (button.key or "").startswith("studies.found")]
    assert found == ["Table 5, Relative representations", "Table 5, Bootstrapping anchors"]
    assert not page.radio
    page.change("text_input", "studies.search", "no such words")
    assert not page.radio


def test_a_study_says_its_data_and_its_terms(first_start):
    first_start.change("segmented_control", "studies.topic", "How many anchors?")
    assert "Data: 1,797 pictures of handwritten digits" in first_start.captions
    assert "stitched: a classifier that was trained on the rows of one encoder" in first_start.captions
    assert "random states: " in first_start.captions
    assert "δ: " not in first_start.captions


def test_a_study_that_is_being_stopped_says_so(first_start, monkeypatch):
    def run(progress):
        monkeypatch.setattr(StudyRuns, "progress", lambda runs, queue: progress)
        first_start.run()

    progress = StudyProgress(3, 2, 40, (), 45, 120.0)
    run(progress)
    (bar,) = first_start.get("progress")
    assert bar.proto.text.endswith("about 2 min left")
    assert "studies.stop" in first_start.keys
    run(replace(progress, done=0, seconds_so_far=100.0))
    (bar,) = first_start.get("progress")
    assert bar.proto.text == "0 of 45 runs done, 2 under way for 2 min · the first runs take longest"
    run(progress)
    monkeypatch.setattr(StudyRuns, "stop", lambda runs, queue: None)
    first_start.click("studies.stop")
    (bar,) = first_start.get("progress")
    assert bar.proto.text.startswith("Stopping …")
    assert "3 of 45 runs saved" in bar.proto.text
    assert "studies.stop" not in first_start.keys
    run(replace(progress, running=0, waiting=0))
    run(progress)
    assert "studies.stop" in first_start.keys, "what was resumed can be stopped"


def test_runs_that_were_stopped_here_can_be_resumed(first_start):
    study = study_of("similarity-performance")
    store = whole_queue().store
    runs = StudyRuns(study, StudySpec.of(study))
    entry = store.get(runs.keys[0])
    store.put(runs.keys[0], entry.arrays, entry.metadata)
    first_start.run()
    assert "1 of 60 runs computed here; the other runs shown came with Relscope." in first_start.captions
    assert "all done" not in first_start.captions
    assert panel._table(runs)["key"].map(store.bundled_group).isna().sum() == 1, "the others stay"
    assert len(panel._table(runs)) == 60
    assert len(panel._table(runs, own=True)) == 1
    (again,) = (button for button in first_start.button if button.key == "studies.here")
    assert again.label.startswith("Resume: 1 of 60 runs done · about")


def test_own_runs_tell_their_date_and_what_the_bundled_ones_show(first_start):
    study = study_of("similarity-performance")
    store = whole_queue().store
    runs = StudyRuns(study, StudySpec.of(study))
    for key in runs.keys:
        entry = store.get(key)
        store.put(key, entry.arrays, {**entry.metadata, "seconds": 60.0, "finished": 1_700_000_000.0})
    first_start.run()
    assert "All done. 60 runs, computed here until 2023-11-1" in first_start.captions
    assert ", 60 min on one core." in first_start.captions
    assert "The same runs that came with Relscope show the same." in first_start.captions
    for number, key in enumerate(runs.keys):
        entry = store.get(key)
        values = {**entry.metadata["values"], "accuracy": number / 100}
        store.put(key, entry.arrays, {**entry.metadata, "values": values})
    panel._rows.clear()
    first_start.run()
    conclusion = study.conclusion(runs.spec.settings, runs.bundled_table(store))
    assert conclusion
    assert f"The same runs that came with Relscope: {plain(conclusion)}" in first_start.captions


def test_a_study_file_opens_its_choices(page):
    study = study_of("similarity-performance")
    record = StudySpec.of(study, {"n_runs": 30, "similarity": "centred"}).to_json()
    page.upload("studies.upload", "mine.json", json.dumps(record).encode()).click("studies.open-file")
    assert page.segmented_control(key="studies.similarity-performance.n_runs").value == 30
    assert page.segmented_control(key="studies.similarity-performance.similarity").value == "centred"
    for content, told in (
        (json.dumps(record | {"version": 99}), "expected version 1"),
        ("no", "expected JSON"),
    ):
        page.upload("studies.upload", "bad.json", content.encode()).click("studies.open-file")
        assert any(told in error for error in page.errors)


@pytest.fixture
def papers(make_session, monkeypatch):
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    whole_queue.clear()
    yield make_session(place=("research", "Papers"))
    whole_queue().close()
    whole_queue.clear()


def open_row(papers, row):
    papers.session_state[f"papers.open-{row}"] = True
    return papers.run()


def test_rows_are_lines_and_open_ones_show_what_fails(papers):
    assert len(papers.expander) == len(load_rows())
    assert "Table 1** · Word embeddings · :green[holds]" in papers.expander[0].label
    papers_of_rows = [row.paper for row in load_rows()]
    first = [line.label for line in papers.expander[: papers_of_rows.count(papers_of_rows[0])]]
    judged = [bool(re.search(r":(green|orange|red)\[|not decided", label)) for label in first]
    assert judged == sorted(judged, reverse=True)
    assert {True, False} == set(judged)
    assert "<table" not in papers.html
    assert open_row(papers, "relative-table-1").html.count('class="relscope-papers ') > 1
    assert re.search(r"20\d\d-\d\d-\d\d, Relscope [\d.]+, \d+ (s|min)", papers.html)
    for asked, n in (("table 1", 3), ("of the pruned inverse", 2), ("no such words", 0)):
        assert len(papers.change("text_input", "papers.search", asked).expander) == n
    papers.change("text_input", "papers.search", "")
    line = next(one for one in papers.expander if one.label.startswith("**Table 5** ·"))
    assert "comparisons" not in line.label
    partly = [one.label for one in papers.expander if one.label.count(" comparisons hold") > 1]
    assert partly
    assert all(label.count("on “") == label.count(" comparisons hold") for label in partly)
    summaries = open_row(papers, "relative-table-5").html.split("<summary>")[1:]
    assert sum("✗" in one.partition("</summary>")[0] for one in summaries) == 2


def test_a_study_opens_its_row_and_the_row_its_study(papers):
    open_row(papers, "inverse-figure-3")
    assert any(
        text.value.startswith("**The study δ × ω of the pruned inverse:**") for text in papers.markdown
    )
    papers.click("papers.explore-inverse-figure-3-pruning")
    assert papers.session_state["studies.kind"] == "pruning"
    papers.click("studies.row-inverse-figure-3")
    assert papers.session_state["research.tab"] == "Papers"
    assert [line.label.startswith("**Figure 3**") for line in papers.expander] == [True]


def test_explore_opens_the_words_with_the_numbers_of_their_table(papers):
    open_row(papers, "relative-table-1").click("papers.explore-relative-table-1")
    opened = papers.session_state["relscope.history"].present
    assert (len(opened.anchors), opened.anchors_from, opened.k) == (300, "random 300 0", 10)
