"""Languages, and pictures and words, without a browser."""

from __future__ import annotations

import pytest

from app import jobs
from app.workspace import Workspace
from relcore.catalog.catalog import encoding_key, encoding_spec
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.parallel import load_parallel
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.small_vision import SmallVision
from relcore.runs.progress import Context
from tests.app.conftest import Session


@pytest.fixture(autouse=True)
def engines_store(own_store, monkeypatch):
    """The engine serves all tests of a process: what it stores has to be where the pages look for it."""
    monkeypatch.setenv("RELSCOPE_STORE", str(jobs.engine().store.root))
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)


def open_tab(session: Session, tab: str) -> Session:
    session.open("stitch").at.session_state["stitch.tab"] = tab
    return session.run()


def encoded(dataset, *encoders):
    store, digest = jobs.engine().store, load_dataset(dataset).digest
    made = [(encoder, encode(dataset, encoder, store)[0].name) for encoder in encoders]
    return tuple(encoding_spec(dataset, one, "", encoding_key(digest, one), name) for one, name in made)


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


def test_a_head_needs_two_labelled_encodings_and_then_asks_by_a_job(make_session, tmp_path, monkeypatch):
    session = open_tab(make_session(), "Languages")
    session.change("segmented_control", "languages.question", "head")
    assert any("two encodings of labelled texts" in info.value for info in session.info)

    def run(engine, key, function, *, title, expected=None, here=False, **kwargs):
        function(Context(key, engine.store), **kwargs)
        return engine.job(key)

    monkeypatch.setattr("relcore.runs.jobs.Engine.submit", run)
    said = [
        f"He said: {text}" for text in load_parallel(["en"])["en"]
    ]  # no anchors themselves, which are not asked about
    lines = [f"{text}\t{'question' if '?' in text else 'told'}" for text in said]
    path = tmp_path / "said.tsv"
    path.write_text("text\tlabel\n" + "\n".join(lines), encoding="utf-8")
    specs = encoded(DatasetSpec("file", str(path)), TfidfSvd(20), TfidfSvd(30))
    session = open_tab(Session(workspace=Workspace(specs, *specs)), "Languages")
    session.change("segmented_control", "languages.question", "head").click("across.start")
    assert "The accuracy of the head is" in session.html
    assert "438 pairs of everyday sentences" in session.captions


def test_digits_are_named_by_sentences(make_session):
    session = open_tab(make_session(), "Pictures and words")
    assert any("an encoding of labelled pictures" in info.value for info in session.info)
    specs = encoded(
        DatasetSpec("digits", limit=400), *(SmallVision("mlp", width=width, epochs=4) for width in (8, 12))
    )
    session = Session(workspace=Workspace(specs, *specs)).open("stitch")
    session.at.session_state["stitch.tab"] = "Pictures and words"
    session.run()
    assert "of 80 pictures correctly" in session.html
    assert "its rows are already sorted by class" in session.captions
    key = next(area.key for area in session.text_area if (area.key or "").startswith("words.templates"))
    session.change("text_area", key, "only one {}")
    assert "expected two or more different sentences" in session.errors[0]
