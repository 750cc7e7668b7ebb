import pytest

from app.jobs import whole_queue
from relcore.studies.papers import load_rows


@pytest.fixture
def page(make_session, monkeypatch):
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    whole_queue.clear()
    yield make_session(place=("research", "Papers"))
    whole_queue().close()
    whole_queue.clear()


def open_row(page, row):
    page.session_state[f"papers.open-{row}"] = True
    return page.run()


def test_rows_are_lines_with_their_verdict_and_open_ones_show_what_fails_outside_the_fold(page):
    assert len(page.expander) == len(load_rows())
    assert "Table 1** · Word embeddings · :green[holds]" in page.expander[0].label
    assert "<table" not in page.html
    assert open_row(page, "relative-table-1").html.count('class="relscope-papers ') > 1
    for asked, n in (("table 1", 3), ("of the pruned inverse", 2), ("no such words", 0)):
        assert len(page.change("text_input", "papers.search", asked).expander) == n
    page.change("text_input", "papers.search", "")
    line = next(one for one in page.expander if one.label.startswith("**Table 5** ·"))
    assert "comparisons" not in line.label
    summaries = open_row(page, "relative-table-5").html.split("<summary>")[1:]
    assert sum("✗" in one.partition("</summary>")[0] for one in summaries) == 2


def test_a_study_opens_the_row_that_it_answers_and_the_row_its_study(page):
    open_row(page, "inverse-figure-3")
    assert any(text.value.startswith("**The study δ × ω of the pruned inverse:**") for text in page.markdown)
    page.click("papers.explore-inverse-figure-3-pruning")
    assert page.session_state["studies.kind"] == "pruning"
    page.click("studies.row-inverse-figure-3")
    assert page.session_state["research.tab"] == "Papers"
    assert [line.label.startswith("**Figure 3**") for line in page.expander] == [True]


def test_explore_opens_the_words_with_the_numbers_of_their_table(page):
    open_row(page, "relative-table-1").click("papers.explore-relative-table-1")
    opened = page.session_state["relscope.history"].present
    assert (len(opened.anchors), opened.anchors_from, opened.k) == (300, "random 300 0", 10)
