"""The Encode and Store tabs without a browser: datasets, encoders, costs, jobs, and what becomes of them."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from app import jobs
from app.encode import datasets, encoders
from relcore.catalog.catalog import stored_encoding_spec
from relcore.catalog.encoding import encode, encode_job
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import encoder_to_json
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.small_vision import SmallVision
from relcore.encoders.transformers import MiniLM, PretrainedText

DIGITS = DatasetSpec("digits", limit=40)
MLP = SmallVision("mlp", width=8, epochs=1)


@pytest.fixture
def engine(one_worker, monkeypatch):
    """The app's engine, with a store of the test's own."""
    monkeypatch.setattr("app.jobs.whole_engine", lambda: one_worker)
    return one_worker


@pytest.fixture
def tab(engine, make_session, monkeypatch):
    """``tab("Encode")``: the Spaces page with this tab open."""
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)

    def open_tab(name: str = "Encode", session=None):
        session = session or make_session()
        session.at.session_state["spaces.tab"] = name
        return session.open("spaces")

    return open_tab


def small(session):
    """Forty digits through one small network of one epoch."""
    (limit,) = (one.key for one in session.at.number_input if (one.key or "").startswith("encode.limit"))
    session.change("number_input", limit, 40)
    session.change("multiselect", "encode.small-vision.architecture", ["mlp"])
    session.change("number_input", "encode.small-vision.width", 8)
    return session.change("number_input", "encode.small-vision.epochs", 1)


def text(session) -> str:
    kinds = (
        session.at.markdown,
        session.at.caption,
        session.at.html,
        session.at.success,
        session.at.warning,
        session.at.info,
    )
    return "\n".join(element.value for kind in kinds for element in kind)


def button(session, key):
    return session.at.button(key=key)


def run_in_place(engine, dataset=DIGITS, encoder=MLP):
    return encode(dataset, encoder, engine.store)


def test_the_first_view_offers_digits_through_four_networks_and_what_that_costs(tab):
    session = tab()
    assert not session.errors
    assert "**1,797** pictures · 10 classes · 8 × 8 pixels" in text(session)
    assert text(session).count('<img src="data:image/png;base64,') == datasets.PICTURES
    for network in ("MLP 64", "CNN 64", "Residual CNN 64", "ViT 64"):
        assert re.search(rf"- {network}, state 0: about \d+ s", text(session))
    assert re.search(r"About \d+ s in all, 1 at a time", text(session))
    assert not button(session, "encode.start").disabled


def test_an_encoding_joins_the_session_as_one_step_and_is_offered_for_comparison(tab, engine):
    run_in_place(engine, encoder=SmallVision("cnn", width=8, epochs=1))
    session = small(tab())
    before = session.workspace
    session.click("encode.start")
    job, n_jobs = engine.jobs()[0], len(engine.jobs())
    assert job.function is encode_job
    assert job.wait(300).state == "done"
    session.run()
    (new,) = session.workspace.spaces[2:]
    assert (new.name, new.dataset, new.encoder) == ("MLP 8, state 0 · digits", DIGITS, MLP)
    assert "already in the store" in text(session)
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
    assert len(engine.jobs()) == n_jobs
    session.click("encode.compare")
    assert (session.workspace.source.name, session.workspace.target.name) == (
        "CNN 8, state 0 · digits",
        new.name,
    )
    assert set(session.workspace.anchors) <= {f"digits/{row}" for row in range(40)}
    for _ in range(3):
        session.click("history.undo")
    assert session.workspace == before


def test_what_fails_says_why_and_can_be_tried_again(tab, engine, tmp_path):
    file = tmp_path / "one.csv"
    pd.DataFrame({"text": ["a word or two", "some more words"], "label": ["x", "y"]}).to_csv(
        file, index=False
    )
    session = (
        tab().change("button_group", "encode.way", "A path").change("text_input", "encode.path", str(file))
    )
    assert "**2** texts · 2 classes" in text(session)
    session.change("button_group", "encode.forms-texts", ["tfidf-svd"]).click("encode.start")
    job = engine.jobs()[0]
    assert job.wait(300).state == "failed"
    session.run()
    assert "expected words that occur in at least 2 texts" in text(
        session
    ) or "n_components: expected fewer" in text(session)
    session.click(f"again-{job.key}")
    assert engine.jobs()[0] is not job
    assert engine.jobs()[0].wait(60).state == "failed"


@pytest.mark.parametrize(
    ("content", "message"),
    [("text,label\n,x\nb,y\n", "empty"), ("a,b\n1,2\n", "text or image|expected"), ("", "expected")],
)
def test_files_that_cannot_be_encoded_are_told_and_nothing_is_lost(tab, tmp_path, content, message):
    (tmp_path / "bad.csv").write_text(content)
    session = tab()
    before = session.workspace
    session.change("button_group", "encode.way", "A path").change(
        "text_input", "encode.path", str(tmp_path / "bad.csv")
    )
    assert len(session.errors) == 1
    assert re.search(message, session.errors[0])
    assert session.workspace == before
    session.change("text_input", "encode.path", str(tmp_path / "gone.csv"))
    assert "expected a folder or a file" in session.errors[0]


def test_columns_and_labels_are_chosen_and_missing_labels_are_told(tab, tmp_path):
    table = pd.DataFrame(
        {"en": ["red wine", "old house"] * 6, "de": ["roter Wein", "altes Haus"] * 6, "kind": ["a", "b"] * 6}
    )
    table.to_csv(tmp_path / "pairs.csv", index=False)
    session = (
        tab()
        .change("button_group", "encode.way", "A path")
        .change("text_input", "encode.path", str(tmp_path / "pairs.csv"))
    )
    (column,) = (one.key for one in session.at.selectbox if (one.key or "").startswith("encode.column"))
    (label,) = (one.key for one in session.at.selectbox if (one.key or "").startswith("encode.label"))
    session.change("selectbox", column, "de").change("selectbox", label, "kind")
    assert "roter Wein" in text(session)
    assert "**12** texts · 2 classes" in text(session)


def test_what_needs_the_network_is_not_asked_for_before_the_click(tab, monkeypatch):
    asked = []
    monkeypatch.setattr("relcore.encoders.datasets.hub_answers", lambda *_: asked.append(1) and False)
    session = (
        tab()
        .change("button_group", "encode.way", "Hugging Face")
        .change("text_input", "encode.hub", "nobody/nothing")
    )
    assert "is not on this machine and would be downloaded now" in text(session)
    assert not asked
    session.click("encode.download")
    assert asked
    assert "or the network to download it, got neither" in session.errors[0]


def test_the_store_shows_adds_removes_and_cleans(tab, engine):
    run_in_place(engine)
    run_in_place(engine, encoder=SmallVision("mlp", width=8, epochs=2))
    session = tab("Store")
    table = session.table("store.table")
    assert table["name"].tolist() == ["MLP 8, state 0 · digits"] * 2
    assert table["settings"].tolist() == [f"architecture mlp, width 8, epochs {n}" for n in (1, 2)]
    assert table["rows"].tolist() == [40, 40]
    session.select_rows("store.table", 0).click("store.add")
    assert session.workspace.spaces[2].encoder == MLP
    session.select_rows("store.table", 1).click("store.remove")
    assert len(session.table("store.table")) == 1
    n_entries = len(engine.store.entries())
    session.click("store.clean-now")
    assert engine.store.entries() == [session.workspace.spaces[2].option("key")]
    assert n_entries > 1
    session.change("toggle", "store.keep", False).click("store.clean-now")
    assert engine.store.entries() == []


def test_a_space_that_left_the_store_can_be_encoded_again(tab, engine):
    run_in_place(engine, encoder=SmallVision("mlp", width=4, epochs=1))  # one that no test has loaded before
    (summary,) = (one for one in engine.store.summaries() if "encoder" in one.metadata)
    spec = stored_encoding_spec(summary)
    engine.store.clear()
    session = tab("What matches")
    session.history.edit(
        "load",
        type(session.workspace)(
            **{**session.workspace.__dict__, "spaces": (*session.workspace.spaces, spec)}
        ),
    )
    session.run()
    assert "encode it again" in session.errors[0]
    session.click("Encode it again")
    assert engine.jobs()[0].wait(60).state == "done"
    session.run()
    assert not session.errors
    assert session.workspace.spaces.count(spec) == 1


def test_a_changed_file_is_looked_at_again(tmp_path):
    file = tmp_path / "texts.csv"
    file.write_text("text\nfirst one\n")
    first = datasets.preview(DatasetSpec("file", str(file)))
    file.write_text("text\nfirst one\nsecond one\n")
    second = datasets.preview(DatasetSpec("file", str(file)))
    assert (first.n, second.n) == (1, 2)
    assert first.digest != second.digest


def test_costs_grow_with_rows_and_layers_and_are_not_known_of_models_never_measured():
    digits = datasets.preview(DatasetSpec("digits"))
    four = [SmallVision(name).seconds(digits.n, digits.pixels) for name in ("mlp", "cnn", "residual", "vit")]
    assert 15 < sum(four) < 45  # measured: about 18 s of training and 3 s a process to start
    assert MiniLM((6,)).seconds(digits.n) > MiniLM((2,)).seconds(digits.n)
    assert PretrainedText("some/model").seconds(digits.n) is None
    assert TfidfSvd().seconds(digits.n) < 5
    assert encoders.together([4, 6, 11, 10], 2) == 16
    assert encoders.in_words(200) == "about 3 min"


def test_an_entry_that_a_script_made_of_its_own_dataset_has_no_spec(engine):
    from relcore.encoders.datasets import load_dataset

    encode(load_dataset(DIGITS), MLP, engine.store)
    (summary,) = (one for one in engine.store.summaries() if "encoder" in one.metadata)
    assert summary.metadata["encoder"] == encoder_to_json(MLP)
    assert stored_encoding_spec(summary) is None
    assert jobs.engine() is engine
