from __future__ import annotations

import pytest

from relcore.catalog.catalog import encode, encode_job
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.vision import SmallVision

DIGITS = DatasetSpec("digits", limit=40)
MLP = SmallVision("mlp", width=8, epochs=1)


@pytest.fixture
def queue(one_worker, monkeypatch):
    monkeypatch.setattr("app.jobs.whole_queue", lambda: one_worker)
    return one_worker


@pytest.fixture
def tab(queue, make_session, monkeypatch):
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)

    def open_tab(name: str = "Bundled"):
        state = {"data.kind": name, "bundled.kind": "Texts and pictures"}
        return make_session(60, ("data",), state)

    return open_tab


def small(session):
    session.change("button_group", "encode.forms-images", ["small-vision"])
    (limit,) = (one.key for one in session.at.number_input if (one.key or "").startswith("encode.limit"))
    session.change("number_input", limit, 40)
    session.change("multiselect", "encode.small-vision.architecture", ["mlp"])
    session.change("number_input", "encode.small-vision.width", 8)
    return session.change("number_input", "encode.small-vision.epochs", 1)


@pytest.mark.slow
def test_an_encoding_joins_the_session_as_one_step_and_is_offered_for_comparison(tab, queue):
    encode(DIGITS, SmallVision("cnn", width=8, epochs=1), queue.store)
    session = small(tab())
    before = session.workspace
    session.click("encode.start")
    job, n_jobs = queue.jobs()[0], len(queue.jobs())
    assert job.function is encode_job
    assert job.wait(300).state == "done"
    session.run()
    (new,) = session.workspace.spaces[2:]
    assert (new.name, new.dataset, new.encoder) == ("MLP 8, state 0 · digits", DIGITS, MLP)
    assert session.at.button(key="encode.start").label == "Add to the session"  # it is in the store
    assert (session.workspace.source, session.workspace.target) == (before.source, before.target)
    assert not [
        one for one in session.at.button if one.key == "encode.compare"
    ]  # nothing yet that it could be compared with
    session.change("multiselect", "encode.small-vision.architecture", ["cnn"]).click(
        "encode.start"
    )  # from the store, at once
    assert [spec.name for spec in session.workspace.spaces[2:]] == [
        "MLP 8, state 0 · digits",
        "CNN 8, state 0 · digits",
    ]
    assert len(queue.jobs()) == n_jobs  # Explore opens with the pair
    assert (session.workspace.source.name, session.workspace.target.name) == (
        new.name,
        "CNN 8, state 0 · digits",
    )
    assert set(session.workspace.anchors) <= {f"digits/{row}" for row in range(40)}
    for _ in range(2):  # to encode and to compare is one step
        session.click("history.undo")
    assert session.workspace == before


def test_a_file_that_cannot_be_encoded_is_told_and_nothing_is_lost(tab, tmp_path):
    (tmp_path / "bad.csv").write_text("text,label\n,x\nb,y\n")
    session = tab("Texts")
    before = session.workspace
    session.change("text_input", "data.path", str(tmp_path / "bad.csv"))
    (error,) = session.errors
    assert "empty" in error
    assert session.workspace == before


def test_what_needs_the_network_is_not_asked_for_before_the_click(tab, monkeypatch):
    asked = []
    monkeypatch.setattr("relcore.encoders.datasets.hub_answers", lambda *_: asked.append(1) and False)
    session = tab("Texts").change("text_input", "data.path", "nobody/nothing")
    assert "is not on this machine and would be downloaded now" in session.everything
    assert not asked
    session.click("encode.download")
    assert asked
    assert "or the network to download it, got neither" in session.errors[0]
