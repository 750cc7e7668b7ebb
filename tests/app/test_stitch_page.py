"""The Stitch page on small labelled spaces of files: its numbers are the core's, a cell opens, and what is
wrong is said.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from app import results
from app.stitch import panel
from app.stitch.panel import largest_family
from app.workspace import Workspace
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec, encoding_spec, held_out_ids, load, put_encoding
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.small_vision import SmallVision, held_out_rows
from relcore.runs.digest import digest_of
from relcore.runs.jobs import Engine
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, share_rows, stitch_matrix
from tests.app.conftest import Session

CLASSES = ("cat", "dog", "fox")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Small as it is, all is stitched in place, however many random states there are."""
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 60.0)


def labelled(path, vectors, labels, prefix="r") -> SpaceSpec:
    ids = np.array([f"{prefix}{row}" for row in range(len(vectors))])
    np.savez(path, vectors=vectors.astype(np.float32), ids=ids, labels=np.asarray(labels, dtype=str))
    return SpaceSpec("file", str(path))


@pytest.fixture
def make_encoders(tmp_path):
    """``make_encoders(widths) -> specs``: files of 240 rows of three classes, each a turned and noisy
    version of one space.
    """

    def make(widths=(8, 8, 12), labels=None, prefix="r", name="encoder"):
        rng, numbers = np.random.default_rng(0), np.arange(240) % 3
        points = rng.normal(size=(3, 8))[numbers] * 2 + 1.2 * rng.normal(size=(240, 8))
        labels = np.array(CLASSES)[numbers] if labels is None else labels
        turns = [np.linalg.qr(rng.normal(size=(width, width)))[0][:8] for width in widths]
        rows = [points @ turn + 0.3 * rng.normal(size=(240, turn.shape[1])) for turn in turns]
        return [labelled(tmp_path / f"{name}{i}.npz", X, labels, prefix) for i, X in enumerate(rows)]

    return make


def session_on(specs, **changes) -> Session:
    return Session(workspace=Workspace(tuple(specs), specs[0], specs[1], **changes)).open("stitch")


def figure(session: Session, number: int = 0) -> dict:
    charts = [element for element in session.main if element.type == "plotly_chart"]
    return json.loads(charts[number].proto.spec)


def table(session: Session, column: str):
    """The table with this column: those that nothing can be selected in have no key in AppTest."""
    return next(shown.value for shown in session.at.dataframe if column in shown.value)


def notes(session: Session) -> str:
    return " ".join(note["text"] for note in figure(session)["layout"]["annotations"])


@pytest.mark.parametrize(("name", "n_pairs", "chance"), [("digits", 12, 0.11), ("sentences", 6, 0.07)])
def test_without_labelled_spaces_the_page_shows_an_example_and_computes_nothing(
    name, n_pairs, chance, monkeypatch
):
    monkeypatch.setattr(Engine, "submit", None)
    monkeypatch.setattr("relcore.stitch.stitching.stitch_matrix", None)
    session = Session().open("stitch").change("segmented_control", "stitch.example", name)
    assert "Nothing is trained again" in session.captions
    assert f"<b>{n_pairs}</b> stitched pairs, accuracy" in session.html
    assert figure(session)["layout"]["annotations"]
    summary = table(session, "knows").set_index("method")
    assert summary.chance.iloc[0] == pytest.approx(chance, abs=0.02)
    assert summary.stitched["relative, whitened"] > summary.own.iloc[0] - 0.2
    assert "This result comes with Relscope. Computed on 20" in session.captions
    assert session.workspace == Session().workspace


def test_the_examples_spaces_join_the_session():
    session = Session().open("stitch").click("stitch.add-digits")
    assert [spec.encoder.architecture for spec in session.workspace.spaces[2:]] == [
        "mlp",
        "cnn",
        "residual",
        "vit",
    ]
    assert "<b>12</b> stitched pairs, accuracy" in session.html
    assert not [button for button in session.button if (button.key or "").startswith("stitch.make-")]


def test_every_number_is_the_cores(make_encoders):
    specs = make_encoders()
    session = session_on(specs)
    expected = stitch_matrix([load(spec) for spec in specs], StitchSpec(n_anchors=24))
    mean, _ = expected.matrix("relative")
    told = notes(session)
    assert f"stitched {short(expected.summary().stitched[2])} · not stitched" in told
    assert all(
        f'"{short(value)}"' in json.dumps(figure(session)["layout"]["annotations"]) for value in mean.ravel()
    )
    assert (
        f"<b>6</b> stitched pairs, accuracy: absolute <b>{short(expected.summary().stitched[0])}</b>"
        in session.html
    )
    assert f"chance level <b>{short(expected.chance())}</b>" in session.html
    n_test = len(expected.runs[0].truth)
    told = (
        f"Heads are trained on **{240 - n_test}** rows of 3 classes and tested on **{n_test}** held-out rows;"
        " no anchor"
    )
    assert told in session.captions
    summary = table(session, "knows")
    np.testing.assert_allclose(summary["stitched"], expected.summary().query("metric == 'accuracy'").stitched)
    assert summary["pairs"].tolist() == ["2 of 6", *["6 of 6"] * 5]


