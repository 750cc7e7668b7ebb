"""The Papers page: forty rows, published beside ours, and ways to other pages."""

import pytest

from app.jobs import whole_engine


@pytest.fixture
def page(make_session, monkeypatch):
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    whole_engine.clear()
    yield make_session().open("research", "Papers")
    whole_engine().close()
    whole_engine.clear()


def test_explore_opens_the_words_with_the_numbers_of_their_table(page):
    page.click("papers.explore-relative-table-1")
    opened = page.session_state["relscope.history"].present
    assert (len(opened.anchors), opened.anchors_from, opened.k) == (300, "random 300 0", 10)


def test_explore_opens_the_study_with_the_tables_settings(page):
    page.click("papers.explore-relative-figure-6")
    assert page.session_state["studies.kind"] == "anchor-count"
    assert page.session_state["studies.anchor-count.n_states"] == 5
