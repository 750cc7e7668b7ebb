"""Languages, without a browser."""

from __future__ import annotations

import pytest

from app import jobs
from relcore.encoders.parallel import load_parallel
from tests.app.conftest import Session


@pytest.fixture(autouse=True)
def engines_store(own_store, monkeypatch):
    """The engine serves all tests of a process: what it stores has to be where the pages look for it."""
    monkeypatch.setenv("RELSCOPE_STORE", str(jobs.engine().store.root))
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)


def open_tab(session: Session, tab: str) -> Session:
    session.open("stitch").at.session_state["stitch.tab"] = tab
    return session.run()


def test_everyday_sentences_find_their_translation_at_once(make_session):
    session = open_tab(make_session(), "Languages")
    assert "of 146 queries find their partner first" in session.html
    assert "Without stitching, <b>0" in session.html
    assert "146 queries through 292 known pairs" in session.captions
    table = session.dataframe[-1].value
    assert not table["right"].iloc[0]
    assert set(table["partner"]) <= set(load_parallel(["es"])["es"])
    session.click("languages.join")
    assert len(session.workspace.spaces) == 4


def test_a_language_model_waits_for_a_click(make_session):
    session = open_tab(make_session(), "Languages")
    key = next(box.key for box in session.selectbox if (box.key or "").startswith("languages.encoder-0"))
    choice = next(box for box in session.selectbox if box.key == key)
    choice.select_index(1)
    session.run()
    assert session.button(key="languages.encode").label.startswith("Encode English · about")
    assert "find their partner first" not in session.html


def test_a_list_of_sentences_of_mine_and_what_is_wrong_with_another(make_session):
    session = open_tab(make_session(), "Languages")
    key = next(one.key for one in session.segmented_control if (one.key or "").startswith("languages.source"))
    session.change("segmented_control", key, "A list of mine")
    columns = load_parallel(("en", "fr"))
    rows = "\n".join("\t".join(pair) for pair in zip(*columns.values(), strict=True))
    session.upload("languages.upload", "mine.tsv", f"here\tthere\n{rows}".encode())
    assert "of 146 queries find their partner first" in session.html
    session.upload("languages.upload", "bad.tsv", b"alone\nhello\n")
    assert "bad.tsv: expected two columns, one per language, got 'alone'" in session.errors[0]


def test_a_list_of_ids_pairs_two_spaces_and_the_wrong_way_round_says_so(make_session):
    session = open_tab(make_session(), "Languages")
    key = next(one.key for one in session.segmented_control if (one.key or "").startswith("languages.source"))
    session.change("segmented_control", key, "A list of mine")
    rows = "\n".join(f"r{row},r{row}" for row in range(100))
    session.upload("languages.upload", "ids.csv", f"one,other\n{rows}\n".encode())
    session.change("segmented_control", "languages.holds", "ids")
    assert "of 34 queries find their partner first" in session.html
    rows = "\n".join(f"q{row},r{row}" for row in range(100))
    session.upload("languages.upload", "ids.csv", f"one,other\n{rows}\n".encode())
    assert "list of pairs: expected ids of" in session.errors[0]