def test_a_cell_opens_its_confusion_classes_and_changed_answers(make_encoders):
    specs = make_encoders()
    session = session_on(specs)
    session.at.session_state["stitch.cell-method"] = "relative"
    session.at.session_state["stitch.cell-encoder"] = 0
    session.at.session_state["stitch.cell-head"] = 2
    session.run()
    settings = replace(StitchSpec().settings, delta=0.65)
    result = stitch_matrix([load(spec) for spec in specs], StitchSpec(n_anchors=24, settings=settings))
    confusion = result.confusion("relative", 0, 2)
    shown = figure(session, 1)
    assert "encoder0 → head of encoder2" in json.dumps(shown, ensure_ascii=False)
    texts = shown["data"][1]["hovertext"]
    assert [int(text.split("<br>")[-1].split()[0]) for text in texts] == confusion.ravel().tolist()
    assert table(session, "recall")["class"].tolist() == list(CLASSES)
    changed = result.changed("relative", 0, 2)
    if len(changed):
        assert table(session, "id")["id"].tolist() == changed["id"].tolist()


def test_a_cell_without_an_answer_says_why(make_encoders):
    session = session_on(make_encoders())
    session.at.session_state["stitch.cell-method"] = "absolute"
    session.at.session_state["stitch.cell-encoder"] = 0
    session.at.session_state["stitch.cell-head"] = 2
    session.run()
    assert "has another dimension than the head" in session.info[0].value


def test_a_click_names_way_encoder_and_head(make_encoders):
    result = stitch_matrix(
        [load(spec) for spec in make_encoders()], StitchSpec(("relative", "procrustes"), n_anchors=24)
    )
    assert panel.cell_of([{"customdata": [1, 2, 0]}], result) == ("procrustes", 2, 0)
    assert panel.cell_of([], result) is None


def test_gap_order_and_states_change_what_is_shown(make_encoders):
    session = session_on(make_encoders())
    session.at.segmented_control(key="stitch.show").set_value("gap")
    session.run()
    assert "mean gap" in notes(session)
    session.at.segmented_control(key="stitch.states").set_value(3)
    session.run()
    assert table(session, "knows")["random_states"].tolist() == [3] * 6
    assert "stitched_deviation" in table(session, "knows")


def test_what_takes_long_is_asked_for_first_and_is_a_job(make_encoders, ran_in_place, monkeypatch):
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 0.0)
    monkeypatch.setattr(panel, "UNASKED_SECONDS", 0.0)
    session = session_on(make_encoders((8, 9)))
    assert ran_in_place == []
    assert session.button(key="stitching.start").label.startswith("Stitch 2 pairs · about")
    session.click("stitching.start")
    assert ran_in_place == ["Stitching every pair"]
    assert "stitched pairs" in session.html


def test_rows_that_no_network_was_trained_on_are_tested_on(tmp_path, monkeypatch):
    store, specs, rng = Store(), [], np.random.default_rng(0)
    dataset, labels = DatasetSpec("digits"), np.array(CLASSES)[np.arange(90) % 3]
    for name in ("mlp", "cnn"):
        space = LatentSpace(
            rng.normal(size=(90, 6)).astype(np.float32),
            [f"d{i}" for i in range(90)],
            name=name,
            labels=labels,
        )
        key = digest_of("test", name)
        put_encoding(store, key, space, {})
        specs.append(encoding_spec(dataset, SmallVision(name), "", key, f"{name} · digits"))
    rows = share_rows([load(spec) for spec in specs])
    assert held_out_ids(specs, [load(spec) for spec in specs], rows.ids) == tuple(
        f"d{row}" for row in held_out_rows(90)
    )
    session = session_on(specs)
    assert (
        "Heads are trained on **72** rows of 3 classes and tested on **18** that no encoder was trained on"
        in (session.captions)
    )


def test_encoders_of_two_datasets_do_not_mix_by_default(make_encoders):
    animals, strangers = make_encoders(), make_encoders((8, 8), prefix="s", name="stranger")
    others = make_encoders((8, 8), labels=np.array(CLASSES)[np.arange(240) // 80], name="relabelled")
    assert largest_family([*strangers, *others, *animals]) == animals
    session = session_on([*strangers, *animals])
    assert "<b>6</b> stitched pairs" in session.html


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"prefix": "s"}, "expected rows that all encoders share"),
        ({"labels": np.array(CLASSES)[np.arange(240) // 80]}, "different labels for"),
    ],
)
def test_encoders_that_do_not_fit_say_so(make_encoders, other, message):
    specs = [make_encoders((8,))[0], make_encoders((8,), name="other", **other)[0]]
    session = session_on(specs)
    if "two encoders" in " ".join(info.value for info in session.info):
        (chooser,) = [one for one in session.at.multiselect if one.key.startswith("stitch.encoders")]
        chooser.set_value(specs)
        session.run()
    assert any(message in error for error in session.errors), session.errors
