import json
from dataclasses import replace

import numpy as np
import pytest

from app import results
from app.stitch.panel import largest_family
from app.workspace import Workspace
from relcore.base.numbers import short
from relcore.catalog.catalog import load
from relcore.runs.jobs import JobQueue
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from tests.app.conftest import Session, save_space

CLASSES = ("cat", "dog", "fox")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 60.0)


@pytest.fixture
def make_encoders(tmp_path):

    def make(widths=(8, 8, 12), labels=None, prefix="r", name="encoder"):
        rng = np.random.default_rng(0)
        numbers = np.arange(240) % 3
        points = rng.normal(size=(3, 8))[numbers] * 2 + 1.2 * rng.normal(size=(240, 8))
        if labels is None:
            labels = np.array(CLASSES)[numbers]
        turns = [np.linalg.qr(rng.normal(size=(width, width)))[0][:8] for width in widths]
        rows = [points @ turn + 0.3 * rng.normal(size=(240, turn.shape[1])) for turn in turns]
        return [save_space(tmp_path / f"{name}{i}.npz", X, prefix, labels=labels) for i, X in enumerate(rows)]

    return make


def session_on(specs, **changes):
    return Session(None, Workspace(tuple(specs), *specs[:2], **changes), ("connect", "Stitch"))


def test_without_labelled_spaces_an_example_is_shown(make_session, monkeypatch):
    monkeypatch.setattr(JobQueue, "submit", None)
    monkeypatch.setattr("relcore.stitch.stitching.stitch_matrix", None)
    session = make_session()
    before = session.workspace
    session.open("connect", "Stitch").change("segmented_control", "stitch.example", "sentences")
    summary = session.table_with("knows").set_index("method")
    assert summary.chance.iloc[0] == pytest.approx(0.07, abs=0.02)
    assert summary.stitched["relative, whitened"] > summary.own.iloc[0] - 0.2
    assert session.workspace == before


def test_every_number_is_the_cores(make_encoders):
    specs = make_encoders()
    session = session_on(specs)
    expected = stitch_matrix([load(spec) for spec in specs], StitchSpec(n_anchors=24))
    mean, _ = expected.matrix("relative")
    assert all(f'"{short(value)}"' in json.dumps(session.charts[0]["data"]) for value in mean.ravel())
    summary = session.table_with("knows")
    np.testing.assert_allclose(summary["stitched"], expected.summary().query("metric == 'accuracy'").stitched)
    assert summary["pairs"].tolist() == ["2 of 6", *["6 of 6"] * 5]


def test_a_cell_opens_its_confusion(make_encoders):
    specs = make_encoders()
    session = session_on(specs)
    cell = {"pair": True, "cell-method": "relative", "cell-encoder": 0, "cell-head": 2}
    for name, value in cell.items():
        session.session_state[f"stitch.{name}"] = value
    session.run()
    settings = replace(StitchSpec().settings, delta=0.65)
    result = stitch_matrix([load(spec) for spec in specs], StitchSpec(n_anchors=24, settings=settings))
    confusion = result.confusion("relative", 0, 2)
    texts = session.charts[1]["data"][1]["hovertext"]
    assert [int(text.split("<br>")[-1].split()[0]) for text in texts] == confusion.ravel().tolist()


def test_encoders_of_two_datasets_do_not_mix_by_default(make_encoders):
    animals = make_encoders()
    strangers = make_encoders((8, 8), prefix="s", name="stranger")
    others = make_encoders((8, 8), labels=np.array(CLASSES)[np.arange(240) // 80], name="relabelled")
    assert largest_family([*strangers, *others, *animals]) == animals


def test_encoders_that_do_not_fit_say_so(make_encoders):
    specs = [make_encoders((8,))[0], make_encoders((8,), name="other", prefix="s")[0]]
    session = session_on(specs)
    session.change("multiselect", "stitch.encoders", specs)
    assert any("expected rows that all encoders share" in error for error in session.errors), session.errors


def test_languages_opens_link_with_two_spaces_that_share_no_ids(tmp_path):
    rng = np.random.default_rng(0)
    english, spanish, other = (
        save_space(tmp_path / f"{name}.npz", rng.normal(size=(30, 6)), name) for name in ("en", "es", "other")
    )
    workspace = Workspace((english, spanish, other), other, english)
    session = Session(None, workspace, ("connect", "Languages"))
    source = session.find("button_group", "languages.source").key
    session.change("button_group", source, "Spaces of this session")
    assert not session.errors
    session.click("languages.link")
    assert session.workspace.source == english
    assert session.workspace.target == spanish
    assert session.session_state["connect.tab"] == "Link"
