"""Explore on Papers: each page opens with the settings of the table's run, or the button says why it opens
nothing.
"""

from __future__ import annotations

import pytest

from app.jobs import whole_engine
from app.papers import openings
from app.papers.openings import opening_of, opening_of_run
from app.workspace import Workspace
from relcore.catalog.encoding import example_spaces
from relcore.papers.rows import find_row, load_rows
from relcore.papers.runs import RUNS, what_is_missing
from relcore.runs.digest import digest_of
from relcore.runs.store import Store

# Settings of a run that no chooser of its page has: numbers of repetitions for the table alone, and constants
# of the page.
_OF_THE_TABLE_ALONE = {
    "n_queries",
    "random_states",
    "steps",
    "width",
    "widths",
    "image_size",
    "n_components",
    "k",
    "n_states",
}
_FROM_RUN_TO_ROW = {name: row for row in reversed(load_rows()) for name in row.run_names()}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    return Store(tmp_path / "store", finished=True)


@pytest.fixture
def page(make_session, monkeypatch):
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    whole_engine.clear()
    yield make_session().open("papers")
    whole_engine().close()
    whole_engine.clear()


@pytest.mark.parametrize("name", RUNS)
def test_every_run_opens_with_its_own_settings_or_says_why_not(name, store):
    settings = RUNS[name].settings
    opening = opening_of_run(name, _FROM_RUN_TO_ROW[name], Workspace(), store)
    if opening.why_not:
        assert not opening.state
        assert not opening.settings
        assert what_is_missing(name) in ("", opening.why_not)
        return
    assert opening.settings == {one: settings[one] for one in opening.settings}
    assert set(settings) - set(opening.settings) <= _OF_THE_TABLE_ALONE
    if opening.study:
        assert {one: opening.study.settings[one] for one in opening.settings} == opening.settings


def test_a_table_whose_data_is_not_here_is_not_opened_and_the_button_says_why(page):
    button = next(one for one in page.button if one.key == "papers.explore-inverse-figure-6")
    assert button.disabled
    assert "sentences: expected the table's 4 encodings" in button.help
    assert opening_of(find_row("relative-table-7"), Workspace(), whole_engine().store).why_not.startswith(
        "Classes of the"
    )


def test_the_pages_have_the_numbers_of_their_tables(page):
    page.click("papers.explore-relative-table-1")
    found = page.session_state["relscope.history"].present
    assert (len(found.anchors), found.anchors_from, found.k) == (300, "random 300 0", 10)
    page.open("papers").click("papers.explore-inverse-figure-3")
    assert page.session_state["invert.tab"] == "δ × ω"
    found = page.session_state["relscope.history"].present
    assert [spec.encoder.architecture for spec in (found.source, found.target)] == ["cnn", "vit"]
    assert len(found.anchors) == RUNS["grid-digits"].settings["n_anchors"]


def test_stitch_opens_on_the_encoders_head_and_anchors_of_its_table(page):
    row = find_row("relative-table-16")
    page.click(f"papers.explore-{row.id}")
    settings = RUNS["stitch-digits"].settings
    assert page.session_state["stitch.head-kind"] == settings["head"] == "mlp"
    assert page.session_state["stitch.states"] == len(settings["random_states"])
    specs, _ = example_spaces("digits", whole_engine().store.finished)
    assert (
        page.number_input(key=f"stitch.anchors-{digest_of(tuple(specs))[:8]}").value == settings["n_anchors"]
    )
    assert page.session_state["stitch.methods"] == ["absolute", "relative", "whitened"]


def test_no_opener_is_left_without_a_run():
    assert set(openings._OPENERS) <= {run.function for run in RUNS.values()}
