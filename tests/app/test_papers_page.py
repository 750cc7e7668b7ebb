"""The Papers page: forty rows, published beside ours, and ways to other pages."""

from dataclasses import replace

import pytest

from app.jobs import whole_engine
from relcore.papers import runs
from relcore.papers.ours import Number, Ours
from relcore.papers.runs import RUNS

FOUND = Ours(
    "words",
    "two small spaces",
    dict(RUNS["words"].settings),
    "2026-01-02",
    "9.9",
    12.0,
    (Number("relative, here → there", "Jaccard", 0.123, 0.004, n=77, k=10, repeats=5, baseline=0.001),),
    commit="abc1234",
    run_version=RUNS["words"].version,
)


@pytest.fixture
def page(make_session, monkeypatch):
    monkeypatch.setattr(runs, "shipped", lambda: {"words": FOUND})
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    whole_engine.clear()
    yield make_session().open("papers")
    whole_engine().close()
    whole_engine.clear()


def rows_of(page):
    return page.html.count('class="relscope-paper"')


def test_all_rows_stand_there_with_both_tables(page):
    assert rows_of(page) == 40
    assert "<b>1</b> have numbers measured" in page.html
    assert 'aria-label="Table 1, as published"' in page.html
    assert ".123 <span>± .004</span><small>95 %: .118 … .128</small><small>chance .001</small>" in page.html
    for fact in (
        "two small spaces",
        "n = 77, k = 10, mean ± deviation over 5",
        "n anchors 300",
        "2026-01-02",
        "Relscope 9.9, commit abc1234, 12 s",
    ):
        assert fact in page.html
    assert "Figure, no numbers printed." in page.html


def test_filters_keep_one_paper_and_what_has_numbers(page):
    page.change("segmented_control", "papers.paper", "bootstrapping")
    assert rows_of(page) == 7
    page.change("toggle", "papers.only", True)
    assert rows_of(page) == 0
    assert "No row matches" in page.info[0].value
    page.change("segmented_control", "papers.paper", "relative")
    assert rows_of(page) == 1


@pytest.mark.parametrize(
    ("relative", "absolute", "word", "told"),
    [
        (0.95, 0.0, "Pattern holds", "✓ <b>Holds:</b>"),
        (0.0, 0.95, "Pattern does not hold", "✗ <b>Fails:</b>"),
    ],
)
def test_a_row_says_whether_the_pattern_holds_and_by_which_rule(
    page, monkeypatch, relative, absolute, word, told
):
    numbers = tuple(
        Number(f"{form}, {rows}, {way}", metric, value, n=2000)
        for form, value in (("relative", relative), ("absolute", absolute))
        for rows in ("held-out rows", "as published")
        for way in ("Word2Vec → FastText", "FastText → Word2Vec")
        for metric in ("Jaccard", "MRR")
    )
    monkeypatch.setattr(runs, "shipped", lambda: {"words": replace(FOUND, numbers=numbers)})
    page.run()
    assert f"<b>{word}</b> · " in page.html
    assert told in page.html
    assert "beyond its standard error at 95 %" in page.html


def test_explore_opens_the_words_with_the_numbers_of_their_table(page):
    page.click("papers.explore-relative-table-1")
    opened = page.session_state["relscope.history"].present
    assert (len(opened.anchors), opened.anchors_from, opened.k) == (300, "random 300 0", 10)


def test_explore_opens_the_study_with_the_tables_settings(page):
    page.click("papers.explore-relative-figure-6")
    assert page.session_state["studies.kind"] == "anchor-count"
    assert page.session_state["studies.anchor-count.n_states"] == 3  # as in the table, 5 by default
